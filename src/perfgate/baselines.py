"""Baselines: accepted measurements of one scenario, on one hardware, at one engine commit.

One file a commit, ``<store>/<hardware>/<scenario>/<engine-commit>.json``, so that branches merge
without conflict. The suite's own store is `baselines/`; a machine's own numbers live in a second,
git-ignored store of the same format. A baseline moves only when a person promotes it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from perfgate.durable import read_json, write_json
from perfgate.engines.base import EngineBuild
from perfgate.errors import InputError
from perfgate.measurement import Measurement
from perfgate.paths import machine_store, repository

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class BaselineRun:
    """One fresh start's part in a baseline.

    Attributes:
        run: id of the perfgate run it comes from.
        started: when that start began, ISO 8601 with time zone.
        metrics: canonical metric name → value.
        answers: accuracy metric → question key → answered correctly.
    """

    run: str
    started: str
    metrics: Mapping[str, float]
    answers: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """A probe's part of a baseline: the facts that must be equal, and one run per fresh start."""

    fingerprint: Mapping[str, str]
    runs: tuple[BaselineRun, ...]

    def values(self, metric: str) -> list[float]:
        """The metric's values, one per fresh start that has it."""
        return [run.metrics[metric] for run in self.runs if metric in run.metrics]

    def differences(self, fingerprint: Mapping[str, str]) -> tuple[str, ...]:
        """The facts in which a measurement differs, as ``name: here X, baseline Y``."""
        names = sorted({*self.fingerprint, *fingerprint})
        return tuple(
            f"{name}: measured {fingerprint.get(name, 'unknown')}, "
            f"baseline {self.fingerprint.get(name, 'unknown')}"
            for name in names
            if fingerprint.get(name) != self.fingerprint.get(name)
        )


@dataclass(frozen=True)
class Baseline:
    """All that one file holds.

    Attributes:
        scenario: the scenario's id.
        hardware: the hardware's label, as in `Hardware.label`.
        engine: the engine build that was measured.
        accepted_by: the person, or "self" for a machine's own reference.
        accepted_at: ISO 8601 date and time.
        reason: why these numbers are right.
        entries: probe label → its runs.
        file: where it was read from.
    """

    scenario: str
    hardware: str
    engine: EngineBuild
    accepted_by: str
    accepted_at: str
    reason: str
    entries: Mapping[str, Entry]
    file: Path | None = field(default=None, compare=False)

    def merged(self, other: "Baseline") -> "Baseline":
        """The same commit's baseline with the other's entries in place of its own."""
        return replace(other, entries={**self.entries, **other.entries})


def as_run(measurement: Measurement, run: str, started: str) -> BaselineRun:
    """A measurement as one run of a baseline."""
    return BaselineRun(run, started, dict(measurement.metrics), dict(measurement.answers))


class Store:
    """A folder of baselines."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, hardware: str, scenario: str, commit: str) -> Path:
        """The file of one commit's baseline."""
        for part in (hardware, scenario, commit):
            if not re.fullmatch(r"[\w.+-]+", part) or part.startswith("."):
                raise InputError(
                    "cannot be part of a baseline's file name",
                    found=repr(part),
                    expected="letters, digits and . _ + -",
                )
        return self.folder / hardware / scenario / f"{commit}.json"

    def list(self) -> list[Path]:
        """All baseline files, sorted."""
        return sorted(
            path for path in self.folder.glob("*/*/*.json") if not path.name.startswith(".")
        )

    def choose(self, hardware: str, scenario: str, commit: str) -> Baseline | None:
        """The baseline to compare with: that of `commit` itself, else the newest accepted one."""
        exact = self.path(hardware, scenario, commit)
        if exact.is_file():
            return read(exact)
        found = [read(path) for path in sorted(exact.parent.glob("[!.]*.json"))]
        return max(found, key=lambda baseline: baseline.accepted_at, default=None)

    def save(self, baseline: Baseline) -> Path:
        """Write a baseline, keeping the same commit's other entries."""
        path = self.path(baseline.hardware, baseline.scenario, baseline.engine.commit)
        if path.is_file():
            baseline = read(path).merged(baseline)
        write_json(path, _to_plain(baseline))
        return path


