"""Run report: a run, or several merged into one, as plain values. Every report is made of it. Pure.

`report_of` reads one run's records; `reports.merge` joins several. Its plain form is the JSON of a
run (docs/reference/run_report.schema.json).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from perfgate.campaign.resume import (
    build_of,
    changed_of,
    controls_of,
    judgements_of,
    measured_of,
    observed_of,
)
from perfgate.core.errors import InputError
from perfgate.core.measured import (
    Change,
    ChangedQuestions,
    MeasuredBuild,
    MeasuredControl,
    MeasuredMetric,
)
from perfgate.core.verdict import Judgement, Verdict
from perfgate.judging.assembly.exit_status import ExitStatus, meaning
from perfgate.reports.whole_run import suspicion, waiver_faults, without_controls
from perfgate.runs.ended_run import RunEnd
from perfgate.runs.records import name_of

SCHEMA_VERSION = 1
Record = Mapping[str, Any]


@dataclass(frozen=True)
class Failure:
    """Why there are no numbers.

    Attributes:
        error_class: `oom`, `hang`, … (docs/explanation/faults.md).
        message: one sentence.
        evidence: lines that show it, among them the last ones of the log; redacted.
        next_step: what a person can do.
    """

    error_class: str
    message: str
    evidence: tuple[str, ...]
    next_step: str


@dataclass(frozen=True)
class DocumentedMetric:
    """What the scenario's document says of a metric.

    Attributes:
        metric: canonical name.
        value: in `unit`.
        unit: that of the metric.
        source: document and section.
        change: how far the measured value is from it, as a fraction; of an accuracy the
            difference; None: it was not measured, or with other prompts.
    """

    metric: str
    value: float
    unit: str
    source: str
    change: float | None = None


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
        why_not: `lack` (of hardware, programs, …), `budget` (of time), `unfinished` (the session
            ended first); empty: it has a verdict.
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
    """

    __test__ = False  # for pytest, which takes classes of this name for tests

    test: str
    name: str
    scenario: str
    probe: str
    run: str
    verdict: Verdict | None
    why_not: str = ""
    reason: str = ""
    judgements: tuple[Judgement, ...] = ()
    observed: tuple[Change, ...] = ()
    measured: tuple[MeasuredMetric, ...] = ()
    documented: tuple[DocumentedMetric, ...] = ()
    compared_with: str = ""
    build: MeasuredBuild | None = None
    controls: tuple[MeasuredControl, ...] = ()
    starts: int = 0
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
    gpus: int = 0
    document: str = ""
    section: str = ""
    markers: tuple[str, ...] = ()


