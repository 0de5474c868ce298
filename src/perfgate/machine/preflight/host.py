"""Host: room, limits, ports, date and settings of this machine, and what a run needs of them.

Read from the system itself, then judged by one rule a question.
"""

import datetime
import os
import resource
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from perfgate.machine.nvml import Unreadable, known
from perfgate.machine.preflight.check import (
    Case,
    Check,
    Finding,
    Judge,
    Need,
    checked,
    finding_of,
    gib,
)

_GIB = 2**30
# Logs, results and evidence of one scenario's starts are tens to hundreds of MiB.
LEAST_FREE = 1 * _GIB
WELL_FREE = 5 * _GIB
# Docker's default; the documents' `docker run` lines have --ipc=host, which gives the host's.
DOCKERS_SHM = 64 * 2**20
WELL_SHM = 1 * _GIB  # what NCCL's troubleshooting page gives a container
SPARE_FILES = 1024  # beside the requests: libraries, weights, logs
SPARE_PORTS = 100  # servers, ranks, and the connections of the programs themselves
FIRST_YEAR = 2026  # perfgate is not older
_SHM = Path("/dev/shm")  # noqa: S108 - the system's own
_PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_SOCKETS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_NUMA = Path("/proc/sys/kernel/numa_balancing")
_CPUS = Path("/sys/devices/system/cpu")


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
        shm: bytes of /dev/shm in all, and free.
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
    shm: tuple[int, int] | Unreadable
    open_files: int | None
    open_files_most: int | None
    locked_bytes: int | None
    ports: Ports | Unreadable
    year: int
    unjudged: Mapping[str, str]


def judge_host(host: HostFacts, need: Need) -> tuple[Check, ...]:
    """All that applies to what is needed."""
    facts = {"well_free": gib(WELL_FREE), "well_shm": gib(WELL_SHM), "first_year": FIRST_YEAR}
    findings = {name: finding_of(judge, Case(host, need)) for name, judge in HOST_RULES.items()}
    return tuple(checked(name, one, **facts) for name, one in findings.items() if one is not None)


def _shared_memory(case: Case[HostFacts]) -> Finding | None:
    """NCCL and MPI exchange data of the ranks of one machine there."""
    if case.need.gpus < 2:
        return None
    size, free = known(case.subject.shm)
    text = f"{gib(free)} of {gib(size)} free in /dev/shm"
    if free <= DOCKERS_SHM:
        return Finding("failed", text)
    return Finding("warning" if free < WELL_SHM else "ok", text)


def _open_files(case: Case[HostFacts]) -> Finding:
    """Each request in flight is an open file of the client and of the server."""
    wanted = case.need.connections + SPARE_FILES
    expected = f"{wanted:,}: {case.need.connections:,} requests at once and {SPARE_FILES:,} more"
    soft, hard = case.subject.open_files, case.subject.open_files_most
    if hard is not None and hard < case.need.connections:
        return Finding("failed", f"{hard:,} at most", expected, f"ulimit -Hn {wanted} as root")
    text = "no limit" if soft is None else f"{soft:,} for a process"
    is_low = soft is not None and soft < wanted
    return Finding("warning" if is_low else "ok", text, expected, f"ulimit -n {wanted}")


def _locked_memory(case: Case[HostFacts]) -> Finding | None:
    """Memory that other GPUs or network cards read from must stay where it is."""
    if case.need.gpus < 2:
        return None
    if case.subject.locked_bytes is None:
        return Finding("ok", "no limit")
    return Finding("warning", f"{gib(case.subject.locked_bytes)} for a process")


def _ports(case: Case[HostFacts]) -> Finding:
    """Connections take their ports from the range that servers' free ports come from, too."""
    found, wanted = known(case.subject.ports), case.need.connections + SPARE_PORTS
    free = found.last - found.first + 1 - found.used
    text = f"{free:,} free of {found.first}-{found.last}"
    return Finding("failed" if free < wanted else "ok", text, f"{wanted:,} free")


def _date(case: Case[HostFacts]) -> Finding:
    """Certificates, waivers and the order of baselines depend on it."""
    is_sane = FIRST_YEAR <= case.subject.year <= FIRST_YEAR + 50
    return Finding("ok" if is_sane else "failed", f"the year {case.subject.year}")


