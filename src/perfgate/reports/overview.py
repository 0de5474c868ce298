"""Overview: what a reader acts on first, of a run's report, the worst first. Pure.

Every text about a whole run is made of these: terminal, `summary.md`, Markdown, page, annotations.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from perfgate.core.measurement import Change, MeasuredMetric
from perfgate.core.metrics import is_accuracy
from perfgate.core.verdict import FROM_WORST, Judgement, Mark, Verdict, counted
from perfgate.judging.rules.diagnostics import false_discoveries
from perfgate.reports.figures import band, best_first, worst_first
from perfgate.reports.run_report import RunReport, TestResult
from perfgate.runs.exit_status import ExitStatus
from perfgate.runs.record import DocumentedMetric

T = TypeVar("T")

SKIP_REASONS: Mapping[str, str] = {
    "lack": "not run",
    "budget": "not run for lack of time",
    "unfinished": "not finished",
}
# Of the metrics on the warning list one in ten moved by chance (Benjamini and Hochberg 1995).
FALSE_DISCOVERIES = 0.10
_MAIN = 2  # metrics that are named first where fewer are judged


class Finding(NamedTuple):
    """A metric of a test that somebody must look at.

    Attributes:
        result: the test.
        judgement: of the metric; None: the verdict has a reason and no numbers.
    """

    result: TestResult
    judgement: Judgement | None


@dataclass(frozen=True)
class Group(Generic[T]):
    """Tests of which the same is said.

    Attributes:
        what: the kind, a few words; may be empty.
        reason: one sentence; may be empty.
        tests: in their order.
    """

    what: str
    reason: str
    tests: tuple[T, ...]


def grouped(said: Iterable[tuple[str, str, T]]) -> list[Group[T]]:
    """Tests by what is said of them, the largest group first.

    Args:
        said: kind, reason and test.
    """
    tests: dict[tuple[str, str], list[T]] = {}
    for what, reason, test in said:
        tests.setdefault((what, reason), []).append(test)
    groups = [Group(what, reason, tuple(same)) for (what, reason), same in tests.items()]
    return sorted(groups, key=lambda group: -len(group.tests))


def state(report: RunReport) -> str:
    """How the whole ended, in one word: `REGRESSION`, `PASSED`, `UNFINISHED`."""
    if report.status is None:
        return "UNFINISHED"
    known = {status.value: status.name for status in ExitStatus}
    return known.get(report.status, "BROKEN_OFF")  # of pytest: interrupted, a usage error


def counts(report: RunReport) -> dict[str, int]:
    """How many tests have each verdict, the worst first; last those without one."""
    seen: Counter[str] = Counter(result.verdict or result.skip_reason for result in report.results)
    words: dict[str, str] = {**{verdict: verdict.value for verdict in FROM_WORST}, **SKIP_REASONS}
    return {words[kind]: seen[kind] for kind in words if seen[kind]}


def findings(report: RunReport, verdict: Verdict) -> list[Finding]:
    """The judgements behind tests with that verdict, the largest loss in bands first; of
    improvements the largest gain.

    Waived ones are left out; a test whose verdict no metric has is there with its reason.
    """
    found: list[Finding] = []
    for result in of_verdict(report, verdict):
        of_it = [Finding(result, metric) for metric in open_metrics(result, verdict)]
        found += of_it or [Finding(result, None)]
    return _sorted(found, verdict)


def metrics(report: RunReport, verdict: Verdict) -> list[Finding]:
    """The judgements with that verdict of all tests, in the order of `findings`."""
    found = [
        Finding(result, judged)
        for result in report.results
        for judged in open_metrics(result, verdict)
    ]
    return _sorted(found, verdict)


def open_metrics(result: TestResult, verdict: Verdict | None) -> list[Judgement]:
    """The judgements of a test with that verdict, without waived ones."""
    return [
        judgement
        for judgement in result.judgements
        if judgement.verdict == verdict and not judgement.waiver
    ]


def _sorted(found: Iterable[Finding], verdict: Verdict) -> list[Finding]:
    order = best_first if verdict == Verdict.IMPROVEMENT else worst_first
    return sorted(found, key=lambda finding: order(finding.judgement))


def by_test(found: Iterable[Finding]) -> list[tuple[TestResult, list[Judgement]]]:
    """Each test with its findings, in the order of the first of each."""
    tests: dict[str, tuple[TestResult, list[Judgement]]] = {}
    for finding in found:
        _, judgements = tests.setdefault(finding.result.test, (finding.result, []))
        judgements += [finding.judgement] if finding.judgement is not None else []
    return list(tests.values())


def of_verdict(report: RunReport, *verdicts: Verdict | None) -> list[TestResult]:
    """The tests with one of these verdicts, in their order."""
    return [result for result in report.results if result.verdict in verdicts]


def waived(report: RunReport) -> list[Finding]:
    """The losses that a waiver lets through, the largest in bands first."""
    found = [
        Finding(test, judgement)
        for test in report.results
        for judgement in test.judgements
        if judgement.waiver
    ]
    return sorted(found, key=lambda finding: worst_first(finding.judgement))


def errors(report: RunReport) -> list[Group[TestResult]]:
    """Tests without numbers, by class and message; the class with most tests first."""
    return grouped(
        (
            result.failure.error_class if result.failure else "error",
            result.failure.message if result.failure else result.reason,
            result,
        )
        for result in of_verdict(report, Verdict.ERROR)
    )


def unjudged(report: RunReport) -> list[Group[TestResult]]:
    """Measured tests that were not judged, by verdict and reason."""
    return grouped(
        (str(result.verdict), why(result), result)
        for result in of_verdict(report, Verdict.NOT_COMPARABLE, Verdict.NO_BASELINE)
    )


def why(result: TestResult) -> str:
    """Why a test has no numbers to compare."""
    if result.failure is not None:
        return f"{result.failure.error_class}: {result.failure.message}"
    reasons = (
        f"{judgement.metric}: {judgement.reason}"
        for judgement in result.judgements
        if judgement.verdict == result.verdict
    )
    return result.reason or "; ".join(dict.fromkeys(reasons))


def not_run(report: RunReport) -> list[Group[TestResult]]:
    """Tests without a verdict, by kind and reason."""
    return grouped(
        (SKIP_REASONS.get(result.skip_reason, result.skip_reason), result.reason, result)
        for result in of_verdict(report, None)
    )


def gaps(result: TestResult) -> list[DocumentedMetric]:
    """The documented values that are not judged and that the measured ones were compared with."""
    judged = {judgement.metric for judgement in result.judgements}
    return [one for one in result.documented if one.metric not in judged and one.change is not None]


def starts(report: RunReport) -> Mapping[str, float]:
    """Fresh starts and seconds (`spent_s`, `saved_s`) of all groups; `synthetic`: of how many
    groups mock programs had them.
    """
    starts = ("planned", "made", "again", "controls", "without_sharing")
    names = (*starts, "spent_s", "saved_s", "synthetic")
    return {name: sum(getattr(effort, name) for effort in report.efforts) for name in names}


def marked(report: RunReport) -> dict[Mark, list[TestResult]]:
    """The marks that speak of the machine or of a missing control, each with its tests."""
    found: dict[Mark, list[TestResult]] = {}
    for result in report.results:
        for mark in dict.fromkeys(
            judgement.mark for judgement in result.judgements if judgement.mark
        ):
            found.setdefault(mark, []).append(result)
    return found


def machine_evidence(report: RunReport) -> str:
    """What excludes the machine as the cause of lost performance; empty: none is lost."""
    found = [one for _, one in metrics(report, Verdict.REGRESSION) if one is not None]
    lost = [one for one in found if one.against in ("baseline", "anchor")]
    lost = [one for one in lost if not is_accuracy(one.metric)]
    if not lost:
        return ""
    beside = sum(bool(one.controls_used) or one.is_interleaved for one in lost)
    text = (
        f"{beside} of {counted(len(lost), 'regressed performance metric')} also lost against the "
        "baseline's build in this session"
    )
    return text if beside == len(lost) else f"{text}; for the others the machine is not excluded"


def probably_worse(report: RunReport) -> list[tuple[TestResult, Change]]:
    """Metrics that are only reported and probably got worse, the likeliest first."""
    observed = [(result, one) for result in report.results for one in result.observed]
    lost = false_discoveries([one.p_value for _, one in observed], FALSE_DISCOVERIES)
    worse = [moved for moved, is_lost in zip(observed, lost, strict=True) if is_lost]
    return sorted(worse, key=lambda moved: moved[1].p_value)


def resolution(report: RunReport) -> str:
    """The smallest loss that shows on a machine that measures its own noise; empty: none did."""
    widest: dict[str, Judgement] = {}
    for result in report.results:
        for judgement in result.judgements:
            if judgement.metric in result.widened and judgement.band is not None:
                known = widest.get(judgement.metric)
                if known is None or judgement.band > (known.band or 0.0):
                    widest[judgement.metric] = judgement
    return ", ".join(f"{name} {band(one)}" for name, one in widest.items())


def builds(report: RunReport) -> list[tuple[str, int]]:
    """The builds under test in words, each with its number of tests, the most first."""
    return _each(result.build.description for result in report.results if result.build is not None)


def compared_with(report: RunReport) -> list[tuple[str, int]]:
    """What they were compared with, likewise."""
    return _each(result.compared_with for result in report.results)


def controls(report: RunReport) -> list[tuple[str, int]]:
    """The other builds that were started beside them, likewise."""
    return _each(control.description for result in report.results for control in result.controls)


def settings(report: RunReport) -> list[tuple[str, list[str]]]:
    """The lines on settings that were not in force or bounded, each with its scenarios."""
    scenarios: dict[str, dict[str, None]] = {}
    for result in report.results:
        for line in result.settings:
            scenarios.setdefault(line, {})[result.scenario] = None
    return [(line, list(of_line)) for line, of_line in scenarios.items()]


def main_metrics(result: TestResult) -> Sequence[MeasuredMetric]:
    """The metrics to name first: those that were judged, else the first ones of the gate."""
    judged = {judgement.metric for judgement in result.judgements}
    return result.measured[: max(_MAIN, sum(one.metric in judged for one in result.measured))]


def _each(texts: Iterable[str]) -> list[tuple[str, int]]:
    return Counter(text for text in texts if text).most_common()


def some(texts: Sequence[T], most: int) -> tuple[Sequence[T], int]:
    """The first of them, and how many are left out."""
    return texts[:most], max(0, len(texts) - most)
