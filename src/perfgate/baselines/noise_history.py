"""Noise history: how far starts of one build differed in a run, one file a run.

``<store>/noise/<hardware>/history/<run>.json``. A person's `perfgate baseline record` puts a run's
file beside the committed baselines; what belongs to one machine alone is in that machine's own
store. No build is ever compared with anything in it. Any undisturbed start counts, whatever the
verdict was, controls included: a build that is slower is as noisy. Numbers of mock programs, and
of settings that were injected, never count.
"""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from perfgate.baselines.store_lock import alone_in
from perfgate.baselines.stored_json import (
    check_hash,
    check_place,
    read_stored,
    with_hash,
)
from perfgate.core.errors import InputError
from perfgate.core.files.durable_files import write_json
from perfgate.core.files.paths import baselines_folder, machine_store, require_own
from perfgate.core.files.remembered import remembered
from perfgate.core.metrics import METRICS
from perfgate.core.plain import from_plain, to_plain
from perfgate.core.redaction import mask
from perfgate.runs.record import MeasurementRecord
from perfgate.runs.run_folder import RunFolder

SCHEMA_VERSION = 3
FOLDER, HISTORY = "noise", "history"

MOST_FILES = 200  # of one hardware that are read: the newest by name, which begins with the time
MOST_SERIES = 2000  # of one file
MOST_STARTS = 64  # of one series

_HINT = "delete the file: the noise is then learnt from the others"
_NAME = re.compile(r"[\w.+-]{1,200}")


@dataclass(frozen=True)
class NoiseSeries:
    """The starts of one build in one session, as one test saw them: what noise is learnt from.

    Attributes:
        scenario: the scenario's id.
        probe: the probe's label.
        content: short hash of all facts that must be equal for values to be compared.
        build: the engine commit.
        values: metric → one value per start, in the order measured, in the metric's unit.
        machine: the machine's processor and number of cores, where they are known.
        node: the node, or nodes, that the engine ran on; empty: not known.
        own: whether the machine is its own reference, so that no other learns from it.
    """

    scenario: str
    probe: str
    content: str
    build: str
    values: Mapping[str, tuple[float, ...]]
    machine: Mapping[str, str] = field(default_factory=dict)
    node: str = ""
    own: bool = False


@dataclass(frozen=True)
class NoiseRun:
    """All that one run showed of the noise of one hardware.

    Attributes:
        hardware: the hardware's label.
        run: the run's id, also the file's name.
        at: when its first start began, ISO 8601, UTC: a run's file is the same whoever writes it.
        series: what it saw; only what happened within its session counts.
        file: where it was read from.
    """

    hardware: str
    run: str
    at: str
    series: tuple[NoiseSeries, ...]
    file: Path | None = field(default=None, compare=False)


def history_folder(hardware: str, *, own: bool) -> Path:
    """Where the history of a hardware is: beside the baselines, or the machine's own."""
    store = machine_store() if own else baselines_folder()
    return require_own(store / FOLDER / hardware / HISTORY)


def save(run: NoiseRun, *, own: bool, store: Path | None = None) -> Path:
    """Write the file of one run; that of the same run is replaced.

    Only what noise can be learnt from is kept; of secrets that a name holds, the mask.

    Args:
        run: what it showed.
        own: whether it belongs into the machine's own store.
        store: the folder of the store; None: the suite's, or the machine's.

    Raises:
        InputError: the run's name cannot be a file's.
        RunError: it cannot be written.
    """
    if not _NAME.fullmatch(run.run) or run.run.startswith("."):
        raise InputError(
            "cannot be the name of a file of the noise history",
            found=repr(run.run),
            expected="a run whose folder has letters, digits and . _ + - in its name",
        )
    folder = history_folder(run.hardware, own=own)
    if store is not None:
        folder = store / FOLDER / folder.parent.name / folder.name
    path = folder / f"{run.run}.json"
    kept = replace(run, series=tuple(map(_bounded, run.series[:MOST_SERIES])))
    plain = to_plain(kept)
    del plain["file"]
    with alone_in(path.parents[3]):
        write_json(path, with_hash({"schema_version": SCHEMA_VERSION, **plain}))
    return path


def _bounded(series: NoiseSeries) -> NoiseSeries:
    values = {
        name: tuple(map(float, found[:MOST_STARTS]))
        for name, found in series.values.items()
        if is_learnt_from(name)
    }
    return replace(
        series,
        values=values,
        machine={name: mask(text) for name, text in series.machine.items()},
        node=mask(series.node)[:500],
        build=mask(series.build),
    )


def is_learnt_from(metric: str) -> bool:
    """Whether a metric has noise of its own: scores have that of their questions."""
    return metric in METRICS and METRICS[metric].family.sigma > 0


def read(path: Path) -> NoiseRun:
    """Read the file of one run.

    Raises:
        InputError: not JSON, too large, of an unknown schema version, not as the schema says, in
            the wrong place, or edited.
    """
    plain = read_stored(
        path,
        what="noise history",
        schema="noise_history.schema.json",
        version=SCHEMA_VERSION,
        hint=_HINT,
    )
    check_place(
        path, {"hardware": str(plain["hardware"]), HISTORY: HISTORY, "run": str(plain["run"])}
    )
    check_hash(path, plain, "noise history")
    return replace(from_plain(NoiseRun, plain, lax=True), file=path)