def _model_cache(case: Case[HostFacts]) -> Finding | None:
    """Room for the part of the weights that would still have to be fetched."""
    if case.subject.hub is None:
        return None
    free, held = known(case.subject.hub.free_bytes), case.subject.hub.held_bytes
    text = f"{gib(free)} free in {case.subject.hub.folder}, {gib(held)} of the model"
    if case.need.weights_bytes is None:
        return Finding("unknown", f"{text}; the size of the model is unknown")
    missing = max(0, case.need.weights_bytes - held)
    expected = f"room for the missing {gib(missing)} of the weights"
    return Finding("failed" if free < missing else "ok", text, expected)


def _room(disk: Disk) -> Finding:
    free = known(disk.free_bytes)
    text = f"{gib(free)} free in {disk.folder}"
    if free < LEAST_FREE:
        return Finding("failed", text)
    return Finding("warning" if free < WELL_FREE else "ok", text)


# In the order in which they are reported.
HOST_RULES: Mapping[str, Judge[HostFacts]] = {
    "run folder": lambda case: _room(case.subject.run_folder),
    "own store": lambda case: _room(case.subject.store),
    "shared memory": _shared_memory,
    "open files": _open_files,
    "locked memory": _locked_memory,
    "ports": _ports,
    "date": _date,
    "model cache": _model_cache,
}


def look_at_host(run_folder: Path, store: Path, model: str | None) -> HostFacts:
    """This machine as it is now.

    Args:
        run_folder: where the run's files go; it need not exist yet.
        store: the machine's own store.
        model: public name of a model that would come from the hub; None: it does not.
    """
    hub = hub_cache()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return HostFacts(
        run_folder=_disk(run_folder),
        store=_disk(store),
        hub=None if model is None else _disk(hub, held_bytes=_held(hub, model)),
        shm=_usage(_SHM),
        open_files=_limit(soft),
        open_files_most=_limit(hard),
        locked_bytes=_limit(resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]),
        ports=_read_ports(),
        year=datetime.datetime.now(datetime.UTC).year,
        unjudged={"cpu governor": _governor(), "swap": _swap(), "numa balancing": _numa()},
    )


def hub_cache() -> Path:
    """Where models from the hub are kept (huggingface_hub's own rule)."""
    setting = os.environ.get("HF_HUB_CACHE")
    if setting:
        return Path(setting).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or f"{cache}/huggingface"
    return Path(home).expanduser() / "hub"


def _limit(value: int) -> int | None:
    return None if value == resource.RLIM_INFINITY else value


def _disk(folder: Path, held_bytes: int = 0) -> Disk:
    usage = _usage(folder)
    return Disk(_short(folder), usage if isinstance(usage, Unreadable) else usage[1], held_bytes)


def _short(folder: Path) -> Path:
    """As a person in the working folder names it."""
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


def _usage(folder: Path) -> tuple[int, int] | Unreadable:
    """Bytes in all and free; of the nearest folder above that exists."""
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    try:
        usage = shutil.disk_usage(there)
    except OSError as error:
        return Unreadable(f"{there}: {error.strerror}")
    return usage.total, usage.free


def _held(hub: Path, model: str) -> int:
    """Bytes of the model that are there; files are named by content, so each counts once."""
    blobs = hub / f"models--{model.replace('/', '--')}" / "blobs"
    try:
        return sum(file.stat().st_size for file in blobs.iterdir() if file.is_file())
    except OSError:
        return 0


def _read_ports() -> Ports | Unreadable:
    try:
        first, last = map(int, _PORT_RANGE.read_text().split())
        used = {port for file in _SOCKETS if file.exists() for port in _in_use(file.read_text())}
    except (OSError, ValueError) as error:
        return Unreadable(str(error))
    return Ports(first, last, sum(first <= port <= last for port in used))


def _in_use(table: str) -> set[int]:
    """Local ports of a table of sockets (proc_net(5)): ``0100007F:1F90`` in the second column."""
    rows = [line.split() for line in table.splitlines()[1:]]
    return {int(row[1].rpartition(":")[2], 16) for row in rows if len(row) > 1}


def _governor() -> str:
    files = sorted(_CPUS.glob("cpu[0-9]*/cpufreq/scaling_governor"))
    try:
        names = sorted({file.read_text().strip() for file in files})
    except OSError as error:
        return f"not readable: {error.strerror}"
    return ", ".join(names) or "the system names none"


def _swap() -> str:
    swap = psutil.swap_memory()
    if not swap.total:
        return "none"
    return f"{swap.used / 2**30:.1f} of {swap.total / 2**30:.1f} GiB used"


def _numa() -> str:
    try:
        setting = _NUMA.read_text().strip()
    except OSError:
        return "the system has no such setting"
    return {"0": "off", "1": "on"}.get(setting, setting)
