"""Run report: a run, or several merged into one, as plain values. Every report is made of it. Pure.

`report_of` reads one run's records; `reports.merge` joins several. Its plain form is the JSON of a
run (docs/reference/run_report.schema.json).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Literal

from msgspec import Meta, structs

from perfgate.core.errors import InputError
from perfgate.core.measurement import (
    Change,
    ChangedQuestions,
    MeasuredBuild,
    MeasuredControl,
    MeasuredMetric,
)
from perfgate.core.metrics import is_accuracy
from perfgate.core.verdict import Count, Judgement, Verdict, counted
from perfgate.judging.rules.diagnostics import moved_together
from perfgate.reports.candidates import candidate_lines
from perfgate.reports.figures import bad_sign
from perfgate.runs.ended_run import end_of
from perfgate.runs.exit_status import ExitStatus, meaning
from perfgate.runs.record import (
    DocumentedMetric,
    EndedRecord,
    Failure,
    GroupRecord,
    MeasurementRecord,
    Record,
    ResumedRecord,
    ScenarioRecord,
    SelectedRecord,
    SelectedTest,
    ShardRecord,
    SkippedRecord,
    VerdictRecord,
    WaiverFaultRecord,
    records_of,
)

SCHEMA_VERSION = 1

_Status = Annotated[int, Meta(ge=0, le=255)]

# docs/explanation/detection.md, the table `guarantee`; a test compares the figures.
WITHOUT_CONTROLS = (
    "the error rates with controls do not hold. If nothing changed and noise is like that of "
    "published nightlies, 45 to 97 of 100 release runs (12 scenarios, 6 probes, 3 metrics) "
    "end in a performance REGRESSION."
)


@dataclass(frozen=True)
class TestResult:
    """What became of one selected test.

    Attributes:
        test: pytest's id of it; unique in a report.
        name: of the probe, claim or curve; unique in a report.
        scenario: id of its scenario.
        probe: short name in the scenario.
        run: id of the run that it is from.
        verdict: None: it was not run, or did not finish.
        skip_reason: `lack` (of hardware, programs, …), `budget` (of time), `unfinished` (the
            session ended first); empty: it has a verdict.
        reason: why there is no verdict from numbers.
        judgements, observed, measured: as in the record of the verdict.
        documented: what its document says.
        compared_with: the baseline in words.
        build: the build under test; None: not known.
        controls: other builds that the verdict rests on.
        starts: fresh starts of the build under test.
        failure: why there are no numbers.
        disturbances: what used or slowed the machine meanwhile, one line each.
        rerun: the command that runs it again; empty: not recorded.
        changed: which questions of accuracies are answered otherwise than by the baseline's build.
        settings, extra_options, injected, notes, synthetic, resumed_from: as in the record.
        widened: metrics whose band the noise of this machine widened beyond the declared one.
        lacks_control: whether the rule without controls judged it.
    """

    __test__ = False  # for pytest, which takes classes of this name for tests

    test: str
    name: str
    scenario: str
    probe: str
    run: str
    verdict: Verdict | None
    skip_reason: Literal["", "lack", "budget", "unfinished"] = ""
    reason: str = ""
    judgements: tuple[Judgement, ...] = ()
    observed: tuple[Change, ...] = ()
    measured: tuple[MeasuredMetric, ...] = ()
    documented: tuple[DocumentedMetric, ...] = ()
    compared_with: str = ""
    build: MeasuredBuild | None = None
    controls: tuple[MeasuredControl, ...] = ()
    starts: Count = 0
    failure: Failure | None = None
    disturbances: tuple[str, ...] = ()
    rerun: str = ""
    settings: tuple[str, ...] = ()
    extra_options: str = ""
    injected: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    synthetic: bool = False
    resumed_from: str = ""
    changed: tuple[ChangedQuestions, ...] = ()
    widened: tuple[str, ...] = ()
    lacks_control: bool = False


_AS_RECORDED = [
    one.name for one in fields(TestResult) if one.name in VerdictRecord.__struct_fields__
]


@dataclass(frozen=True)
class ScenarioFacts:
    """What a reader needs to know of a scenario.

    Attributes:
        id: its id.
        title: one line.
        engine: the engine's name.
        model: the model's name.
        hardware: as `8xB200`.
        gpus: how many in all; 0: it needs none.
        document: where it is documented.
        section: where in that document.
        markers: that select it.
    """

    id: str
    title: str = ""
    engine: str = ""
    model: str = ""
    hardware: str = ""
    gpus: Count = 0
    document: str = ""
    section: str = ""
    markers: tuple[str, ...] = ()


_OF_SCENARIO = ("title", "model", "hardware", "gpus", "document", "section", "markers")


@dataclass(frozen=True)
class GroupEffort:
    """What one scenario took in one run: fresh starts, and seconds on all its GPUs.

    Attributes:
        scenario: id of the scenario.
        run: id of the run.
        hardware: as `8xB200`.
        gpus: how many GPUs those seconds were spent on; 0: none.
        planned: fresh starts that were planned.
        made: fresh starts that were made, those of controls among them.
        again: of those made, for a test that others disturbed or that was undecided.
        controls: of those made, of other builds as controls.
        spent_s: seconds of the clock; times `gpus` they are GPU seconds.
        starting_s: seconds of those in which a server started.
        saved_s: seconds that sharing of starts saved.
        ended: `measured`, or how else.
        without_sharing: fresh starts that would be made if no tests shared one.
        synthetic: whether mock programs had them.
    """

    scenario: str
    run: str
    hardware: str
    gpus: Count
    planned: Count
    made: Count
    again: Count
    controls: Count
    spent_s: Annotated[float, Meta(ge=0)]
    starting_s: Annotated[float, Meta(ge=0)]
    saved_s: float
    ended: str
    without_sharing: Count = 0
    synthetic: bool = False


@dataclass(frozen=True)
class Shard:
    """Which part of a selection a run was.

    Attributes:
        number: from 1.
        of: how many there are.
        expression: of pytest's `-m`, which selected the whole.
        selection: fingerprint of the whole selection and its division; the same for all its shards.
        scenarios: the ids that each of the shards has, in their order.
    """

    number: Annotated[int, Meta(ge=1)]
    of: Annotated[int, Meta(ge=1)]
    expression: str
    selection: str
    scenarios: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class RunFacts:
    """Where and how one of the runs was.

    Attributes:
        id: the run's name.
        started: ISO 8601, UTC.
        status: its own exit status; None: it did not end.
        gate: whether every selected test had to have a verdict.
        recording: whether it was to record what later runs are compared with.
        machine: of `run.json`.
        versions: package → version.
        launcher: how programs were started.
        arguments: of its command line, secrets masked.
        git: commit and dirty flag of the checkout.
        shard: None: it is a whole selection.
        site_commands: `before` and `after` each start → the commands of site.yaml.
    """

    id: str
    started: str
    status: _Status | None
    gate: bool
    recording: bool
    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    launcher: str
    arguments: tuple[str, ...]
    git: Mapping[str, Any]
    shard: Shard | None = None
    site_commands: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RunReport:
    """A run, or several as one.

    Attributes:
        schema_version: of this form.
        runs: what it is made of, in the order of their start.
        status: exit status of the whole, as if it ended here; None: not known. Never 0 where a run
            did not end.
        meaning: what that says, one line.
        synthetic: whether mock programs made any number.
        results: one for each selected test, in the order of selection.
        scenarios: all that the results are about.
        efforts: one for each scenario and run that started anything.
        waiver_faults: waivers that do not hold, one line each.
        suspicion: why the machine and not the build may have moved; empty: no sign of it.
        without_controls: which error rates hold if tests were judged without controls; empty: none.
        merged: what merging left out or replaced, one line each.
        recorded: what was recorded for baselines, and what comes next, one line each.
        resumptions: when a run was resumed, and how much of it was kept, one line each.
    """

    schema_version: int
    runs: tuple[RunFacts, ...]
    status: _Status | None
    meaning: str
    synthetic: bool
    results: tuple[TestResult, ...]
    scenarios: tuple[ScenarioFacts, ...]
    efforts: tuple[GroupEffort, ...]
    waiver_faults: tuple[str, ...] = ()
    suspicion: str = ""
    without_controls: str = ""
    merged: tuple[str, ...] = ()
    recorded: tuple[str, ...] = ()
    resumptions: tuple[str, ...] = ()

    @property
    def gpu_hours(self) -> float:
        """Hours of the clock, times the GPUs that they were spent on."""
        return sum(effort.spent_s * effort.gpus for effort in self.efforts) / 3600


def report_of(facts: Mapping[str, Any], records: Sequence[Record]) -> RunReport:
    """One run as a report.

    Args:
        facts: content of ``run.json``.
        records: the run's records, all kinds.

    Raises:
        InputError: a record is damaged.
    """
    end = end_of(records)
    results = _results(facts, records, end)
    return RunReport(
        SCHEMA_VERSION,
        runs=(_run_facts(facts, records, end),),
        status=None if end is None else end.status,
        meaning="the run has not ended, or was killed"
        if end is None
        else meaning(ExitStatus(end.status), [result.verdict for result in results]),
        synthetic=bool(facts.get("synthetic")) or any(one.synthetic for one in results),
        results=results,
        scenarios=_scenarios(records, results),
        efforts=_efforts(facts, records),
        waiver_faults=tuple(record.message for record in records_of(WaiverFaultRecord, records)),
        suspicion=suspicion(results),
        without_controls=without_controls(results),
        recorded=tuple(candidate_lines(records)),
        resumptions=tuple(
            f"resumed {one.at}: {counted(len(one.groups), 'group')} kept, "
            f"{len(one.repeats)} measured again"
            for one in records_of(ResumedRecord, records)
        ),
    )


def _results(
    facts: Mapping[str, Any], records: Sequence[Record], end: EndedRecord | None
) -> tuple[TestResult, ...]:
    """One for each selected test; the last record of each counts, and what pytest saw of it."""
    run = str(facts["id"])
    failed = () if end is None else end.failed
    ends = {one.test: one for one in records if isinstance(one, VerdictRecord | SkippedRecord)}
    selected = records_of(SelectedRecord, records)
    subjects = {test: subject for one in selected for test, subject in one.subjects.items()}
    disturbances: dict[tuple[str, str], list[str]] = {}
    for one in records_of(MeasurementRecord, records):
        disturbances.setdefault((one.scenario, one.probe), []).extend(
            f"start {one.start}: {why}" for why in one.disturbed
        )
    results = []
    for test in dict.fromkeys([*(test for one in selected for test in one.tests), *ends, *failed]):
        record = ends.get(test)
        if isinstance(record, VerdictRecord):
            of_probe = disturbances.get((record.scenario, record.probe), [])
            result = result_of(record, run, of_probe)
        elif record is not None:
            of_test = (test, record.name, record.scenario, record.probe, run)
            result = TestResult(*of_test, None, record.why, record.reason)
        else:
            name = test.partition("[")[2].removesuffix("]") or test
            subject = subjects.get(test) or SelectedTest(name, "", "")
            of_test = (test, subject.name, subject.scenario, subject.probe, run)
            result = TestResult(*of_test, None, "unfinished", "the session ended first")
        results.append(_failed(result) if test in failed else result)
    return tuple(results)


def _failed(result: TestResult) -> TestResult:
    """A test that failed though no verdict of it did that."""
    before = "before it had a verdict" if result.verdict is None else "beside its verdict"
    failure = Failure(
        "incomplete",
        f"the test failed {before}: its worker died, its record could not be written, or it is no "
        "test of the suite",
        (),
        f"read the output of the session of run {result.run}",
    )
    return replace(result, verdict=Verdict.ERROR, skip_reason="", reason="", failure=failure)


def result_of(record: VerdictRecord, run: str = "", disturbances: Sequence[str] = ()) -> TestResult:
    """The result of a test that has a verdict.

    Args:
        record: of the verdict.
        run: id of the run that it is from.
        disturbances: what used or slowed the machine meanwhile, one line each.
    """
    shared = {name: getattr(record, name) for name in _AS_RECORDED}
    return TestResult(
        **shared,
        run=run,
        failure=record.error,
        disturbances=tuple(disturbances),
        changed=record.changed_questions,
        widened=tuple(_widened(record)),
        lacks_control=_lacks_control(record),
    )


def _widened(record: VerdictRecord) -> Iterator[str]:
    """The metrics whose band is wider than what the verdict rests on declares."""
    tests = (record.judge_input or {}).get("tests", ())
    declared = {test["metric"]: test["band"] for test in tests if _may_be_widened(test)}
    for judged in record.judgements:
        widest = declared.get(judged.metric)
        if widest is not None and judged.band and judged.band > widest * (1 + 1e-9):
            yield judged.metric


def _may_be_widened(test: Mapping[str, Any]) -> bool:
    """Whether the machine's own noise may widen the band of a test."""
    return test["kind"] == "InterleavedTest" or bool(test.get("noise", {}).get("widen", False))


