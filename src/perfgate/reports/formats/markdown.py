"""The report as Markdown, for a pull request's comment, GITHUB_STEP_SUMMARY and GitLab's notes.

At most `MOST_LINES` lines and `MOST_CHARACTERS` characters, whatever the run: a comment on GitHub
holds 65,536 characters, and a step summary over 1 MiB is dropped as a whole.
"""

from perfgate.core.verdict import Verdict
from perfgate.reports import overview, templating
from perfgate.reports.formats.base import ReportFormat, report_format
from perfgate.reports.run_report import RunReport

MOST_LINES = 59
MOST_CHARACTERS = 60_000

# The macros of the template in their order → what is said of one that is left out.
_SECTIONS = {
    "regressed": "regressed",
    "failed": "errors",
    "whole": "to know of the whole",
    "undecided": "undecided",
    "unjudged": "without a verdict",
    "reruns": "rerun lines",
    "waived": "waived losses",
    "well": "what improved or passed",
}
_RERUN = (Verdict.REGRESSION, Verdict.ERROR, Verdict.INCONCLUSIVE)
_LONGEST_COMMAND = 1000


@report_format("markdown")
class MarkdownFormat(ReportFormat):
    """The verdict first, then what needs somebody, the worst first; the rest folded."""

    file = "report.md"

    def text(self, report: RunReport) -> str:
        """The text; what does not fit is left out from the end, and its last line says so."""
        template = templating.markdown().get_template("report.md").make_module(_content(report))
        rendered = {name: str(getattr(template, name)()).strip("\n") for name in _SECTIONS}
        sections = [name for name, lines in rendered.items() if lines]
        text = f"{str(template.head()).strip()}\n"  # type: ignore[attr-defined]
        for place, name in enumerate(sections):
            more = f"\n{rendered[name]}\n"
            # What is left for the last line, which names what is left out.
            room = 0 if place == len(sections) - 1 else 2
            if (
                text.count("\n") + more.count("\n") + room > MOST_LINES
                or len(text) + len(more) + 500 * bool(room) > MOST_CHARACTERS
            ):
                left = ", ".join(_SECTIONS[section] for section in sections[place:])
                return (
                    f"{text}\nLeft out for length: {left}; report.html and report.json have it.\n"
                )
            text += more
        return text


def _content(report: RunReport) -> dict[str, object]:
    notes = [*filter(None, [report.suspicion, report.without_controls]), *report.waiver_faults]
    commands = [
        one.rerun
        for verdict in _RERUN
        for one in overview.of_verdict(report, verdict)
        if 0 < len(one.rerun) <= _LONGEST_COMMAND
    ]
    return {
        "report": report,
        "overview": overview,
        "lost": overview.findings(report, Verdict.REGRESSION),
        "open": overview.findings(report, Verdict.INCONCLUSIVE),
        "better": overview.findings(report, Verdict.IMPROVEMENT),
        "passed": overview.of_verdict(report, Verdict.PASS),
        "without_verdict": [*overview.unjudged(report), *overview.not_run(report)],
        "notes": [*notes, *report.merged],
        "commands": list(dict.fromkeys(commands)),
    }
