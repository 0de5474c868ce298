"""Overview: what a reader acts on first, of a run's report, the worst first. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from perfgate.core.verdict import Judgement, Verdict
from perfgate.reports.figures import best_first, worst_first
from perfgate.reports.run_report import RunReport, TestResult
from perfgate.runs.exit_status import ExitStatus

T = TypeVar("T")

# As people ask: what got worse, what failed, what has no verdict, and what is well.
_ORDER = (
    Verdict.REGRESSION,
    Verdict.ERROR,
    Verdict.INCONCLUSIVE,
    Verdict.NOT_COMPARABLE,
    Verdict.NO_BASELINE,
    Verdict.IMPROVEMENT,
    Verdict.PASS,
)
WHY_NOT: Mapping[str, str] = {
    "lack": "not run",
    "budget": "not run for lack of time",
    "unfinished": "not finished",
}


@dataclass(frozen=True)
class Finding:
    """A verdict that somebody must look at, with the metric that it rests on.

    Attributes:
        result: the test.
        judgement: of the metric; None: the verdict has a reason and no numbers.
    """

    result: TestResult
    judgement: Judgement | None


@dataclass(frozen=True)
class Together:
    """Tests of which the same is said.

    Attributes:
        what: the kind, a few words.
        reason: one sentence.
        names: of the tests, in their order.
    """

    what: str
    reason: str
    names: tuple[str, ...]


def state(report: RunReport) -> str:
    """How the whole ended, in one word: `REGRESSION`, `PASSED`, `UNFINISHED`."""
    if report.status is None:
        return "UNFINISHED"
    try:
        return ExitStatus(report.status).name
    except ValueError:  # of pytest: interrupted, a usage error
        return "BROKEN_OFF"


def counts(report: RunReport) -> dict[str, int]:
    """How many tests have each verdict, the worst first; last those without one."""
    seen = Counter(one.verdict for one in report.results)
    found = {verdict.value: seen[verdict] for verdict in _ORDER if seen[verdict]}
    for why, words in WHY_NOT.items():
        number = sum(one.verdict is None and one.why_not == why for one in report.results)
        if number:
            found[words] = number
    return found


def findings(report: RunReport, verdict: Verdict) -> list[Finding]:
    """The judgements behind tests with that verdict, the largest loss in bands first; of
    improvements the largest gain.

    Waived ones are left out; a test whose verdict no metric has is there with its reason.
    """
    found = []
    for result in report.results:
        if result.verdict == verdict:
            of_it = [one for one in result.judgements if one.verdict == verdict and not one.waiver]
            found += [Finding(result, one) for one in of_it] or [Finding(result, None)]
    order = best_first if verdict == Verdict.IMPROVEMENT else worst_first
    return sorted(found, key=lambda one: order(one.judgement))


def errors(report: RunReport) -> list[Together]:
    """Tests without numbers, by class and message; the class with most tests first."""
    return _together(
        (one for one in report.results if one.verdict == Verdict.ERROR),
        lambda one: (
            one.failure.error_class if one.failure else "error",
            one.failure.message if one.failure else one.reason,
        ),
    )


def unjudged(report: RunReport) -> list[Together]:
    """Measured tests that were not judged, by verdict and reason."""
    return _together(
        (
            one
            for one in report.results
            if one.verdict in (Verdict.NO_BASELINE, Verdict.NOT_COMPARABLE)
        ),
        lambda one: (str(one.verdict), one.reason or _first_reason(one)),
    )


def not_run(report: RunReport) -> list[Together]:
    """Tests without a verdict, by kind and reason."""
    return _together(
        (one for one in report.results if one.verdict is None),
        lambda one: (WHY_NOT.get(one.why_not, one.why_not), one.reason),
    )


def builds(report: RunReport) -> list[str]:
    """The builds under test in words, each once."""
    return _each(one.build.in_words for one in report.results if one.build is not None)


def compared_with(report: RunReport) -> list[str]:
    """What they were compared with in words, each once."""
    return _each(one.compared_with for one in report.results)


def _first_reason(result: TestResult) -> str:
    return next((one.reason for one in result.judgements if one.reason), "")


def _together(
    results: Iterable[TestResult], said: Callable[[TestResult], tuple[str, str]]
) -> list[Together]:
    names: dict[tuple[str, str], list[str]] = {}
    for one in results:
        names.setdefault(said(one), []).append(one.name)
    found = [Together(what, reason, tuple(of_it)) for (what, reason), of_it in names.items()]
    return sorted(found, key=lambda one: -len(one.names))


def _each(texts: Iterable[str]) -> list[str]:
    return [one for one in dict.fromkeys(texts) if one]


def some(texts: Sequence[T], most: int) -> tuple[Sequence[T], int]:
    """The first of them, and how many are left out."""
    return texts[:most], max(0, len(texts) - most)
