"""Calibrated noise: what a calibration found out about one scenario on one machine, as a file.

``baselines/noise/<hardware>/<scenario>.json`` is committed by a person; a scenario that measures
its own reference has its file in the machine's own store. The gate takes the noise from there,
where the machine's facts are the same, and else the prior of the metric's family.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfgate.baselines.noise_spread import Spread, spread
from perfgate.baselines.store_lock import alone_in
from perfgate.baselines.stored_json import check_place, read_stored
from perfgate.core.durable_files import write_json
from perfgate.core.errors import InputError
from perfgate.core.paths import baselines_folder, machine_store, require_own
from perfgate.core.plain import from_plain, to_plain
from perfgate.engines.base import EngineBuild
from perfgate.machine.hardware import Machine
from perfgate.scenarios.probe import all_probes
from perfgate.scenarios.scenario import Scenario

SCHEMA_VERSION = 1
FOLDER = "noise"
_HINT = "restore the file from git, or calibrate again with --replace"


@dataclass(frozen=True)
class SigmaOf:
    """Noise of one fresh start on the log scale, and the degrees of freedom behind it."""

    sigma: float
    dof: float


@dataclass(frozen=True)
class ProbeNoise:
    """The noise of one probe.

    Attributes:
        content: `Probe.content_hash` of what was measured; the noise of anything else is unknown.
        metrics: canonical metric name → its spread.
    """

    content: str
    metrics: Mapping[str, Spread]


@dataclass(frozen=True)
class Calibrated:
    """All that one file holds.

    Attributes:
        scenario: the scenario's id.
        hardware: the hardware's label.
        engine: the build that was measured.
        machine: the facts that must be equal for the noise to be taken from here.
        run: id of the run.
        at: when it ended, ISO 8601, UTC.
        starts: fresh starts that were asked for.
        repeats: measurements of each probe on each start.
        probes: label → noise.
        file: where it was read from.
    """

    scenario: str
    hardware: str
    engine: EngineBuild
    machine: Mapping[str, str]
    run: str
    at: str
    starts: int
    repeats: int
    probes: Mapping[str, ProbeNoise]
    file: Path | None = field(default=None, compare=False)

    def differences(self, facts: Mapping[str, str]) -> tuple[str, ...]:
        """The facts in which a machine differs, as ``name: here X, calibrated on Y``."""
        return tuple(
            f"{name}: here {facts.get(name, 'unknown')}, "
            f"calibrated on {self.machine.get(name, 'unknown')}"
            for name in sorted({*facts, *self.machine})
            if facts.get(name) != self.machine.get(name)
        )

    def sigmas(self, scenario: Scenario) -> dict[str, dict[str, SigmaOf]]:
        """Probe label → metric → noise, for the probes that are still what was calibrated."""
        now = {probe.label: probe.content_hash() for probe in all_probes(scenario)}
        return {
            label: {name: SigmaOf(one.sigma, one.dof) for name, one in noise.metrics.items()}
            for label, noise in self.probes.items()
            if now.get(label) == noise.content
        }


def measured_noise(
    scenario: Scenario, machine: Machine
) -> Mapping[str, Mapping[str, SigmaOf]] | None:
    """The calibrated noise of `scenario` on `machine`: probe label → metric → noise.

    None where nothing was calibrated, or on a machine of other facts. A probe that has changed
    since is left out.

    Raises:
        InputError: the file is damaged.
    """
    found = stored_noise(scenario)
    if found is None or found.differences(machine.fingerprint()):
        return None
    return found.sigmas(scenario)


def stored_noise(scenario: Scenario) -> Calibrated | None:
    """The calibration of `scenario` on whatever machine it was made; None: there is none.

    Raises:
        InputError: the file is damaged.
    """
    path = noise_file(scenario)
    return read(path) if path.is_file() else None


def noise_file(scenario: Scenario) -> Path:
    """Where the calibration of `scenario` belongs."""
    own = scenario.gate.reference == "self"
    folder = machine_store() if own else baselines_folder()
    return require_own(folder / FOLDER / scenario.hardware.label / f"{scenario.id}.json")


def save(calibrated: Calibrated, path: Path) -> None:
    """Write a calibration; `path` is as `noise_file` gives it."""
    plain = to_plain(calibrated)
    del plain["file"]
    with alone_in(path.parents[2]):
        write_json(path, {"schema_version": SCHEMA_VERSION, **plain})


def read(path: Path) -> Calibrated:
    """Read one calibration file.

    Raises:
        InputError: not JSON, of an unknown schema version, not as the schema says, in the wrong
            place, or with a noise that its own values do not give.
    """
    plain = read_stored(
        path, what="calibration", schema="noise.schema.json", versions=[SCHEMA_VERSION], hint=_HINT
    )
    found = replace(from_plain(Calibrated, plain), file=path)
    check_place(path, {"hardware": found.hardware, "scenario": found.scenario})
    for label, noise in found.probes.items():
        for metric, one in noise.metrics.items():
            _check_spread(metric, one, path, f"probes.{label}.metrics.{metric}")
    return found


def _check_spread(metric: str, stored: Spread, path: Path, field: str) -> None:
    """Refuse a spread that is not what its values give."""
    try:
        found = spread(metric, stored.values)
    except InputError as error:
        raise InputError(
            error.problem, file=path, field=f"{field}.values", found=error.found, hint=_HINT
        ) from None
    for name in ("between", "within", "sigma", "dof"):
        said, computed = getattr(stored, name), getattr(found, name)
        same = said is computed or (
            said is not None
            and computed is not None
            and math.isclose(said, computed, rel_tol=1e-6, abs_tol=1e-12)
        )
        if not same:
            raise InputError(
                "not what the stored values give: the file was edited",
                file=path,
                field=f"{field}.{name}",
                found=said,
                expected="nothing" if computed is None else f"{computed:.9g}",
                hint=_HINT,
            )
