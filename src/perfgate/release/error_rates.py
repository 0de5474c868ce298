"""Error rates of a release: how often the rule errs over all that was checked, as simulated. Pure.

Of each test an upper bound of a false REGRESSION over its metrics, against the baseline and the
anchor (`PROBE_RATES`); of tests together 1 - ∏(1 - p). That is exact where each
test has its own bad starts, and too much where tests share them: a bad start then makes several
tests red at once, and fewer releases (docs/explanation/detection.md, "A whole release run").

Nothing is simulated here. Each constant has its source and Monte-Carlo error: the part
`release_probes` of `python -m benchmarks.detection` makes those of speeds, and a test compares them
with its stored results (docs/explanation/detection.md, "Single probes").
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from perfgate.core.errors import InputError
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.verdict import Judgement, Rule, Verdict
from perfgate.judging.rules import scale
from perfgate.judging.rules.noise import BETWEEN, t_quantile
from perfgate.release.certificate import templates
from perfgate.release.check_result import CheckedTest, ErrorRates
from perfgate.reports.run_report import TestResult

Control = Literal["controlled", "alone"]

PER_PROBE = 3
"""Metrics of one probe, with their luck in common, that a simulated probe has."""


class ProbeRates(NamedTuple):
    """Of probes of three metrics on `real` noise; the worse of baselines of 3/3 and 10/10.

    Attributes:
        control: whether the other build is started beside the new one.
        band: in sigma of one start; the rates hold from there on.
        of_a_metric: an unchanged metric is REGRESSION.
        of_a_probe: any of the three is.
        with_anchor: any of the three is, against the baseline or an anchor of 1.5 bands.
        found: one band lost in a metric is REGRESSION.
    """

    control: Control
    band: float
    of_a_metric: float
    of_a_probe: float
    with_anchor: float
    found: float


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
"""Of 1,000,000 probes a cell, what is found of 200,000; the standard error of a rate r of n trials
is √(r (1-r) / n) at most: 0.001 points of the probes' rates with controls, 0.03 without, 0.1 of
what is found."""


class KindRates(NamedTuple):
    """Of one test that is no comparison of speeds with a stored baseline.

    Attributes:
        false_alarm: an unchanged build is REGRESSION.
        found: of a loss of the band, the share that is.
        words: what kind of test that is.
    """

    false_alarm: float
    found: float
    words: str


# The paired rule's alpha, which its simulation keeps (0.07 % at most of 12,000 trials); what it
# finds is what `perfgate plan` asks of a margin (statistics §7).
PAIRED = KindRates(0.002, 0.93, "answers")
# 400,000 trials: 0.6 ± 0.01 %; 82 % found with 198 questions (statistics §7).
SCORE = KindRates(0.006, 0.82, "scores without answers")
# 400,000 trials: 0.003 %; a loss of the tolerance itself is found in 32 % (statistics §7).
DOCUMENTED_SPEED = KindRates(0.00003, 0.32, "documented speeds")
# 10,000 to 20,000 sessions: 0.34 ± 0.06 % at worst; the band itself is found in 52 % where starts
# vary by 13 %, in 77 % at 3 % (statistics §9, `judging.forecast.simulation.in_turns`).
IN_TURNS = KindRates(0.0034, 0.52, "starts in turns")


def probe_rates(control: Control, band: float) -> ProbeRates | None:
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


# Of a release. -----------------------------------------------------------------------------------

_FROM_NUMBERS = (Verdict.PASS, Verdict.IMPROVEMENT, Verdict.REGRESSION, Verdict.INCONCLUSIVE)
_AGAINST = ("baseline", "anchor", "documented")  # the rates speak of all but claims
# An interval this much wider than its metric's prior allows: the noise is another (several nodes, a
# noisier machine), and the band is told in that.
_NOISIER = 1.5
# Starts and sessions; the fewer, the wider the interval, so σ is never too small.
_USUAL_BASELINE = 10


def error_rates(tests: Iterable[CheckedTest]) -> ErrorRates | None:
    """How often a release with these tests errs; None: no metric was compared with anything.

    A test counts as without controls where one was wanted, in its scenario and run, and could not
    be started. Where none was wanted nobody knows; the sentence says so.
    """
    each_once = {
        (test.run, test.test): test.result for test in tests if test.result and test.metrics
    }
    results = list(each_once.values())
    alone = {_group(one) for one in results if _is_judged_without_control(one)}
    beside = {_group(one) for one in results if any(control.build for control in one.controls)}
    alarms: list[float] = []  # of each test, that it shows a false REGRESSION
    comparisons, narrow, kinds = 0, 0, Counter[KindRates]()
    speeds: list[ProbeRates] = []  # with the stored baseline, or else with an anchor
    for result in results:
        from_numbers = (
            judgement for judgement in result.judgements if judgement.verdict in _FROM_NUMBERS
        )
        judged = [
            number
            for number in from_numbers
            if number.change is not None and number.against in _AGAINST
        ]
        if not judged:
            continue
        others = [kind for one in judged if (kind := _other_kind(result, one))]
        of_speed = [one for one in judged if not _other_kind(result, one)]
        nearest = [one for one in of_speed if one.against == "baseline"] or of_speed
        control: Control = "alone" if _group(result) in alone else "controlled"
        known = [fit for one in nearest if (fit := probe_rates(control, band_in_sigma(one)))]
        of_probe = of_one_probe(known, len(of_speed) - len(nearest))
        each = (of_probe, *(kind.false_alarm for kind in others))
        alarms.append(1 - math.prod(1 - one for one in each))
        comparisons += len(judged)
        narrow += len(nearest) - len(known)
        speeds += known
        kinds.update(others)
    if not alarms:
        return None
    false_alarm = 1.0 if narrow else 1 - math.prod(1 - alarm for alarm in alarms)
    found = (
        0.0 if narrow else min([*(speed.found for speed in speeds), *(one.found for one in kinds)])
    )
    words = {
        "comparisons": comparisons,
        "tests": len(alarms),
        "narrow": narrow,
        "alarm": at_most(false_alarm),
        "speeds": speeds,
        "kinds": kinds,
        "alone": len(alone),
        "beside": len(beside - alone),
    }
    sentence = templates().get_template("error_rates.txt").render(words)
    return ErrorRates(false_alarm, found, " ".join(sentence.split()))


def _group(one: TestResult) -> tuple[str, str]:
    return one.run, one.scenario


def _is_judged_without_control(one: TestResult) -> bool:
    return any(control.build is None for control in one.controls) or any(
        judgement.mark == "NO_CONTROL" for judgement in one.judgements
    )


def _other_kind(result: TestResult, judgement: Judgement) -> KindRates | None:
    """What kind of test it is if no comparison of a speed with a stored baseline."""
    if is_accuracy(judgement.metric):
        pair = (judgement.metric, judgement.against)
        answers = any((one.metric, one.against) == pair for one in result.changed)
        return PAIRED if answers else SCORE
    if judgement.against == "documented":
        return DOCUMENTED_SPEED
    return IN_TURNS if judgement.is_interleaved else None


def band_in_sigma(judgement: Judgement) -> float:
    """The band of a speed in the noise of one start; 0: it cannot be told.

    The noise is the prior of the metric's family, or what the interval shows if that is clearly
    more: with the error of m starts against ten of ten sessions, SE = σ √(ρ (1 + 1/10) + (1 - ρ)
    (1/m + 1/10)), and U - L = (t(1-α) + t(1-β)) SE (statistics §2).
    """
    try:
        metric = lookup(judgement.metric)
        margin = scale.margin(metric, judgement.band or 0.0)
    except InputError:
        return 0.0
    usual, shown = metric.family.sigma, _shown_sigma(judgement)
    return margin / (shown if shown > _NOISIER * usual else usual)


def _shown_sigma(judgement: Judgement) -> float:
    if judgement.interval is None or min(judgement.interval) <= -1:
        return math.inf
    low, high = judgement.interval
    width = abs(math.log1p(high) - math.log1p(low))
    rule, many = Rule(), _USUAL_BASELINE
    dof = rule.prior_dof + many - 1
    quantiles = t_quantile(1 - rule.alpha, dof) + t_quantile(1 - rule.beta, dof)
    runs = max(1, judgement.runs_used)
    error = math.sqrt(BETWEEN * (1 + 1 / many) + (1 - BETWEEN) * (1 / runs + 1 / many))
    return width / quantiles / error


def at_most(share: float) -> str:
    """A share as a percentage, rounded up to the next tenth of a per cent."""
    if share <= 0.0001:
        return "less than 0.01 %"
    digits = 2 if share < 0.001 else 1 if share < 0.1 else 0
    factor = 10 ** (2 + digits)
    rate = min(math.ceil(share * factor - 1e-9) / 10**digits, 100.0)
    return f"at most {rate:.{digits}f} %"
