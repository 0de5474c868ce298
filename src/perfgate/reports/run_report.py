"""Run report: a run, or several merged into one, as plain values. Every report is made of it. Pure.

`report_of` reads one run's records; `reports.merge` joins several. Its plain form is the JSON of a
run (docs/reference/run_report.schema.json).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from perfgate.core.metrics import is_accuracy
from perfgate.core.verdict import Judgement, Verdict, counted
from perfgate.judging.assembly.exit_status import ExitStatus, meaning
from perfgate.judging.rules.diagnostics import Moved, moved_together
from perfgate.reports.candidates import candidate_lines
from perfgate.reports.figures import bad_sign
from perfgate.runs.ended_run import RunEnd
from perfgate.runs.records import name_of

SCHEMA_VERSION = 1
Record = Mapping[str, Any]

# docs/explanation/detection.md, the table `guarantee`; a test compares the figures.
WITHOUT_CONTROLS = (
    "the error rates with controls do not hold. If nothing changed and noise is like that of "
    "published nightlies, 45 to 97 of 100 release runs (12 scenarios, 6 probes, 3 metrics) "
    "end in a performance REGRESSION."
)


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
    widened: tuple[str, ...] = ()
    lacks_control: bool = False


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
        without_sharing: fresh starts that would be made if no tests shared one.
        synthetic: whether stand-ins had them.
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
    without_sharing: int = 0
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
        site_commands: `before` and `after` each start → the commands of site.yaml.
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
        synthetic: whether stand-ins made any number.
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
    recorded: tuple[str, ...] = ()
    resumptions: tuple[str, ...] = ()

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
        waiver_faults=tuple(
            line["message"] for line in records if line["record"] == "waiver_fault"
        ),
        suspicion=suspicion(results),
        without_controls=without_controls(results),
        recorded=tuple(candidate_lines(records)),
        resumptions=tuple(
            f"resumed {line['at']}: {counted(len(line['groups']), 'group')} kept, "
            f"{len(line['repeats'])} measured anew"
            for line in records
            if line["record"] == "resumed"
        ),
    )


def _results(
    facts: Mapping[str, Any], records: Sequence[Record], end: RunEnd | None
) -> tuple[TestResult, ...]:
    """One for each selected test; the last line of each counts, and what pytest saw of it."""
    failed = () if end is None else end.failed
    ends = {line["test"]: line for line in records if line["record"] in ("verdict", "skipped")}
    selections = [line for line in records if line["record"] == "selected"]
    selected = [test for line in selections for test in line["tests"]]
    subjects: dict[str, Mapping[str, str]] = {}
    for line in selections:
        subjects |= line.get("subjects", {})
    disturbances = _disturbances(records)
    results = []
    for test in dict.fromkeys([*selected, *ends, *failed]):
        end_line = ends.get(test)
        if end_line is None:
            result = _unfinished(facts, test, subjects.get(test, {}))
        else:
            place = (end_line["scenario"], end_line["probe"])
            result = _result(facts, test, end_line, disturbances.get(place, ()))
        results.append(_failed(result, facts) if test in failed else result)
    return tuple(results)


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


def _unfinished(facts: Mapping[str, Any], test: str, subject: Mapping[str, str]) -> TestResult:
    """A selected test without a record of its end."""
    name = subject.get("name") or test.partition("[")[2].removesuffix("]") or test
    return TestResult(
        test,
        name,
        subject.get("scenario", ""),
        subject.get("probe", ""),
        str(facts["id"]),
        None,
        "unfinished",
        "the session ended first",
    )


def _result(
    facts: Mapping[str, Any], test: str, line: Record, disturbances: Sequence[str]
) -> TestResult:
    run = str(facts["id"])
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
        disturbances=tuple(disturbances),
        rerun=line.get("rerun", ""),
        settings=tuple(line.get("settings", ())),
        extra_options=line.get("extra_options", ""),
        injected=tuple(line["injected"]),
        notes=tuple(line["notes"]),
        synthetic=bool(line["synthetic"]),
        resumed_from=str(line.get("resumed_from") or ""),
        changed=changed_of(line),
        widened=tuple(_widened(line)),
        lacks_control=_lacks_control(line),
    )


def _disturbances(records: Sequence[Record]) -> Mapping[tuple[str, str], Sequence[str]]:
    """Scenario and probe → what used or slowed the machine while it was measured."""
    found: dict[tuple[str, str], list[str]] = {}
    for line in records:
        if line["record"] == "measurement" and line.get("disturbed"):
            of_probe = found.setdefault((line["scenario"], line["probe"]), [])
            of_probe += [f"start {line['start']}: {text}" for text in line["disturbed"]]
    return found


def _widened(line: Record) -> Iterator[str]:
    """The metrics whose band is wider than what the verdict rests on declares."""
    tests = (line.get("judge_input") or {}).get("tests", ())
    declared = {test["metric"]: test["band"] for test in tests if _may_be_widened(test)}
    for judged in judgements_of(line):
        widest = declared.get(judged.metric)
        if widest is not None and judged.band and judged.band > widest * (1 + 1e-9):
            yield judged.metric


def _may_be_widened(test: Mapping[str, Any]) -> bool:
    """Whether the machine's own noise may widen the band of a test."""
    return test["kind"] == "InterleavedTest" or bool(test.get("noise", {}).get("widen", False))


def _lacks_control(line: Record) -> bool:
    """Whether the rule without controls judged it; a required control allows no REGRESSION."""
    controls = (line.get("provenance") or {}).get("controls") or {}
    policy = controls.get("policy")
    for judged in judgements_of(line):
        if judged.mark == "NO_CONTROL":
            if judged.verdict == Verdict.REGRESSION:
                return True
        elif (
            judged.interval is not None
            and not judged.controls_used
            and not judged.is_interleaved
            and not is_accuracy(judged.metric)
            and judged.against in ("baseline", "anchor")
            and (policy == "none" or (policy == "auto" and judged.against in controls["why_not"]))
        ):
            return True
    return False


def suspicion(results: Sequence[TestResult]) -> str:
    """That the host moved and not the build, if nearly everything did; empty: no sign of it."""
    return moved_together(
        [
            Moved(result.scenario, one.metric, one.change, _is_lost(one))
            for result in results
            if not result.synthetic
            for one in result.judgements
            if one.against == "baseline"
            and one.interval is not None
            and one.change is not None
            and not is_accuracy(one.metric)
        ]
    )


def _is_lost(judged: Judgement) -> bool:
    """Whether its interval leaves nothing but a loss."""
    low, high = judged.interval or (0.0, 0.0)
    sign = bad_sign(judged.metric)
    return (sign < 0 and high < 0) or (sign > 0 and low > 0)


def without_controls(results: Sequence[TestResult]) -> str:
    """Which error rates hold if tests were judged without controls; empty: none was."""
    number = sum(one.lacks_control and not one.synthetic for one in results)
    if not number:
        return ""
    return f"{counted(number, 'test')} judged without controls: {WITHOUT_CONTROLS}"


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
            without_sharing=line["starts"]["without_sharing"],
            synthetic=line["synthetic"],
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
        site_commands=facts.get("site_commands", {}),
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
