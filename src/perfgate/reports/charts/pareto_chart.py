"""Pareto chart: throughput of a GPU against speed for a user over a sweep, baseline and new."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from perfgate.reports.charts.chart import Chart, ChartTable, chart_id, spec
from perfgate.reports.figures import number
from perfgate.reports.run_report import TestResult
from perfgate.reports.templating import shortened

# The axes, in order of preference: the first of each that points have.
_PER_USER = ("output_throughput_per_user", "output_speed_per_user")
_PER_GPU = ("output_throughput_per_gpu", "output_throughput")
_UNITS = {
    "output_throughput_per_user": "output tokens/s per user, the first token's wait included",
    "output_speed_per_user": "output tokens/s per user, after the first token",
    "output_throughput_per_gpu": "output tokens/s per GPU",
    "output_throughput": "output tokens/s of the whole machine",
}
_FEWEST = 2  # points, of which a line can be drawn

Series = Literal["baseline", "new"]


@dataclass(frozen=True)
class _Point:
    """One point of the sweep on one side.

    Attributes:
        probe: its label.
        series: whose it is.
        per_user, per_gpu: on the axes.
        is_best: whether it is on the frontier of its series.
    """

    probe: str
    series: Series
    per_user: float
    per_gpu: float
    is_best: bool = True


def pareto_chart(scenario: str, results: Sequence[TestResult]) -> Chart | None:
    """The chart of a sweep; None: fewer than two points have both speeds.

    Args:
        scenario: its id.
        results: of its probes.
    """
    for per_user, per_gpu in product(_PER_USER, _PER_GPU):
        new = _series("new", results, per_user, per_gpu, _measured)
        if len(new) < _FEWEST:
            continue
        points = (*_series("baseline", results, per_user, per_gpu, _before), *new)
        title = f"{scenario}: throughput against speed for a user"
        drawn = spec(
            "pareto",
            shortened(title, 120),
            [_datum(one) for one in points],
            series=list(dict.fromkeys(point.series for point in points)),
            per_user=_UNITS[per_user],
            per_gpu=_UNITS[per_gpu],
        )
        table = _table(points, per_user, per_gpu)
        return Chart(chart_id("pareto", scenario), shortened(title, 1000), drawn, table)
    return None


def _series(
    series: Series,
    results: Sequence[TestResult],
    per_user: str,
    per_gpu: str,
    value_of: Callable[[TestResult, str], float | None],
) -> tuple[_Point, ...]:
    """The points that have both values, those on the frontier marked."""
    found = (
        (result.probe, value_of(result, per_user), value_of(result, per_gpu)) for result in results
    )
    points = [(probe, x, y) for probe, x, y in found if x is not None and y is not None]
    best = set(frontier([(x, y) for _, x, y in points]))
    return tuple(
        _Point(probe, series, x, y, place in best) for place, (probe, x, y) in enumerate(points)
    )


def _measured(result: TestResult, metric: str) -> float | None:
    return _finite(next((one.value for one in result.measured if one.metric == metric), None))


def _before(result: TestResult, metric: str) -> float | None:
    """The baseline's value, of a metric that was judged against it or compared with it."""
    judged = [
        judgement.baseline
        for judgement in result.judgements
        if judgement.metric == metric
        and judgement.against == "baseline"
        and judgement.baseline is not None
    ]
    observed = [one.baseline for one in result.observed if one.metric == metric]
    return _finite(next(iter([*judged, *observed]), None))


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _datum(point: _Point) -> dict[str, Any]:
    values = f"{number(point.per_user)} per user, {number(point.per_gpu)} per GPU"
    text = f"{point.series}, {shortened(point.probe)}: {values}"
    return {
        "user": point.per_user,
        "gpu": point.per_gpu,
        "series": point.series,
        "best": point.is_best,
        "label": shortened(point.probe, 20) if point.series == "new" else "",
        "told": text if point.is_best else f"{text}; beaten by another point",
    }


def _table(points: Sequence[_Point], per_user: str, per_gpu: str) -> ChartTable:
    return ChartTable(
        ("point", "build", f"{per_user} [tokens/s]", f"{per_gpu} [tokens/s]", "frontier"),
        tuple(
            (
                point.probe,
                point.series,
                number(point.per_user),
                number(point.per_gpu),
                "on it" if point.is_best else "beaten by another point",
            )
            for point in points
        ),
    )


def frontier(points: Sequence[tuple[float, float]]) -> tuple[int, ...]:
    """The places of the points that no other is better than, by the first axis.

    A point is beaten by one that is at least as good on both axes, more is better, and better on
    one. Of equal points all are kept.

    Args:
        points: finite values on both axes.
    """
    by_first = sorted(range(len(points)), key=lambda place: (-points[place][0], -points[place][1]))
    kept: list[int] = []
    best = float("-inf")  # on the second axis, of all that have more on the first
    for place in by_first:
        second = points[place][1]
        is_equal = bool(kept) and points[kept[-1]] == points[place]
        if second > best or is_equal:
            kept.append(place)
            best = second
    return tuple(reversed(kept))
