"""Run reports: what a session writes of its run at its end: the summary, the page asked for."""

import traceback
from pathlib import Path

from perfgate.core.errors import PerfgateError
from perfgate.judging.assembly.exit_status import ExitStatus
from perfgate.reports.formats.base import ReportContext
from perfgate.reports.gathered_history import gathered_histories
from perfgate.reports.merge import merge
from perfgate.reports.report_files import write_formats
from perfgate.reports.summary import summary
from perfgate.runs.ended_run import EndedRun, end_of
from perfgate.runs.records import RunFolder


def write_summary(run: RunFolder, status: ExitStatus | None) -> None:
    """Write ``summary.md`` into the run folder.

    Raises:
        PerfgateError: a record is damaged, or it cannot be written.
    """
    run.write_summary(summary(run.facts(), run.records(), status))


def write_page(run: RunFolder, beside: Path) -> str:
    """Write ``report.html`` into the run folder; returns why that failed, empty if it did not.

    Whatever fails in making a page, the verdict of the run stands.

    Args:
        run: the run, ended.
        beside: the folder of runs by default; runs there are its history if it is among them.
    """
    try:
        facts, records = run.facts(), run.records()
        found = merge([EndedRun(run.path, facts, records, end_of(records))], part=True)
        earlier = beside if run.path.parent == beside.resolve() else None
        histories, _ = gathered_histories(found.report, None, earlier)
        write_formats(run.path, ["html"], found.report, ReportContext(histories))
    except (PerfgateError, OSError) as error:  # the disk is full, a store is damaged
        return f"the page could not be written: {error}"
    except Exception:
        return f"the page could not be made, a bug of perfgate:\n{traceback.format_exc()}"
    return ""
