"""Records: the lines of a run's ``records.jsonl``, one struct for each kind, and their one codec.

A line is a JSON object; ``record`` names its kind. A line that does not fit its struct is an error
with file, line and field. docs/reference/reports.md is made from the first lines of the structs.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import msgspec

from perfgate.core.errors import InputError
from perfgate.core.files.durable_files import read_lines, require_checksums, whole_lines
from perfgate.core.measurement import (
    Change,
    ChangedQuestions,
    MeasuredBuild,
    MeasuredControl,
    MeasuredMetric,
    Measurement,
)
from perfgate.core.plain import from_plain, set_defaults, to_plain
from perfgate.core.verdict import Judgement, Verdict
from perfgate.engines.base import EngineBuild
from perfgate.scenarios.scenario import Scenario

SCHEMA_VERSION = 4
HINT = "restore run.json and records.jsonl from a copy, or measure again in a new run folder"
_SHOWN = 80  # characters of a damaged value in a message


class Record(msgspec.Struct, frozen=True, kw_only=True, tag_field="record", tag=""):
    """One line.

    Attributes:
        at: when it was written, ISO 8601, UTC; empty: it is not written yet.
        schema_version: of the line; None: it is not written yet.
    """

    at: str = ""
    schema_version: int | None = None


class SelectedTest(msgspec.Struct, frozen=True):
    """What a selected test is about: the name, scenario and label of its probe, curve or claim."""

    name: str
    scenario: str
    probe: str


class SelectedRecord(Record, frozen=True, kw_only=True, tag="selected"):
    """Tests of the run, with scenario and probe."""

    tests: tuple[str, ...]
    subjects: Mapping[str, SelectedTest] = {}


class ScenarioRecord(Record, frozen=True, kw_only=True, tag="scenario"):
    """Scenario of a test: title, engine, model, hardware, document.

    `gpus` is the number in all; 0: it needs none.
    """

    scenario: str
    title: str = ""
    engine_name: str = ""
    model: str = ""
    hardware: str = ""
    gpus: int = 0
    document: str = ""
    section: str = ""
    markers: tuple[str, ...] = ()

    @classmethod
    def of(cls, scenario: Scenario, markers: Sequence[str]) -> Self:
        """What reports say of a scenario."""
        hardware = scenario.hardware
        return cls(
            scenario=scenario.id,
            title=scenario.title,
            engine_name=scenario.engine.name,
            model=scenario.model.name,
            hardware=hardware.label,
            gpus=0 if hardware.gpu == "none" else hardware.gpus,
            document=scenario.source.document,
            section=scenario.source.section,
            markers=tuple(markers),
        )


class ShardRecord(Record, frozen=True, kw_only=True, tag="shard"):
    """The run's part of a selection.

    Attributes:
        number: from 1.
        of: how many there are.
        expression: of pytest's ``-m``, which selected the whole.
        selection: fingerprint of the whole selection and its division; the same for all its shards.
        scenarios: the ids that each of the shards has, in their order.
    """

    number: int
    of: int
    expression: str
    selection: str
    scenarios: tuple[tuple[str, ...], ...]


class RehearsalRecord(Record, frozen=True, kw_only=True, tag="rehearsal"):
    """Mock programs were used, by which recorded pages."""

    pages: Any
    synthetic: bool = True


class PreflightRecord(Record, frozen=True, kw_only=True, tag="preflight"):
    """Checks of a place before a start."""

    scenario: str
    hardware: str
    machine: Mapping[str, Any]
    fit: bool
    checks: Sequence[Mapping[str, Any]]
    observed: Any


class ComparableStart(Record, frozen=True, kw_only=True, tag="measurement"):
    """Of a measurement, what tells whether other values were measured alike.

    Attributes:
        role: of the start: ``new``, ``reference``, ``claim``, …
        fingerprint: the facts that a baseline's must equal.
        machine_bound: whether its values say something of this machine alone.
        synthetic: whether mock programs made the numbers.
    """

    scenario: str
    probe: str
    role: str
    fingerprint: Mapping[str, str]
    machine_bound: bool
    synthetic: bool


class MeasurementRecord(ComparableStart, frozen=True, kw_only=True, tag="measurement"):
    """Result of a probe on a fresh start.

    Attributes:
        start: its number in the scenario's campaign.
        engine: the build that was started.
        metrics, facts, answers, disturbed: as in `Measurement`.
        started: when it began, ISO 8601.
        seconds: how long it took, its share of the start included.
        injected: what was changed on purpose, as KEY=VALUE.
        source: how its build can be started again.
        folder: where its artifacts are.
        lease: the GPUs that it had, and how long it waited for them.
    """

    hardware: str
    start: int
    engine: EngineBuild
    metrics: Mapping[str, float]
    facts: Mapping[str, Any]
    answers: Mapping[str, Mapping[str, bool]]
    disturbed: tuple[str, ...]
    started: str
    seconds: float
    injected: tuple[str, ...]
    source: Mapping[str, Any] | None
    folder: str
    lease: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name of its probe."""
        return f"{self.scenario}-{self.probe}"

    @property
    def measurement(self) -> Measurement:
        """Its values, as a measurement that nothing disturbed."""
        return Measurement(self.metrics, self.facts, self.answers)


