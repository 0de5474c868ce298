"""Session run: the run of a session, from its folder, new or resumed, to verdicts and reports."""

import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from perfgate.baselines.gate_repo import git_state
from perfgate.campaign.resume import (
    kept_of,
    require_same,
    require_same_groups,
    require_same_selection,
)
from perfgate.campaign.selection import Selected, scenarios_of
from perfgate.campaign.session import run_path
from perfgate.core.errors import InputError, PerfgateError
from perfgate.core.redaction import mask_arguments
from perfgate.launchers.base import launcher
from perfgate.launchers.site import load_site
from perfgate.launchers.start_commands import command_facts
from perfgate.reports.formats.base import write_formats
from perfgate.reports.histories import gathered_histories
from perfgate.reports.merge import merge
from perfgate.reports.run_report import RunReport, report_of
from perfgate.reports.run_text import summary
from perfgate.runs.ended_run import read_run
from perfgate.runs.exit_status import ExitStatus
from perfgate.runs.record import (
    ResumedRecord,
    ScenarioRecord,
    SelectedRecord,
    SelectedTest,
    ShardRecord,
    records_of,
)
from perfgate.runs.run_folder import RunFolder, session_facts
from perfgate.scenarios.markers import markers_of
from perfgate.suite.session_options import SessionOptions

if TYPE_CHECKING:
    from perfgate.campaign.campaigns import Campaigns

# Opening. -----------------------------------------------------------------------------------


def opened(options: SessionOptions, root: Path) -> RunFolder:
    """The run folder of this session, held; one that is resumed is not changed yet.

    Args:
        options: what the command line asks for.
        root: the folder that holds ``runs/``.

    Raises:
        InputError: the folder cannot be used; or for a run to be resumed: none is there, a living
            session holds it, or it was started for something else.
    """
    option = options.option
    # What shapes all numbers of a run, beside its scenarios.
    facts = {
        "synthetic": options.rehearses,
        "rehearse_fault": option("--rehearse-fault"),
        "launcher": option("--launcher"),
        "injected": mask_arguments(option("--inject")),
        "control": mask_arguments([option("--control")]),
        "ab": mask_arguments(option("--ab") or []),
        "site_commands": {} if options.rehearses else command_facts(load_site()),
        "shard": option("--shard"),
        "fingerprint": options.machine.fingerprint(),
    }
    given: Path | None = option("--resume")
    if given is None:
        facts |= session_facts(options.machine, sys.argv, git_state(root))
        facts |= {"gate": option("--gate"), "recording": option("--record")}
        run = RunFolder.create(run_path(option("--run-dir"), root), facts)
        write_summary(run, None)
        return run
    if option("--run-dir") is not None:
        raise InputError(
            "a resumed run stays in its own folder",
            field="--resume",
            found=f"{given}, and --run-dir beside it",
            expected="one of the two",
        )
    if not launcher[option("--launcher")].here:
        del facts["fingerprint"]
    named = root / "runs" / given
    run = RunFolder.reopen(named if not given.is_dir() and named.is_dir() else given.absolute())
    try:
        require_same(run.facts(), facts)
    except BaseException:
        run.close()
        raise
    return run


def resume(run: RunFolder, campaigns: "Campaigns", selected: Mapping[str, Selected]) -> None:
    """Write down that the run goes on: from then on only finished groups count.

    Args:
        run: the run, held.
        campaigns: know the build under test.
        selected: the selected tests of the suite → what each is about.

    Raises:
        InputError: other tests are selected, a finished group's build or scenario is another, or
            its verdict is damaged.
    """
    records = run.records()
    first = {test for one in records_of(SelectedRecord, records) for test in one.tests}
    require_same_selection(run.facts(), first, selected)
    scenarios = scenarios_of(selected)
    kept = kept_of(records)
    require_same_groups(kept.groups, scenarios, campaigns.build_of)
    begun = {*scenarios, *(name for one in records if (name := getattr(one, "scenario", "")))}
    run.record(
        ResumedRecord(
            arguments=tuple(mask_arguments(sys.argv)),
            repeats=tuple(sorted(begun - kept.groups.keys())),
            keeps=tuple(sorted(kept.verdicts)),
            groups=tuple(sorted(kept.groups)),
        )
    )


def record_selection(
    run: RunFolder, selected: Mapping[str, Selected], shard: ShardRecord | None
) -> None:
    """Write down what is not yet on record: a run that is resumed has it from its first session.

    Args:
        run: the run, held.
        selected: test → what it is about.
        shard: the record of the part that these tests are; None: they are the whole.
    """
    if not run.records_of(SelectedRecord):
        subjects = {
            test: SelectedTest(one.id, one.scenario.id, one.label)
            for test, one in sorted(selected.items())
        }
        run.record(SelectedRecord(tests=tuple(sorted(selected)), subjects=subjects))
    if shard is not None and not run.records_of(ShardRecord):
        run.record(shard)
    known = {one.scenario for one in run.records_of(ScenarioRecord)}
    for name, scenario in sorted(scenarios_of(selected).items()):
        if name not in known:
            run.record(ScenarioRecord.of(scenario, markers_of(scenario)))


# Ending. ------------------------------------------------------------------------------------


def write_summary(run: RunFolder, status: ExitStatus | None) -> None:
    """Write ``summary.md`` into the run folder.

    Raises:
        PerfgateError: a record is damaged, or it cannot be written.
    """
    run.write_summary(summary(report_so_far(run), status))


def report_so_far(run: RunFolder) -> RunReport:
    """The run as its records have it now.

    Raises:
        InputError: a record is damaged.
    """
    return report_of(run.facts(), run.records())


def write_page(run: RunFolder, beside: Path) -> str:
    """Write ``report.html`` into the run folder; returns why that failed, empty if it did not.

    Whatever fails in making a page, the verdict of the run stands.

    Args:
        run: the run, ended.
        beside: the folder of runs by default; runs there are its history if it is among them.
    """
    try:
        found = merge([read_run(run.path)], part=True)
        earlier = beside if run.path.parent == beside.resolve() else None
        histories, _ = gathered_histories(found, None, earlier)
        write_formats(run.path, ["html"], found, histories)
    except (PerfgateError, OSError) as error:  # the disk is full, a store is damaged
        return f"the page could not be written: {error}"
    except Exception:
        return f"the page could not be made, a bug of perfgate:\n{traceback.format_exc()}"
    return ""
