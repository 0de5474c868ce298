"""History chart: one gating metric over the engine's commits, with what it is held against.

A report may have a thousand of these, so what differs between them is little: the values are rows
of data, and all texts that can be made of those are made where the chart is drawn.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from perfgate.core.metrics import is_accuracy
from perfgate.core.verdict import Judgement
from perfgate.reports.charts.chart import Chart, ChartTable, Spec, chart_id
from perfgate.reports.charts.style import NEW, QUIET, STORED, layered
from perfgate.reports.charts.texts import rounded, short, shown
from perfgate.reports.figures import bad_sign, known, number
from perfgate.reports.history import HistoryPoint, MetricHistory

_SHAPES = {
    "baseline": "diamond",
    "anchor": "triangle-up",
    "run": "circle",
    "this run": "square",
}
_COLOURS = {"baseline": STORED, "anchor": STORED, "run": QUIET, "this run": NEW}
_SYNTHETIC = ", synthetic"
_HASH = re.compile(r"[0-9a-f]{16,64}")

# Of each point, in Vega's expressions: what stands above it, and what a screen reader tells of it.
_TEXTS = (
    {
        "calculate": "datum.note ? split(datum.note, ':')[0] : "
        "datum.kind == 'run' ? '' : replace(datum.kind, ', synthetic', '')",
        "as": "label",
    },
    {
        "calculate": "datum.version + ', ' + datum.day + ', ' + datum.kind "
        "+ (datum.note ? ', ' + datum.note : '') + ': ' + format(datum.value, ',.4~r')",
        "as": "told",
    },
)


def history_chart(history: MetricHistory, judgement: Judgement | None, most: int) -> Chart | None:
    """The chart; None where nothing is stored that this run could be seen beside.

    Args:
        history: its points.
        judgement: of this run against the baseline: its level and band are drawn.
        most: how many points are shown: the newest, and the anchor.
    """
    if all(one.kind == "this run" for one in history.points):
        return None
    title = f"{history.name}: {history.metric} over commits"
    some = _newest(history, most)
    return Chart(
        chart_id("history", history.name, history.metric),
        shown(title),
        _spec(short(title, 120), some, judgement),
        _table(some),
    )


def _newest(history: MetricHistory, most: int) -> MetricHistory:
    older = history.points[:-most]
    if not older:
        return history
    points = (*(one for one in older if one.kind == "anchor"), *history.points[-most:])
    order = f"{history.order}; {len(points)} of {len(history.points)} points"
    return replace(history, points=points, order=order)


def _spec(title: str, history: MetricHistory, judgement: Judgement | None) -> Spec:
    x = {
        "field": "commit",
        "type": "ordinal",
        "sort": None,
        "scale": {"type": "point", "padding": 0.5},
        "axis": {"title": short(history.order, 120), "labelAngle": -40, "labelOverlap": True},
    }
    metric = known(history.metric)
    better = "" if metric is None else f", {metric.direction} is better"
    y = {
        "type": "quantitative",
        "scale": {"zero": False, "nice": True},
        "title": f"{short(history.metric)} [{history.unit}]{better}",
    }
    kinds = list(dict.fromkeys(_kind(one) for one in history.points))
    plain = [one.removesuffix(_SYNTHETIC) for one in kinds]
    by_kind = {"field": "kind", "type": "nominal", "title": None}
    shape = {**by_kind, "scale": {"domain": kinds, "range": [_SHAPES[one] for one in plain]}}
    colour = {**by_kind, "scale": {"domain": kinds, "range": [_COLOURS[one] for one in plain]}}
    at = {"x": x, "y": {**y, "field": "value"}}
    hollow = {"test": "indexof(datum.kind, 'synthetic') >= 0", "value": 0}
    values = _data(history.points)
    layers: list[Spec] = [
        *_levels(y, judgement),
        {
            "mark": {
                "type": "line",
                "interpolate": "linear",
                "color": QUIET,
                "strokeWidth": 1.5,
                "aria": False,
            },
            # In the order of the data: Vega-Lite would sort by commit.
            "encoding": {**at, "order": {"value": None}, "detail": {"field": "segment"}},
        },
        *_ticks(values, {"x": x, "y": {**y, "field": "starts"}, "color": colour}),
        {
            "mark": {"type": "point", "size": 90, "filled": True, "strokeWidth": 2, "opacity": 1},
            "encoding": {
                **at,
                "shape": shape,
                "color": colour,
                "stroke": colour,
                "fillOpacity": {"condition": hollow, "value": 1},
                "description": {"field": "told"},
                "tooltip": {"field": "told"},
            },
        },
        {
            "mark": {"type": "text", "dy": -12, "aria": False},
            "encoding": {**at, "text": {"field": "label"}},
        },
    ]
    return layered(title, layers, data={"values": values}, transform=list(_TEXTS), height=220)


def _ticks(values: Sequence[Mapping[str, Any]], encoding: Spec) -> list[Spec]:
    """The single starts of points that have several; nothing where none has."""
    if not any("starts" in one for one in values):
        return []
    return [
        {
            # Vega's flatten fails on a row that lacks the field.
            "transform": [{"filter": "isArray(datum.starts)"}, {"flatten": ["starts"]}],
            "mark": {"type": "tick", "thickness": 2, "width": 10, "opacity": 0.6, "aria": False},
            "encoding": encoding,
        }
    ]


def _levels(y: Spec, judgement: Judgement | None) -> list[Spec]:
    """The baseline as a rule, and from it the band as an area on its bad side."""
    if judgement is None or judgement.baseline is None:
        return []
    baseline = judgement.baseline
    value = {**y, "field": "value"}
    level: dict[str, Any] = {"value": rounded(baseline), "label": f"baseline {number(baseline)}"}
    drawn: list[Spec] = [
        {
            "mark": {"type": "rule", "color": STORED, "strokeDash": [6, 4], "aria": False},
            "encoding": {"y": value},
        },
        {
            "mark": {"type": "text", "align": "left", "baseline": "bottom", "dx": 4, "dy": -3},
            "encoding": {"x": {"value": 0}, "y": value, "text": {"field": "label"}},
        },
    ]
    if judgement.band is not None and bad_sign(judgement.metric):
        level["edge"] = rounded(_band_edge(judgement.metric, baseline, judgement.band))
        area: Spec = {
            "mark": {"type": "rect", "color": QUIET, "opacity": 0.22, "aria": False},
            "encoding": {
                "x": {"value": 0},
                "x2": {"value": "width"},
                "y": value,
                "y2": {"field": "edge"},
            },
        }
        drawn.insert(0, area)
    return [{"data": {"values": [level]}, "layer": drawn}]


def _band_edge(metric: str, baseline: float, band: float) -> float:
    """The value at which a loss counts."""
    moved = bad_sign(metric) * band
    return baseline + moved if is_accuracy(metric) else baseline * (1 + moved)


def _kind(point: HistoryPoint) -> str:
    return point.kind + _SYNTHETIC * point.synthetic


def _data(points: Sequence[HistoryPoint]) -> list[dict[str, Any]]:
    names = _commit_names(points)
    found = []
    for one in points:
        row: dict[str, Any] = {
            "commit": names[one.commit],
            "version": short(one.version),
            "day": short(one.at[:10]),
            "value": rounded(one.value),
            "kind": _kind(one),
            "segment": one.segment,
        }
        if len(one.values) > 1:
            row["starts"] = [rounded(value) for value in one.values]
        if one.note:
            row["note"] = short(one.note)
        found.append(row)
    return found


def _commit_names(points: Sequence[HistoryPoint]) -> dict[str, str]:
    """Commit → a short name of it, which no other of them has."""
    names: dict[str, str] = {}
    for commit in dict.fromkeys(one.commit for one in points):
        name = commit[:9] if _HASH.fullmatch(commit) else short(commit, 24)
        taken = sum(other == name or other.startswith(f"{name} (") for other in names.values())
        names[commit] = f"{name} ({taken + 1})" if taken else name
    return names


def _table(history: MetricHistory) -> ChartTable:
    value = f"{history.metric} [{history.unit}]"
    columns = ("commit", "version", "day", "what", value, "starts", "from")
    names = _commit_names(history.points)
    return ChartTable(columns, tuple(_row(one, names[one.commit]) for one in history.points))


def _row(point: HistoryPoint, commit: str) -> tuple[str, ...]:
    return (
        commit,
        point.version,
        point.at[:10],
        _kind(point),
        number(point.value),
        ", ".join(map(number, point.values)),
        f"{point.source}; {point.note}" if point.note else point.source,
    )