def _lacks_control(record: VerdictRecord) -> bool:
    """Whether the rule without controls judged it; a required control allows no REGRESSION."""
    controls = (record.provenance or {}).get("controls") or {}
    policy = controls.get("policy")
    for judged in record.judgements:
        if judged.mark == "NO_CONTROL":
            if judged.verdict == Verdict.REGRESSION:
                return True
        elif (
            judged.interval is not None
            and not judged.controls_used
            and not judged.is_interleaved
            and not is_accuracy(judged.metric)
            and judged.against in ("baseline", "anchor")
            and (
                policy == "none"
                or (policy == "auto" and judged.against in controls["skip_reasons"])
            )
        ):
            return True
    return False


def suspicion(results: Sequence[TestResult]) -> str:
    """That the host moved and not the build, if nearly everything did; empty: no sign of it."""
    return moved_together(
        [
            (result.scenario, judgement.change, _is_lost(judgement))
            for result in results
            if not result.synthetic
            for judgement in result.judgements
            if judgement.against == "baseline"
            and judgement.interval is not None
            and judgement.change is not None
            and not is_accuracy(judgement.metric)
        ]
    )


def _is_lost(judged: Judgement) -> bool:
    """Whether its interval leaves nothing but a loss."""
    low, high = judged.interval or (0.0, 0.0)
    sign = bad_sign(judged.metric)
    return (sign < 0 and high < 0) or (sign > 0 and low > 0)


