"""Sanity of answers: faults that make a score meaningless, told apart from a small regression."""

import math
from collections.abc import Mapping

from perfgate.core.errors import InputError

OUTPUT_FORMAT = "OUTPUT_FORMAT"
BROKEN_OUTPUT = "BROKEN_OUTPUT"

# Far below: less than 4/5, and more than 10 points. The case it was made for is 0.57 against 0.97.
_FAR_SHARE = 0.8
_FAR_POINTS = 0.10
# A reference this good makes a score below one half a broken engine, not a weaker one.
_GOOD_REFERENCE = 0.8
_MOST_INVALID = 0.02


def faults_of(
    metric: str, reference: Mapping[str, float], measured: Mapping[str, float]
) -> tuple[str, ...]:
    """What a loss of one accuracy is, where it is no small one but broken output or format.

    Args:
        metric: canonical name of an accuracy metric, whose task has the filters of GSM8K.
        reference: scores of the baseline by metric, as far as they are known.
        measured: scores of one evaluation; without one of ``strict-match`` there is no fault.

    Raises:
        InputError: a score that is not within 0…1.
    """
    task = metric.rpartition(":")[0]
    strict, flexible = f"{task}:strict-match", f"{task}:flexible-extract"
    if strict not in measured:
        return ()
    return sanity(measured[strict], measured.get(flexible), reference_strict=reference.get(strict))


def sanity(
    strict: float,
    flexible: float | None,
    invalid_share: float = 0.0,
    reference_strict: float | None = None,
    reference_invalid: float = 0.0,
) -> tuple[str, ...]:
    """Faults of one evaluation, as a tuple of OUTPUT_FORMAT and BROKEN_OUTPUT; empty if sane.

    OUTPUT_FORMAT: answers are right but not in the asked form: strict is far below flexible, and,
    where there is a reference, far below that too (a model that never kept the form has no fault).

    BROKEN_OUTPUT: more than 2 % of the answers beyond those of the reference are invalid, or the
    best of the two scores is below half of the reference, or below 0.5 where the reference is 0.8
    or better. Without a reference no score is too low: a small model may be healthy at 0.3. Give
    the documented score as reference where there is no measured one.

    Args:
        strict: score of the strict filter (GSM8K: ``strict-match``), 0…1.
        flexible: score of the lenient filter (``flexible-extract``); None if the task has one only.
        invalid_share: share of answers from which no result could be read.
        reference_strict: strict score of the baseline, or the documented or declared one.
        reference_invalid: share of invalid answers in the baseline.

    Raises:
        InputError: a share that is not within 0…1.
    """
    for share in (strict, flexible, invalid_share, reference_strict, reference_invalid):
        if share is not None and not (math.isfinite(share) and 0 <= share <= 1):
            raise InputError("not a share of answers", found=share, expected="0…1")
    best = strict if flexible is None else max(strict, flexible)
    faults = []
    if _far_below(strict, best) and (
        reference_strict is None or _far_below(strict, reference_strict)
    ):
        faults.append(OUTPUT_FORMAT)
    if invalid_share > reference_invalid + _MOST_INVALID or _too_low(best, reference_strict):
        faults.append(BROKEN_OUTPUT)
    return tuple(faults)


def _far_below(score: float, other: float) -> bool:
    return score < _FAR_SHARE * other and other - score > _FAR_POINTS


def _too_low(score: float, reference: float | None) -> bool:
    if reference is None:
        return False
    return score < (0.5 if reference >= _GOOD_REFERENCE else reference / 2)
