"""Merge: one report and one exit status of one run or several: shards, nodes, retries. Pure.

The status is worked out again from all results, by the same table as a run's own. A later run may
replace only what has no judged verdict in an earlier one: choosing between two verdicts of one
test would change the gate's error rates.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date

from perfgate.baselines.waivers import Waiver, faults, known_of
from perfgate.campaign.selection import suite_tests
from perfgate.campaign.shards import MatrixRow
from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.core.verdict import Verdict, counted
from perfgate.judging.assembly.claims import ClaimProbe
from perfgate.reports.merge_checks import require_complete, require_mergeable
from perfgate.reports.run_report import (
    RunReport,
    ScenarioFacts,
    TestResult,
    report_of,
    suspicion,
    without_controls,
)
from perfgate.runs.ended_run import EndedRun
from perfgate.runs.exit_status import ExitStatus, exit_status, meaning, worst
from perfgate.runs.record import (
    EndedRecord,
    Record,
    SelectedRecord,
    VerdictRecord,
    WaiverFaultRecord,
    records_of,
)
from perfgate.scenarios.scenario import Scenario

_FAILING = frozenset({Verdict.REGRESSION, Verdict.INCONCLUSIVE, Verdict.ERROR})
_NOT_ENDED = "did not end: it was killed, goes on, or is of a perfgate that did not record its end"


def merge(
    runs: Sequence[EndedRun],
    *,
    gate: bool = False,
    matrix: Sequence[MatrixRow] | None = None,
    part: bool = False,
) -> RunReport:
    """Make one report of the runs; its status is known, and not 0 where a run did not end.

    Args:
        runs: at least one.
        gate: whether every selected test must have a verdict, also where the runs did not say so.
        matrix: the rows that must all be there; None: none is known.
        part: whether shards may be missing: a session's own report of its shard.

    Raises:
        InputError, SeveralInputErrors: a run is named twice, a shard or row is missing, a test has
            two verdicts, or the runs are not of one thing.
    """
    runs = _named_apart(sorted(runs, key=lambda run: (str(run.facts["started"]), run.id)))
    require_mergeable(runs)
    reports = [report_of(run.facts, run.records) for run in runs]
    if not part:
        require_complete(reports, matrix)
    chosen, notes = _chosen(reports)
    results = [*chosen.values()] if len(reports) == 1 else sorted(chosen.values(), key=_by_test)
    open_ends, more = _not_ended(reports, chosen)
    unheld = tuple(dict.fromkeys(fault for one in reports for fault in one.waiver_faults))
    synthetic = any(one.synthetic for one in reports)
    recording = all(one.runs[0].recording for one in reports)
    gate = gate or any(one.runs[0].gate for one in reports)
    verdicts = [result.verdict for result in results]
    found = [
        exit_status(
            verdicts,
            gate=gate,
            record=recording,
            rehearsed=synthetic,
            waivers_hold=not unheld,
        )
    ]
    found += [ExitStatus.INTERNAL_ERROR] if _bugs(runs, chosen) else []
    found += [ExitStatus.UNWRITABLE] if any(run.end and run.end.unwritten for run in runs) else []
    found += [ExitStatus.ERROR] if open_ends else []
    status = worst(found)
    words = meaning(status, verdicts)
    if open_ends:
        words = f"run {', '.join(open_ends)} {_NOT_ENDED}" + (
            "" if status == ExitStatus.ERROR else f"; {words}"
        )
    return RunReport(
        reports[0].schema_version,
        runs=tuple(report.runs[0] for report in reports),
        status=status.value,
        meaning=words,
        synthetic=synthetic,
        results=tuple(results),
        scenarios=_scenarios(reports),
        efforts=tuple(effort for one in reports for effort in one.efforts),
        waiver_faults=unheld,
        suspicion=suspicion(results),
        without_controls=without_controls(results),
        merged=(*notes, *more),
        recorded=tuple(line for one in reports for line in one.recorded),
        resumptions=tuple(line for one in reports for line in one.resumptions),
    )


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
        rehearsed: whether mock programs made the numbers; as a verdict that says so.
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
    # What mock programs played says nothing of a loss that was let through.
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


def is_judged(result: TestResult) -> bool:
    """Whether a test has a verdict that no other run may replace."""
    return result.verdict not in (None, Verdict.ERROR)


def _named_apart(runs: Sequence[EndedRun]) -> list[EndedRun]:
    """The runs with names that differ: folders of one name can lie in different places.

    Raises:
        InputError: one run is named twice.
    """
    names: set[str] = set()
    found: list[EndedRun] = []
    for run in runs:
        for other in runs[: len(found)]:
            if (run.facts, run.records) == (other.facts, other.records):
                raise InputError(
                    "a run is named twice, and its results would count twice",
                    file=run.folder,
                    found=f"the same run as {other.folder}",
                    expected="each run once",
                )
        name, number = run.id, 1
        while name in names:
            number += 1
            name = f"{run.id}~{number}"
        names.add(name)
        found.append(replace(run, facts={**run.facts, "id": name}))
    return found


def _chosen(reports: Sequence[RunReport]) -> tuple[dict[str, TestResult], list[str]]:
    """The result of each test, and what was replaced or left out for it.

    Raises:
        SeveralInputErrors: tests with two judged verdicts.
    """
    chosen: dict[str, TestResult] = {}
    doubled: dict[tuple[str, str], list[str]] = {}
    notes: list[str] = []
    for report in reports:
        for new in report.results:
            old = chosen.get(new.test)
            if old is None:
                chosen[new.test] = new
            elif is_judged(old) and is_judged(new):
                doubled.setdefault((old.run, new.run), []).append(new.name)
            elif is_judged(old):
                notes.append(f"{new.name}: {_describe(new)} left out for {_describe(old)}")
            else:
                chosen[new.test] = new
                notes.append(f"{new.name}: {_describe(old)} replaced by {_describe(new)}")
    if doubled:
        raise SeveralInputErrors(
            [_doubled(pair, names, reports) for pair, names in doubled.items()]
        )
    return chosen, notes


def _doubled(
    pair: tuple[str, str], names: Sequence[str], reports: Sequence[RunReport]
) -> InputError:
    first, second = (
        next(report.runs[0] for report in reports if report.runs[0].id == run) for run in pair
    )
    shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    same = first.shard is not None and second.shard is not None and first.shard == second.shard
    what = (
        f"shard {first.shard.number}/{first.shard.of} is doubled"
        if same and first.shard
        else ("tests are doubled")
    )
    return InputError(
        f"{what}: {counted(len(names), 'test')} with two verdicts; choosing one would change the "
        "error rates",
        field="RUN",
        found=f"{shown} in run {first.id} and in run {second.id}",
        expected="one judged verdict for each test: a later run may only replace what was not "
        "judged (ERROR, unfinished, not run)",
        hint="leave one of the two out; to repeat what failed, run those tests alone or --resume",
    )


def _describe(result: TestResult) -> str:
    if result.verdict is None:
        return f"{result.skip_reason or 'no verdict'} (run {result.run})"
    failure = f" {result.failure.error_class}" if result.failure else ""
    return f"{result.verdict.value}{failure} (run {result.run})"


def _by_test(result: TestResult) -> tuple[bool, str]:
    return (not result.scenario, result.test)


def _not_ended(
    reports: Sequence[RunReport], chosen: Mapping[str, TestResult]
) -> tuple[list[str], list[str]]:
    """Runs without an end that nothing makes up for, and what is told of the others."""
    bad, notes = [], []
    for report in reports:
        run = report.runs[0]
        if run.status is not None:
            continue
        kept = [chosen[result.test] for result in report.results]
        others = sorted({one.run for one in kept if one.run != run.id})
        left = [one for one in kept if one.run == run.id and one.skip_reason == "unfinished"]
        if left or not others:
            bad.append(run.id)
        else:
            notes.append(f"run {run.id} did not end; what it lacks is in run {', '.join(others)}")
    return bad, notes


def _bugs(runs: Sequence[EndedRun], chosen: Mapping[str, TestResult]) -> bool:
    """Whether a bug of perfgate stands behind a result that counts, or behind no test at all."""
    return any(
        test not in chosen or chosen[test].run == run.id
        for run in runs
        if run.end is not None
        for test in run.end.bugs
    )


def _scenarios(reports: Sequence[RunReport]) -> tuple[ScenarioFacts, ...]:
    found: dict[str, ScenarioFacts] = {}
    for report in reports:
        for scenario in report.scenarios:
            found.setdefault(scenario.id, scenario)
    return tuple(found.values())
