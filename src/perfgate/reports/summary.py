"""``summary.md``: a whole run for people, with every verdict, number and reason."""

from perfgate.campaign.resume import resuming_call
from perfgate.core.verdict import MEANINGS, Verdict
from perfgate.machine.hardware import counted
from perfgate.reports import outcome_text, overview
from perfgate.reports.run_report import RunReport
from perfgate.reports.tables import markdown_table
from perfgate.reports.templating import REPORTS, environment
from perfgate.runs.exit_status import ExitStatus, meaning


def summary(report: RunReport, status: ExitStatus | None) -> str:
    """The run as Markdown.

    Args:
        report: of one run.
        status: how the run ended; None while it has not.
    """
    (run,) = report.runs
    gpus = counted(gpu["name"] for gpu in run.machine["gpus"])
    template = environment(REPORTS).get_template("summary.md")
    return template.render(
        report=report,
        run=run,
        status=status,
        meaning="" if status is None else meaning(status, [one.verdict for one in report.results]),
        resuming_call=resuming_call({"id": run.id, "arguments": run.arguments}),
        counts=overview.counts(report),
        pass_meaning=MEANINGS[Verdict.PASS],
        gpus=gpus or "no GPU",
        overview=overview,
        text=outcome_text,
        table=markdown_table,
    )
