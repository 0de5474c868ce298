"""Changes chart: how far what regressed, or is undecided, lies from its baseline and its band."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from perfgate.core.verdict import Judgement, Verdict
from perfgate.reports.charts.chart import Chart, ChartTable, Spec, chart_id
from perfgate.reports.charts.style import BAD, QUIET, STORED, layered
from perfgate.reports.charts.texts import short
from perfgate.reports.figures import bad_sign, band, interval, signed
from perfgate.reports.run_report import RunReport

MOST = 12  # rows: the worst
_SHOWN = (Verdict.REGRESSION, Verdict.INCONCLUSIVE)
_MARKS = {"regression": "triangle-down", "waived": "cross", "undecided": "diamond"}
_COLOURS = {"regression": BAD, "waived": QUIET, "undecided": STORED}


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
    rows = sorted(_rows(report), key=lambda one: (one.state != "regression", one.change))
    if not rows:
        return None
    shown = rows[:MOST]
    title = "Changes that regressed or are undecided, in percent of their band"
    if len(rows) > len(shown):
        title += f": the worst {len(shown)} of {len(rows)}"
    return Chart(chart_id("changes"), title, _spec(title, shown), _table(shown))


def _rows(report: RunReport) -> Iterable[_Row]:
    for result in report.results:
        for one in result.judgements:
            numbers = _in_bands(one)
            if one.verdict in _SHOWN and numbers is not None:
                yield _Row(result.name, one, *numbers)


def _in_bands(one: Judgement) -> tuple[float, float, float] | None:
    """Change and bounds in percent of the band, positive is better; None: it has none of them."""
    sign = -bad_sign(one.metric)
    if one.change is None or one.interval is None or not one.band or not sign:
        return None
    change, *ends = (sign * 100 * value / one.band for value in (one.change, *one.interval))
    if not all(map(math.isfinite, (change, *ends))):
        return None
    return change, min(ends), max(ends)


def _spec(title: str, rows: Sequence[_Row]) -> Spec:
    states = [state for state in _MARKS if any(one.state == state for one in rows)]
    by_state = {"field": "state", "type": "nominal", "title": None}
    colour = {**by_state, "scale": {"domain": states, "range": [_COLOURS[one] for one in states]}}
    shape = {**by_state, "scale": {"domain": states, "range": [_MARKS[one] for one in states]}}
    x = {
        "type": "quantitative",
        "scale": {"zero": True, "nice": True},
        "axis": {"title": "worse ← change in percent of the band → better", "format": "+d"},
    }
    y = {"field": "place", "type": "ordinal", "title": None, "axis": None}
    layers: list[Spec] = [
        *_lines(x),
        {
            # Above its row, and not beside it: a phone has no room there.
            "mark": {
                "type": "text",
                "align": "left",
                "dy": -14,
                "limit": {"expr": "width"},
                "aria": False,
            },
            "encoding": {"y": y, "x": {"value": 0}, "text": {"field": "label"}},
        },
        {
            "mark": {"type": "rule", "strokeWidth": 3, "aria": False},
            "encoding": {
                "y": y,
                "x": {**x, "field": "low"},
                "x2": {"field": "high"},
                "color": colour,
            },
        },
        {
            "mark": {"type": "point", "size": 110, "filled": True, "opacity": 1},
            "encoding": {
                "y": y,
                "x": {**x, "field": "change"},
                "color": colour,
                "shape": shape,
                "description": {"field": "told"},
                "tooltip": {"field": "told"},
            },
        },
    ]
    values = [_datum(place, one) for place, one in enumerate(rows, start=1)]
    return layered(title, layers, data={"values": values}, height=42 * len(rows))


def _lines(x: Spec) -> list[Spec]:
    """Where the baseline is, and where a loss is as large as the band."""
    drawn: list[Spec] = []
    for value, label, dash in ((0, "baseline", [1, 0]), (-100, "band", [6, 4])):
        at: Spec = {"values": [{"value": value, "label": label}]}
        drawn += [
            {
                "data": at,
                "mark": {"type": "rule", "color": QUIET, "strokeDash": dash, "aria": False},
                "encoding": {"x": {**x, "field": "value"}},
            },
            {
                "data": at,
                "mark": {"type": "text", "baseline": "bottom", "dy": -4, "aria": False},
                "encoding": {
                    "x": {**x, "field": "value"},
                    "y": {"value": 0},
                    "text": {"field": "label"},
                },
            },
        ]
    return drawn


def _datum(place: int, row: _Row) -> dict[str, Any]:
    one = row.judgement
    moved = f"{signed(one.metric, one.change)}, band {band(one)}"
    told = f"{short(row.name)}, {one.metric}: {row.state}, {moved}, interval {interval(one)}"
    return {
        "place": place,
        "label": f"{moved}: {short(row.name, 40)} {short(one.metric, 40)}",
        "state": row.state,
        "change": row.change,
        "low": row.low,
        "high": row.high,
        "told": told,
    }


def _table(rows: Sequence[_Row]) -> ChartTable:
    return ChartTable(
        ("test", "metric", "against", "change", "interval", "band", "change / band", "verdict"),
        tuple(
            (
                one.name,
                one.judgement.metric,
                one.judgement.against,
                signed(one.judgement.metric, one.judgement.change),
                interval(one.judgement),
                band(one.judgement),
                f"{one.change:+.0f} %",
                one.state,
            )
            for one in rows
        ),
    )