@dataclass(frozen=True)
class Failure:
    """Why there are no numbers.

    Attributes:
        error_class: `oom`, `hang`, … (docs/how-to/troubleshooting.md).
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


class MeasuredTest(Record, frozen=True, kw_only=True, tag="verdict"):
    """Of a verdict, what was measured.

    Attributes:
        test: pytest's id of it.
        name: of the probe, curve or claim.
        measured: every metric that was measured, judged or not.
    """

    test: str
    name: str
    scenario: str
    probe: str
    measured: tuple[MeasuredMetric, ...]
    build: MeasuredBuild | None
    injected: tuple[str, ...]
    synthetic: bool


class VerdictRecord(MeasuredTest, frozen=True, kw_only=True, tag="verdict"):
    """Verdict of a test, with its numbers.

    Attributes:
        starts: fresh starts of the build under test.
        observed: metrics that were compared and do not gate.
        controls: other builds that were started beside it, or should have been.
        documented: what the scenario's document says.
        settings: which settings were not in force, or bounded, one line each.
        provenance: where its values come from, as judging writes it; None: it rests on none.
        judge_input: all that the verdict rests on, as judging writes it; None: on no numbers.
        rerun: the command that runs it again.
        resumed_from: when a session before recorded it; not in the file.
    """

    verdict: Verdict
    reason: str
    judgements: tuple[Judgement, ...]
    observed: tuple[Change, ...]
    documented: tuple[DocumentedMetric, ...]
    compared_with: str
    controls: tuple[MeasuredControl, ...]
    starts: int
    error: Failure | None
    changed_questions: tuple[ChangedQuestions, ...]
    settings: tuple[str, ...]
    extra_options: str
    notes: tuple[str, ...]
    folder: str | None
    provenance: Mapping[str, Any] | None
    judge_input: Mapping[str, Any] | None
    rerun: str
    resumed_from: str = ""


class SkippedRecord(Record, frozen=True, kw_only=True, tag="skipped"):
    """Test without a verdict, for ``lack`` (of hardware, of programs) or ``budget``."""

    test: str
    name: str
    scenario: str
    probe: str
    reason: str
    why: Literal["lack", "budget"] = "lack"


class UnaskedRecord(Record, frozen=True, kw_only=True, tag="unasked"):
    """Installed build whose options could not be read, and why."""

    scenario: str
    build: EngineBuild
    why: tuple[str, ...]


class MovedDefaultsRecord(Record, frozen=True, kw_only=True, tag="moved_defaults"):
    """Defaults of the installed build that differ from a document."""

    scenario: str
    build: EngineBuild
    defaults: tuple[str, ...]


class MarkedOptionsRecord(Record, frozen=True, kw_only=True, tag="marked_options"):
    """Options and keys in use that the installed build marks as deprecated or as a prototype."""

    scenario: str
    build: EngineBuild
    options: tuple[str, ...]


class GroupStarts(msgspec.Struct, frozen=True):
    """Fresh starts of a group: expected at its begin, made, without sharing, again, controls."""

    planned: int
    made: int
    without_sharing: int
    again: int
    controls: int = 0


class GroupSeconds(msgspec.Struct, frozen=True):
    """Seconds of a group's starts: spent in all, until servers were ready, saved by sharing."""

    spent: float
    starting: float
    saved: float


