"""Online: the gate, and the rules of today, walking along a series one point at a time.

A point is taken for one fresh start of one commit's build. A decision at a point may use what came
before it, and up to four later points in place of confirming starts. A series holds no control, so
the gate is the one without.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from perfgate.core.errors import InputError
from perfgate.core.metrics import Metric, lookup
from perfgate.core.verdict import Judgement, Rule, Verdict
from perfgate.judging.rules import scale
from perfgate.judging.rules.noise import RunNoise
from perfgate.judging.rules.performance import PerformanceTest
from perfgate.judging.rules.scale import anchor_band

MOST_RUNS = 5
# The same values judged as a latency and as a throughput: a loss of one is a gain of the other.
LOWER = "mean_request_latency_ms"
HIGHER = "output_throughput"
_MAD_TO_SIGMA = 0.6745 * 2**0.5  # for differences of two normal values


@dataclass(frozen=True)
class Settings:
    """How the gate is used on a series.

    Attributes:
        band: the loss that counts, in sigma of the series' own past.
        window: values of the baseline, at most: the last accepted ones since the last change.
        first: points that are taken for the first baseline and calibration, without a decision.
        alpha: error rate of a look.
        gains: "band": a gain counts like a loss, by the same rule on the mirrored metric;
            "improvement": as the gate tells it, from half a band on.
        recalibrate: sigma from all points so far; else from the first ones only.
        anchor: values of the anchor, the first accepted ones since the last change; 0: no anchor.
        sigma: noise of one run, known from elsewhere; None: from the series' own past.
        prior_dof: how many observations sigma is worth.
    """

    band: float = 4.0
    window: int = 30
    first: int = 10
    alpha: float = Rule().alpha
    gains: str = "band"
    recalibrate: bool = True
    anchor: int = 10
    sigma: float | None = None
    prior_dof: float = 10


@dataclass(frozen=True)
class Walk:
    """What happened along a series: indices of alarms, decisions, starts used, undecided ones."""

    alarms: tuple[int, ...]
    decisions: int
    starts: int
    undecided: int


def noise_of(past: Sequence[float]) -> float:
    """Sigma of one run on the log scale: MAD of successive differences / (0.6745 √2).

    Steps and single outliers touch few differences, so they hardly move it.

    Raises:
        InputError: a value that is not positive and finite.
    """
    x = scale.log_loss(lookup(LOWER), past, "past")
    return median(abs(b - a) for a, b in pairwise(x)) / _MAD_TO_SIGMA


def walk(values: Sequence[float], settings: Settings) -> Walk:
    """Run the gate along a series.

    PASS accepts the point into the baseline. An alarm is a loss or a gain that the gate calls real
    after confirmation; a person then accepts the new level, so baseline and anchor start again with
    the runs of that decision. An undecided point is not accepted.

    Raises:
        InputError: the gate refuses the values.
    """
    accepted = list(values[: settings.first])
    anchor = accepted[: settings.anchor]
    first_sigma = settings.sigma or noise_of(accepted)
    alarms, decisions, starts, undecided, at = [], 0, 0, 0, settings.first
    while at < len(values):
        fixed = settings.sigma is not None or not settings.recalibrate
        sigma = first_sigma if fixed else noise_of(values[:at])
        new = values[at : at + MOST_RUNS]
        judged = _judged(accepted[-settings.window :], anchor, new, sigma, settings)
        decisions += 1
        starts += max(one.runs_used for one in judged)
        changed = [one.runs_used for one in judged if _is_change(one, settings)]
        if changed:
            alarms.append(at)
            accepted = list(new[: max(changed)])
            anchor = accepted[: settings.anchor]
            at += max(changed)
            continue
        if all(one.verdict in (Verdict.PASS, Verdict.IMPROVEMENT) for one in judged):
            accepted.append(values[at])
            if len(anchor) < settings.anchor:
                anchor = [*anchor, values[at]]
        else:
            undecided += 1
        at += 1
    return Walk(tuple(alarms), decisions, starts, undecided)


def _judged(
    baseline: Sequence[float],
    anchor: Sequence[float],
    new: Sequence[float],
    sigma: float,
    settings: Settings,
) -> list[Judgement]:
    rule = Rule(alpha=settings.alpha, prior_dof=settings.prior_dof, max_runs=MOST_RUNS)
    judged = []
    for name in (LOWER, HIGHER) if settings.gains == "band" else (LOWER,):
        band = _band(lookup(name), settings.band * sigma)
        held: list[tuple[Sequence[float], float]] = [(baseline, band)]
        if settings.anchor:
            held.append((anchor, anchor_band(name, band)))
        # Every point is of a session of its own, so that none share a session's luck.
        judged += [
            PerformanceTest(name, one, values, new, RunNoise(sigma, between=0.0)).judge(rule)
            for values, one in held
        ]
    return judged


def _band(metric: Metric, margin: float) -> float:
    return scale.band(metric, margin)


def _is_change(judged: Judgement, settings: Settings) -> bool:
    told = judged.verdict == Verdict.IMPROVEMENT and settings.gains == "improvement"
    return judged.verdict == Verdict.REGRESSION or told


def refusal(values: Sequence[float], settings: Settings) -> str:
    """Why the gate refuses a series; empty if it does not."""
    try:
        walk(values, settings)
    except InputError as error:
        return str(error)
    return ""


def replay(
    values: Sequence[float],
    differs: Callable[[Sequence[float], Sequence[float]], bool],
    *,
    least: int,
    most: int,
    new: int,
) -> tuple[int, ...]:
    """Alarms of another rule: `differs(baseline, new)` at every point, a new start after each.

    Args:
        least: accepted values that the rule needs; without them nothing is decided.
        most: accepted values that it is given, the last ones since the last alarm.
        new: points that it is given from the decision's own on.
    """
    alarms: list[int] = []
    accepted: list[float] = []
    at = 0
    while at + new <= len(values):
        given = values[at : at + new]
        if len(accepted) >= least and differs(accepted[-most:], given):
            alarms.append(at)
            accepted = list(given)
            at += new
            continue
        accepted.append(values[at])
        at += 1
    return tuple(alarms)
