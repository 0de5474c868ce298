"""Host rules: room, limits, ports and date that a run needs of its machine. Pure."""

from collections.abc import Callable

from perfgate.machine.preflight.check import Check, gib
from perfgate.machine.preflight.facts import Disk, HostFacts
from perfgate.machine.preflight.need import Need
from perfgate.machine.reading import Unreadable

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

HostRule = Callable[[HostFacts, Need], Check | None]


def judge_host(host: HostFacts, need: Need) -> tuple[Check, ...]:
    """All that applies to what is needed."""
    found = (rule(host, need) for rule in HOST_RULES)
    return tuple(check for check in found if check is not None)


def run_folder(host: HostFacts, need: Need) -> Check:  # noqa: ARG001 - all are called alike
    """Room for the run's own files."""
    return _room("run folder", host.run_folder, "name another folder with --run-dir")


def store(host: HostFacts, need: Need) -> Check:  # noqa: ARG001
    """Room for what is kept: tokenizers, synthetic datasets, own baselines."""
    return _room("own store", host.store, "name another folder with PERFGATE_HOME")


def model_cache(host: HostFacts, need: Need, *, from_hub: bool = True) -> Check | None:
    """Room for the part of the weights that would still have to be fetched."""
    if not from_hub:
        return None
    name, disk = "model cache", host.hub
    hint = "free space there, or name another folder with HF_HOME"
    if isinstance(disk.free_bytes, Unreadable):
        return Check(name, "unknown", disk.free_bytes.why)
    found = f"{gib(disk.free_bytes)} free in {disk.folder}, {gib(disk.held_bytes)} of the model"
    if need.weights_bytes is None:
        return Check(name, "unknown", f"{found}; how large the model is, nothing says")
    missing = max(0, need.weights_bytes - disk.held_bytes)
    expected = f"room for the missing {gib(missing)} of the weights"
    if disk.free_bytes < missing:
        return Check(name, "failed", found, expected, hint)
    return Check(name, "ok", found, expected)


def shared_memory(host: HostFacts, need: Need) -> Check | None:
    """NCCL and MPI exchange data of the ranks of one machine there."""
    if need.gpus < 2:
        return None
    name, expected = "shared memory", f"{gib(WELL_SHM)} free in /dev/shm"
    hint = "start the container with --ipc=host as documented, or with --shm-size=8g"
    if isinstance(host.shm_bytes, Unreadable):
        return Check(name, "unknown", host.shm_bytes.why)
    if isinstance(host.shm_free_bytes, Unreadable):
        return Check(name, "unknown", host.shm_free_bytes.why)
    found = f"{gib(host.shm_free_bytes)} of {gib(host.shm_bytes)} free in /dev/shm"
    if host.shm_free_bytes <= DOCKERS_SHM:
        return Check(name, "failed", found, expected, hint)
    if host.shm_free_bytes < WELL_SHM:
        return Check(name, "warning", found, expected, hint)
    return Check(name, "ok", found, expected)


def open_files(host: HostFacts, need: Need) -> Check:
    """Each request in flight is an open file of the client and of the server."""
    name, wanted = "open files", need.connections + SPARE_FILES
    expected = f"{wanted:,}: {need.connections:,} requests at once and {SPARE_FILES:,} more"
    soft, hard = host.open_files, host.open_files_most
    found = "no limit" if soft is None else f"{soft:,} for a process"
    if hard is not None and hard < need.connections:
        return Check(name, "failed", f"{hard:,} at most", expected, f"ulimit -Hn {wanted} as root")
    if soft is not None and soft < wanted:
        return Check(name, "warning", found, expected, f"ulimit -n {wanted}")
    return Check(name, "ok", found, expected)


def locked_memory(host: HostFacts, need: Need) -> Check | None:
    """Memory that other GPUs or network cards read from must stay where it is."""
    if need.gpus < 2:
        return None
    name, expected = "locked memory", "no limit"
    if host.locked_bytes is None:
        return Check(name, "ok", "no limit", expected)
    hint = "ulimit -l unlimited; in a container --ulimit memlock=-1, as documented"
    return Check(name, "warning", f"{gib(host.locked_bytes)} for a process", expected, hint)


def ports(host: HostFacts, need: Need) -> Check:
    """Connections take their ports from the range that servers' free ports come from, too."""
    name, wanted = "ports", need.connections + SPARE_PORTS
    if isinstance(host.ports, Unreadable):
        return Check(name, "unknown", host.ports.why)
    first, last, used = host.ports.first, host.ports.last, host.ports.used
    free = last - first + 1 - used
    found = f"{free:,} free of {first}-{last}"
    expected = f"{wanted:,} free"
    if free < wanted:
        hint = "end what holds them (ss -s), or widen net.ipv4.ip_local_port_range"
        return Check(name, "failed", found, expected, hint)
    return Check(name, "ok", found, expected)


def date(host: HostFacts, need: Need) -> Check:  # noqa: ARG001
    """Certificates, waivers and the order of baselines depend on it."""
    found, expected = f"the year {host.year}", f"{FIRST_YEAR} or later"
    if host.year < FIRST_YEAR or host.year > FIRST_YEAR + 50:
        return Check("date", "failed", found, expected, "set the machine's clock (timedatectl)")
    return Check("date", "ok", found, expected)


def _room(name: str, disk: Disk, other: str) -> Check:
    expected = f"{gib(WELL_FREE)} free"
    if isinstance(disk.free_bytes, Unreadable):
        return Check(name, "unknown", disk.free_bytes.why)
    found = f"{gib(disk.free_bytes)} free in {disk.folder}"
    if disk.free_bytes < LEAST_FREE:
        return Check(name, "failed", found, expected, f"free space there, or {other}")
    if disk.free_bytes < WELL_FREE:
        return Check(name, "warning", found, expected, f"free space there, or {other}")
    return Check(name, "ok", found, expected)


HOST_RULES: tuple[HostRule, ...] = (
    run_folder,
    store,
    shared_memory,
    open_files,
    locked_memory,
    ports,
    date,
)
