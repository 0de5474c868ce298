"""Documented: new starts against a speed that a document reports, a number without any spread.

What differs between the document's machine and this one is covered by the tolerance, not by an
error term, and no loss below the tolerance is claimed (statistics §7). No control is ever asked
for: the document's build is not at hand. Documented scores are `perfgate.judging.rules.scores`.
"""

import math
from collections.abc import Sequence
from statistics import fmean

from perfgate.core.metrics import Metric
from perfgate.core.verdict import Judgement, Verdict, counted, percent, with_interval
from perfgate.judging.rules import noise as noises
from perfgate.judging.rules import scale
from perfgate.judging.rules.performance import performance_metric

# What two machines of one kind may differ by: a smaller loss is not claimed.
LEAST_TOLERANCE = 0.10
MOST_STARTS = 3
# Normal quantiles, 2.5 % and 0.5 %: the noise of one start is stipulated, not estimated.
PASS_Z = 1.96
BELOW_Z = 2.58


def judge_documented(
    metric: str,
    reference: float,
    new: Sequence[float],
    tolerance: float = LEAST_TOLERANCE,
    *,
    sigma: float | None = None,
    max_runs: int = MOST_STARTS,
) -> Judgement:
    """Judge new starts against a documented value.

    With m the mean loss against the document on the log scale (of three starts their median),
    SE = sigma sqrt(1/n + 1) and delta the tolerance: m + 1.96 SE < delta is PASS; n >= 2 and
    m - 2.58 SE > delta is REGRESSION, "misses the document by more than" the tolerance; else
    another start, three at most, then INCONCLUSIVE (statistics §7). There is no IMPROVEMENT. Keep
    these verdicts out of measured history.

    Args:
        metric: canonical name of a performance metric.
        reference: the documented value, in the metric's unit.
        new: values of the new build, one per fresh start, in the order measured.
        tolerance: the loss that counts, as a fraction; less than 0.10 is raised to that.
        sigma: noise of one start on the log scale; None: that of the metric's family.
        max_runs: fresh starts, at most; more than three count as three.

    Raises:
        InputError: unknown metric, or values that cannot be judged or cannot be in one unit.
    """
    found = performance_metric(metric)
    margin = documented_margin(found, tolerance)
    prior = noises.checked_sigma(found.family.sigma if sigma is None else sigma)
    centre = scale.badness(found, [reference], "documented")[0]
    values = scale.badness(found, new, "new")
    scale.check_unit(found, [centre], values)
    most = min(max_runs, MOST_STARTS)
    losses = [value - centre for value in values[:most]]
    verdict, runs = decide(losses, margin, prior)
    loss, error = typical_loss(losses[:runs]), standard_error(prior, runs)
    low, high = (scale.change(found, loss + z * error) for z in (-BELOW_Z, PASS_Z))
    more = verdict == Verdict.INCONCLUSIVE and runs < most
    band = scale.change(found, margin)
    seen = with_interval(
        percent(scale.change(found, loss)), *(percent(x) for x in sorted((low, high)))
    )
    after = (
        f"{counted(runs, 'fresh start')} against the documented value of {reference:.10g} "
        f"{found.unit}"
    )
    return Judgement(
        metric=metric,
        verdict=verdict,
        baseline=reference,
        measured=scale.value(found, centre + loss),
        change=scale.change(found, loss),
        interval=(min(low, high), max(low, high)),
        band=scale.band(found, margin),
        runs_used=runs,
        needs_more_runs=more,
        reason=_reason(verdict, seen, percent(band), after, most - runs if more else 0),
        notes=_notes(tolerance),
        against="documented",
    )


def documented_margin(metric: Metric, tolerance: float) -> float:
    """The tolerance on the log scale; less than 10 % is raised to that.

    Raises:
        InputError: a tolerance that is no fraction.
    """
    return max(scale.margin(metric, tolerance), scale.margin(metric, LEAST_TOLERANCE))


def decide(losses: Sequence[float], margin: float, sigma: float) -> tuple[Verdict, int]:
    """The verdict, and after how many starts it fell.

    Args:
        losses: against the document on the log scale, one per fresh start, in order; at least one.
        margin: the tolerance on that scale.
        sigma: noise of one start on that scale.
    """
    for runs in range(1, len(losses) + 1):
        loss, error = typical_loss(losses[:runs]), standard_error(sigma, runs)
        if loss + PASS_Z * error < margin:
            return Verdict.PASS, runs
        if runs >= 2 and loss - BELOW_Z * error > margin:
            return Verdict.REGRESSION, runs
    return Verdict.INCONCLUSIVE, len(losses)


def typical_loss(losses: Sequence[float]) -> float:
    """The mean; of three their median, which one outlying start does not move far."""
    return noises.median(losses) if len(losses) >= MOST_STARTS else fmean(losses)


def standard_error(sigma: float, runs: int) -> float:
    """SE of so many starts against a document, which is worth one: sigma sqrt(1/n + 1)."""
    return sigma * math.sqrt(1 / runs + 1)


def _reason(verdict: Verdict, seen: str, band: str, after: str, left: int) -> str:
    if verdict == Verdict.REGRESSION:
        return f"misses the document by more than {band.lstrip('+-')}: {seen}; {after}"
    if verdict == Verdict.PASS:
        return f"{seen}, no worse than the document by the {band} tolerance; {after}"
    ahead = f"up to {left} more may decide" if left else "no more are allowed"
    return (
        f"{seen}: the {band} tolerance is not excluded, and that the document is missed by more is "
        f"not proved; {after}, {ahead}"
    )


def _notes(tolerance: float) -> tuple[str, ...]:
    notes = ["against a documented number, perhaps of another machine"]
    if tolerance < LEAST_TOLERANCE:
        notes.append(
            f"tolerance raised from {percent(tolerance, sign='')} to "
            f"{percent(LEAST_TOLERANCE, 0, sign='')}: less cannot be told from the difference "
            "between machines"
        )
    return tuple(notes)
