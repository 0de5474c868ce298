"""First screen: how the run ended, of which build, what moved, what is open, what it took."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perfgate.campaign.budget import span
from perfgate.core.verdict import Judgement, Verdict
from perfgate.judging.rules.diagnostics import false_discoveries
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
from perfgate.reports.page.metric_rows import AGAINST, Gauge, gauge
from perfgate.reports.page.results_table import anchor_of
from perfgate.reports.page.signs import SIGNS, Sign, judgement_sign, result_sign, status_sign
from perfgate.reports.run_report import RunReport, TestResult
from perfgate.reports.whole_run import FALSE_DISCOVERIES


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
class Told:
    """Tests of which the same is said.

    Attributes:
        sign: of them.
        said: why there are no numbers to compare.
        tests: anchor and name of each.
    """

    sign: Sign
    said: str
    tests: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class FirstScreen:
    """What the first screen shows.

    Attributes:
        sign: of the exit status.
        counts: how many tests have each sign, the worst first.
        builds, compared_with: in words, each once, with the number of tests.
        regressed, undecided, improved, waived: metrics; the largest loss first.
        failed, unjudged, not_run: tests without numbers to compare, by what is said of them.
        probably_worse: metrics that do not gate.
        clock: how long engines were measured, in words.
        gpu_hours: that, times the GPUs.
        starts: fresh starts made.
    """

    sign: Sign
    counts: tuple[tuple[Sign, int], ...]
    builds: tuple[tuple[str, int], ...]
    compared_with: tuple[tuple[str, int], ...]
    regressed: tuple[Moved, ...]
    undecided: tuple[Moved, ...]
    improved: tuple[Moved, ...]
    waived: tuple[Moved, ...]
    failed: tuple[Told, ...]
    unjudged: tuple[Told, ...]
    not_run: tuple[Told, ...]
    probably_worse: tuple[Moved, ...]
    clock: str
    gpu_hours: float
    starts: int


def first_screen(report: RunReport) -> FirstScreen:
    """The first screen of a report."""
    results = report.results
    return FirstScreen(
        sign=status_sign(report.status),
        counts=_counts(results),
        builds=_each_once(one.build.in_words for one in results if one.build is not None),
        compared_with=_each_once(one.compared_with for one in results if one.compared_with),
        regressed=_moved(results, SIGNS[Verdict.REGRESSION]),
        undecided=_moved(results, SIGNS[Verdict.INCONCLUSIVE]),
        improved=_moved(results, SIGNS[Verdict.IMPROVEMENT]),
        waived=_moved(results, SIGNS["waived"]),
        failed=_told(results, (Verdict.ERROR,)),
        unjudged=_told(
            results, (Verdict.NOT_COMPARABLE, Verdict.NO_BASELINE, Verdict.INCONCLUSIVE)
        ),
        not_run=_not_run(results),
        probably_worse=_probably_worse(results),
        clock=span(sum(one.spent_s for one in report.efforts)),
        gpu_hours=report.gpu_hours,
        starts=sum(one.made for one in report.efforts),
    )


def _counts(results: Sequence[TestResult]) -> tuple[tuple[Sign, int], ...]:
    found = Counter(result_sign(one) for one in results)
    return tuple(sorted(found.items(), key=lambda pair: pair[0].rank))


def _each_once(texts: Iterable[str]) -> tuple[tuple[str, int], ...]:
    return tuple(Counter(texts).most_common())


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


def _told(results: Sequence[TestResult], verdicts: Sequence[Verdict]) -> tuple[Told, ...]:
    """Tests with these verdicts of which no metric with numbers is told elsewhere."""
    return _by_words(
        (place, one, _why(one))
        for place, one in enumerate(results)
        if one.verdict in verdicts
        and not (
            one.verdict == Verdict.INCONCLUSIVE
            and any(judgement_sign(judged) is result_sign(one) for judged in one.judgements)
        )
    )


def _why(result: TestResult) -> str:
    """Why a test has no numbers to compare."""
    if result.failure is not None:
        return f"{result.failure.error_class}: {result.failure.message}"
    reasons = (
        f"{one.metric}: {one.reason}" for one in result.judgements if one.verdict == result.verdict
    )
    return result.reason or "; ".join(dict.fromkeys(reasons))


def _not_run(results: Sequence[TestResult]) -> tuple[Told, ...]:
    return _by_words(
        (place, one, one.reason) for place, one in enumerate(results) if one.verdict is None
    )


def _by_words(told: Iterable[tuple[int, TestResult, str]]) -> tuple[Told, ...]:
    """Tests of which the same is said together; the worst sign first, the largest group first."""
    tests: dict[tuple[Sign, str], list[tuple[str, str]]] = {}
    for place, one, said in told:
        tests.setdefault((result_sign(one), said), []).append((anchor_of(place), one.name))
    found = [Told(sign, said, tuple(names)) for (sign, said), names in tests.items()]
    return tuple(sorted(found, key=lambda one: (one.sign.rank, -len(one.tests))))


def _probably_worse(results: Sequence[TestResult]) -> tuple[Moved, ...]:
    """Metrics that are only reported and probably got worse, the likeliest first."""
    observed = [
        (place, result, one) for place, result in enumerate(results) for one in result.observed
    ]
    lost = false_discoveries([one.p_value for _, _, one in observed], FALSE_DISCOVERIES)
    worse = [item for item, is_lost in zip(observed, lost, strict=True) if is_lost]
    worse.sort(key=lambda item: item[2].p_value)
    return tuple(
        Moved(
            anchor=anchor_of(place),
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
        for place, result, one in worse
    )


def _meaning(metric: str) -> str:
    found = known(metric)
    return "" if found is None else found.meaning
