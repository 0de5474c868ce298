"""Error rates of a release: how often the rule errs over all that was checked, as simulated. Pure.

Of each test an upper bound of a false REGRESSION over its metrics, against the baseline and the
anchor (`forecast.release_rates`); of tests together 1 - ∏(1 - p). That is exact where each
test has its own bad starts, and too much where tests share them: a bad start then makes several
tests red at once, and fewer releases (docs/explanation/detection.md, "A whole release run").
"""

import math
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from perfgate.core.errors import InputError
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.rule import Rule
from perfgate.core.verdict import Judgement, Verdict
from perfgate.judging.forecast.release_rates import (
    DOCUMENTED_SPEED,
    IN_TURNS,
    PAIRED,
    SCORE,
    Controls,
    ProbeRates,
    TestRates,
    of_one_probe,
    probe_rates,
)
from perfgate.judging.rules import scale
from perfgate.judging.rules.noise import BETWEEN, t_quantile
from perfgate.release.certificate import templates
from perfgate.release.check_result import CheckedTest, ErrorRates
from perfgate.reports.run_report import TestResult

_FROM_NUMBERS = (Verdict.PASS, Verdict.IMPROVEMENT, Verdict.REGRESSION, Verdict.INCONCLUSIVE)
# An interval this much wider than its metric's prior allows: the noise is another (several nodes, a
# noisier machine), and the band is told in that.
_NOISIER = 1.5
# Starts and sessions; the fewer, the wider the interval, so σ is never too small.
_USUAL_BASELINE = 10


class _Rates(NamedTuple):
    """What one test adds.

    Attributes:
        false_alarm: of any of its metrics.
        comparisons: metrics × what they are compared with.
        narrow: comparisons whose band is narrower than any that was simulated.
        speeds: rates of its speeds with a stored baseline, or else with an anchor.
        kinds: rates of its other comparisons.
    """

    false_alarm: float
    comparisons: int
    narrow: int
    speeds: tuple[ProbeRates, ...]
    kinds: tuple[TestRates, ...]


def error_rates(tests: Iterable[CheckedTest]) -> ErrorRates | None:
    """How often a release with these tests errs; None: no metric was compared with anything.

    A test counts as without controls where one was wanted, in its scenario and run, and could not
    be started. Where none was wanted nobody knows; the sentence says so.
    """
    each_once = {(one.run, one.test): one.result for one in tests if one.result and one.metrics}
    results = list(each_once.values())
    alone = {_group(one) for one in results if _is_judged_without_control(one)}
    parts = [_of_test(one, "alone" if _group(one) in alone else "controlled") for one in results]
    parts = [one for one in parts if one.comparisons]
    if not parts:
        return None
    narrow = sum(one.narrow for one in parts)
    speeds = [rates for one in parts for rates in one.speeds]
    kinds = Counter(kind for one in parts for kind in one.kinds)
    false_alarm = 1.0 if narrow else 1 - math.prod(1 - one.false_alarm for one in parts)
    least = [*(one.found for one in speeds), *(one.found for one in kinds)]
    found = 0.0 if narrow else min(least, default=0)
    beside = {_group(one) for one in results if any(control.build for control in one.controls)}
    words = {
        "comparisons": sum(one.comparisons for one in parts),
        "tests": len(parts),
        "narrow": narrow,
        "alarm": at_most(false_alarm),
        "speeds": speeds,
        "kinds": kinds,
        "least": _least,
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


def compared(one: TestResult) -> tuple[Judgement, ...]:
    """The judgements from numbers that the rates speak of: all but claims."""
    return tuple(
        judged
        for judged in one.judgements
        if judged.verdict in _FROM_NUMBERS
        and judged.change is not None
        and judged.against in ("baseline", "anchor", "documented")
    )


def _of_test(result: TestResult, control: Controls) -> _Rates:
    judged = compared(result)
    kinds = [_other_kind(result, one) for one in judged]
    speeds = [one for one, kind in zip(judged, kinds, strict=True) if kind is None]
    others = tuple(kind for kind in kinds if kind is not None)
    nearest = [one for one in speeds if one.against == "baseline"] or speeds
    bands = [band for band in map(band_in_sigma, nearest) if band is not None]
    known = tuple(rates for band in bands if (rates := probe_rates(control, band)) is not None)
    alarms = [of_one_probe(known, len(speeds) - len(nearest)), *(one.false_alarm for one in others)]
    any_alarm = 1 - math.prod(1 - one for one in alarms)
    return _Rates(any_alarm, len(judged), len(nearest) - len(known), known, others)


def _other_kind(result: TestResult, judgement: Judgement) -> TestRates | None:
    """What kind of test it is if no comparison of a speed with a stored baseline."""
    if is_accuracy(judgement.metric):
        pair = (judgement.metric, judgement.against)
        answers = any((one.metric, one.against) == pair for one in result.changed)
        return PAIRED if answers else SCORE
    if judgement.against == "documented":
        return DOCUMENTED_SPEED
    return IN_TURNS if judgement.is_interleaved else None


def band_in_sigma(judgement: Judgement) -> float | None:
    """The band of a speed in the noise of one start; None: it cannot be told.

    The noise is the prior of the metric's family, or what the interval shows if that is clearly
    more: with the error of m starts against ten of ten sessions, SE = σ √(ρ (1 + 1/10) + (1 - ρ)
    (1/m + 1/10)), and U - L = (t(1-α) + t(1-β)) SE (statistics §2).
    """
    try:
        metric = lookup(judgement.metric)
        margin = scale.margin(metric, judgement.band or 0.0)
    except InputError:
        return None
    shown = _shown_sigma(judgement)
    sigma = max(metric.family.sigma, shown if shown > _NOISIER * metric.family.sigma else 0.0)
    return margin / sigma if sigma > 0 else None


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
    told = min(math.ceil(share * factor - 1e-9) / 10**digits, 100.0)
    return f"at most {told:.{digits}f} %"


def _least(share: float) -> str:
    """A share as a percentage, rounded down."""
    return f"{math.floor(100 * share + 1e-9)} %"