class GroupRecord(Record, frozen=True, kw_only=True, tag="group"):
    """Finished scenario: starts made, planned and saved, and the time.

    Attributes:
        engine: the build under test; None: none was asked.
        content: probe → hash of what shapes its measurement.
        tests: those that it counts.
        ended: ``measured``, or ``failed``.
    """

    scenario: str
    hardware: str
    engine: EngineBuild | None
    content: Mapping[str, str]
    tests: tuple[str, ...]
    starts: GroupStarts
    seconds: GroupSeconds
    ended: str
    synthetic: bool


class SetAsideRecord(Record, frozen=True, kw_only=True, tag="set_aside"):
    """Folder of unfinished starts that was moved away."""

    scenario: str
    folder: str


class ResumedRecord(Record, frozen=True, kw_only=True, tag="resumed"):
    """Resumed session: groups that it keeps and that it repeats.

    Attributes:
        repeats: scenarios that are measured again.
        keeps: tests whose verdicts are kept.
    """

    repeats: tuple[str, ...]
    keeps: tuple[str, ...]
    groups: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


class NoiseKeptRecord(Record, frozen=True, kw_only=True, tag="noise_kept"):
    """Files of the run's noise."""

    files: tuple[str, ...]


class CandidateRecord(Record, frozen=True, kw_only=True, tag="candidate"):
    """Recorded candidate for a baseline (--record).

    Attributes:
        commit: of the engine.
        sessions: of those `wanted`.
        again: the command that makes another one.
    """

    scenario: str
    hardware: str
    commit: str
    file: str
    sessions: int
    wanted: int
    again: str
    synthetic: bool


class NotRecordedRecord(Record, frozen=True, kw_only=True, tag="not_recorded"):
    """Measurement that became no candidate, and why."""

    reasons: Any


class WaiverFaultRecord(Record, frozen=True, kw_only=True, tag="waiver_fault"):
    """Waiver that does not hold."""

    message: str
    kind: str = ""


class EndedRecord(Record, frozen=True, kw_only=True, tag="ended"):
    """Exit status and its parts; a run without it did not end.

    Attributes:
        gate: whether every selected test had to have a verdict.
        recording: whether it was to record what later runs are compared with.
        failed: tests, or files of tests, that failed though no verdict of theirs did it.
        bugs: those that ended in a bug of perfgate.
        unwritten: whether something could not be written at the end.
    """

    status: int
    gate: bool
    recording: bool
    failed: tuple[str, ...] = ()
    bugs: tuple[str, ...] = ()
    unwritten: bool = False


_KINDS = Record.__subclasses__()
AnyRecord: Any = reduce(
    or_, (subclass for kind in _KINDS for subclass in kind.__subclasses__() or [kind])
)
_WHOLE = msgspec.json.Decoder(AnyRecord)
_SHORT = msgspec.json.Decoder(reduce(or_, _KINDS))  # as histories read them
R = TypeVar("R", bound=Record)
_OF_TESTS = (MeasuredTest, SkippedRecord)
_OF_THE_SELECTION = (SelectedRecord, ScenarioRecord, ShardRecord, ResumedRecord)
_OF_THE_END = (  # written again when the session that resumed it ends
    *(WaiverFaultRecord, CandidateRecord, NotRecordedRecord, NoiseKeptRecord, EndedRecord),
)
_NEVER_SET_ASIDE = (GroupRecord, SetAsideRecord, *_OF_THE_SELECTION, *_OF_TESTS)


def records_of(kind: type[R], records: Iterable[Record]) -> list[R]:
    """The records of one kind, in order."""
    return [record for record in records if isinstance(record, kind)]


