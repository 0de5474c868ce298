"""Raw measurements: the numbers of a run's fresh starts, read again from what the programs wrote.

By the parsers that the run itself used; no program is started.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfgate.baselines import BaselineRun, as_run
from perfgate.campaign.derived_metrics import of_load, of_offline
from perfgate.clients.base import Client, Offline
from perfgate.core.errors import PerfgateError
from perfgate.core.locations import Locations
from perfgate.core.measurement import Measurement
from perfgate.evaluators.base import Evaluator
from perfgate.plan.toolchain import toolchain_for
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import AccuracyTask, LoadPoint

Line = Mapping[str, Any]


@dataclass(frozen=True)
class RawMeasurement:
    """One measurement, as the raw files have it.

    Attributes:
        line: its record.
        place: the probe's folder, in the run's: ``local-smollm2-serve/start-1-new/c1``.
        measurement: the numbers of the raw files beside the facts of the record.
        differences: what the record has otherwise, one line each.
        from_records: what no file holds, so that it is the record's, one line each.
    """

    line: Line
    place: str
    measurement: Measurement
    differences: tuple[str, ...] = ()
    from_records: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str, str, int]:
        """Scenario, probe, role and number of the start."""
        return key_of(self.line)

    def as_run(self, run: str) -> BaselineRun:
        """As one start of the reference that a machine measured of itself."""
        line = self.line
        return as_run(self.measurement, run, line["started"], line["seconds"], line["start"])


def key_of(line: Line) -> tuple[str, str, str, int]:
    """Scenario, probe, role and number of the start that a record of a measurement is of."""
    return line["scenario"], line["probe"], line["role"], line["start"]


def read_again(run: Path, line: Line, probe: Probe) -> RawMeasurement:
    """The numbers of one measurement.

    Args:
        run: the run's folder.
        line: the record of the measurement.
        probe: what was measured.
    """
    scenario, label, role, start = key_of(line)
    place = f"{scenario}/start-{start}-{role}/{label}"
    recorded = Measurement(line["metrics"], line["facts"], line["answers"])
    if probe.is_smoke:
        told = f"{label}: the first answer of start {start}, which perfgate itself asked for"
        return RawMeasurement(line, place, recorded, from_records=(told,))
    try:
        found = _parsed(run / place, probe)
    except (PerfgateError, OSError) as error:
        told = f"{place}: the raw files cannot be read: {str(error).splitlines()[0]}"
        return RawMeasurement(line, place, recorded, (told,))
    measured = Measurement(found.metrics, recorded.facts, found.answers)
    return RawMeasurement(line, place, measured, tuple(_differences(place, recorded, found)))


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
            yield f"{place}: {metric}: {_shown(old)} in the records, {_shown(new)} in the raw files"
    for metric in sorted({*recorded.answers, *found.answers}):
        before, after = recorded.answers.get(metric, {}), found.answers.get(metric, {})
        if before != after:
            other = sum(before.get(one) != after.get(one) for one in {*before, *after})
            yield f"{place}: {metric}: {other} answers are other ones in the raw files"


def _shown(value: float | None) -> str:
    return "none" if value is None else repr(value)
