"""First screen: how the run ended, of which build, what moved, what is open, what it took."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from perfgate.core.verdict import Judgement, Verdict
from perfgate.reports.figures import (
    band,
    best_first,
    interval,
    known,
    number,
    signed,
    with_unit,
    worst_first,
)
from perfgate.reports.overview import Group, grouped, of_verdict, probably_worse, starts, why
from perfgate.reports.page.metric_rows import AGAINST, Gauge, gauge
from perfgate.reports.page.results_table import anchor_of
from perfgate.reports.page.signs import SIGNS, Sign, judgement_sign, result_sign, status_sign
from perfgate.reports.run_report import RunReport, TestResult


@dataclass(frozen=True)
class Moved:
    """A metric of a test with the numbers of its verdict, as texts.

    Attributes:
        anchor: id of the test's place in the page.
        name: of the test.
        metric: with its unit.
        against: what it is compared with where that is not the baseline.
        baseline, measured, change, interval, band: texts.
        gauge: interval and band as places on a line; None: there is none.
        sign: of the metric's verdict.
        mark: what beside the build the verdict speaks of.
        said: why, in words.
        synthetic: whether stand-ins made it.
    """

    anchor: str
    name: str
    metric: str
    against: str
    baseline: str
    measured: str
    change: str
    interval: str
    band: str
    gauge: Gauge | None
    sign: Sign
    mark: str
    said: str
    synthetic: bool


@dataclass(frozen=True)
class FirstScreen:
    """What the first screen shows.

    Attributes:
        sign: of the exit status.
        counts: how many tests have each sign, the worst first.
        regressed, undecided, improved, waived: metrics; the largest loss first.
        failed, unjudged, not_run: tests without numbers to compare, by what is said of them.
        probably_worse: metrics that do not gate.
        anchors: test → id of its place in the page.
        spent_s: how long engines were measured.
        starts: fresh starts made.
    """

    sign: Sign
    counts: tuple[tuple[Sign, int], ...]
    regressed: tuple[Moved, ...]
    undecided: tuple[Moved, ...]
    improved: tuple[Moved, ...]
    waived: tuple[Moved, ...]
    failed: tuple[Group[TestResult], ...]
    unjudged: tuple[Group[TestResult], ...]
    not_run: tuple[Group[TestResult], ...]
    probably_worse: tuple[Moved, ...]
    anchors: Mapping[str, str]
    spent_s: float
    starts: int


def first_screen(report: RunReport) -> FirstScreen:
    """The first screen of a report."""
    results = report.results
    effort = starts(report)
    return FirstScreen(
        sign=status_sign(report.status),
        counts=_counts(results),
        regressed=_moved(results, SIGNS[Verdict.REGRESSION]),
        undecided=_moved(results, SIGNS[Verdict.INCONCLUSIVE]),
        improved=_moved(results, SIGNS[Verdict.IMPROVEMENT]),
        waived=_moved(results, SIGNS["waived"]),
        failed=_groups(of_verdict(report, Verdict.ERROR)),
        unjudged=_groups(
            result
            for result in of_verdict(
                report, Verdict.NOT_COMPARABLE, Verdict.NO_BASELINE, Verdict.INCONCLUSIVE
            )
            if not _is_undecided_by_numbers(result)
        ),
        not_run=_groups(of_verdict(report, None)),
        probably_worse=_probably_worse(report),
        anchors={one.test: anchor_of(place) for place, one in enumerate(results)},
        spent_s=effort.spent_s,
        starts=effort.made,
    )


def _counts(results: Sequence[TestResult]) -> tuple[tuple[Sign, int], ...]:
    found = Counter(result_sign(one) for one in results)
    return tuple(sorted(found.items(), key=lambda pair: pair[0].rank))


def _moved(results: Sequence[TestResult], sign: Sign) -> tuple[Moved, ...]:
    """The metrics with that sign, the largest loss in bands first; of improvements the gain."""
    order = best_first if sign is SIGNS[Verdict.IMPROVEMENT] else worst_first
    found = [
        (place, result, one)
        for place, result in enumerate(results)
        for one in result.judgements
        if judgement_sign(one) is sign
    ]
    found.sort(key=lambda item: order(item[2]))
    return tuple(_one_moved(place, result, one) for place, result, one in found)


def _one_moved(place: int, result: TestResult, one: Judgement) -> Moved:
    return Moved(
        anchor=anchor_of(place),
        name=result.name,
        metric=with_unit(one.metric),
        against=AGAINST[one.against],
        baseline=number(one.baseline),
        measured=number(one.measured),
        change=signed(one.metric, one.change),
        interval=interval(one),
        band=band(one),
        gauge=gauge(one),
        sign=judgement_sign(one),
        mark=one.mark,
        said=one.waiver.text if one.waiver else one.reason,
        synthetic=result.synthetic,
    )


def _is_undecided_by_numbers(result: TestResult) -> bool:
    """Whether a metric of an undecided test is among the undecided metrics."""
    return result.verdict == Verdict.INCONCLUSIVE and any(
        judgement_sign(judged) is result_sign(result) for judged in result.judgements
    )


def _groups(results: Iterable[TestResult]) -> tuple[Group[TestResult], ...]:
    """Tests by sign and reason, the worst sign first."""
    groups = grouped((result_sign(one).word, why(one), one) for one in results)
    return tuple(sorted(groups, key=lambda group: result_sign(group.tests[0]).rank))


def _probably_worse(report: RunReport) -> tuple[Moved, ...]:
    """Metrics that are only reported and probably got worse, the likeliest first."""
    places = {result.test: place for place, result in enumerate(report.results)}
    return tuple(
        Moved(
            anchor=anchor_of(places[result.test]),
            name=result.name,
            metric=with_unit(one.metric),
            against="",
            baseline=number(one.baseline),
            measured=number(one.measured),
            change=signed(one.metric, one.change),
            interval=interval(one),
            band="-",
            gauge=None,
            sign=SIGNS[Verdict.INCONCLUSIVE],
            mark="",
            said=_meaning(one.metric),
            synthetic=result.synthetic,
        )
        for result, one in probably_worse(report)
    )


def _meaning(metric: str) -> str:
    found = known(metric)
    return "" if found is None else found.meaning
