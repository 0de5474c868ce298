"""Calibrated noise: the files of earlier calibrations, of one scenario each, as noise history.

``baselines/noise/<hardware>/<scenario>.json``. Nothing writes them any more: a calibration is a run
of the noise history (`perfgate.baselines.noise_history`).
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from perfgate.baselines.noise_history import (
    FOLDER,
    MOST_STARTS,
    NoiseRun,
    NoiseSeries,
    is_learnt_from,
    machine_of,
)
from perfgate.baselines.stored_json import check_place, read_stored
from perfgate.core.errors import InputError
from perfgate.core.paths import baselines_folder, machine_store, require_own

SCHEMA_VERSION = 1
_HINT = "restore the file from git, or delete it and calibrate again"


def read_older(hardware: str, *, own: bool) -> tuple[list[NoiseRun], list[str]]:
    """All earlier calibrations of a hardware, and why others could not be read.

    Raises:
        InputError: the folder could be another user's.
    """
    store = machine_store() if own else baselines_folder()
    folder = require_own(store / FOLDER / hardware)
    found, unread = [], []
    for path in sorted(folder.glob("*.json")):
        if path.name.startswith("."):
            continue
        try:
            seen = require_own(path).stat()
            found.append(_read_once(path, seen.st_mtime_ns, seen.st_size, own))
        except InputError as error:
            unread.append(f"{path.name}: {error.problem}")
        except OSError as error:
            unread.append(f"{path.name}: {error.strerror}")
    return found, unread


@lru_cache(maxsize=64)
def _read_once(path: Path, _mtime_ns: int, _size: int, own: bool) -> NoiseRun:
    return read(path, own=own)


def read(path: Path, *, own: bool = False) -> NoiseRun:
    """Read one earlier calibration: one session, each repeat on a start a series of its own.

    Args:
        path: the file.
        own: whether it is in the store of a machine that is its own reference.

    Raises:
        InputError: not JSON, of an unknown schema version, not as the schema says, or in the wrong
            place.
    """
    plain = read_stored(
        path, what="calibration", schema="noise.schema.json", versions=[SCHEMA_VERSION], hint=_HINT
    )
    check_place(path, {"hardware": plain["hardware"], "scenario": plain["scenario"]})
    series = [
        NoiseSeries(
            scenario=plain["scenario"],
            probe=label,
            content=probe["content"],
            build=plain["engine"]["commit"],
            values=values,
            repeat=repeat,
            machine=machine_of(plain["machine"]),
            own=own,
        )
        for label, probe in plain["probes"].items()
        for repeat in range(1, plain["repeats"] + 1)
        if (values := _of_repeat(probe["metrics"], repeat))
    ]
    run, at = plain["run"], plain["at"]
    return NoiseRun(plain["hardware"], run, at, "calibration", tuple(series), path)


def _of_repeat(metrics: Mapping[str, Any], repeat: int) -> dict[str, tuple[float, ...]]:
    """Metric → the values of one repeat, start by start."""
    found = {
        name: tuple(float(start[repeat - 1]) for start in one["values"] if len(start) >= repeat)
        for name, one in metrics.items()
        if is_learnt_from(name)
    }
    return {name: values[:MOST_STARTS] for name, values in found.items() if values}
