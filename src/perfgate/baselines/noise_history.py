"""Noise history: what sessions showed of how far starts of one build differ, one file a run.

``<store>/noise/<hardware>/history/<run>.json``. A person's `perfgate baseline record` puts a run's
file beside the committed baselines; what belongs to one machine alone is in that machine's own
store. No build is ever compared with anything in it. How it becomes noise:
`perfgate.baselines.hardware_noise`.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from perfgate.baselines.store_lock import alone_in
from perfgate.baselines.stored_json import check_hash, check_place, read_stored, with_hash
from perfgate.core.durable_files import write_json
from perfgate.core.errors import InputError
from perfgate.core.metrics import METRICS
from perfgate.core.paths import baselines_folder, machine_store, require_own
from perfgate.core.plain import from_plain, to_plain
from perfgate.core.redaction import mask

SCHEMA_VERSION = 2
FOLDER, HISTORY = "noise", "history"

MOST_FILES = 200  # of one hardware that are read: the newest by name, which begins with the time
MOST_SERIES = 2000  # of one file
MOST_STARTS = 64  # of one series

_HINT = "delete the file: the noise is then learnt from the others"
_NAME = re.compile(r"[\w.+-]{1,200}")


@dataclass(frozen=True)
class NoiseSeries:
    """The starts of one build in one session, as one probe saw them.

    Attributes:
        scenario: the scenario's id.
        probe: the probe's label.
        content: short hash of all facts that must be equal for values to be compared.
        build: the engine commit.
        values: metric → one value per start, in the order measured, in the metric's unit.
        machine: the machine's processor and number of cores, where they are known.
        node: the node, or nodes, that the engine ran on; empty: not known.
        own: whether the machine is its own reference, so that no other learns from it.
        offsets: metric → how far the session's level lay above the baseline's, on the log scale,
            positive is worse; only where the build is no worse than the baseline.
    """

    scenario: str
    probe: str
    content: str
    build: str
    values: Mapping[str, tuple[float, ...]]
    machine: Mapping[str, str] = field(default_factory=dict)
    node: str = ""
    own: bool = False
    offsets: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class NoiseRun:
    """All that one run showed of the noise of one hardware.

    Attributes:
        hardware: the hardware's label.
        run: the run's id, also the file's name.
        at: when it was written, ISO 8601, UTC.
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
    offsets = {name: one for name, one in series.offsets.items() if name in values}
    return replace(
        series,
        values=values,
        offsets={name: one for name, one in offsets.items() if math.isfinite(one)},
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
            found.append(_unchanged(require_own(path)))
        except InputError as error:
            unread.append(f"{path.name}: {error.problem}")
    return found, unread


def _unchanged(path: Path) -> NoiseRun:
    try:
        seen = path.stat()
    except OSError:  # gone meanwhile: reading says so
        return read(path)
    return _read_once(path.absolute(), seen.st_mtime_ns, seen.st_size, seen.st_ino)


@lru_cache(maxsize=2 * MOST_FILES)
def _read_once(path: Path, _mtime_ns: int, _size: int, _inode: int) -> NoiseRun:
    return read(path)


def content_of(fingerprint: Mapping[str, str]) -> str:
    """Short hash of the facts that must be equal for two measurements to be compared."""
    text = json.dumps(dict(fingerprint), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def machine_of(fingerprint: Mapping[str, str]) -> dict[str, str]:
    """Those of the facts that tell one kind of machine without a GPU from another."""
    return {name: fingerprint[name] for name in ("cpu", "cores") if name in fingerprint}
