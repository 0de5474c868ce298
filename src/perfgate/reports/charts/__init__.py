"""Charts: which a report has, as Vega-Lite specs with their tables of data. Pure but for SVG."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from perfgate.core.verdict import Judgement, Verdict
from perfgate.reports.charts.changes_chart import changes_chart
from perfgate.reports.charts.chart import Chart, ChartTable, bundle, svg_of, why_none
from perfgate.reports.charts.history_chart import history_chart
from perfgate.reports.charts.pareto_chart import pareto_chart
from perfgate.reports.histories import MetricHistory
from perfgate.reports.run_report import RunReport, TestResult

__all__ = ["Chart", "ChartSet", "ChartTable", "bundle", "charts_of"]

# What keeps a page with 500 results under 2 MB: of many histories those of tests that did not pass
# are shown first, and each with fewer points. In a long report there is less room for them.
_LONG = 150  # results
_MOST_HISTORIES = {False: 400, True: 100}  # by whether the report is long
_ALL_POINTS = {False: 6000, True: 1000}
_MOST_POINTS = 40  # of one history
_PASSED = (Verdict.PASS, Verdict.IMPROVEMENT)


@dataclass(frozen=True)
class ChartSet:
    """The charts of a report.

    Attributes:
        first: of the first screen, each also as static SVG where it can be drawn.
        missing: why charts are not drawn, or not there, with the fix; empty: all are.
        by_scenario: scenario → its charts.
    """

    first: tuple[Chart, ...]
    missing: str
    by_scenario: Mapping[str, tuple[Chart, ...]] = field(default_factory=dict)

    def of_scenario(self, scenario: str) -> tuple[Chart, ...]:
        """The charts of one scenario, in the order of its results; none where it has none."""
        return self.by_scenario.get(scenario, ())


def charts_of(report: RunReport, histories: Sequence[MetricHistory]) -> ChartSet:
    """All charts of a report: of each scenario its Pareto chart, then its histories."""
    first = changes_chart(report)
    is_long = len(report.results) > _LONG
    wanted = _most_wanted(report, histories, _MOST_HISTORIES[is_long])
    shown = sum(map(len, wanted.values()))
    most = min(_MOST_POINTS, _ALL_POINTS[is_long] // max(1, shown))
    scenarios: dict[str, list[TestResult]] = {}
    for result in report.results:
        scenarios.setdefault(result.scenario, []).append(result)
    return ChartSet(
        first=() if first is None else (replace(first, svg=svg_of(first.spec)),),
        missing="; ".join(filter(None, (why_none(), _left_out(shown, len(histories))))),
        by_scenario={
            name: tuple(_of_scenario(name, results, wanted, most))
            for name, results in scenarios.items()
        },
    )


def _left_out(shown: int, histories: int) -> str:
    if shown == histories:
        return ""
    return (
        f"{histories - shown} of {histories} histories are left out of so long a report, "
        "those of tests that passed first; for one of them: perfgate baseline history SCENARIO"
    )


def _most_wanted(
    report: RunReport, histories: Sequence[MetricHistory], most: int
) -> Mapping[str, Sequence[MetricHistory]]:
    """Name → histories: at most so many, of tests that did not pass before all others.

    Of those that passed, the first metric of each comes before the second of any.
    """
    passed = {result.name for result in report.results if result.verdict in _PASSED}
    seen: Counter[str] = Counter()
    ranked = []
    for place, one in enumerate(histories):
        ranked.append((seen[one.name] if one.name in passed else -1, place, one))
        seen[one.name] += 1
    chosen = sorted(ranked, key=lambda item: item[:2])[:most]
    found: dict[str, list[MetricHistory]] = {}
    for _, _, one in sorted(chosen, key=lambda item: item[1]):
        found.setdefault(one.name, []).append(one)
    return found


def _of_scenario(
    scenario: str,
    results: Sequence[TestResult],
    histories: Mapping[str, Sequence[MetricHistory]],
    most: int,
) -> Iterator[Chart]:
    found = [pareto_chart(scenario, results)]
    for result in results:
        for history in histories.get(result.name, ()):
            found.append(history_chart(history, _judgement(result, history.metric), most))
    return (one for one in found if one is not None)


def _judgement(result: TestResult, metric: str) -> Judgement | None:
    return next(
        (
            judgement
            for judgement in result.judgements
            if judgement.metric == metric and judgement.against == "baseline"
        ),
        None,
    )
