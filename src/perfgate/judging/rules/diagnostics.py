"""Diagnostics: what is reported beside the verdicts of numbers, and is no verdict itself. Pure.

Faults that make a score meaningless, told apart from a small regression; which of many metrics that
do not gate moved by more than chance; and whether everything on a host got worse at once.
"""

from collections.abc import Mapping, Sequence
from statistics import median

from perfgate.core.errors import InputError
from perfgate.core.verdict import percent
from perfgate.judging.rules.scale import as_number

OUTPUT_FORMAT = "OUTPUT_FORMAT"
BROKEN_OUTPUT = "BROKEN_OUTPUT"

# Far below: less than 4/5, and more than 10 points. The case it was made for is 0.57 against 0.97.
_FAR_SHARE = 0.8
_FAR_POINTS = 0.10
# A reference this good makes a score below one half a broken engine, not a weaker one.
_GOOD_REFERENCE = 0.8

# With fewer scenarios "nearly all" says little; and a change of the engine that touches some of its
# features leaves at least a fifth of the scenarios alone more often than a slow host does.
_FEWEST_SCENARIOS = 4
_NEARLY_ALL = 0.8


def faults_of(
    metric: str, reference: Mapping[str, float], measured: Mapping[str, float]
) -> tuple[str, ...]:
    """What a loss of one accuracy is, where it is no small one but broken output or format.

    OUTPUT_FORMAT: answers are right but not in the asked form: strict is far below flexible, and,
    where there is a reference, far below that too (a model that never kept the form has no fault).

    BROKEN_OUTPUT: the best of the two scores is below half of the reference, or below 0.5 where the
    reference is 0.8 or better. Without a reference no score is too low: a small model may be
    healthy at 0.3. Give the documented score as reference where there is no measured one.

    Args:
        metric: canonical name of an accuracy metric, whose task has the filters of GSM8K.
        reference: scores of the baseline by metric, as far as they are known.
        measured: scores of one evaluation; without one of ``strict-match`` there is no fault.

    Returns:
        OUTPUT_FORMAT and BROKEN_OUTPUT, as far as they apply.

    Raises:
        InputError: a score that is not within 0…1.
    """
    task = metric.rpartition(":")[0]
    strict, flexible = f"{task}:strict-match", f"{task}:flexible-extract"
    if strict not in measured:
        return ()
    kept, best, was = measured[strict], measured.get(flexible), reference.get(strict)
    for share in (kept, best, was):
        if share is not None and not 0 <= as_number(share) <= 1:
            raise InputError("not a share of answers", found=share, expected="0…1")
    best = kept if best is None else max(kept, best)
    found = {
        OUTPUT_FORMAT: _far_below(kept, best) and (was is None or _far_below(kept, was)),
        BROKEN_OUTPUT: was is not None and best < (0.5 if was >= _GOOD_REFERENCE else was / 2),
    }
    return tuple(fault for fault, is_there in found.items() if is_there)


def _far_below(score: float, other: float) -> bool:
    return score < _FAR_SHARE * other and other - score > _FAR_POINTS


def false_discoveries(p_values: Sequence[float], q: float = 0.10) -> tuple[bool, ...]:
    """Which of many p-values to call out, so that of those a share q is chance, on average.

    Benjamini and Hochberg (1995): with m values in ascending order, all up to the largest
    p_(i) <= q i / m. It holds for metrics that are independent or positively dependent.

    Args:
        p_values: one-sided, e.g. `perfgate.core.measurement.Change.p_value`.
        q: the share of chance findings that is accepted.

    Returns:
        for each value, in the order given, whether it is called out.

    Raises:
        InputError: a p-value that is none, or a q that is no share.
    """
    if not 0 < as_number(q) < 1:
        raise InputError("not a share of false discoveries", found=q, expected="0 < q < 1")
    for value in p_values:
        if not 0 <= as_number(value) <= 1:
            raise InputError("not a p-value", found=value, expected="0…1")
    many = len(p_values)
    ranked = sorted(p_values)
    # p (m / i) <= q is the same as p <= q i / m, and rounds as SciPy does.
    least = [p for i, p in enumerate(ranked, start=1) if p * (many / i) <= q]
    return tuple(bool(least) and value <= least[-1] for value in p_values)


def moved_together(moves: Sequence[tuple[str, float, bool]]) -> str:
    """The suspicion that the host moved and not the build, in one sentence; "" if there is none.

    There is one if at least four scenarios were judged and at least four fifths of them lost
    something beyond doubt. Give performance only: accuracy does not depend on a host's speed.

    Args:
        moves: of every judged metric, also those that stayed as they were: id of its scenario,
            signed change as in `Judgement`, whether the judgement's interval excludes "no loss".
    """
    judged = {scenario for scenario, _, _ in moves}
    losses: dict[str, float] = {}
    for scenario, change, is_lost in moves:
        if is_lost:
            losses[scenario] = max(losses.get(scenario, 0.0), abs(change))
    if len(judged) < _FEWEST_SCENARIOS or len(losses) < _NEARLY_ALL * len(judged):
        return ""
    sizes = list(losses.values())
    smallest, largest, middle = (
        percent(share, sign="") for share in (min(sizes), max(sizes), median(sizes))
    )
    return (
        f"{len(losses)} of {len(judged)} scenarios got worse at once, by {smallest} to {largest} "
        f"(median {middle}, the worst metric of each): this may be the host and not the build; "
        "look at its clocks and its neighbours, and measure the baseline's commit on it; the "
        "verdicts stand"
    )