def read_all(hardware: str, *, own: bool) -> tuple[list[NoiseRun], list[str]]:
    """All runs of a hardware's history, by name, and why others could not be read.

    Raises:
        InputError: the folder could be another user's.
    """
    folder = history_folder(hardware, own=own)
    found, unread = [], []
    names = sorted(one for one in folder.glob("*.json") if not one.name.startswith("."))
    for path in names[-MOST_FILES:]:
        try:
            found.append(_read(require_own(path)))
        except InputError as error:
            unread.append(f"{path.name}: {error.problem}")
    return found, unread


@remembered(2 * MOST_FILES)
def _read(path: Path) -> NoiseRun:
    return read(path)


def content_of(fingerprint: Mapping[str, str]) -> str:
    """Short hash of the facts that must be equal for two measurements to be compared."""
    text = json.dumps(dict(fingerprint), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def machine_of(fingerprint: Mapping[str, str]) -> dict[str, str]:
    """Those of the facts that tell one kind of machine without a GPU from another."""
    return {name: fingerprint[name] for name in ("cpu", "cores") if name in fingerprint}


def observe(folder: RunFolder) -> list[NoiseRun]:
    """What a run showed, one value for each hardware that it measured on; empty: nothing.

    Raises:
        InputError: no run is there, or its records are damaged or cannot be trusted.
    """
    facts = folder.facts()
    if facts.get("synthetic") is not False or rehearsal_signs(folder):
        return []
    grouped: dict[tuple[str, ...], list[MeasurementRecord]] = defaultdict(list)
    for line in folder.records_of(MeasurementRecord):
        if not (line.disturbed or line.injected or line.synthetic):
            grouped[_key(line)].append(line)
    of_hardware: dict[str, list[NoiseSeries]] = defaultdict(list)
    for (hardware, *_), lines in grouped.items():
        one = _series(lines)
        if one.values:
            of_hardware[hardware].append(one)
    began = min((str(line.started) for lines in grouped.values() for line in lines), default="")
    return [
        NoiseRun(hardware, str(facts["id"]), began, tuple(series))
        for hardware, series in of_hardware.items()
    ]


def keep_noise(runs: Sequence[Path], *, store: Path | None = None) -> list[Path]:
    """Add what runs showed to the noise history, beside the baselines; whatever their verdicts.

    What a machine measured that is its own reference goes into its own store.

    Args:
        runs: their folders.
        store: the folder of another store of baselines; what is the machine's own is then left out.

    Returns:
        the files.

    Raises:
        InputError: not a run, or one whose records cannot be trusted.
        RunError: it cannot be written.
    """
    observed = [one for run in runs for one in observe(RunFolder(run.resolve()))]
    kept = []
    for one in observed:
        for own in (False,) if store else (False, True):
            series = tuple(each for each in one.series if each.own == own)
            if series:
                kept.append(save(replace(one, series=series), own=own, store=store))
    return kept


def rehearsal_signs(folder: RunFolder) -> list[str]:
    """What says that mock programs made a run's numbers, beside ``synthetic`` in its facts."""
    facts = folder.facts()
    signs = [str(one) for one in facts.get("arguments", ()) if str(one).startswith("--rehearse")]
    signs += ["rehearse_fault"] if facts.get("rehearse_fault") is not None else []
    return signs + (["the folder rehearsal"] if (folder.path / "rehearsal").exists() else [])


def _key(line: MeasurementRecord) -> tuple[str, ...]:
    """What the starts of one series have in common, their hardware first."""
    return (
        line.hardware,
        line.scenario,
        line.probe,
        content_of(line.fingerprint),
        line.engine.commit,
        line.role,
        _node_of(line.facts),
        str(line.machine_bound),
    )


def _series(lines: Sequence[MeasurementRecord]) -> NoiseSeries:
    ordered = sorted(lines, key=lambda line: (line.started, line.start))
    first = ordered[0]
    return NoiseSeries(
        scenario=first.scenario,
        probe=first.probe,
        content=content_of(first.fingerprint),
        build=first.engine.commit,
        values=common_values([line.metrics for line in ordered]),
        machine=machine_of(first.fingerprint),
        node=_node_of(first.facts),
        own=first.machine_bound,
    )


def common_values(starts: Sequence[Mapping[str, float]]) -> dict[str, tuple[float, ...]]:
    """Metric → its values, in order, of every metric that all starts gave and that has noise."""
    return {
        name: tuple(float(metrics[name]) for metrics in starts)
        for name in starts[0]
        if is_learnt_from(name) and all(name in metrics for metrics in starts)
    }


def _node_of(facts: Mapping[str, Any]) -> str:
    """The node, or nodes, that a measurement's engine ran on; empty: perfgate's own machine."""
    for launcher, names in (("slurm", "nodes"), ("mpirun", "hosts")):
        details = facts.get(launcher)
        nodes = details.get(names) if isinstance(details, Mapping) else None
        if isinstance(nodes, list):
            return ",".join(sorted(map(str, nodes)))
    return ""
