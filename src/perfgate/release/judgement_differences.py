"""Judgement differences: in what judgements computed anew are not those of the records. Pure."""

import math
from collections.abc import Iterator, Sequence

from perfgate.core.verdict import Judgement

_NUMBERS = ("baseline", "measured", "change", "band")
_WORDS = ("verdict", "runs_used", "controls_used", "waiver", "mark", "is_interleaved")
# Far below any digit that is shown; another release of numpy or scipy may round otherwise.
_CLOSE = 1e-9


def judgement_differences(
    name: str, recorded: Sequence[Judgement], found: Sequence[Judgement]
) -> Iterator[str]:
    """What differs, one line each.

    Args:
        name: of the test.
        recorded: the judgements of its record.
        found: those computed anew.
    """
    known = {(one.metric, one.against): one for one in recorded}
    anew = {(one.metric, one.against): one for one in found}
    for key in sorted({*known, *anew}):
        metric, against = key
        place = f"{name}: {metric} against {against}"
        if key not in known or key not in anew:
            where = "the raw files" if key in anew else "the records"
            yield f"{place}: judged in {where} alone"
            continue
        yield from (f"{place}: {told}" for told in _of_one(known[key], anew[key]))


def _of_one(recorded: Judgement, found: Judgement) -> Iterator[str]:
    for field in _WORDS:
        old, new = getattr(recorded, field), getattr(found, field)
        if old != new:
            yield f"{field} {old!s} in the records, {new!s} from the raw files"
    for field in _NUMBERS:
        old, new = getattr(recorded, field), getattr(found, field)
        if not _is_close(old, new):
            yield f"{field} {old} in the records, {new} from the raw files"
    before, after = recorded.interval or (None, None), found.interval or (None, None)
    if not all(_is_close(old, new) for old, new in zip(before, after, strict=True)):
        yield f"interval {recorded.interval} in the records, {found.interval} from the raw files"


def _is_close(old: float | None, new: float | None) -> bool:
    if old is None or new is None:
        return old is new
    return old == new or math.isclose(old, new, rel_tol=_CLOSE, abs_tol=1e-12)
