"""Facts: what the probes read of a machine, as plain values. Nothing is judged here.

A fact that could not be read is an `Unreadable` with the reason, never a made-up value.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfgate.machine.reading import Unreadable


@dataclass(frozen=True)
class Rows:
    """Rows of a GPU's memory that were replaced by spare ones.

    Attributes:
        replaced: how many, for whatever reason.
        pending: whether more wait for a reset of the GPU.
        failed: whether the spare ones ever ran out.
    """

    replaced: int
    pending: bool
    failed: bool


@dataclass(frozen=True)
class GpuFacts:
    """One GPU, as NVML tells it.

    Attributes:
        label: its number as nvidia-smi counts.
        name: its model.
        memory_bytes: all of its memory …
        free_bytes: … and what nobody holds.
        processes: those that compute on it: ``pid 4711 (python)``.
        is_split: whether it is divided (MIG).
        uncorrected: memory errors since the driver was loaded that ECC could not correct …
        corrected: … and those that it could.
        rows: replaced rows.
        retired_pending: whether pages wait to be retired (GPUs before Ampere).
        sm_mhz: clock of its processors now …
        sm_mhz_most: … and the highest that it can have.
        asked_mhz: clock that applications are given …
        asked_mhz_default: … and what that is if nobody changed it.
        reasons: bits that say why the clock is what it is
        (`perfgate.machine.conditions.clock_reasons`). power_w: its power limit …
        power_w_default: … and the one that it comes with.
        is_persistent: whether the driver keeps it ready while nobody uses it.
        degrees: temperature in °C.
        margin: how many °C are left until it slows down.
        links: whether each of its NVLinks is up; empty: it has none.
    """

    label: str
    name: str
    memory_bytes: int | Unreadable
    free_bytes: int | Unreadable
    processes: tuple[str, ...] | Unreadable
    is_split: bool | Unreadable
    uncorrected: int | Unreadable
    corrected: int | Unreadable
    rows: Rows | Unreadable
    retired_pending: bool | Unreadable
    sm_mhz: int | Unreadable
    sm_mhz_most: int | Unreadable
    asked_mhz: int | Unreadable
    asked_mhz_default: int | Unreadable
    reasons: int | Unreadable
    power_w: float | Unreadable
    power_w_default: float | Unreadable
    is_persistent: bool | Unreadable
    degrees: int | Unreadable
    margin: int | Unreadable
    links: tuple[bool, ...] | Unreadable


@dataclass(frozen=True)
class GpuLook:
    """The GPUs that a scenario would use here.

    Attributes:
        gpus: those of its model, in the order in which programs see them, at most as many as asked.
        names: models of all GPUs that may be used here.
        driver: version of the driver.
        cuda: newest CUDA that the driver can serve.
    """

    gpus: tuple[GpuFacts, ...]
    names: tuple[str, ...]
    driver: str | Unreadable
    cuda: str | Unreadable


@dataclass(frozen=True)
class Disk:
    """A folder that must have room.

    Attributes:
        folder: the folder, which need not exist yet.
        free_bytes: what this user may still write there.
        held_bytes: of a model's cache: what is there of the model already.
    """

    folder: Path
    free_bytes: int | Unreadable
    held_bytes: int = 0


@dataclass(frozen=True)
class Ports:
    """The range that the system takes ports from by itself, both ends included; those in use."""

    first: int
    last: int
    used: int


@dataclass(frozen=True)
class HostFacts:
    """This machine without its GPUs. A limit of None is none at all.

    Attributes:
        run_folder: where the run's files go.
        store: the machine's own store: baselines, tokenizers, synthetic datasets.
        hub: cache of models that are called by their public names; None: no model comes from it.
        shm_bytes: size of /dev/shm …
        shm_free_bytes: … and what is free of it.
        open_files: soft limit of a process …
        open_files_most: … and the hard one, up to which a program may raise it.
        locked_bytes: memory that a process may lock.
        ports: ports for connections.
        year: the year by the machine's clock.
        unjudged: further facts that change numbers and are not judged, by name.
    """

    run_folder: Disk
    store: Disk
    hub: Disk | None
    shm_bytes: int | Unreadable
    shm_free_bytes: int | Unreadable
    open_files: int | None
    open_files_most: int | None
    locked_bytes: int | None
    ports: Ports | Unreadable
    year: int
    unjudged: Mapping[str, str]
