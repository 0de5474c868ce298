"""Host probe: disks, limits, ports and settings of this machine, read from the system itself."""

import datetime
import os
import resource
import shutil
from pathlib import Path

import psutil

from perfgate.machine.preflight.facts import Disk, HostFacts, Ports
from perfgate.machine.reading import Unreadable

_SHM = Path("/dev/shm")  # noqa: S108 - the system's own
_PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_SOCKETS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_NUMA = Path("/proc/sys/kernel/numa_balancing")
_CPUS = Path("/sys/devices/system/cpu")


def look_at_host(run_folder: Path, store: Path, model: str | None) -> HostFacts:
    """This machine as it is now.

    Args:
        run_folder: where the run's files go; it need not exist yet.
        store: the machine's own store.
        model: public name of a model that would come from the hub; None: it does not.
    """
    hub = hub_cache()
    shm = _usage(_SHM)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return HostFacts(
        run_folder=_disk(run_folder),
        store=_disk(store),
        hub=None if model is None else _disk(hub, held_bytes=_held(hub, model)),
        shm_bytes=shm if isinstance(shm, Unreadable) else shm[0],
        shm_free_bytes=shm if isinstance(shm, Unreadable) else shm[1],
        open_files=_limit(soft),
        open_files_most=_limit(hard),
        locked_bytes=_limit(resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]),
        ports=_ports(),
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


def _ports() -> Ports | Unreadable:
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
