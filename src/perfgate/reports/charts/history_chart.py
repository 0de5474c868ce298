"""History chart: one gating metric over the engine's commits, with what it is held against.

A report may have a thousand of these, so what differs between them is little: the values are rows
of data, and all texts that can be made of those are made where the chart is drawn.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from perfgate.core.metrics import is_accuracy
from perfgate.core.verdict import Judgement
from perfgate.reports.charts.chart import (
    Chart,
    ChartTable,
    chart_id,
    rounded,
    spec,
)
from perfgate.reports.figures import bad_sign, known, number
from perfgate.reports.histories import HistoryPoint, MetricHistory
from perfgate.reports.templating import shortened

_SYNTHETIC = ", synthetic"
_HASH = re.compile(r"[0-9a-f]{16,64}")


def history_chart(history: MetricHistory, judgement: Judgement | None, most: int) -> Chart | None:
    """The chart; None where nothing is stored that this run could be seen beside.

    Args:
        history: its points.
        judgement: of this run against the baseline: its level and band are drawn.
        most: how many points are shown: the newest, and the anchor.
    """
    if all(point.kind == "this run" for point in history.points):
        return None
    title = f"{history.name}: {history.metric} over commits"
    some = _newest(history, most)
    metric = known(history.metric)
    better = "" if metric is None else f", {metric.direction} is better"
    drawn = spec(
        "history",
        shortened(title, 120),
        _data(some.points),
        axis=f"{shortened(history.metric)} [{history.unit}]{better}",
        order=shortened(some.order, 120),
        kinds=list(dict.fromkeys(map(_kind, some.points))),
        level=_level(judgement),
    )
    place = chart_id("history", history.name, history.metric)
    return Chart(place, shortened(title, 1000), drawn, _table(some))


def _newest(history: MetricHistory, most: int) -> MetricHistory:
    older = history.points[:-most]
    if not older:
        return history
    points = (*(one for one in older if one.kind == "anchor"), *history.points[-most:])
    order = f"{history.order}; {len(points)} of {len(history.points)} points"
    return replace(history, points=points, order=order)


def _level(judgement: Judgement | None) -> dict[str, Any] | None:
    """The baseline, and the value at which a loss counts where that is known."""
    if judgement is None or judgement.baseline is None:
        return None
    baseline, sign = judgement.baseline, bad_sign(judgement.metric)
    level = {"value": rounded(baseline), "label": f"baseline {number(baseline)}"}
    if judgement.band is not None and sign:
        moved = sign * judgement.band
        is_share = not is_accuracy(judgement.metric)
        level["edge"] = rounded(baseline * (1 + moved) if is_share else baseline + moved)
    return level


def _kind(point: HistoryPoint) -> str:
    return point.kind + _SYNTHETIC * point.synthetic


def _data(points: Sequence[HistoryPoint]) -> list[dict[str, Any]]:
    names = _commit_names(points)
    found = []
    for point in points:
        row: dict[str, Any] = {
            "commit": names[point.commit],
            "version": shortened(point.version),
            "day": shortened(point.at[:10]),
            "value": rounded(point.value),
            "kind": _kind(point),
            "segment": point.segment,
        }
        if len(point.values) > 1:
            row["starts"] = [rounded(value) for value in point.values]
        if point.note:
            row["note"] = shortened(point.note)
        found.append(row)
    return found


def _commit_names(points: Sequence[HistoryPoint]) -> dict[str, str]:
    """Commit → a short name of it, which no other of them has."""
    names: dict[str, str] = {}
    for commit in dict.fromkeys(point.commit for point in points):
        name = commit[:9] if _HASH.fullmatch(commit) else shortened(commit, 24)
        taken = sum(other == name or other.startswith(f"{name} (") for other in names.values())
        names[commit] = f"{name} ({taken + 1})" if taken else name
    return names


def _table(history: MetricHistory) -> ChartTable:
    value = f"{history.metric} [{history.unit}]"
    columns = ("commit", "version", "day", "what", value, "starts", "from")
    names = _commit_names(history.points)
    return ChartTable(columns, tuple(_row(point, names[point.commit]) for point in history.points))


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
