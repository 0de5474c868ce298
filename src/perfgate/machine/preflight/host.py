"""Host: room, limits, ports, date and settings of this machine, and what a run needs of them.

Each rule reads what it judges from the system itself.
"""

import os
import resource
import shutil
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import psutil

from perfgate.machine.nvml import NotReadable
from perfgate.machine.preflight.check import Check, Finding, Need, gib, judged

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


def judge_host(
    need: Need, run_folder: Path, store: Path, model: str | None
) -> tuple[tuple[Check, ...], Mapping[str, str]]:
    """All that applies to what is needed; and what changes numbers and is not judged, by name.

    Args:
        need: what is needed.
        run_folder: where the run's files go; it need not exist yet.
        store: the machine's own store: baselines, tokenizers, synthetic datasets.
        model: public name of a model that would come from the hub; None: it does not.
    """
    several = need.gpus > 1
    rules = (
        ("run folder", True, partial(_room, run_folder)),
        ("own store", True, partial(_room, store)),
        ("shared memory", several, _shared_memory),
        ("open files", True, partial(_open_files, need.connections)),
        ("locked memory", several, _locked_memory),
        ("ports", True, partial(_ports, need.connections)),
        ("date", True, _date),
        ("model cache", model is not None, partial(_model_cache, model or "", need.weights_bytes)),
    )
    facts = {"well_free": gib(WELL_FREE), "well_shm": gib(WELL_SHM), "first_year": FIRST_YEAR}
    unjudged = {"cpu governor": _governor(), "swap": _swap(), "numa balancing": _numa()}
    return judged(rules, **facts), unjudged


def _room(folder: Path) -> Finding:
    _, free = _usage(folder)
    text = f"{gib(free)} free in {_short(folder)}"
    if free < LEAST_FREE:
        return Finding("failed", text)
    return Finding("warning" if free < WELL_FREE else "ok", text)


def _shared_memory() -> Finding:
    """NCCL and MPI exchange data of the ranks of one machine there."""
    size, free = _usage(_SHM)
    text = f"{gib(free)} of {gib(size)} free in /dev/shm"
    if free <= DOCKERS_SHM:
        return Finding("failed", text)
    return Finding("warning" if free < WELL_SHM else "ok", text)


def _open_files(connections: int) -> Finding:
    """Each request in flight is an open file of the client and of the server.

    The soft limit is in force; a program may raise it to the hard one.
    """
    wanted = connections + SPARE_FILES
    expected = f"{wanted:,}: {connections:,} requests at once and {SPARE_FILES:,} more"
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < connections:
        return Finding("failed", f"{hard:,} at most", expected, f"ulimit -Hn {wanted} as root")
    if soft == resource.RLIM_INFINITY:
        return Finding("ok", "no limit", expected)
    text = f"{soft:,} for a process"
    return Finding("warning" if soft < wanted else "ok", text, expected, f"ulimit -n {wanted}")


def _locked_memory() -> Finding:
    """Memory that other GPUs or network cards read from must stay where it is."""
    limit, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if limit == resource.RLIM_INFINITY:
        return Finding("ok", "no limit")
    return Finding("warning", f"{gib(limit)} for a process")


def _ports(connections: int) -> Finding:
    """Connections take their ports from the range that servers' free ports come from, too."""
    try:
        first, last = map(int, _PORT_RANGE.read_text().split())
        used = {port for file in _SOCKETS if file.exists() for port in _in_use(file.read_text())}
    except (OSError, ValueError) as error:
        raise NotReadable(str(error)) from error
    wanted = connections + SPARE_PORTS
    free = last - first + 1 - sum(first <= port <= last for port in used)
    text = f"{free:,} free of {first}-{last}"
    return Finding("failed" if free < wanted else "ok", text, f"{wanted:,} free")


def _date() -> Finding:
    """Certificates, waivers and the order of baselines depend on it."""
    year = time.gmtime().tm_year
    is_sane = FIRST_YEAR <= year <= FIRST_YEAR + 50
    return Finding("ok" if is_sane else "failed", f"the year {year}")


def _model_cache(model: str, weights_bytes: int | None) -> Finding:
    """Room for the part of the weights that would still have to be fetched."""
    hub = hub_cache()
    _, free = _usage(hub)
    held = _held(hub, model)
    text = f"{gib(free)} free in {_short(hub)}, {gib(held)} of the model"
    if weights_bytes is None:
        return Finding("unknown", f"{text}; the size of the model is unknown")
    missing = max(0, weights_bytes - held)
    expected = f"room for the missing {gib(missing)} of the weights"
    return Finding("failed" if free < missing else "ok", text, expected)


def hub_cache() -> Path:
    """Where models from the hub are kept (huggingface_hub's own rule)."""
    setting = os.environ.get("HF_HUB_CACHE")
    if setting:
        return Path(setting).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or f"{cache}/huggingface"
    return Path(home).expanduser() / "hub"


def _short(folder: Path) -> Path:
    """As a person in the working folder names it."""
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


def _usage(folder: Path) -> tuple[int, int]:
    """Bytes in all, and those that this user may still write; of the nearest folder that exists."""
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    try:
        usage = shutil.disk_usage(there)
    except OSError as error:
        raise NotReadable(f"{there}: {error.strerror}") from error
    return usage.total, usage.free


def _held(hub: Path, model: str) -> int:
    """Bytes of the model that are there; files are named by content, so each counts once."""
    blobs = hub / f"models--{model.replace('/', '--')}" / "blobs"
    try:
        return sum(file.stat().st_size for file in blobs.iterdir() if file.is_file())
    except OSError:
        return 0


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
