"""Charts: their specs drawn without a browser, their tables, and the frontier against an oracle."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count, pairwise

import pytest
import vl_convert
from hypothesis import given
from hypothesis import strategies as some
from msgspec.structs import replace as point_with
from run_reports import judged, report
from run_reports import result as made_result

from benchmarks.report_page import made_report
from perfgate.core.verdict import Verdict
from perfgate.reports.charts import Chart, chart, charts_of
from perfgate.reports.charts.changes_chart import changes_chart
from perfgate.reports.charts.chart import svg_of
from perfgate.reports.charts.pareto_chart import frontier
from perfgate.reports.histories import HistoryPoint

numbers = some.integers(0, 6).map(float)


@given(some.lists(some.tuples(numbers, numbers), max_size=12))
def test_frontier_is_what_nobody_beats(points: list[tuple[float, float]]) -> None:
    def is_beaten(one: tuple[float, float]) -> bool:
        return any(other[0] >= one[0] and other[1] >= one[1] and other != one for other in points)

    found = frontier(points)
    assert sorted(found) == [place for place, one in enumerate(points) if not is_beaten(one)]
    assert [points[place][0] for place in found] == sorted(points[place][0] for place in found)


SCENARIO = "b200-r1-made-0-serve"


def charts() -> tuple[Chart, ...]:
    return charts_of(*made_report(10)).of_scenario(SCENARIO)


def with_points(change: Callable[[HistoryPoint, int], HistoryPoint | None]) -> tuple[Chart, ...]:
    """The charts of a scenario whose points are changed, each by its place; None: left out."""
    report, histories = made_report(10)
    made = tuple(
        replace(one, points=tuple(filter(None, map(change, one.points, count()))))
        for one in histories
    )
    return charts_of(report, made).of_scenario(SCENARIO)


def over_commits(found: Sequence[Chart]) -> Chart:
    return next(one for one in found if "over commits" in one.title)


def texts(svg: str | None) -> list[str]:
    assert svg is not None, "vl-convert is part of the development set"
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


class TestHistory:
    def test_is_drawn_with_baseline_anchor_and_this_run(self) -> None:
        history = over_commits(charts())
        found = texts(svg_of(history.spec))
        assert {"anchor", "baseline", "this run", "run"} <= set(found)
        assert any(one.startswith("baseline ") for one in found)
        assert "output_throughput_per_gpu [tokens/s], higher is better" in found

    def test_table_has_the_points_of_the_chart(self) -> None:
        history = over_commits(charts())
        values = history.spec["data"]["values"]
        assert len(history.table.rows) == len(values) == 20
        for row, value in zip(history.table.rows, values, strict=True):
            assert len(row) == len(history.table.columns)
            assert (row[0], row[3]) == (value["commit"], value["kind"])
            assert float(row[4].replace(",", "")) == pytest.approx(value["value"], rel=1e-3)

    def test_absent_where_nothing_is_stored(self) -> None:
        nothing = charts_of(made_report(10)[0], ()).of_scenario(SCENARIO)
        for found in (nothing, with_points(lambda p, _: p if p.kind == "this run" else None)):
            (chart,) = found
            assert "over commits" not in chart.title

    @pytest.mark.parametrize("single", [1, 20])
    def test_points_of_one_start_have_no_ticks(self, single: int) -> None:
        """Vega's flatten fails, in the browser alone, where a row lacks the field."""
        history = over_commits(
            with_points(lambda p, n: point_with(p, values=p.values[:1]) if n < single else p)
        )
        ticks = [one for one in history.spec["layer"] if "flatten" in str(one.get("transform"))]
        assert len(ticks) == (0 if single == 20 else 1)
        for one in ticks:
            assert one["transform"][0] == {"filter": "isArray(datum.starts)"}
        assert "this run" in texts(svg_of(history.spec))

    def test_synthetic_points_are_named_and_hollow(self) -> None:
        found = with_points(lambda p, _: point_with(p, synthetic=True))
        svg = svg_of(found[-1].spec)
        assert "this run, synthetic" in texts(svg)
        assert svg is not None
        assert svg.count('fill-opacity="0"') == 20
        assert all(row[3].endswith("synthetic") for row in found[-1].table.rows)