@dataclass(frozen=True)
class GroupEffort:
    """What one scenario took in one run: fresh starts, and seconds on all its GPUs.

    Attributes:
        scenario: id of the scenario.
        run: id of the run.
        hardware: as `8xB200`.
        gpus: how many GPUs those seconds were spent on; 0: none.
        planned, made, again, controls: fresh starts; `again`: of those made, for a test that others
            disturbed or that was undecided.
        spent_s, starting_s, saved_s: seconds of the clock.
        ended: `measured`, or how else.
    """

    scenario: str
    run: str
    hardware: str
    gpus: int
    planned: int
    made: int
    again: int
    controls: int
    spent_s: float
    starting_s: float
    saved_s: float
    ended: str


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

    number: int
    of: int
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
    """

    id: str
    started: str
    status: int | None
    gate: bool
    recording: bool
    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    launcher: str
    arguments: tuple[str, ...]
    git: Mapping[str, Any]
    shard: Shard | None = None


@dataclass(frozen=True)
class RunReport:
    """A run, or several as one.

    Attributes:
        schema_version: of this form.
        runs: what it is made of, in the order of their start.
        status: exit status of the whole, as if it ended here; None: not known. Never 0 where a run
            did not end.
        meaning: what that says, one line.
        synthetic: whether stand-ins made any number.
        results: one for each selected test, in the order of selection.
        scenarios: all that the results are about.
        efforts: one for each scenario and run that started anything.
        waiver_faults: waivers that do not hold, one line each.
        suspicion: why the machine and not the build may have moved; empty: no sign of it.
        without_controls: which error rates hold if tests were judged without controls; empty: none.
        merged: what merging left out or replaced, one line each.
    """

    schema_version: int
    runs: tuple[RunFacts, ...]
    status: int | None
    meaning: str
    synthetic: bool
    results: tuple[TestResult, ...]
    scenarios: tuple[ScenarioFacts, ...]
    efforts: tuple[GroupEffort, ...]
    waiver_faults: tuple[str, ...] = ()
    suspicion: str = ""
    without_controls: str = ""
    merged: tuple[str, ...] = ()

    def of_scenario(self, scenario: str) -> tuple[TestResult, ...]:
        """The results of one scenario, in order."""
        return tuple(one for one in self.results if one.scenario == scenario)

    @property
    def gpu_hours(self) -> float:
        """Hours of the clock, times the GPUs that they were spent on."""
        return sum(one.spent_s * one.gpus for one in self.efforts) / 3600


def report_of(facts: Mapping[str, Any], records: Sequence[Record], end: RunEnd | None) -> RunReport:
    """One run as a report.

    Args:
        facts: content of ``run.json``.
        records: the run's records, all kinds.
        end: how the run ended; None while it has not.

    Raises:
        InputError: a record is damaged.
    """
    results = _results(facts, records, end)
    return RunReport(
        SCHEMA_VERSION,
        runs=(_run_facts(facts, records, end),),
        status=None if end is None else end.status,
        meaning="the run has not ended, or was killed"
        if end is None
        else meaning(ExitStatus(end.status), [one.verdict for one in results]),
        synthetic=bool(facts.get("synthetic")) or any(one.synthetic for one in results),
        results=results,
        scenarios=_scenarios(records, results),
        efforts=_efforts(facts, records),
        waiver_faults=tuple(waiver_faults(records)),
        suspicion=suspicion(records),
        without_controls=without_controls(records),
    )


def _results(
    facts: Mapping[str, Any], records: Sequence[Record], end: RunEnd | None
) -> tuple[TestResult, ...]:
    """One for each selected test; the last line of each counts, and what pytest saw of it."""
    failed = () if end is None else end.failed
    ends = {line["test"]: line for line in records if line["record"] in ("verdict", "skipped")}
    selected = [test for line in records if line["record"] == "selected" for test in line["tests"]]
    return tuple(
        _failed(found, facts) if test in failed else found
        for test in dict.fromkeys([*selected, *ends, *failed])
        for found in [_result(facts, test, ends.get(test), records)]
    )


def _failed(found: TestResult, facts: Mapping[str, Any]) -> TestResult:
    """A test that failed though no verdict of it did that."""
    before = "before it had a verdict" if found.verdict is None else "beside its verdict"
    failure = Failure(
        "incomplete",
        f"the test failed {before}: its worker died, its record could not be written, or it is no "
        "test of the suite",
        (),
        f"read the output of the session of run {facts['id']}",
    )
    return replace(found, verdict=Verdict.ERROR, why_not="", reason="", failure=failure)


def _result(
    facts: Mapping[str, Any], test: str, line: Record | None, records: Sequence[Record]
) -> TestResult:
    run = str(facts["id"])
    if line is None:
        told = _subject(test, records)
        name = told.get("name") or test.partition("[")[2].removesuffix("]") or test
        subject = (test, name, told.get("scenario", ""), told.get("probe", ""), run)
        return TestResult(*subject, None, "unfinished", "the session ended first")
    subject = (test, name_of(line), line["scenario"], line["probe"], run)
    if line["record"] == "skipped":
        return TestResult(*subject, None, line.get("why", "lack"), line["reason"])
    error = line["error"]
    return TestResult(
        *subject,
        Verdict(line["verdict"]),
        reason=line["reason"],
        judgements=judgements_of(line),
        observed=observed_of(line),
        measured=measured_of(line),
        documented=tuple(DocumentedMetric(**one) for one in line.get("documented", ())),
        compared_with=line["compared_with"],
        build=build_of(line),
        controls=controls_of(line),
        starts=line["starts"],
        failure=None
        if error is None
        else Failure(
            error["class"], error["message"], tuple(error["evidence"]), error["next_step"]
        ),
        disturbances=_disturbances(line, records),
        rerun=line.get("rerun", ""),
        settings=tuple(line.get("settings", ())),
        extra_options=line.get("extra_options", ""),
        injected=tuple(line["injected"]),
        notes=tuple(line["notes"]),
        synthetic=bool(line["synthetic"]),
        resumed_from=str(line.get("resumed_from") or ""),
        changed=changed_of(line),
    )


def _subject(test: str, records: Sequence[Record]) -> Mapping[str, str]:
    """Name, scenario and probe of a selected test; nothing in a run of before they were kept."""
    found = (line.get("subjects", {}).get(test) for line in records if line["record"] == "selected")
    return next((one for one in found if one), {})


def _disturbances(verdict: Record, records: Sequence[Record]) -> tuple[str, ...]:
    return tuple(
        f"start {line['start']}: {one}"
        for line in records
        if line["record"] == "measurement"
        and (line["scenario"], line["probe"]) == (verdict["scenario"], verdict["probe"])
        for one in line.get("disturbed", ())
    )


def _scenarios(
    records: Sequence[Record], results: Sequence[TestResult]
) -> tuple[ScenarioFacts, ...]:
    """The facts recorded of each; of one that has none, its id alone."""
    told = {line["scenario"]: line for line in records if line["record"] == "scenario"}
    names = dict.fromkeys([*told, *(one.scenario for one in results if one.scenario)])
    found = []
    for name in names:
        line = told.get(name, {})
        fields = ("title", "model", "hardware", "gpus", "document", "section")
        known = {field: line[field] for field in fields if field in line}
        engine = line.get("engine_name", "")  # `engine` is a whole build in other records
        markers = tuple(line.get("markers", ()))
        found.append(ScenarioFacts(name, **known, engine=engine, markers=markers))
    return tuple(found)


def _efforts(facts: Mapping[str, Any], records: Sequence[Record]) -> tuple[GroupEffort, ...]:
    gpus = {line["scenario"]: line["gpus"] for line in records if line["record"] == "scenario"}
    return tuple(
        GroupEffort(
            scenario=line["scenario"],
            run=str(facts["id"]),
            hardware=line["hardware"],
            gpus=gpus.get(line["scenario"], 0),
            planned=line["starts"]["planned"],
            made=line["starts"]["made"],
            again=line["starts"]["again"],
            controls=line["starts"].get("controls", 0),
            spent_s=line["seconds"]["spent"],
            starting_s=line["seconds"]["starting"],
            saved_s=line["seconds"]["saved"],
            ended=line["ended"],
        )
        for line in records
        if line["record"] == "group"
    )


def _run_facts(facts: Mapping[str, Any], records: Sequence[Record], end: RunEnd | None) -> RunFacts:
    shard = next((line for line in records if line["record"] == "shard"), None)
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
    )


def _shard(line: Record) -> Shard:
    """The shard of a run.

    Raises:
        InputError: its record contradicts itself.
    """
    parts = tuple(tuple(one) for one in line["scenarios"])
    if not 1 <= line["number"] <= line["of"] == len(parts):
        raise InputError(
            "a record is not whole",
            field="shard",
            found=f"shard {line['number']}/{line['of']}, scenarios of {len(parts)} shards",
            expected="a number from 1, and the scenarios of each shard",
        )
    return Shard(line["number"], line["of"], line["expression"], line["selection"], parts)
