"""The report as JUnit XML, as GitLab and Jenkins read it: of one run or of several merged.

`pytest --junitxml` writes the file of one session; both have the same elements and properties.
GitLab takes the suite's name from `classname` and no property, so the values are a table of
`system-out` too; it shows 80 lines of a test, and reads no file with more than 250,000 objects.
"""

from collections.abc import Collection, Sequence
from xml.etree import ElementTree

from perfgate.core.redaction import visible
from perfgate.core.verdict import Judgement
from perfgate.reports.figures import band, interval, number, signed, with_unit
from perfgate.reports.formats.base import ReportContext, ReportFormat, report_format
from perfgate.reports.junit_elements import COUNTS, ELEMENTS, kind, message
from perfgate.reports.markdown_text import shortened
from perfgate.reports.outcome_text import (
    MEASURED,
    MEASURED_NUMBERS,
    NUMBERS,
    columns,
    measured_rows,
    reasons,
)
from perfgate.reports.properties import properties_of, summary
from perfgate.reports.run_report import RunReport, TestResult
from perfgate.reports.shown import shown
from perfgate.reports.tables import text_table

MOST_LINES = 80  # of the text of one test
MOST_PROPERTIES = 40_000  # with more, those of metrics that were not judged are left out
_LINE, _NAME, _SHORT = 1000, 1000, 120  # characters of a line, of a name, of a cell
_WIDTH = 10_000  # of a table: it is never folded
_VALUES = 20  # rows of a table of values


@report_format("junit")
class JunitFormat(ReportFormat):
    """One suite for each scenario, one case for each test."""

    file = "junit.xml"

    def render(self, report: RunReport, context: ReportContext) -> str:  # noqa: ARG002
        """The file's text, in UTF-8."""
        report = shown(report)
        whole = sum(len(properties_of(one)) for one in report.results) <= MOST_PROPERTIES
        root = ElementTree.Element("testsuites", name="perfgate")
        scenarios = dict.fromkeys(one.scenario for one in report.results)
        names: dict[str, int] = {}
        for scenario in scenarios:
            of_it = report.of_scenario(scenario)
            suite = ElementTree.SubElement(root, "testsuite", name=_name(scenario))
            spent = sum(one.spent_s for one in report.efforts if one.scenario == scenario)
            suite.set("time", f"{spent:.0f}")
            for result in of_it:
                suite.append(_case(result, _unique(result.name, names), all_measured=whole))
            _count(suite)
        for name in ("tests", "failures", "errors"):  # what Jenkins' schema lets it have
            root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
        ElementTree.indent(root)
        text = ElementTree.tostring(root, encoding="unicode")
        return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _name(scenario: str) -> str:
    return shortened(scenario, _NAME) or "perfgate"


def _unique(name: str, names: dict[str, int]) -> str:
    """The name, with a number where it was given before: of equal ones GitLab reads the first."""
    shown = shortened(name, _NAME)
    names[shown] = names.get(shown, 0) + 1
    return shown if names[shown] == 1 else _unique(f"{shown} ({names[shown]})", names)


def _count(suite: ElementTree.Element) -> None:
    suite.set("tests", str(len(suite)))
    for element, attribute in COUNTS.items():
        suite.set(attribute, str(len(suite.findall(f"testcase/{element}"))))


def _case(result: TestResult, name: str, *, all_measured: bool) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname=_name(result.scenario), name=name)
    listed = ElementTree.SubElement(case, "properties")
    for field, text in properties_of(result, all_measured=all_measured):
        shown = shortened(text, _NAME)
        ElementTree.SubElement(listed, "property", name=shortened(field, _NAME), value=shown)
    verdict = result.verdict
    if verdict is None:
        _element(case, "skipped", f"perfgate.{result.why_not}", result.reason, [])
    elif verdict in ELEMENTS:
        said = message(verdict, summary(result))
        _element(case, ELEMENTS[verdict], kind(verdict), said, _whole(result))
    if result.measured:
        ElementTree.SubElement(case, "system-out").text = "\n".join(_values(result))
    return case


def _element(case: ElementTree.Element, tag: str, type_: str, said: str, lines: list[str]) -> None:
    attributes = {"type": shortened(type_, _NAME), "message": shortened(said, _NAME)}
    element = ElementTree.SubElement(case, tag, attributes)
    if lines:
        element.text = "\n".join(lines)


def _whole(result: TestResult) -> list[str]:
    """All that a person needs to know of a test that is not well, in `MOST_LINES` at most."""
    judged = result.judgements
    lines = ["SYNTHETIC: a stand-in made these numbers"] if result.synthetic else []
    lines += [result.reason] if result.reason else []
    if judged:
        lines += [*_table(columns(judged), [_row(one) for one in judged], NUMBERS), ""]
        lines += reasons(judged)
    lines += [f"note: {note}" for note in result.notes]
    failure = result.failure
    if failure is not None:
        lines += [f"{failure.error_class}: {failure.message}", f"next step: {failure.next_step}"]
    end = [f"build: {result.build.in_words}"] if result.build else []
    end += [f"compared with: {result.compared_with}"] if result.compared_with else []
    end += [f"rerun: {result.rerun}"] if result.rerun else []
    evidence = [] if failure is None else failure.evidence
    room = max(0, MOST_LINES - len(lines) - len(end) - 1)
    if len(evidence) > room:  # the last lines of a log tell most
        end = [f"({len(evidence) - room} lines before are left out)", *evidence[-room:], *end]
    else:
        end = [*evidence, *end]
    return [_line(one) for one in [*lines, *end]][:MOST_LINES]


def _line(text: str) -> str:
    """The text on one line; a command to run again stays whole."""
    one_line = visible(text).replace("\n", "\\n")
    return one_line if len(one_line) <= _LINE else one_line[:_LINE] + "…"


def _row(one: Judgement) -> list[str]:
    """As `columns` of the reports' tables."""
    against = " since the anchor" if one.against == "anchor" else ""
    verdict = "waived" if one.waiver else one.verdict.value
    return [
        f"{shortened(with_unit(one.metric), _SHORT)}{against}",
        number(one.baseline),
        number(one.measured),
        signed(one.metric, one.change),
        interval(one),
        band(one),
        f"{verdict}, {one.mark}" if one.mark else verdict,
    ]


def _values(result: TestResult) -> list[str]:
    """The measured values; those that were judged are the first."""
    shown = result.measured[:_VALUES]
    rows = [
        [shortened(cell, _SHORT) for cell in row] for row in measured_rows(shown, result.judgements)
    ]
    lines = _table(MEASURED, rows, MEASURED_NUMBERS)
    if result.synthetic:
        lines.insert(0, "SYNTHETIC: a stand-in made these numbers")
    if len(result.measured) > len(shown):
        lines.append(f"and {len(result.measured) - len(shown)} more")
    return lines


def _table(
    heading: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[int]
) -> list[str]:
    return text_table(heading, rows, right=right, width=_WIDTH).splitlines()
