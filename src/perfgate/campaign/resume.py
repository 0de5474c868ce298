"""Resume: what a resumed run keeps of its session before, and whether this session may go on
with that run at all. Pure: reads nothing, writes nothing.

A group is one scenario's campaign in one session; its record is written when the last test that
needs it has its outcome. What has none is measured again, and its earlier lines no longer count.
"""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from perfgate.core.errors import InputError, PerfgateError, RunError
from perfgate.core.measurement import Measurement
from perfgate.core.verdict import Verdict
from perfgate.engines.base import EngineBuild
from perfgate.judging.assembly.judge_input import Outcome, Subject, provenance_of
from perfgate.runs.record import (
    GroupRecord,
    MeasurementRecord,
    Record,
    SkippedRecord,
    VerdictRecord,
    records_of,
)
from perfgate.scenarios.probe import Probe, all_probes
from perfgate.scenarios.scenario import Scenario

Line = Mapping[str, Any]


@dataclass(frozen=True)
class KeptResults:
    """What a resumed run keeps of its earlier session; nothing where none is resumed.

    Attributes:
        groups: scenario → the record of its finished group.
        verdicts: test → the record of its verdict, of tests that a finished group counts.
        measurements: the measurements of finished groups, of the build under test, undisturbed.
    """

    groups: Mapping[str, GroupRecord] = field(default_factory=dict)
    verdicts: Mapping[str, VerdictRecord] = field(default_factory=dict)
    measurements: Sequence[MeasurementRecord] = ()

    def outcome(self, subject: Subject, probes: Sequence[Probe]) -> Outcome | None:
        """The recorded outcome of a test of the suite; None: it must be run.

        Args:
            subject: what the test is about.
            probes: what is measured for it.
        """
        record = next(
            (verdict for verdict in self.verdicts.values() if verdict.name == subject.id), None
        )
        if record is None:
            return None
        return replayed(record, subject, self._measured(probes[0])[: record.starts])

    def measured(self, probe: Probe) -> Outcome:
        """What a finished group measured of a probe, for a claim of another group."""
        if (found := self.outcome(probe, [probe])) is not None:
            return found
        if measurements := self._measured(probe):
            return Outcome(probe, Verdict.INCONCLUSIVE, measurements=measurements)
        error = RunError("incomplete", "not measured in the session before this one")
        return Outcome(probe, Verdict.ERROR, error=error)

    def _measured(self, probe: Probe) -> list[Measurement]:
        return [
            measurement.measurement
            for measurement in self.measurements
            if (measurement.scenario, measurement.probe) == (probe.scenario.id, probe.label)
        ]


def kept_of(records: Sequence[Record]) -> KeptResults:
    """What a run's effective records keep, if it is resumed.

    A group is not finished while one of its probes was skipped, e.g. for a missing evaluator.
    """
    skipped = {(record.scenario, record.probe) for record in records_of(SkippedRecord, records)}
    groups = {
        group.scenario: group
        for group in records_of(GroupRecord, records)
        if not any((group.scenario, label) in skipped for label in group.content)
    }
    counted = {test for group in groups.values() for test in group.tests}
    verdicts = {one.test: one for one in records_of(VerdictRecord, records) if one.test in counted}
    measurements = tuple(
        one
        for one in records_of(MeasurementRecord, records)
        if one.scenario in groups and one.role == "new" and not one.disturbed
    )
    return KeptResults(groups, verdicts, measurements)


def replayed(
    record: VerdictRecord, subject: Subject, measurements: Sequence[Measurement]
) -> Outcome:
    """An outcome read back from its record, by the names of its fields."""
    names = {one.name for one in fields(Outcome)} & set(VerdictRecord.__struct_fields__)
    as_they_are = {one: getattr(record, one) for one in names - {"probe", "judge_input"}}
    error = record.error and RunError(
        record.error.error_class,
        record.error.message,
        evidence=record.error.evidence,
        hint=record.error.next_step,
    )
    others = {
        "measurements": measurements,
        "error": error,
        "folder": record.folder and Path(record.folder),
        "changed": record.changed_questions,
        "provenance": provenance_of(record),
        "resumed_from": record.at,
    }
    return Outcome(subject, **{**as_they_are, **others})


# Whether this session may go on with that run.


def require_same_selection(facts: Line, first: Iterable[str], now: Iterable[str]) -> None:
    """Check that the same tests are selected as at first.

    Raises:
        InputError: they are not; tells the arguments of the first session.
    """
    before, after = set(first), set(now)
    if not before or before == after:
        return
    changes = [
        f"{len(names)} {what}: {', '.join(sorted(names)[:3])}" + (", …" if len(names) > 3 else "")
        for what, names in (("missing", before - after), ("more", after - before))
        if names
    ]
    raise InputError(
        f"the selected tests differ from those of run {facts['id']}",
        field="--resume",
        found="; ".join(changes),
        expected=f"the {len(before)} tests selected then",
        hint=f"repeat its arguments: {call_of(facts)}",
    )


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


def require_same_groups(
    groups: Mapping[str, GroupRecord],
    scenarios: Mapping[str, Scenario],
    build_of: Callable[[Scenario], EngineBuild],
) -> None:
    """Check that the finished groups of a run would still be measured as they were.

    Args:
        groups: scenario → the record of its group.
        scenarios: those of this session, by id.
        build_of: gives the build that a scenario would be measured with now.

    Raises:
        InputError: a build is not known, or the build or the scenario is another one.
    """
    for name, group in groups.items():
        content = {probe.label: probe.content_hash() for probe in all_probes(scenarios[name])}
        try:
            engine = build_of(scenarios[name])
        except PerfgateError as error:
            raise InputError(
                f"the build that {name} would be measured with now is not known: {error}",
                field="--resume",
                expected=str(group.engine),
            ) from error
        if group.engine is not None and group.engine != engine:
            raise InputError(
                f"the engine's build differs from the one that {name} was measured with",
                field="--resume",
                found=_told(asdict(engine)),
                expected=_told(asdict(group.engine)),
                hint="measure another build in a separate run",
            )
        changed = [label for label, was in group.content.items() if content.get(label) != was]
        if changed:
            raise InputError(
                f"the scenario {name} was changed since it was measured",
                field="--resume",
                found=", ".join(f"{label}: {content.get(label)}" for label in changed),
                expected=", ".join(f"{label}: {group.content[label]}" for label in changed),
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
        if name.replace("--perfgate-", "--") in ("--run-dir", "--resume"):
            folder = value if equals else next(rest, "")
        else:
            words.append(word)
    return words, folder
