"""Annotations: few, the worst first, each one workflow command."""

from run_reports import of_size, report, result

from perfgate.core.verdict import Verdict
from perfgate.reports.formats.annotations import AnnotationsFormat
from perfgate.reports.run_report import RunReport


def annotations(of: RunReport) -> list[str]:
    return AnnotationsFormat().render(of).splitlines()


def test_the_worst_come_first_and_the_last_counts_the_rest() -> None:
    lines = annotations(of_size(500))
    assert len(lines) == 8
    assert lines[0].startswith("::error title=REGRESSION%3A b200-scenario-096-c1::")
    assert lines[-1] == ("::error title=47 more::report.md and report.html have all of them")


def test_properties_and_messages_are_escaped_as_the_runner_reads_them() -> None:
    one = result(0, Verdict.REGRESSION, name="a:b,c%d", judgements=(), reason="50 %\r\n::error::x")
    assert annotations(report(one)) == [
        "::error title=REGRESSION%3A a%3Ab%2Cc%25d::50 %25\\x0d ::error::x"
    ]
