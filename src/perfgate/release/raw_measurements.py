"""Raw measurements: the values behind a run's verdicts, read again from what its programs wrote.

By the parsers that the run itself used; no program is started. References come from the baselines
that the run kept.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path

from perfgate.baselines import Entry, as_run
from perfgate.baselines.file import read
from perfgate.baselines.waivers import Waiver, load_waivers
from perfgate.campaign.derived_metrics import of_load, of_offline
from perfgate.campaign.kept_references import kept_entry, kept_file
from perfgate.clients.base import Client, Offline
from perfgate.core.errors import PerfgateError
from perfgate.core.locations import Locations
from perfgate.core.measurement import Measurement
from perfgate.evaluators.base import Evaluator
from perfgate.judging.assembly.judge_input import ControlSources, Provenance, Side
from perfgate.judging.assembly.judgement import ControlStarts, ProbeEvidence, Reference, takes_turns
from perfgate.plan.toolchain import toolchain_for
from perfgate.runs.ended_run import EndedRun
from perfgate.runs.record import MeasurementRecord
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import AccuracyTask, LoadPoint

_SHOWN = 80  # characters of a value in a message
Key = tuple[str, str, str, int]
"""Scenario, probe, role and number of the start that a record of a measurement is of."""


class RawRun:
    """What a run keeps of the values that its verdicts rest on.

    Attributes:
        differences: what records have otherwise than the raw files that were read, one line each.
        from_records: what no file holds, so that it was taken from a record, one line each.
    """

    def __init__(self, ended: EndedRun) -> None:
        self._run = ended
        self._lines: dict[Key, MeasurementRecord] = {
            (line.scenario, line.probe, line.role, line.start): line
            for line in ended.records_of(MeasurementRecord)
        }
        self._parsed: dict[Key, Measurement | str] = {}
        self.differences: list[str] = []
        self.from_records: list[str] = []

    @property
    def day(self) -> date:
        """The day on which waivers were applied: that on which the run started."""
        return datetime.fromisoformat(self._run.facts["started"]).date()

    def waivers(self, origin: Provenance) -> tuple[Waiver, ...]:
        """Those that the run kept; errors as of `load_waivers`."""
        return load_waivers(self._kept(origin.waivers)) if origin.waivers else ()

    def _kept(self, name: str) -> Path:
        return kept_file(self._run.folder, name)

    def fingerprint(self, probe: Probe, role: str) -> Mapping[str, str]:
        """The facts that the last measurement of a role had; empty: there is none."""
        of_probe = (probe.scenario.id, probe.label, role)
        found = [line for key, line in self._lines.items() if key[:3] == of_probe]
        return found[-1].fingerprint if found else {}

    def measurements(
        self, probe: Probe, role: str, starts: Sequence[int]
    ) -> dict[int, Measurement]:
        """Number of each of these starts → what the programs wrote there."""
        return {start: self._measurement(probe, role, start) for start in starts}

    def side(self, probe: Probe, side: Side) -> Sequence[Measurement] | Entry:
        """One side of a claim."""
        if side.baseline:
            return read(self._kept(side.baseline)).entries[side.probe]
        return [*self.measurements(probe, side.role, side.starts).values()]

    def evidence(
        self, probe: Probe, origin: Provenance, builds: ControlSources | None
    ) -> ProbeEvidence:
        """What the run had of a probe.

        Args:
            probe: the probe.
            origin: where its values come from.
            builds: the controls that stood beside it; None: there could be none.
        """
        controls = ControlStarts()
        if builds is not None:
            measured = {
                against: self.measurements(probe, f"{against}_control", starts)
                for against, starts in builds.starts.items()
            }
            controls = ControlStarts(builds.policy, measured, builds.why_not)
        return ProbeEvidence(
            probe,
            self._reference(probe, origin),
            self.fingerprint(probe, origin.role),
            self.measurements(probe, origin.role, origin.starts),
            controls,
        )

    def _reference(self, probe: Probe, origin: Provenance) -> Reference:
        """What a probe was compared with: the machine itself, or kept baselines."""
        self._note_what_no_file_holds(origin)
        if origin.own_starts:
            runs = tuple(
                as_run(measured, self._run.id, line.started, line.seconds, start)
                for start, measured in self.measurements(
                    probe, "reference", origin.own_starts
                ).items()
                for line in [self._lines[probe.scenario.id, probe.label, "reference", start]]
            )
            return Reference(
                Entry(self.fingerprint(probe, origin.role), runs),
                noise=origin.noise,
                takes_turns=takes_turns(probe.scenario),
                earlier=origin.earlier,
            )
        anchor = (origin.anchor,) if origin.anchor else ()
        return Reference(
            kept_entry(self._run.folder, origin.window, probe.label),
            origin.documented,
            kept_entry(self._run.folder, anchor, probe.label),
            origin.noise,
        )

    def _note_what_no_file_holds(self, origin: Provenance) -> None:
        taken = {
            "the noise of one fresh start, learnt from the hardware's history": origin.noise,
            "what the machine measured of itself in earlier sessions": origin.earlier,
            "the documented values": origin.documented,
            "why no control of another build could be started": origin.controls
            and origin.controls.why_not,
        }
        self.from_records += [what for what, there in taken.items() if there]

    def _measurement(self, probe: Probe, role: str, start: int) -> Measurement:
        """One measurement: the numbers of the raw files beside the facts of the record."""
        key = (probe.scenario.id, probe.label, role, start)
        line = self._lines[key]
        place = f"{probe.scenario.id}/start-{start}-{role}/{probe.label}"
        recorded = line.measurement
        if probe.is_smoke:
            self.from_records.append(
                f"{probe.label}: the first answer of start {start}, which perfgate itself asked for"
            )
            return recorded
        if key not in self._parsed:
            try:
                self._parsed[key] = _parsed(self._run.folder / place, probe)
            except (PerfgateError, OSError) as error:
                self._parsed[key] = str(error).splitlines()[0]
        found = self._parsed[key]
        if isinstance(found, str):
            self.differences.append(f"{place}: the raw files cannot be read: {found}")
            return recorded
        self.differences += _differences(place, recorded, found)
        return Measurement(found.metrics, recorded.facts, found.answers)


def _parsed(folder: Path, probe: Probe) -> Measurement:
    tools = toolchain_for(probe.scenario, Locations(on_paper=True))
    program, what = tools.program_of(probe), probe.what
    if isinstance(program, Offline):
        found = program.parse(probe.scenario, what, folder)
        return Measurement(of_offline(found, probe.scenario), found.facts, found.answers)
    if isinstance(program, Client) and isinstance(what, LoadPoint) and probe.scenario.workload:
        found = program.parse(probe.scenario.workload, what, folder)
        derived = of_load(found, probe.scenario, what, folder)
        return Measurement({**found.metrics, **derived}, found.facts, found.answers)
    if isinstance(program, Evaluator) and isinstance(what, AccuracyTask):
        return program.parse(what, folder)
    raise TypeError(f"{program} does not measure {probe}")


def _differences(place: str, recorded: Measurement, found: Measurement) -> Iterator[str]:
    for metric in sorted({*recorded.metrics, *found.metrics}):
        old, new = recorded.metrics.get(metric), found.metrics.get(metric)
        if old != new:
            yield f"{place}: {metric}: {shown(old)} in the records, {shown(new)} in the raw files"
    for metric in sorted({*recorded.answers, *found.answers}):
        before, after = recorded.answers.get(metric, {}), found.answers.get(metric, {})
        if before != after:
            other = sum(before.get(one) != after.get(one) for one in {*before, *after})
            yield f"{place}: {metric}: {other} answers are other ones in the raw files"


def shown(value: object) -> str:
    """A recorded value in a message."""
    return "none" if value is None else f"{value!s:.{_SHOWN}}"