def without_controls(results: Sequence[TestResult]) -> str:
    """Which error rates hold if tests were judged without controls; empty: none was."""
    number = sum(result.lacks_control and not result.synthetic for result in results)
    if not number:
        return ""
    return f"{counted(number, 'test')} judged without controls: {WITHOUT_CONTROLS}"


def _scenarios(
    records: Sequence[Record], results: Sequence[TestResult]
) -> tuple[ScenarioFacts, ...]:
    """The facts recorded of each; of one that has none, its id alone."""
    known = {}
    for record in records_of(ScenarioRecord, records):
        shared = {name: getattr(record, name) for name in _OF_SCENARIO}
        known[record.scenario] = ScenarioFacts(record.scenario, engine=record.engine_name, **shared)
    names = dict.fromkeys([*known, *(result.scenario for result in results if result.scenario)])
    return tuple(known.get(name) or ScenarioFacts(name) for name in names)


def _efforts(facts: Mapping[str, Any], records: Sequence[Record]) -> tuple[GroupEffort, ...]:
    gpus = {record.scenario: record.gpus for record in records_of(ScenarioRecord, records)}
    return tuple(
        GroupEffort(
            scenario=group.scenario,
            run=str(facts["id"]),
            hardware=group.hardware,
            gpus=gpus.get(group.scenario, 0),
            **structs.asdict(group.starts),
            spent_s=group.seconds.spent,
            starting_s=group.seconds.starting,
            saved_s=group.seconds.saved,
            ended=group.ended,
            synthetic=group.synthetic,
        )
        for group in records_of(GroupRecord, records)
    )


def _run_facts(
    facts: Mapping[str, Any], records: Sequence[Record], end: EndedRecord | None
) -> RunFacts:
    shard = next(iter(records_of(ShardRecord, records)), None)
    return RunFacts(
        id=str(facts["id"]),
        started=facts["started"],
        status=None if end is None else end.status,
        gate=bool(facts.get("gate") if end is None else end.gate),
        recording=bool(facts.get("recording") if end is None else end.recording),
        machine=facts["machine"],
        versions=facts["versions"],
        launcher=str(facts.get("launcher", "")),
        arguments=tuple(facts["arguments"]),
        git=facts["git"],
        shard=None if shard is None else _shard(shard),
        site_commands=facts.get("site_commands", {}),
    )


def _shard(record: ShardRecord) -> Shard:
    """The shard of a run.

    Raises:
        InputError: its record contradicts itself.
    """
    if not 1 <= record.number <= record.of == len(record.scenarios):
        raise InputError(
            "a record is not whole",
            field="shard",
            found=f"shard {record.number}/{record.of}, scenarios of {len(record.scenarios)} shards",
            expected="a number from 1, and the scenarios of each shard",
        )
    return Shard(record.number, record.of, record.expression, record.selection, record.scenarios)
