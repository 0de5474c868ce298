"""The end of a run on the terminal: what needs somebody, the worst first, then what is well.

It is short whatever the run: what does not fit is counted, and is in `summary.md`.
"""

from collections.abc import Iterator

from perfgate.core.verdict import Verdict, counted
from perfgate.judging.assembly.measured import is_limit
from perfgate.reports import figures, overview, templating
from perfgate.reports.markdown_text import shortened
from perfgate.reports.outcome_text import MARKS, brief, resumed
from perfgate.reports.run_report import RunReport
from perfgate.reports.tables import text_table
from perfgate.runs.exit_status import Event, ExitStatus, decision, meaning

_ROWS = 8  # of the table of values


def terminal_lines(report: RunReport, status: ExitStatus | None) -> Iterator[tuple[str, bool]]:
    """The lines, each with whether it is good news; numbers of stand-ins never are.

    Args:
        report: the run.
        status: how it ended; None if it was broken off.
    """
    ends = [one.verdict for one in report.results]
    shown = {
        "report": report,
        "overview": overview,
        "regressed": overview.by_test(overview.findings(report, Verdict.REGRESSION)),
        "undecided": overview.by_test(overview.findings(report, Verdict.INCONCLUSIVE)),
        "improved": overview.of_verdict(report, Verdict.IMPROVEMENT),
        "passed": overview.of_verdict(report, Verdict.PASS),
        "settings": sorted(overview.settings(report), key=lambda pair: is_limit(pair[0])),
        "values": list(_values(report)),
        "status": status,
        "meaning": "" if status is None else meaning(status, ends),
        "next_step": "" if not status else decision(Event.PULL_REQUEST, status).sentence,
        "brief": brief,
        "resumed": resumed,
        "MARKS": MARKS,
    }
    template = templating.terminal().get_template("terminal.txt").make_module(shown)
    for part, is_good in (
        ("needs_somebody", False),
        ("is_well", not report.synthetic),
        ("whole_run", False),
    ):
        lines = str(getattr(template, part)()).splitlines()
        yield from ((line.rstrip(), is_good) for line in lines if line.strip())


def _values(report: RunReport) -> Iterator[str]:
    """The main metrics of the first tests that nothing was compared with, as a table."""
    unjudged = overview.of_verdict(report, Verdict.NO_BASELINE, Verdict.NOT_COMPARABLE)
    rows = [
        (
            *(shortened(text, 50) for text in (result.name, one.metric)),
            figures.number(one.value),
            shortened(one.unit, 16),
            str(one.n),
        )
        for result in unjudged
        for one in overview.main_metrics(result)
    ]
    if rows:
        columns = ("test", "metric", "value", "unit", "n")
        yield from text_table(columns, rows[:_ROWS], right=(2, 4)).splitlines()
        left_out = sum(len(one.measured) for one in unjudged) - len(rows[:_ROWS])
        if left_out:
            yield f"and {counted(left_out, 'more value')} in summary.md"