def effective(records: Iterable[Record]) -> list[Record]:
    """The records that no later one supersedes, in order; the file itself is only appended to.

    Two kinds supersede: ``resumed`` all records of the groups that it repeats, and of tests that it
    does not keep; ``set_aside`` the measurements of a scenario that a replaced worker left. A
    verdict that was kept says so: ``resumed_from`` is when it was recorded.
    """
    kept: list[Record] = []
    for record in records:
        if isinstance(record, ResumedRecord):
            kept = [_marked(earlier) for earlier in kept if _is_kept(earlier, record)]
        elif isinstance(record, SetAsideRecord):
            kept = [
                earlier
                for earlier in kept
                if isinstance(earlier, _NEVER_SET_ASIDE)
                or getattr(earlier, "scenario", None) != record.scenario
            ]
        kept.append(record)
    return kept


def _is_kept(record: Record, resumed: ResumedRecord) -> bool:
    if isinstance(record, _OF_THE_SELECTION):
        return True
    if isinstance(record, _OF_TESTS):
        return record.test in resumed.keeps
    if isinstance(record, _OF_THE_END):
        return False
    return getattr(record, "scenario", None) not in resumed.repeats


def _marked(record: Record) -> Record:
    if isinstance(record, VerdictRecord):
        return msgspec.structs.replace(record, resumed_from=record.at)
    return record


def as_line(record: Record, at: str) -> dict[str, Any]:
    """The line of a record; `at` is when it is written, where the record does not say."""
    plain = {name: value for name, value in to_plain(record).items() if name != "resumed_from"}
    return {**plain, "schema_version": SCHEMA_VERSION, "at": record.at or at}


def read_records(
    file: Path, base: Path | None = None, *, is_rehearsal: bool = False, is_short: bool = False
) -> list[Record]:
    """The records of a run, in order; a last line that was cut by a kill is left out.

    Args:
        file: ``records.jsonl``.
        base: the run's ``run.json``, on which the checksums rest; None: they are not checked.
        is_rehearsal: whether run.json says that mock programs made all numbers.
        is_short: read what histories need, many times as fast: of a verdict a `MeasuredTest`, of a
            measurement a `ComparableStart`. The checksums vouch for what is passed over.

    Raises:
        InputError: a line is not JSON, is not as it was written, is of another schema version, has
            a field that does not fit its kind, or calls real what mock programs made.
    """
    if base is not None:
        lines = whole_lines(file)
        with suppress(ValueError, RecursionError):
            read = [(_SHORT if is_short else _WHOLE).decode(line) for line in lines]
            claims_real = is_rehearsal and any(
                getattr(one, "synthetic", 1) is False for one in read
            )
            is_resumed = any(getattr(one, "resumed_from", "") for one in read)
            versions = {one.schema_version for one in read}
            if versions == {SCHEMA_VERSION} and not claims_real and not is_resumed:
                require_checksums(lines, file, base, HINT)
                if not is_short:
                    set_defaults(read)
                    for one in read:
                        msgspec.structs.force_setattr(one, "schema_version", None)
                return read
    # One line after the other: this tells what is wrong, if anything.
    found = []
    for number, line in enumerate(read_lines(file, HINT, base=base), start=1):
        version = line.pop("schema_version", None)
        if version != SCHEMA_VERSION:
            raise _damaged(file, number, "schema_version", version, str(SCHEMA_VERSION))
        if "resumed_from" in line:
            raise _damaged(file, number, "resumed_from", line["resumed_from"], "no such field")
        try:
            record: Record = from_plain(AnyRecord, line, what="record")
        except InputError as error:
            field, expected = error.field or "record", error.problem.partition(": ")[2]
            value = line.get(re.split(r"[.\[]", field)[0])  # of a path as judgements[0].band
            raise _damaged(file, number, field, value, expected) from error
        if is_rehearsal and getattr(record, "synthetic", None) is False:
            expected = "true: run.json says that it was a rehearsal"
            raise _damaged(file, number, "synthetic", False, expected)
        found.append(record)
    return found


def _damaged(file: Path, number: int, field: str, found: object, expected: str) -> InputError:
    return InputError(
        "a record is not whole",
        file=file,
        line=number,
        field=field,
        found="nothing" if found is None else repr(found)[:_SHOWN],
        expected=expected,
        hint=HINT,
    )
