"""Run end: what a session leaves of its run: verdicts, exit status, candidates, summary, page."""

import shlex
import traceback
from collections.abc import Collection, Sequence
from datetime import date
from pathlib import Path

from perfgate.baselines import ENOUGH_SESSIONS, Store, read
from perfgate.baselines.noise_history import keep_noise
from perfgate.baselines.recording import record_session
from perfgate.baselines.waivers import Waiver, WaiverFault, faults, known_of
from perfgate.core.errors import PerfgateError
from perfgate.core.redaction import mask_arguments
from perfgate.core.verdict import Verdict
from perfgate.judging.assembly.sweeps import SweepProbe, sweep_probes
from perfgate.reports.formats.base import ReportContext, write_formats
from perfgate.reports.histories import gathered_histories
from perfgate.reports.merge import merge
from perfgate.reports.run_report import RunReport, report_of
from perfgate.reports.run_text import summary
from perfgate.runs.ended_run import EndedRun
from perfgate.runs.exit_status import ExitStatus, exit_status, worst
from perfgate.runs.record import (
    CandidateRecord,
    EndedRecord,
    NoiseKeptRecord,
    NotRecordedRecord,
    Record,
    SelectedRecord,
    VerdictRecord,
    records_of,
)
from perfgate.runs.run_folder import CANDIDATES, RunFolder
from perfgate.scenarios.probe import Probe, all_probes
from perfgate.scenarios.scenario import Scenario
from perfgate.suite.options import joined, short_name

_FAILING = frozenset({Verdict.REGRESSION, Verdict.INCONCLUSIVE, Verdict.ERROR})
_OF_ONE_RUN = ("--run-dir=", "--resume=")


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
) -> tuple[EndedRecord, tuple[WaiverFault, ...]]:
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
    subjects: list[Probe | SweepProbe] = []
    for scenario in scenarios:
        subjects += [*all_probes(scenario), *sweep_probes(scenario)]
    known = known_of(subjects)
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
    return end, found


def record_candidates_of(
    run: RunFolder, arguments: Sequence[object], *, only_unjudged: bool, rehearsal: bool
) -> None:
    """Record the candidates of a finished session, and write down how far each is.

    What its starts showed of the noise is kept, whatever became of them. A copy of each candidate
    stays in the run folder, so that it can be proposed where the store of this machine is not.

    Args:
        run: its run folder.
        arguments: those of pytest, for the line that makes another such session.
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
    again = another_session([*map(str, arguments)])
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


def another_session(arguments: Sequence[str]) -> str:
    """The command line that makes another session like this one, in a run folder of its own."""
    words = [one for one in joined(arguments) if not short_name(one).startswith(_OF_ONE_RUN)]
    return shlex.join(["pytest", *mask_arguments(words)])


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
        facts, records = run.facts(), run.records()
        found = merge([EndedRun(run.path, facts, records)], part=True)
        earlier = beside if run.path.parent == beside.resolve() else None
        histories, _ = gathered_histories(found, None, earlier)
        write_formats(run.path, ["html"], found, ReportContext(histories))
    except (PerfgateError, OSError) as error:  # the disk is full, a store is damaged
        return f"the page could not be written: {error}"
    except Exception:
        return f"the page could not be made, a bug of perfgate:\n{traceback.format_exc()}"
    return ""
