"""The report as Markdown, for a pull request's comment, GITHUB_STEP_SUMMARY and GitLab's notes.

At most `MOST_LINES` lines and `MOST_CHARACTERS` characters, whatever the run: a comment on GitHub
holds 65,536 characters, and a step summary over 1 MiB is dropped as a whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from perfgate.core.verdict import Verdict, counted
from perfgate.reports.figures import band, interval, signed
from perfgate.reports.formats.base import ReportContext, ReportFormat, report_format
from perfgate.reports.markdown_text import code, fenced, prose, table
from perfgate.reports.overview import (
    Finding,
    Together,
    builds,
    compared_with,
    counts,
    errors,
    findings,
    not_run,
    some,
    state,
    unjudged,
)
from perfgate.reports.run_report import RunReport
from perfgate.reports.shown import shown

MOST_LINES = 59
MOST_CHARACTERS = 60_000

# Rows that are shown of each; names in a line of a group, and in one of what is well.
_LOST, _OTHER, _GROUPS, _NOTES, _RERUNS = 12, 5, 4, 3, 5
_NAMES, _WELL = 4, 300
_COLUMNS = ("test", "metric", "change", "interval", "band")
_NUMBERS = (2, 3, 4)


@dataclass(frozen=True)
class _Section:
    """Lines that are shown together or not at all; `name` is for what is said of them then."""

    name: str
    lines: Sequence[str]


@report_format("markdown")
class MarkdownFormat(ReportFormat):
    """The verdict first, then what needs somebody, the worst first; the rest folded."""

    file = "report.md"

    def render(self, report: RunReport, context: ReportContext) -> str:  # noqa: ARG002
        """The text; what does not fit is left out from the end, and its last line says so."""
        report = shown(report)
        sections = [one for one in _sections(report) if one.lines]
        text = "\n".join(_head(report)) + "\n"
        for place, section in enumerate(sections):
            more = "\n" + "\n".join(section.lines) + "\n"
            # What is left for the last line, which names what is left out.
            room = 0 if place == len(sections) - 1 else 2
            if (
                text.count("\n") + more.count("\n") + room > MOST_LINES
                or len(text) + len(more) + 500 * bool(room) > MOST_CHARACTERS
            ):
                left = ", ".join(one.name for one in sections[place:])
                return (
                    f"{text}\nLeft out for length: {left}; report.html and report.json have it.\n"
                )
            text += more
        return text


def _head(report: RunReport) -> list[str]:
    """The verdict, build against what, counts, hours."""
    stamp = "SYNTHETIC " if report.synthetic else ""
    told = [f"{number} {words}" for words, number in counts(report).items()]
    runs = ", ".join(code(one.id, 60) for one in report.runs[:_NOTES])
    if len(report.runs) > _NOTES:
        runs += f" and {len(report.runs) - _NOTES} more"
    lines = [
        f"## {stamp}perfgate: {state(report)}",
        "",
        f"{_upper(prose(report.meaning))}"
        + ("" if report.status is None else f" (exit status {report.status})")
        + ".",
    ]
    if report.synthetic:
        lines[-1] += " **Stand-ins made these numbers: they say nothing of any engine.**"
    lines += [
        "",
        f"- build: {_few(builds(report))}",
        f"- compared with: {_few(compared_with(report))}",
        f"- {counted(len(report.results), 'test')}: {', '.join(told) or 'none'}",
        f"- {report.gpu_hours:.1f} GPU hours, {_hours(report):.1f} hours of the clock; "
        f"{'run' if len(report.runs) == 1 else 'runs'} {runs}",
    ]
    return lines


def _sections(report: RunReport) -> list[_Section]:
    lost = findings(report, Verdict.REGRESSION)
    undecided = findings(report, Verdict.INCONCLUSIVE)
    notes = [*filter(None, [report.suspicion, report.without_controls]), *report.waiver_faults]
    notes += report.merged
    return [
        _found("Regressed", lost, _LOST),
        _grouped("Errors", errors(report)),
        _listed("To know of the whole", notes),
        _found("Undecided", undecided, _OTHER),
        _grouped("Without a verdict", [*unjudged(report), *not_run(report)]),
        _reruns(report),
        _waived(report),
        _well(report),
    ]


def _found(title: str, found: Sequence[Finding], most: int) -> _Section:
    shown, more = some(found, most)
    rows = [_row(one) for one in shown]
    if more:
        rows.append([f"and {more} more", "", "", "", ""])
    lines = table(_COLUMNS, rows, _NUMBERS).splitlines() if rows else []
    return _Section(title.lower(), _titled(f"{title} ({_tests(found)})", lines))


def _row(one: Finding) -> list[str]:
    judged = one.judgement
    stamp = "synthetic " if one.result.synthetic else ""
    name = stamp + code(one.result.name)
    if judged is None:
        return [name, prose(one.result.reason, 200), "-", "-", "-"]
    against = {"anchor": " since the anchor", "documented": " against the document"}
    return [
        name,
        code(judged.metric, 80) + against.get(judged.against, ""),
        f"{signed(judged.metric, judged.change)}{f', {judged.mark}' if judged.mark else ''}",
        interval(judged),
        band(judged),
    ]


def _tests(found: Sequence[Finding]) -> str:
    return counted(len({one.result.name for one in found}), "test")


def _grouped(title: str, groups: Sequence[Together]) -> _Section:
    shown, more = some(groups, _GROUPS)
    lines = [
        f"- {prose(one.what, 60)}, {counted(len(one.names), 'test')}: {prose(one.reason)}: "
        + _names(one.names, _NAMES)
        for one in shown
    ]
    if more:
        lines.append(f"- and {counted(more, 'more reason')}")
    number = sum(len(one.names) for one in groups)
    return _Section(title.lower(), _titled(f"{title} ({counted(number, 'test')})", lines))


def _names(names: Sequence[str], most: int) -> str:
    shown, more = some(names, most)
    return ", ".join(code(one) for one in shown) + (f" and {more} more" if more else "")


def _listed(title: str, texts: Sequence[str]) -> _Section:
    shown, more = some(texts, _NOTES)
    lines = [f"- {prose(one)}" for one in shown]
    return _Section(
        title.lower(), _titled(title, [*lines, *([f"- and {more} more"] if more else [])])
    )


def _reruns(report: RunReport) -> _Section:
    """The commands that run again what needs somebody, folded."""
    wanted = (Verdict.REGRESSION, Verdict.ERROR, Verdict.INCONCLUSIVE)
    commands = [
        one.rerun
        for verdict in wanted
        for one in report.results
        if one.verdict == verdict and 0 < len(one.rerun) <= 1000
    ]
    shown, more = some(list(dict.fromkeys(commands)), _RERUNS)
    lines = fenced(shown) if shown else []
    if more:
        lines += ["", f"And {more} more in report.html."]
    return _Section("rerun lines", _titled("Rerun", lines, folded=True))


def _waived(report: RunReport) -> _Section:
    waived = [
        f"{code(result.name)}: {code(one.metric, 80)} {signed(one.metric, one.change)}: "
        + prose(one.waiver.text, 160)
        for result in report.results
        for one in result.judgements
        if one.waiver
    ]
    shown, more = some(waived, _OTHER)
    lines = [f"- {one}" for one in shown] + ([f"- and {more} more"] if more else [])
    return _Section("waived losses", _titled("Waived losses", lines, folded=True))


def _well(report: RunReport) -> _Section:
    """What improved and what passed, folded: a line each."""
    better = [
        code(one.result.name)
        + ("" if one.judgement is None else f" {code(one.judgement.metric, 80)} {_change(one)}")
        for one in findings(report, Verdict.IMPROVEMENT)
    ]
    passed = [code(one.name) for one in report.results if one.verdict == Verdict.PASS]
    lines: list[str] = []
    for title, found in (("Improved", better), ("Passed", passed)):
        if found:
            kept, more = some(found, _WELL)
            told = ", ".join(kept) + (f" and {more} more" if more else "")
            lines += [*([""] if lines else []), f"{title}: {told}."]
    return _Section("what improved or passed", _titled("Improved and passed", lines, folded=True))


def _change(one: Finding) -> str:
    return "" if one.judgement is None else signed(one.judgement.metric, one.judgement.change)


def _titled(title: str, lines: Sequence[str], *, folded: bool = False) -> list[str]:
    """The lines below their title, which is of perfgate's own words; none where there are none."""
    if not lines:
        return []
    if folded:
        return [f"<details><summary>{title}</summary>", "", *lines, "", "</details>"]
    return [f"### {title}", "", *lines]


def _few(texts: Sequence[str]) -> str:
    shown, more = some(texts, 2)
    return ("; ".join(prose(one, 200) for one in shown) or "not known") + (
        f"; and {more} more" if more else ""
    )


def _hours(report: RunReport) -> float:
    return sum(one.spent_s for one in report.efforts) / 3600


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
