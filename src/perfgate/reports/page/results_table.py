"""Results table: every selected test in one row, the worst first, with its worst metric."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perfgate.core.verdict import Judgement
from perfgate.reports.figures import band, interval, loss, number, signed, with_unit, worst_first
from perfgate.reports.page.metric_rows import AGAINST
from perfgate.reports.page.signs import Sign, judgement_sign, result_sign
from perfgate.reports.run_report import TestResult


@dataclass(frozen=True)
class ResultRow:
    """One test.

    Attributes:
        anchor: id of its place in the page, made of a counter.
        sign: of its verdict.
        name: of the test.
        metric: the metric that speaks for it, with its unit and what it is compared with.
        value, change, interval, band: of that metric, as texts.
        loss: what the column of changes is sorted by; empty: unknown.
        aside: why there is no number.
        synthetic: whether stand-ins made it.
    """

    anchor: str
    sign: Sign
    name: str
    metric: str
    value: str
    change: str
    interval: str
    band: str
    loss: str
    aside: str
    synthetic: bool


def result_rows(results: Sequence[TestResult]) -> tuple[ResultRow, ...]:
    """The rows in the order worst first, within a verdict as selected."""
    rows = [_row(place, one) for place, one in enumerate(results)]
    return tuple(sorted(rows, key=lambda row: row.sign.rank))


def anchor_of(place: int) -> str:
    """The id in the page of the test with that place in the report."""
    return f"t{place}"


def leading(judgements: Iterable[Judgement]) -> Judgement | None:
    """The judgement that speaks for a test: the worst verdict, and of those the largest loss in
    bands.
    """
    return min(
        judgements,
        key=lambda one: (judgement_sign(one).rank, worst_first(one)),
        default=None,
    )


def _row(place: int, result: TestResult) -> ResultRow:
    found = leading(result.judgements)
    words, value, moved, bounds, most, lost = "", "", "", "", "", None
    if found is not None:
        words = " ".join(filter(None, (with_unit(found.metric), AGAINST[found.against])))
        value, moved = number(found.measured), signed(found.metric, found.change)
        bounds, most, lost = interval(found), band(found), loss(found)
    elif result.measured:
        first = result.measured[0]
        words, value = f"{first.metric} [{first.unit}]", number(first.value)
    aside = ""
    if result.failure is not None:
        aside = f"{result.failure.error_class}: {result.failure.message}"
    elif not words:
        aside = result.reason
    return ResultRow(
        anchor=anchor_of(place),
        sign=result_sign(result),
        name=result.name,
        metric=words,
        value=value,
        change=moved,
        interval=bounds,
        band=most,
        loss="" if lost is None else f"{lost:.6f}",
        aside=aside,
        synthetic=result.synthetic,
    )
