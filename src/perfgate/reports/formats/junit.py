"""The report as JUnit XML, as GitLab and Jenkins read it: of one run or of several merged.

`pytest --junitxml` writes the file of one session; both have the same elements and properties.
GitLab takes the suite's name from `classname` and no property, so the values are a table of
`system-out` too; it shows 80 lines of a test, and reads no file with more than 250,000 objects.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from xml.sax.saxutils import escape

from perfgate.core.redaction import visible
from perfgate.core.verdict import Judgement, Verdict
from perfgate.judging.assembly.judge_input import Outcome
from perfgate.reports.figures import band, interval, signed
from perfgate.reports.formats.base import ReportFormat, report_format
from perfgate.reports.outcome_text import (
    MARKS,
    MEASURED,
    MEASURED_NUMBERS,
    NUMBERS,
    brief,
    columns,
    measured_rows,
    reasons,
    rows,
)
from perfgate.reports.run_report import RunReport, TestResult, result_of
from perfgate.reports.tables import text_table
from perfgate.reports.templating import shortened

# Verdict → the element; a PASS and an IMPROVEMENT have none.
ELEMENTS = {
    Verdict.REGRESSION: "failure",
    Verdict.ERROR: "error",
    Verdict.INCONCLUSIVE: "skipped",
    Verdict.NO_BASELINE: "skipped",
    Verdict.NOT_COMPARABLE: "skipped",
}
# Element → the attribute of its suite that counts it.
COUNTS = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def kind(verdict: Verdict) -> str:
    """The `type` of the element."""
    return f"perfgate.{verdict.value}"


def message(verdict: Verdict, summary: str) -> str:
    """The `message` of the element, one line."""
    return f"{verdict.value}: {summary}"


Property = tuple[str, str]


def properties(outcome: Outcome) -> list[Property]:
    """What a reader of JUnit XML can take from a test that has just ended; as `properties_of`."""
    result = result_of(outcome.as_record(""))
    return properties_of(replace(result, resumed_from=outcome.resumed_from))


def properties_of(result: TestResult, *, all_measured: bool = True) -> list[Property]:
    """What a reader of JUnit XML can take from a test, as names and texts.

    ``metric.<name>`` is the value, ``metric.<name>.unit`` its unit, ``metric.<name>.n`` the number
    of fresh starts; of a judged metric also ``.baseline``, ``.change``, ``.interval``, ``.band``,
    ``.verdict``, ``.mark`` and ``.controls``, the number of controls that it rests on; against the
    anchor with ``.anchor`` before those words. ``mark`` is a mark that any of them has.

    Args:
        result: the test; one without a verdict has why in place of it.
        all_measured: also the metrics that were measured and not judged.
    """
    found = [
        ("verdict" if result.verdict else "skip_reason", result.verdict or result.skip_reason),
        ("scenario", result.scenario),
        ("probe", result.probe),
        ("summary", summary(result)),
    ]
    failure = result.failure
    marks = dict.fromkeys(judgement.mark for judgement in result.judgements if judgement.mark)
    more = [
        ("synthetic", "true" if result.synthetic else ""),
        ("resumed_from", result.resumed_from),
        *(("injected", one) for one in result.injected),
        ("error_class", "" if failure is None else failure.error_class),
        *(("mark", f"{mark}: {MARKS[mark]}") for mark in marks),
        ("reason", result.reason),
        *_identity(result),
        *_numbers(result, all_measured=all_measured),
    ]
    found += [(name, text) for name, text in more if text]
    return [(name, visible(str(text))) for name, text in found]


def summary(result: TestResult) -> str:
    """The metrics and their changes in one line, else why there are none."""
    failure = result.failure
    failed = "" if failure is None else f"{failure.error_class}: {failure.message}"
    return brief(result.judgements) or failed or result.reason


def _identity(result: TestResult) -> Iterator[Property]:
    build = result.build
    if build is not None:
        yield "engine", build.name
        yield "engine_version", build.version
        yield "engine_commit", build.commit
        yield "image", build.image
        yield "image_digest", build.digest
    for control in result.controls:
        yield "control", control.description
    yield "extra_options", result.extra_options
    for setting in result.settings:
        yield "setting", setting
    yield "compared_with", result.compared_with


def _numbers(result: TestResult, *, all_measured: bool) -> Iterator[Property]:
    judged = {one.metric for one in result.judgements}
    for one in result.measured:
        if not all_measured and one.metric not in judged:
            continue
        yield f"metric.{one.metric}", f"{one.value:.10g}"
        yield f"metric.{one.metric}.unit", one.unit
        yield f"metric.{one.metric}.n", str(one.n)
    for judgement in result.judgements:
        yield from _judged(judgement)


def _judged(judgement: Judgement) -> Iterator[Property]:
    name = f"metric.{judgement.metric}"
    if judgement.against == "anchor":
        name += ".anchor"
    if judgement.baseline is not None:
        yield f"{name}.baseline", f"{judgement.baseline:.10g}"
    for word, text in (
        ("change", signed(judgement.metric, judgement.change)),
        ("interval", interval(judgement)),
        ("band", band(judgement)),
    ):
        if text != "-":
            yield f"{name}.{word}", text
    yield f"{name}.verdict", judgement.verdict.value
    yield f"{name}.mark", judgement.mark
    yield f"{name}.controls", str(judgement.controls_used or "")
    yield f"{name}.waiver", judgement.waiver.text if judgement.waiver else ""


MOST_LINES = 80  # of the text of one test
MOST_PROPERTIES = 40_000  # with more, those of metrics that were not judged are left out
_LINE, _NAME, _SHORT = 1000, 1000, 120  # characters of a line, of a name, of a cell
_WIDTH = 10_000  # of a table: it is never folded
_VALUES = 20  # rows of a table of values
_QUOTE = {'"': "&quot;"}


@report_format("junit")
class JunitFormat(ReportFormat):
    """One suite for each scenario, one case for each test."""

    file = "junit.xml"

    def text(self, report: RunReport) -> str:
        """The file's text, in UTF-8."""
        numbers = accumulate(len(properties_of(one)) for one in report.results)
        is_short = all(number <= MOST_PROPERTIES for number in numbers)
        tests: dict[str, list[TestResult]] = {}
        for result in report.results:
            tests.setdefault(result.scenario, []).append(result)
        spent: dict[str, float] = {}
        for effort in report.efforts:
            spent[effort.scenario] = spent.get(effort.scenario, 0) + effort.spent_s
        names: dict[str, int] = {}
        suites: list[str] = []
        whole: Counter[str] = Counter()
        for scenario, of_it in tests.items():
            elements = Counter(map(_tag, of_it))
            counts = {attribute: elements[element] for element, attribute in COUNTS.items()}
            counts = {"tests": len(of_it), **counts}
            whole.update(counts)
            attributes = {
                "name": _name(scenario),
                "time": f"{spent.get(scenario, 0):.0f}",
                **counts,
            }
            cases = [_case(one, _unique(one.name, names), is_short) for one in of_it]
            suites.append(_element("testsuite", attributes, _inside(2, cases)))
        # What Jenkins' schema lets it have.
        of_all = {name: whole[name] for name in ("tests", "failures", "errors")}
        text = _element("testsuites", {"name": "perfgate", **of_all}, _inside(1, suites))
        return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _name(scenario: str) -> str:
    return shortened(scenario, _NAME) or "perfgate"


