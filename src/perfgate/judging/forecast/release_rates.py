"""Release rates: how often single tests err, and how many a suite may gate. Pure.

Constants, each with its source and Monte-Carlo error. Nothing is simulated here: the part
`release_probes` of `python -m benchmarks.detection` makes the rates of speeds, and a test holds
them against its stored results (docs/explanation/detection.md, "Single probes").
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from perfgate.core.errors import InputError
from perfgate.core.metrics import is_accuracy
from perfgate.judging.assembly.sweeps import sweep_probes
from perfgate.scenarios.probe import load_probes
from perfgate.scenarios.scenario import Scenario

Controls = Literal["controlled", "alone"]

# Each costs about 0.004 % of false alarms: from here on a release run has more than the one in a
# hundred that is promised (statistics §3).
MOST_COMPARISONS = 500

PER_PROBE = 3
"""Metrics of one probe, with their luck in common, that a simulated probe has."""


@dataclass(frozen=True)
class ProbeRates:
    """Of probes of three metrics on `real` noise; the worse of baselines of 3/3 and 10/10.

    Attributes:
        control: whether the other build is started beside the new one.
        band: in sigma of one start; the rates hold from there on.
        of_a_metric: an unchanged metric is REGRESSION.
        of_a_probe: any of the three is.
        with_anchor: any of the three is, against the baseline or an anchor of 1.5 bands.
        found: one band lost in a metric is REGRESSION.
    """

    control: Controls
    band: float
    of_a_metric: float
    of_a_probe: float
    with_anchor: float
    found: float


TRIALS, FOUND_TRIALS = 1_000_000, 200_000
"""Probes a cell; the standard error of a rate r is √(r (1-r) / TRIALS) at most: 0.001 points of the
probes' rates with controls, 0.03 without, 0.1 of what is found."""

PROBE_RATES: tuple[ProbeRates, ...] = (
    ProbeRates("controlled", 2.0, 0.001109333, 0.002874, 0.002948, 0.271185),
    ProbeRates("controlled", 3.0, 0.0001853333, 0.000474, 0.000481, 0.7553983),
    ProbeRates("controlled", 3.6, 7.966667e-05, 0.000195, 0.000197, 0.8875333),
    ProbeRates("controlled", 3.9, 5.466667e-05, 0.000121, 0.000122, 0.9168933),
    ProbeRates("alone", 2.0, 0.03905167, 0.081842, 0.088065, 0.245555),
    ProbeRates("alone", 3.0, 0.02914967, 0.060545, 0.063978, 0.664015),
    ProbeRates("alone", 3.6, 0.024577, 0.050303, 0.052967, 0.846395),
    ProbeRates("alone", 3.9, 0.02322967, 0.047163, 0.049494, 0.8952817),
)


@dataclass(frozen=True)
class TestRates:
    """Of one test that is no comparison of speeds with a stored baseline.

    Attributes:
        false_alarm: an unchanged build is REGRESSION.
        found: of a loss of the band, the share that is.
        words: what kind of test that is.
    """

    __test__ = False  # for pytest, which takes classes of this name for tests

    false_alarm: float
    found: float
    words: str


# The paired rule's alpha, which its simulation keeps (0.07 % at most of 12,000 trials); what it
# finds is what `perfgate plan` asks of a margin (statistics §7).
PAIRED = TestRates(0.002, 0.93, "answers")
# 400,000 trials: 0.6 ± 0.01 %; 82 % found with 198 questions (statistics §7).
SCORE = TestRates(0.006, 0.82, "scores without answers")
# 400,000 trials: 0.003 %; a loss of the tolerance itself is found in 32 % (statistics §7).
DOCUMENTED_SPEED = TestRates(0.00003, 0.32, "documented speeds")
# 10,000 to 20,000 sessions: 0.34 ± 0.06 % at worst; the band itself is found in 52 % where starts
# vary by 13 %, in 77 % at 3 % (statistics §9, `judging.forecast.simulation.in_turns`).
IN_TURNS = TestRates(0.0034, 0.52, "starts in turns")


def probe_rates(control: Controls, band: float) -> ProbeRates | None:
    """Those of the widest simulated band that is not above this one; None: it is narrower than all.

    Args:
        control: with controls, or without.
        band: in sigma of one start.
    """
    fit = [one for one in PROBE_RATES if one.control == control and one.band <= band + 1e-9]
    return max(fit, key=lambda one: one.band, default=None)


def of_one_probe(against_baseline: Sequence[ProbeRates], against_anchor: int) -> float:
    """An upper bound of any false REGRESSION of one probe.

    The metrics of a probe share its starts. Of three of them the simulated probe tells what that is
    worth, and more than three count as several such probes (Boole); never more than the sum over
    the comparisons, which holds however they depend on each other.

    Args:
        against_baseline: the rates of each metric that is compared with the baseline; if there is
            none, those of each that is compared with the anchor.
        against_anchor: how many are compared with the anchor besides.
    """
    if not against_baseline:
        return 0.0
    worst = max(against_baseline, key=lambda one: one.with_anchor)
    probes = -(-max(len(against_baseline), against_anchor) // PER_PROBE)
    whole = probes * (worst.with_anchor if against_anchor else worst.of_a_probe)
    each = sum(one.of_a_metric for one in against_baseline)
    each += against_anchor * max(one.of_a_metric for one in against_baseline)
    return min(1.0, whole, each)


def gated_comparisons(scenario: Scenario) -> int:
    """The gated comparisons of speeds: metric × point × {baseline, anchor}, and the curve.

    A machine that measures its own reference has no anchor, and rates of its own.
    """
    if scenario.gate.noise == "measured":
        return 0
    speeds = sum(not is_accuracy(one) for one in scenario.gate.metrics)
    curves = sum(len(one.gating_metrics()) for one in sweep_probes(scenario))
    return 2 * speeds * len(load_probes(scenario)) + curves


def require_small_family(scenarios: Iterable[Scenario]) -> None:
    """Refuse a suite that gates so much on one hardware that its false alarms add up.

    Args:
        scenarios: all of the suite, whatever is selected of it.

    Raises:
        InputError: more than `MOST_COMPARISONS` on one GPU.
    """
    counts: Counter[str] = Counter()
    for scenario in scenarios:
        counts[scenario.hardware.gpu] += gated_comparisons(scenario)
    for gpu, count in counts.items():
        if count > MOST_COMPARISONS:
            raise InputError(
                f"the suite gates too many speeds on {gpu}: of release runs without any change, "
                "more than one in a hundred would end in a REGRESSION",
                found=f"{count} comparisons",
                expected=f"at most {MOST_COMPARISONS}: metrics × points × (baseline and anchor), "
                "and curves",
                hint="gate fewer metrics or points (gate.metrics); the others are still reported",
            )
