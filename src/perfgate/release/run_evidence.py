"""Run evidence: one run as a release looks at it: what it is, of which build, on what. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from perfgate.baselines.engine_repo import same_hash
from perfgate.campaign.selection import Selected, probes_of
from perfgate.core.errors import InputError
from perfgate.core.measurement import MeasuredBuild
from perfgate.machine.hardware import is_model
from perfgate.release.policy import ReleasedBuild
from perfgate.reports.run_report import RunFacts, RunReport, TestResult, report_of
from perfgate.runs.ended_run import EndedRun
from perfgate.runs.exit_status import ExitStatus
from perfgate.runs.record import MeasurementRecord

CLOCKS_DIFFER = timedelta(minutes=1)
"""Clocks of the machines of one site differ by less; what is later was written by a wrong one."""


@dataclass(frozen=True)
class RunEvidence:
    """One run with what its records say.

    Attributes:
        run: the run as its folder has it.
        report: of it alone.
        started: when its session began.
        last: when its newest record was written.
    """

    run: EndedRun
    report: RunReport
    started: datetime
    last: datetime

    @property
    def facts(self) -> RunFacts:
        """Where and how it was."""
        return self.report.runs[0]

    @property
    def id(self) -> str:
        """The run's name."""
        return self.facts.id

    @cached_property
    def results(self) -> Mapping[str, TestResult]:
        """Id of the probe, curve or claim → its result."""
        return {result.name: result for result in self.report.results}

    @property
    def is_synthetic(self) -> bool:
        """Whether all of it is a rehearsal."""
        return bool(self.run.facts.get("synthetic"))

    @property
    def compares_builds(self) -> bool:
        """Whether its verdicts are those of two builds beside each other (``--ab``)."""
        return bool(self.run.facts.get("ab"))

    @property
    def injected(self) -> str:
        """What was changed on purpose for the whole run; empty: nothing."""
        injected = self.run.facts.get("injected") or ()
        return (
            ", ".join(map(str, injected)) if isinstance(injected, list | tuple) else str(injected)
        )

    @property
    def void(self) -> str:
        """Why nothing is claimed of its tests but a loss; empty: the run is whole."""
        if self.facts.status is None:
            return (
                f"run {self.id} did not end: it was killed, or goes on; `--resume` goes on with it"
            )
        if self.facts.status == ExitStatus.INTERNAL_ERROR:
            return f"run {self.id} ended in a bug of perfgate (exit status 15)"
        return ""

    @property
    def description(self) -> str:
        """What is peculiar of it, in one sentence; empty: nothing."""
        if self.is_synthetic:
            return f"run {self.id} is a rehearsal: mock programs made its numbers"
        if self.compares_builds:
            return f"run {self.id} compares two builds (--ab)"
        if self.facts.recording and not self.facts.gate:
            return f"run {self.id} only recorded (--record)"
        if self.injected:
            return f"run {self.id} was made with --inject {self.injected}"
        return self.void

    @property
    def machine(self) -> str:
        """``node7, 8 × NVIDIA B200``."""
        machine = self.facts.machine
        there = machine.get("gpus") or ()
        gpus = [str(one.get("name") if isinstance(one, Mapping) else one) for one in there]
        kinds = [f"{gpus.count(name)} × {name}" for name in dict.fromkeys(gpus)]
        return ", ".join([str(machine.get("host", "")), *(kinds or [str(machine.get("cpu", ""))])])

    def other_hardware(self, subject: Selected, hardware: str) -> str:
        """On what else than `hardware` it measured the test; empty: on that, or it does not say."""
        for scenario in self.report.scenarios:
            if scenario.id == subject.scenario.id and scenario.hardware not in ("", hardware):
                return scenario.hardware
        wanted = subject.scenario.hardware.gpu
        for names in self._facts(subject, "gpus") if wanted != "none" else ():
            if names and not all(is_model(name, wanted) for name in names.split(", ")):
                return names
        return ""

    def has_other_content(self, subject: Selected) -> bool:
        """Whether what it measured was written otherwise than the scenario is now."""
        return any(
            measured not in ("", probe.content_hash())
            for probe in probes_of(subject)
            for measured in self._facts(probe, "content")
        )

    def _facts(self, subject: Selected, name: str) -> Iterator[str]:
        """A fact of each measurement of the build under test that the test rests on; or empty."""
        probes = {(probe.scenario.id, probe.label) for probe in probes_of(subject)}
        for line in self._measurements:
            if line.role in ("new", "claim") and (line.scenario, line.probe) in probes:
                yield line.fingerprint.get(name, "")

    @cached_property
    def _measurements(self) -> Sequence[MeasurementRecord]:
        return self.run.records_of(MeasurementRecord)


def evidence_of(run: EndedRun) -> RunEvidence:
    """A run as evidence.

    Raises:
        InputError: a record is damaged, or a time cannot be read.
    """
    started = time_of(run, "run.json", "started", str(run.facts["started"]))
    written = [
        time_of(run, "records.jsonl", f"{record.__struct_config__.tag}.at", record.at)
        for record in run.records
        if record.at
    ]
    report = report_of(run.facts, run.records)
    return RunEvidence(run, report, started, max([started, *written]))


def moment(text: str) -> datetime:
    """A time with its zone.

    Raises:
        ValueError: it is no time, or has no zone.
    """
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError(f"no time zone: {text}")
    return time


def time_of(run: EndedRun, file: str, field: str, text: str) -> datetime:
    """A time that a run wrote.

    Raises:
        InputError: it is none, or has no zone; by the file of the run's folder, and its field.
    """
    try:
        return moment(text)
    except ValueError as error:
        raise InputError(
            "not a time",
            file=run.folder / file,
            field=field,
            found=text[:60],
            expected="as 2026-11-23T09:00:00+00:00",
        ) from error


def other_build(found: MeasuredBuild | None, wanted: ReleasedBuild) -> str:
    """In what the measured build is not the wanted one; empty: it is the wanted one."""
    if found is None:
        return "its build is not known"
    if found.name != wanted.engine:
        return f"engine {found.name}, not {wanted.engine}"
    if wanted.version is not None and found.version != wanted.version:
        return f"version {found.version}, not {wanted.version}"
    if wanted.commit is not None and not same_hash(found.commit, wanted.commit):
        return f"commit {found.commit}, not {wanted.commit}"
    if wanted.image is not None and found.digest.rpartition("@")[2] != wanted.image:
        return f"image {found.digest or 'not known'}, not {wanted.image}"
    return ""