def _unique(name: str, names: dict[str, int]) -> str:
    """The name, with a number where it was given before: of equal ones GitLab reads the first."""
    shown = shortened(name, _NAME)
    names[shown] = given = names.get(shown, 0) + 1
    return shown if given == 1 else _unique(f"{shortened(name, _NAME - 10)} ({given})", names)


def _tag(result: TestResult) -> str:
    """The element that says that a test is not well; empty: it is."""
    return "skipped" if result.verdict is None else ELEMENTS.get(result.verdict, "")


def _case(result: TestResult, name: str, all_measured: bool) -> str:
    listed = properties_of(result, all_measured=all_measured)
    shown = [_element("property", {"name": field, "value": text}) for field, text in listed]
    parts = [_element("properties", {}, _inside(4, shown))]
    if tag := _tag(result):
        verdict = result.verdict
        said = result.reason if verdict is None else message(verdict, summary(result))
        why = {"type": f"perfgate.{verdict or result.skip_reason}", "message": said}
        lines = [] if verdict is None else _whole(result)
        parts.append(_element(tag, why, escape("\n".join(lines))))
    if result.measured:
        parts.append(_element("system-out", {}, escape("\n".join(_values(result)))))
    of_case = {"classname": _name(result.scenario), "name": name}
    return _element("testcase", of_case, _inside(3, parts))


def _element(tag: str, attributes: Mapping[str, object], content: str = "") -> str:
    """An element; what it holds is XML already."""
    start = f"<{tag}"
    for name, value in attributes.items():
        start += f' {name}="{escape(shortened(str(value), _NAME), _QUOTE)}"'
    return f"{start}>{content}</{tag}>" if content else f"{start} />"


def _inside(depth: int, elements: Sequence[str]) -> str:
    """Elements on lines of their own; none: empty."""
    gap = "\n" + "  " * depth
    return "".join(gap + element for element in elements) + gap[:-2] if elements else ""


def _whole(result: TestResult) -> list[str]:
    """All that a person needs to know of a test that is not well, in `MOST_LINES` at most."""
    judged = result.judgements
    lines = ["SYNTHETIC: a mock program made these numbers"] if result.synthetic else []
    lines += [result.reason] if result.reason else []
    if judged:
        lines += [*_table(columns(judged), rows(judged, MARKS), NUMBERS), ""]
        lines += reasons(judged)
    lines += [f"note: {note}" for note in result.notes]
    failure = result.failure
    if failure is not None:
        lines += [f"{failure.error_class}: {failure.message}", f"next step: {failure.next_step}"]
    end = [f"build: {result.build.description}"] if result.build else []
    end += [f"compared with: {result.compared_with}"] if result.compared_with else []
    end += [f"rerun: {result.rerun}"] if result.rerun else []
    evidence = [] if failure is None else failure.evidence
    room = max(0, MOST_LINES - len(lines) - len(end) - 1)
    before = max(0, len(evidence) - room)  # the last lines of a log tell most
    cut = [f"({before} lines before are left out)"] if before else []
    end = [*cut, *evidence[before:], *end]
    return [_line(one) for one in [*lines, *end]][:MOST_LINES]


def _line(text: str) -> str:
    """The text on one line; a command to run again stays whole."""
    one_line = visible(text).replace("\n", "\\n")
    return one_line if len(one_line) <= _LINE else one_line[:_LINE] + "…"


def _values(result: TestResult) -> list[str]:
    """The measured values; those that were judged are the first."""
    shown = result.measured[:_VALUES]
    lines = _table(MEASURED, measured_rows(shown, result.judgements), MEASURED_NUMBERS)
    if result.synthetic:
        lines.insert(0, "SYNTHETIC: a mock program made these numbers")
    if len(result.measured) > len(shown):
        lines.append(f"and {len(result.measured) - len(shown)} more")
    return lines


def _table(
    heading: Sequence[str], found: Sequence[Sequence[str]], right: Collection[int]
) -> list[str]:
    cells = [[shortened(cell, _SHORT) for cell in row] for row in found]
    return text_table(heading, cells, right=right, width=_WIDTH).splitlines()
