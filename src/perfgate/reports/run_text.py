"""The text of one run: its end on the terminal, and ``summary.md`` with all of it.

On the terminal is what needs somebody, the worst first, then what is well. It is short whatever the
run: what does not fit is counted, and is in `summary.md`.
"""

from collections.abc import Iterator

from perfgate.campaign.resume import resuming_call
from perfgate.core.verdict import MEANINGS, Verdict, counted
from perfgate.judging.assembly.measured import is_limit
from perfgate.machine import hardware
from perfgate.reports import figures, outcome_text, overview, templating
from perfgate.reports.outcome_text import MARKS, brief, resumed
from perfgate.reports.run_report import RunReport
from perfgate.reports.tables import markdown_table, text_table
from perfgate.reports.templating import REPORTS, environment, shortened
from perfgate.runs.exit_status import Event, ExitStatus, decision, meaning

_ROWS = 8  # of the table of values


def terminal_lines(report: RunReport, status: ExitStatus | None) -> Iterator[tuple[str, bool]]:
    """The lines, each with whether it is good news; numbers of mock programs never are.

    Args:
        report: the run.
        status: how it ended; None if it was broken off.
    """
    ends = [result.verdict for result in report.results]
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
            *(shortened(text, 50) for text in (result.name, metric.metric)),
            figures.number(metric.value),
            shortened(metric.unit, 16),
            str(metric.n),
        )
        for result in unjudged
        for metric in overview.main_metrics(result)
    ]
    if rows:
        columns = ("test", "metric", "value", "unit", "n")
        yield from text_table(columns, rows[:_ROWS], right=(2, 4)).splitlines()
        left_out = sum(len(one.measured) for one in unjudged) - len(rows[:_ROWS])
        if left_out:
            yield f"and {counted(left_out, 'more value')} in summary.md"


def summary(report: RunReport, status: ExitStatus | None) -> str:
    """The run as Markdown.

    Args:
        report: of one run.
        status: how the run ended; None while it has not.
    """
    (run,) = report.runs
    gpus = hardware.counted(gpu["name"] for gpu in run.machine["gpus"])
    template = environment(REPORTS).get_template("summary.md")
    return template.render(
        report=report,
        run=run,
        status=status,
        meaning=""
        if status is None
        else meaning(status, [result.verdict for result in report.results]),
        resuming_call=resuming_call({"id": run.id, "arguments": run.arguments}),
        counts=overview.counts(report),
        pass_meaning=MEANINGS[Verdict.PASS],
        gpus=gpus or "no GPU",
        overview=overview,
        text=outcome_text,
        table=markdown_table,
    )
