"""Session run: the run of a session, from its folder, new or resumed, to verdicts and reports."""

import sys
import traceback
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from pathlib import Path

from perfgate.baselines import ENOUGH_SESSIONS, Store, read
from perfgate.baselines.noise_history import keep_noise
from perfgate.baselines.recording import record_session
from perfgate.baselines.waivers import Waiver, faults, known_of
from perfgate.campaign.campaigns import Campaigns
from perfgate.campaign.resume import (
    call_of,
    kept_of,
    require_same,
    require_same_group,
    require_same_selection,
)
from perfgate.campaign.selection import Selected, suite_tests
from perfgate.campaign.session import run_path
from perfgate.core.errors import InputError, PerfgateError
from perfgate.core.redaction import mask_arguments
from perfgate.core.verdict import Verdict
from perfgate.judging.assembly.claims import ClaimProbe
from perfgate.launchers.base import launcher
from perfgate.launchers.site import load_site
from perfgate.launchers.start_commands import command_facts
from perfgate.reports.formats.base import ReportContext, write_formats
from perfgate.reports.histories import gathered_histories
from perfgate.reports.merge import merge
from perfgate.reports.run_report import RunReport, report_of
from perfgate.reports.run_text import summary
from perfgate.runs.ended_run import read_run
from perfgate.runs.exit_status import ExitStatus, exit_status, worst
from perfgate.runs.record import (
    CandidateRecord,
    EndedRecord,
    NoiseKeptRecord,
    NotRecordedRecord,
    Record,
    ResumedRecord,
    ScenarioRecord,
    SelectedRecord,
    SelectedTest,
    ShardRecord,
    VerdictRecord,
    WaiverFaultRecord,
    records_of,
)
from perfgate.runs.run_folder import CANDIDATES, RunFolder, session_facts
from perfgate.scenarios.markers import markers_of
from perfgate.scenarios.probe import all_probes
from perfgate.scenarios.scenario import Scenario
from perfgate.suite.selection import scenarios_of
from perfgate.suite.session_options import SessionOptions

_FAILING = frozenset({Verdict.REGRESSION, Verdict.INCONCLUSIVE, Verdict.ERROR})

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
        facts |= session_facts(options.machine, sys.argv, root)
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


def resume(run: RunFolder, campaigns: Campaigns, selected: Mapping[str, Selected]) -> None:
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
    for name, group in kept.groups.items():
        content = {one.label: one.content_hash() for one in all_probes(scenarios[name])}
        try:
            build = campaigns.build_of(scenarios[name])
        except PerfgateError as error:
            raise InputError(
                f"the build that {name} would be measured with now is not known: {error}",
                field="--resume",
                expected=str(group.engine),
            ) from error
        require_same_group(group, engine=build, content=content)
    # All scenarios of the run: those that are selected, and those that it has records of.
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
            run.record(_scenario_record(scenario))


def _scenario_record(scenario: Scenario) -> ScenarioRecord:
    """What reports say of a scenario."""
    hardware = scenario.hardware
    return ScenarioRecord(
        scenario=scenario.id,
        title=scenario.title,
        engine_name=scenario.engine.name,
        model=scenario.model.name,
        hardware=hardware.label,
        gpus=0 if hardware.gpu == "none" else hardware.gpus,
        document=scenario.source.document,
        section=scenario.source.section,
        markers=tuple(markers_of(scenario)),
    )


# Ending. ------------------------------------------------------------------------------------


def conclude(
    records: Sequence[Record],
    failed: Collection[str],
    with_bug: Collection[str] = (),
    *,
    scenarios: Sequence[Scenario],
    waivers: Sequence[Waiver] = (),
    today: date,
    gate: bool,
    record: bool = False,
    rehearsed: bool,
) -> tuple[EndedRecord, list[WaiverFaultRecord]]:
    """Sum a run up: its exit status and what that is made of, and the waivers that do not hold.

    Args:
        records: all of the run's records.
        failed: ids of the tests, or files, that pytest saw fail.
        with_bug: ids of those that ended in a bug of perfgate.
        scenarios: all of the suite, by which a waiver is known or unknown.
        waivers: the losses that people let through.
        today: the day that waivers are held against.
        gate: whether every selected test must have a verdict.
        record: whether the run is to record what later ones are compared with.
        rehearsed: whether stand-ins made the numbers; as a verdict that says so.
    """
    selected = {test for one in records_of(SelectedRecord, records) for test in one.tests}
    ends = records_of(VerdictRecord, records)
    verdicts: dict[str, Verdict | None] = dict.fromkeys(selected)
    verdicts |= {record.test: record.verdict for record in ends}
    # Their verdicts did not make them fail: a crashed worker, a full disk, or a test of others.
    without = tuple(sorted(test for test in failed if verdicts.get(test) not in _FAILING))
    verdicts |= dict.fromkeys(without, Verdict.ERROR)
    tests = suite_tests(scenarios, ())
    known = known_of(one for one, _ in tests if not isinstance(one, ClaimProbe))
    rehearsed = rehearsed or any(record.synthetic for record in ends)
    # What stand-ins played says nothing of a loss that was let through.
    found = () if rehearsed else faults(waivers, ends, known=known, today=today)
    status = exit_status(
        verdicts.values(), gate=gate, record=record, rehearsed=rehearsed, waivers_hold=not found
    )
    if with_bug:
        status = worst([status, ExitStatus.INTERNAL_ERROR])
    end = EndedRecord(
        status=status.value,
        gate=gate,
        recording=record,
        failed=without,
        bugs=tuple(sorted(with_bug)),
    )
    return end, [WaiverFaultRecord(kind=one.kind, message=one.message) for one in found]


def record_candidates_of(run: RunFolder, *, only_unjudged: bool, rehearsal: bool) -> None:
    """Record the candidates of a finished session, and write down how far each is.

    What its starts showed of the noise is kept, whatever became of them. A copy of each candidate
    stays in the run folder, so that it can be proposed where the store of this machine is not.

    Args:
        run: its run folder.
        only_unjudged: leave out the scenarios that baselines judged.
        rehearsal: mocks made the numbers, which stay among rehearsals and tell no noise.

    Raises:
        InputError: an earlier candidate is unusable, or another process holds the store.
        RunError: a candidate, or what the session shows of the noise, cannot be written.
    """
    # Undecided starts are as noisy as any.
    noise = [] if rehearsal else keep_noise([run.path])
    if noise:
        run.record(NoiseKeptRecord(files=tuple(str(path) for path in noise)))
    paths, left_out = record_session(run.path, only_unjudged=only_unjudged, rehearsal=rehearsal)
    again = call_of(run.facts())  # the line that makes another such session
    copies = Store(run.path / CANDIDATES, synthetic=rehearsal)
    for path in paths:
        candidate = read(path)
        copies.folder.mkdir(exist_ok=True)
        copies.save(candidate, merge=False)
        run.record(
            CandidateRecord(
                scenario=candidate.scenario,
                hardware=candidate.hardware,
                commit=candidate.engine.commit,
                file=str(path),
                sessions=candidate.sessions,
                wanted=ENOUGH_SESSIONS,
                again=again,
                synthetic=rehearsal,
            )
        )
    if left_out:
        run.record(NotRecordedRecord(reasons=left_out))


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
        write_formats(run.path, ["html"], found, ReportContext(histories))
    except (PerfgateError, OSError) as error:  # the disk is full, a store is damaged
        return f"the page could not be written: {error}"
    except Exception:
        return f"the page could not be made, a bug of perfgate:\n{traceback.format_exc()}"
    return ""
