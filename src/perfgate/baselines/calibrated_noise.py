"""Calibrated noise: what a calibration found out about one scenario on one machine, as a file.

``baselines/noise/<hardware>/<scenario>.json`` is committed by a person; a scenario that measures
its own reference has its file in the machine's own store. The gate takes the noise from there,
where the machine's facts are the same, and else the prior of the metric's family.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from perfgate.baselines.noise_spread import Spread, spread
from perfgate.core.durable_files import read_json, write_json
from perfgate.core.errors import InputError
from perfgate.core.paths import machine_store, repository
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
    folder = machine_store() if own else repository() / "baselines"
    return folder / FOLDER / scenario.hardware.label / f"{scenario.id}.json"


def save(calibrated: Calibrated, path: Path) -> None:
    """Write a calibration."""
    plain = asdict(calibrated)
    del plain["file"]
    write_json(path, {"schema_version": SCHEMA_VERSION, **plain})


def read(path: Path) -> Calibrated:
    """Read one calibration file.

    Raises:
        InputError: not JSON, of an unknown schema version, not as the schema says, in the wrong
            place, or with a noise that its own values do not give.
    """
    plain = read_json(path, what="calibration", hint=_HINT)
    version = plain.get("schema_version") if isinstance(plain, dict) else None
    if version != SCHEMA_VERSION:
        raise InputError(
            "calibration of an unknown schema version",
            file=path,
            field="schema_version",
            found=version,
            expected=str(SCHEMA_VERSION),
            hint="update perfgate" if isinstance(version, int) and version > 1 else _HINT,
        )
    error = best_match(_validator(_schema()).iter_errors(plain))
    if error is not None:
        raise InputError(
            error.message[:300],
            file=path,
            field=".".join(map(str, error.absolute_path)) or None,
            hint=_HINT,
        )
    place = (plain["hardware"], plain["scenario"])
    if (path.resolve().parent.name, path.stem) != place:
        raise InputError(
            "the file does not lie where its content belongs",
            file=path,
            found=f"{path.resolve().parent.name}/{path.stem}",
            expected="/".join(place),
        )
    probes = {
        label: ProbeNoise(
            noise["content"],
            {
                name: _spread(name, one, path, f"probes.{label}.metrics.{name}")
                for name, one in noise["metrics"].items()
            },
        )
        for label, noise in plain["probes"].items()
    }
    kept = {name: plain[name] for name in ("scenario", "hardware", "machine", "run", "at")}
    return Calibrated(
        **kept,
        engine=EngineBuild(**plain["engine"]),
        starts=plain["starts"],
        repeats=plain["repeats"],
        probes=probes,
        file=path,
    )


def _spread(metric: str, plain: Mapping[str, Any], path: Path, field: str) -> Spread:
    """The stored spread, if it is what its values give."""
    try:
        found = spread(metric, plain["values"])
    except InputError as error:
        raise InputError(
            error.problem, file=path, field=f"{field}.values", found=error.found, hint=_HINT
        ) from None
    for name in ("between", "within", "sigma", "dof"):
        told, computed = plain[name], getattr(found, name)
        same = told is computed or (
            told is not None
            and computed is not None
            and math.isclose(told, computed, rel_tol=1e-6, abs_tol=1e-12)
        )
        if not same:
            raise InputError(
                "not what the stored values give: the file was edited",
                file=path,
                field=f"{field}.{name}",
                found=told,
                expected="nothing" if computed is None else f"{computed:.9g}",
                hint=_HINT,
            )
    return found


def _schema() -> Path:
    return repository() / "baselines" / "noise.schema.json"


@cache
def _validator(schema: Path) -> Draft202012Validator:
    return Draft202012Validator(read_json(schema, what="schema"))
