"""The report as workflow commands of GitHub: a few annotations, the worst first.

GitHub shows 10 errors and 10 warnings of a step and drops the others without a word, so there are
`MOST` at most, and the last one counts the rest.
"""

from collections.abc import Iterator, Sequence

from perfgate.core.verdict import Judgement, Verdict
from perfgate.reports.figures import band, interval, signed
from perfgate.reports.formats.base import ReportFormat, report_format
from perfgate.reports.overview import Group, by_test, errors, findings, not_run, unjudged
from perfgate.reports.run_report import RunReport, TestResult
from perfgate.reports.templating import shortened

MOST = 8
_TITLE, _MESSAGE = 160, 600  # characters that are shown


@report_format("annotations")
class AnnotationsFormat(ReportFormat):
    """One line each; a log line cannot make another command of it."""

    file = "annotations.txt"

    def text(self, report: RunReport) -> str:
        """The lines, for the standard output of a step; none where nobody need look."""
        stamp = "synthetic " if report.synthetic else ""
        found = [
            (level, f"{stamp}{title}", message) for level, title, message in _annotations(report)
        ]
        if len(found) > MOST:
            left = found[MOST - 1 :]
            level = "error" if any(one[0] == "error" for one in left) else "warning"
            more = f"{stamp}{len(left)} more", "report.md and report.html have all of them"
            found = [*found[: MOST - 1], (level, *more)]
        return "".join(f"{_command(*one)}\n" for one in found)


def _annotations(report: RunReport) -> Iterator[tuple[str, str, str]]:
    """Level, title and message of each, the worst first: one for each test, or group of tests."""
    for result, judgements in by_test(findings(report, Verdict.REGRESSION)):
        yield "error", f"REGRESSION: {result.name}", _numbers(result, judgements)
    for group in errors(report):
        yield "error", f"ERROR {group.what}: {_names(group)}", group.reason
    for fault in report.waiver_faults:
        yield "error", "waiver that does not hold", fault
    for result, judgements in by_test(findings(report, Verdict.INCONCLUSIVE)):
        yield "warning", f"INCONCLUSIVE: {result.name}", _numbers(result, judgements)
    for group in (*unjudged(report), *not_run(report)):
        yield "warning", f"{group.what}: {_names(group)}", group.reason


def _numbers(result: TestResult, judgements: Sequence[Judgement]) -> str:
    """The worst of the metrics; of a test without numbers its reason."""
    if not judgements:
        return result.reason
    judged = judgements[0]
    return (
        f"{judged.metric} {signed(judged.metric, judged.change)} (interval {interval(judged)}, "
        f"band {band(judged)}): {judged.reason}"
    )


def _names(group: Group[TestResult]) -> str:
    others = len(group.tests) - 1
    return shortened(group.tests[0].name, 100) + (f" and {others} more" if others else "")


def _command(level: str, title: str, message: str) -> str:
    return f"::{level} title={_property(title)}::{_data(message)}"


def _data(text: str) -> str:
    """A message as the runner reads it back: `%` and ends of lines are encoded."""
    return shortened(text, _MESSAGE).replace("%", "%25") or "no reason is recorded"


def _property(text: str) -> str:
    """A property's value: also `:` and `,`, which would end it."""
    escaped = shortened(text, _TITLE).replace("%", "%25")
    return escaped.replace(":", "%3A").replace(",", "%2C")