def suite_store() -> Store:
    """The committed store."""
    return Store(repository() / "baselines")


def candidate_store() -> Store:
    """The store of what was recorded from runs and not yet accepted by a person."""
    return Store(machine_store() / "candidates")


def own_store() -> Store:
    """The store of this machine's own references."""
    return Store(machine_store() / "baselines")


@cache
def _validator(schema: Path) -> Draft202012Validator:
    return Draft202012Validator(read_json(schema, what="schema"))


def read(path: Path) -> Baseline:
    """Read one baseline file.

    Raises:
        InputError: not JSON, of a schema version this perfgate does not know, or not as the
            schema says.
    """
    hint = "restore the file from git, or record the baseline again"
    plain = read_json(path, what="baseline", hint=hint)
    version = plain.get("schema_version") if isinstance(plain, dict) else None
    if version != SCHEMA_VERSION:
        raise InputError(
            "baseline of an unknown schema version",
            file=path,
            field="schema_version",
            found=version,
            expected=str(SCHEMA_VERSION),
            hint="update perfgate" if isinstance(version, int) and version > 1 else hint,
        )
    validator = _validator(repository() / "baselines" / "baseline.schema.json")
    error = best_match(validator.iter_errors(plain))
    if error is not None:
        raise InputError(
            error.message[:300],
            file=path,
            field=".".join(str(part) for part in error.absolute_path) or None,
            hint=hint,
        )
    place = (plain["hardware"], plain["scenario"], plain["engine"]["commit"])
    folder = path.parent.resolve()
    if (folder.parent.name, folder.name, path.stem) != place:
        raise InputError(
            "the file does not lie where its content belongs",
            file=path,
            found="/".join((folder.parent.name, folder.name, path.stem)),
            expected="/".join(place),
        )
    return _from_plain(plain, path)


def _from_plain(plain: dict[str, Any], path: Path) -> Baseline:
    entries = {
        label: Entry(
            entry["fingerprint"],
            tuple(
                BaselineRun(
                    run["run"],
                    run["started"],
                    run["metrics"],
                    {
                        metric: {key: bool(right) for key, right in answers.items()}
                        for metric, answers in run.get("answers", {}).items()
                    },
                )
                for run in entry["runs"]
            ),
        )
        for label, entry in plain["entries"].items()
    }
    return Baseline(
        scenario=plain["scenario"],
        hardware=plain["hardware"],
        engine=EngineBuild(**plain["engine"]),
        accepted_by=plain["accepted"]["by"],
        accepted_at=plain["accepted"]["at"],
        reason=plain["accepted"]["reason"],
        entries=entries,
        file=path,
    )


def _to_plain(baseline: Baseline) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "scenario": baseline.scenario,
        "hardware": baseline.hardware,
        "engine": {
            "name": baseline.engine.name,
            "version": baseline.engine.version,
            "commit": baseline.engine.commit,
        },
        "accepted": {
            "by": baseline.accepted_by,
            "at": baseline.accepted_at,
            "reason": baseline.reason,
        },
        "entries": {
            label: {
                "fingerprint": dict(entry.fingerprint),
                "runs": [
                    {
                        "run": run.run,
                        "started": run.started,
                        "metrics": dict(run.metrics),
                        **(
                            {
                                "answers": {
                                    metric: {key: int(right) for key, right in answers.items()}
                                    for metric, answers in run.answers.items()
                                }
                            }
                            if run.answers
                            else {}
                        ),
                    }
                    for run in entry.runs
                ],
            }
            for label, entry in baseline.entries.items()
        },
    }
