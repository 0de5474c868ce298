"""Changes chart: how far what regressed, or is undecided, lies from its baseline and its band."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from perfgate.core.verdict import Judgement, Verdict
from perfgate.reports.charts.chart import Chart, ChartTable, chart_id, rounded, spec
from perfgate.reports.figures import band, in_bands, interval, signed
from perfgate.reports.run_report import RunReport
from perfgate.reports.templating import shortened

MOST = 12  # rows: the worst
_SHOWN = (Verdict.REGRESSION, Verdict.INCONCLUSIVE)
_STATES = ("regression", "waived", "undecided")


@dataclass(frozen=True)
class _Row:
    """One judgement, in percent of its band: 0 is the baseline, -100 a loss of the band.

    Attributes:
        name: of the probe.
        judgement: the judgement.
        change, low, high: positive is better, `low` the worst end of the interval.
    """

    name: str
    judgement: Judgement
    change: float
    low: float
    high: float

    @property
    def state(self) -> str:
        if self.judgement.waiver:
            return "waived"
        return "regression" if self.judgement.verdict is Verdict.REGRESSION else "undecided"


def changes_chart(report: RunReport) -> Chart | None:
    """The worst of what regressed or is undecided; None: nothing of it has a band and numbers."""
    rows = sorted(_rows(report), key=lambda row: (row.state != "regression", row.change))
    if not rows:
        return None
    shown = rows[:MOST]
    title = "Changes that regressed or are undecided, in percent of their band"
    if len(rows) > len(shown):
        title += f": the worst {len(shown)} of {len(rows)}"
    values = [_datum(place, one) for place, one in enumerate(shown, start=1)]
    states = [state for state in _STATES if any(one.state == state for one in shown)]
    drawn = spec("changes", title, values, states=states)
    return Chart(chart_id("changes"), title, drawn, _table(shown))


def _rows(report: RunReport) -> Iterator[_Row]:
    for result in report.results:
        for judgement in result.judgements:
            if judgement.verdict in _SHOWN and judgement.interval is not None and judgement.band:
                lost = [
                    in_bands(judgement, value) for value in (judgement.change, *judgement.interval)
                ]
                percent = [rounded(-100 * value) for value in lost if value is not None]
                if len(percent) == len(lost) and all(map(math.isfinite, percent)):
                    change, *ends = percent
                    yield _Row(result.name, judgement, change, min(ends), max(ends))


def _datum(place: int, row: _Row) -> dict[str, Any]:
    one = row.judgement
    moved = f"{signed(one.metric, one.change)}, band {band(one)}"
    text = f"{shortened(row.name)}, {one.metric}: {row.state}, {moved}, interval {interval(one)}"
    return {
        "place": place,
        "label": f"{moved}: {shortened(row.name, 40)} {shortened(one.metric, 40)}",
        "state": row.state,
        "change": row.change,
        "low": row.low,
        "high": row.high,
        "told": text,
    }


def _table(rows: Sequence[_Row]) -> ChartTable:
    return ChartTable(
        ("test", "metric", "against", "change", "interval", "band", "change / band", "verdict"),
        tuple(
            (
                row.name,
                row.judgement.metric,
                row.judgement.against,
                signed(row.judgement.metric, row.judgement.change),
                interval(row.judgement),
                band(row.judgement),
                f"{row.change:+.0f} %",
                row.state,
            )
            for row in rows
        ),
    )