class TestPareto:
    def test_both_builds_with_shape_dash_and_label(self) -> None:
        pareto = charts()[0]
        svg = svg_of(pareto.spec)
        assert {"baseline", "new", "c1", "c512"} <= set(texts(svg))
        assert svg is not None
        assert 'stroke-dasharray="6,4"' in svg
        assert len(pareto.table.rows) == 20


class TestFirstScreen:
    def test_worst_first_and_better_to_the_right(self) -> None:
        report, histories = made_report(60)
        (chart,) = charts_of(report, histories).first
        rows = chart.spec["data"]["values"]
        assert len(rows) == len(chart.table.rows) <= 12
        states = [one["state"] for one in rows]
        assert states == sorted(states, reverse=False)  # regression before undecided
        assert rows[0]["change"] < -100  # a loss beyond the band
        assert "worse ← change in percent of the band → better" in texts(chart.svg)
        assert chart.svg is not None
        assert chart.svg.startswith('<svg role="img"')


def test_hostile_names_stay_text() -> None:
    text = "<script>alert(1)</script>\"'\u202e&" + "x" * 4000
    report, histories = made_report(10)
    results = tuple(replace(one, name=text, probe=text) for one in report.results)
    histories = tuple(
        replace(
            one,
            name=text,
            points=tuple(
                point_with(p, commit=f"{n}{text}", version=text, note=text)
                for n, p in enumerate(one.points)
            ),
        )
        for one in histories
    )
    found = charts_of(replace(report, results=results), histories)
    drawn = [*found.first, *found.of_scenario(report.results[0].scenario)[:3]]
    assert len(drawn) == 4
    for one in drawn:
        svg = svg_of(one.spec)
        assert svg is not None
        assert "<script" not in svg
        assert "\u202e" not in svg
        assert len(svg) < 100_000
        assert re.fullmatch(r"[a-z]+-[0-9a-f]{12}", one.id)


def test_without_the_extra_there_are_tables_and_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chart, "_vl_convert", lambda: None)
    report, histories = made_report(10)
    found = charts_of(report, histories)
    assert "pip install 'perfgate[report]'" in found.missing
    assert found.first[0].svg is None
    assert found.first[0].table.rows


def test_long_report_keeps_what_did_not_pass_and_says_what_is_left_out() -> None:
    report, histories = made_report(200)
    found = charts_of(report, histories)
    titles = {
        one.title
        for scenario in report.scenarios
        for one in found.of_scenario(scenario.id)
        if "over commits" in one.title
    }
    assert len(titles) == 100
    assert "300 of 400 histories are left out" in found.missing
    for result in report.results:
        if result.verdict != Verdict.PASS:
            assert any(one.startswith(f"{result.name}: ") for one in titles)


@pytest.mark.parametrize("width", [320, 680])
def test_labels_of_a_large_loss_do_not_overlap(width: int) -> None:
    lost = [judged(Verdict.REGRESSION, -0.21), judged(Verdict.REGRESSION, -0.93)]
    chart = changes_chart(report(*(made_result(0, judgements=(one,)) for one in lost)))
    assert chart is not None
    drawn = vl_convert.vegalite_to_svg({**chart.spec, "width": width})
    place = r'transform="translate\(([-\d.]+),([-\d.]+)\)"'
    lines: dict[str, list[tuple[float, float]]] = {}
    for anchor, x, y, style, text in re.findall(
        rf'<text text-anchor="(\w+)" {place}([^>]*)>([^<]*)<', drawn
    ):
        if 'opacity="0"' in style:  # Vega hides it: there is no room
            continue
        long = 6.0 * len(text)  # of the narrowest font that a browser takes
        start = float(x) - {"start": 0.0, "middle": long / 2, "end": long}[anchor]
        lines.setdefault(y, []).append((start, start + long))
    assert max(map(len, lines.values())) > 2
    for places in lines.values():
        assert all(before[1] <= after[0] for before, after in pairwise(sorted(places)))
