"""Resume: what a resumed run keeps of its session before, and whether this session may go on
with that run at all. Pure: reads nothing, writes nothing.

A group is one scenario's campaign in one session; its record is written when the last test that
needs it has its outcome. What has none is measured anew, and its earlier lines no longer count.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from perfgate.core.errors import InputError, RunError
from perfgate.core.measured import (
    Change,
    ChangedQuestions,
    MeasuredBuild,
    MeasuredControl,
    MeasuredMetric,
)
from perfgate.core.measurement import Measurement
from perfgate.core.plain import from_plain
from perfgate.core.verdict import Judgement, Verdict
from perfgate.judging.assembly.judge_input import Provenance
from perfgate.judging.assembly.outcome import Outcome, Subject
from perfgate.runs.record_lines import RecordLine
from perfgate.scenarios.probe import Probe

Line = Mapping[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class KeptResults:
    """What a resumed run keeps of its earlier session; nothing where none is resumed.

    Attributes:
        groups: scenario → the record of its finished group.
        ends: test → the record of its verdict, of tests that a finished group counts.
        measurements: the measurements of finished groups, of the build under test, undisturbed.
    """

    groups: Mapping[str, Line] = field(default_factory=dict)
    ends: Mapping[str, Line] = field(default_factory=dict)
    measurements: Sequence[Line] = ()

    def outcome(self, subject: Subject, probes: Sequence[Probe]) -> Outcome | None:
        """The recorded outcome of a test of the suite; None: it must be run.

        Args:
            subject: what the test is about.
            probes: what is measured for it.
        """
        line = next((one for one in self.ends.values() if one["name"] == subject.id), None)
        if line is None:
            return None
        return replayed(line, subject, self._measured(probes[0])[: line["starts"]])

    def measured(self, probe: Probe) -> Outcome:
        """What a finished group measured of a probe, for a claim of another group."""
        found = self.outcome(probe, [probe])
        if found is not None:
            return found
        measurements = self._measured(probe)
        error = None
        if not measurements:
            error = RunError("incomplete", "not measured in the session before this one")
        verdict = Verdict.ERROR if error else Verdict.INCONCLUSIVE
        return Outcome(probe, verdict, measurements=measurements, error=error)

    def _measured(self, probe: Probe) -> list[Measurement]:
        return [
            Measurement(line["metrics"], line["facts"], line["answers"])
            for line in self.measurements
            if line["scenario"] == probe.scenario.id and line["probe"] == probe.label
        ]


def kept_of(lines: Sequence[Line]) -> KeptResults:
    """What a run's standing lines keep, if it is resumed.

    A group is not finished while one of its probes was skipped, e.g. for a missing evaluator.
    """
    skipped = {(line["scenario"], line["probe"]) for line in lines if line["record"] == "skipped"}
    groups = {
        line["scenario"]: line
        for line in lines
        if line["record"] == "group"
        and not any((line["scenario"], label) in skipped for label in line["content"])
    }
    counted = {test for group in groups.values() for test in group["tests"]}
    ends = {
        line["test"]: line
        for line in lines
        if line["record"] == "verdict" and line["test"] in counted
    }
    measurements = tuple(
        line
        for line in lines
        if line["record"] == "measurement"
        and line["scenario"] in groups
        and line["role"] == "new"
        and not line.get("disturbed")
    )
    return KeptResults(groups, ends, measurements)


def replayed(line: Line, subject: Subject, measurements: Sequence[Measurement]) -> Outcome:
    """An outcome read back from its record."""
    error = line["error"]
    return Outcome(
        subject,
        Verdict(line["verdict"]),
        judgements_of(line),
        measurements,
        compared_with=line["compared_with"],
        reason=line["reason"],
        error=None
        if error is None
        else RunError(
            error["class"],
            error["message"],
            evidence=tuple(error["evidence"]),
            hint=error["next_step"],
        ),
        folder=None if line["folder"] is None else Path(line["folder"]),
        injected=tuple(line["injected"]),
        synthetic=line["synthetic"],
        notes=tuple(line["notes"]),
        observed=_read(tuple[Change, ...], line, "observed"),
        changed=changed_of(line),
        measured=measured_of(line),
        build=build_of(line),
        controls=controls_of(line),
        provenance=provenance_of(line),
        resumed_from=str(line.get("at", "")),
    )


def provenance_of(line: Line) -> Provenance | None:
    """Where a verdict's record says that its values come from; None: it rests on none.

    Raises:
        InputError: it is damaged.
    """
    return _read(Provenance, line, "provenance") if line.get("provenance") is not None else None


def measured_of(line: Line) -> tuple[MeasuredMetric, ...]:
    """Every metric that a verdict's record has values of; none in one of before they were kept.

    Raises:
        InputError: they are damaged.
    """
    return _read(tuple[MeasuredMetric, ...], line, "measured") if "measured" in line else ()


def observed_of(line: Line) -> tuple[Change, ...]:
    """The metrics of a verdict's record that were compared and not judged; none where it has none.

    Raises:
        InputError: they are damaged.
    """
    return _read(tuple[Change, ...], line, "observed") if "observed" in line else ()


def changed_of(line: Line) -> tuple[ChangedQuestions, ...]:
    """Which questions were answered otherwise; none in a record of before they were kept.

    Raises:
        InputError: they are damaged.
    """
    name = "changed_questions"
    return _read(tuple[ChangedQuestions, ...], line, name) if name in line else ()


def build_of(line: Line) -> MeasuredBuild | None:
    """The build under test as a verdict's record has it; None where it has none.

    Raises:
        InputError: it is damaged.
    """
    return None if line.get("build") is None else _read(MeasuredBuild, line, "build")


def controls_of(line: Line) -> tuple[MeasuredControl, ...]:
    """The controls behind a verdict's record; none in one of before there were any.

    Raises:
        InputError: they are damaged.
    """
    return _read(tuple[MeasuredControl, ...], line, "controls") if "controls" in line else ()


def judgements_of(line: Line) -> tuple[Judgement, ...]:
    """The judgements of a verdict's record.

    Raises:
        InputError: they are damaged.
    """
    return _read(tuple[Judgement, ...], line, "judgements")


def _read(kind: type[T], line: Line, field: str) -> T:
    try:
        return from_plain(kind, line[field])
    except InputError as error:
        if isinstance(line, RecordLine):
            raise line.damaged(field, error.problem) from error
        raise


def require_readable(kept: KeptResults) -> None:
    """Check that every verdict that a run keeps can be told again.

    Raises:
        InputError: one is damaged; with its file and line.
    """
    for line in kept.ends.values():
        _ = (judgements_of(line), _read(tuple[Change, ...], line, "observed"))
        _ = (measured_of(line), build_of(line), controls_of(line))


# Whether this session may go on with that run.


def require_same_selection(facts: Line, first: Iterable[str], now: Iterable[str]) -> None:
    """Check that the same tests are selected as at first.

    Raises:
        InputError: they are not; tells the arguments of the first session.
    """
    before, after = set(first), set(now)
    if not before or before == after:
        return
    missing, added = sorted(before - after), sorted(after - before)
    told = [f"{len(missing)} missing: {_some(missing)}"] if missing else []
    told += [f"{len(added)} more: {_some(added)}"] if added else []
    raise InputError(
        f"the selected tests differ from those of run {facts['id']}",
        field="--resume",
        found="; ".join(told),
        expected=f"the {len(before)} tests selected then",
        hint=f"repeat its arguments: {call_of(facts)}",
    )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def require_same(facts: Line, now: Line) -> None:
    """Check that what shapes all numbers of a run is as it was at its start.

    Args:
        facts: of the run.
        now: the same facts of this session: those that are missing are not compared.

    Raises:
        InputError: one differs.
    """
    for name, words in (
        ("synthetic", "whether it is a rehearsal"),
        ("rehearse_fault", "the fault of a rehearsal"),
        ("launcher", "the launcher"),
        ("injected", "the list of --inject"),
        ("control", "the build of --control"),
        ("ab", "the builds of --ab"),
        ("site_commands", "the list of commands before and after each start (site.yaml)"),
        ("shard", "the shard"),
        ("fingerprint", "the machine"),
    ):
        if name in facts and name in now and facts[name] != now[name]:
            raise InputError(
                f"{words} differs from run {facts['id']}",
                field="--resume",
                found=_told(now[name]),
                expected=_told(facts[name]),
                hint=f"resume it as it was started: {call_of(facts)}",
            )


def require_same_group(group: Line, *, engine: Line, content: Mapping[str, str]) -> None:
    """Check that a finished group would still be measured as it was.

    Args:
        group: its record.
        engine: the build under test now.
        content: probe → hash of what shapes its measurement now.

    Raises:
        InputError: the build or the scenario is another one.
    """
    if group["engine"] is not None and group["engine"] != engine:
        raise InputError(
            f"the engine's build differs from the one that {group['scenario']} was measured with",
            field="--resume",
            found=_told(engine),
            expected=_told(group["engine"]),
            hint="measure another build in a separate run",
        )
    changed = [name for name, was in group["content"].items() if content.get(name) != was]
    if changed:
        raise InputError(
            f"the scenario {group['scenario']} was changed since it was measured",
            field="--resume",
            found=", ".join(f"{name}: {content.get(name)}" for name in changed),
            expected=", ".join(f"{name}: {group['content'][name]}" for name in changed),
            hint="measure the changed scenario in a separate run",
        )


def _told(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {one}" for name, one in value.items()) or "nothing"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "nothing"
    return str(value)


def call_of(facts: Line) -> str:
    """How a run was started, as a command line without its run folder; secrets are masked."""
    return shlex.join(["pytest", *_without_folder(facts.get("arguments", ())[1:])[0]])


def resuming_call(facts: Line) -> str:
    """The command line that goes on with a run."""
    words, folder = _without_folder(facts.get("arguments", ())[1:])
    return shlex.join(["pytest", *words, f"--resume={folder or facts['id']}"])


def _without_folder(arguments: Sequence[str]) -> tuple[list[str], str]:
    """The arguments but ``--run-dir`` and ``--resume``, and the folder that these named."""
    words: list[str] = []
    folder = ""
    rest = iter(arguments)
    for word in rest:
        name, equals, value = word.partition("=")
        if name in ("--run-dir", "--resume"):
            folder = value if equals else next(rest, "")
        else:
            words.append(word)
    return words, folder
