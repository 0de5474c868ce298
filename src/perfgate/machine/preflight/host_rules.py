"""Host rules: room, limits, ports and date that a run needs of its machine. Pure."""

from perfgate.machine.preflight.check import Check, Finding, Rule, gib, rule
from perfgate.machine.preflight.facts import Disk, HostFacts
from perfgate.machine.preflight.need import Need
from perfgate.machine.reading import known

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

HOST_RULES: list[Rule[HostFacts]] = []  # in the order in which they are told


def judge_host(host: HostFacts, need: Need) -> tuple[Check, ...]:
    """All that applies to what is needed."""
    answers = [(question, question.judge(host, need)) for question in HOST_RULES]
    return tuple(question.check(found) for question, found in answers if found is not None)


@rule(
    HOST_RULES,
    "run folder",
    f"{gib(WELL_FREE)} free",
    "free disk space, or choose another folder with --run-dir",
)
def run_folder(host: HostFacts, need: Need) -> Finding:  # noqa: ARG001 - all are called alike
    """Room for the run's own files."""
    return _room(host.run_folder)


@rule(
    HOST_RULES,
    "own store",
    f"{gib(WELL_FREE)} free",
    "free disk space, or choose another folder with PERFGATE_HOME",
)
def store(host: HostFacts, need: Need) -> Finding:  # noqa: ARG001
    """Room for what is kept: tokenizers, synthetic datasets, own baselines."""
    return _room(host.store)


@rule(
    HOST_RULES,
    "shared memory",
    f"{gib(WELL_SHM)} free in /dev/shm",
    "start the container with --ipc=host as documented, or with --shm-size=8g",
)
def shared_memory(host: HostFacts, need: Need) -> Finding | None:
    """NCCL and MPI exchange data of the ranks of one machine there."""
    if need.gpus < 2:
        return None
    size, free = known(host.shm_bytes), known(host.shm_free_bytes)
    text = f"{gib(free)} of {gib(size)} free in /dev/shm"
    if free <= DOCKERS_SHM:
        return Finding("failed", text)
    return Finding("warning" if free < WELL_SHM else "ok", text)


@rule(HOST_RULES, "open files")
def open_files(host: HostFacts, need: Need) -> Finding:
    """Each request in flight is an open file of the client and of the server."""
    wanted = need.connections + SPARE_FILES
    expected = f"{wanted:,}: {need.connections:,} requests at once and {SPARE_FILES:,} more"
    soft, hard = host.open_files, host.open_files_most
    if hard is not None and hard < need.connections:
        return Finding("failed", f"{hard:,} at most", expected, f"ulimit -Hn {wanted} as root")
    text = "no limit" if soft is None else f"{soft:,} for a process"
    is_low = soft is not None and soft < wanted
    return Finding("warning" if is_low else "ok", text, expected, f"ulimit -n {wanted}")


@rule(
    HOST_RULES,
    "locked memory",
    "no limit",
    "ulimit -l unlimited; in a container --ulimit memlock=-1, as documented",
)
def locked_memory(host: HostFacts, need: Need) -> Finding | None:
    """Memory that other GPUs or network cards read from must stay where it is."""
    if need.gpus < 2:
        return None
    if host.locked_bytes is None:
        return Finding("ok", "no limit")
    return Finding("warning", f"{gib(host.locked_bytes)} for a process")


@rule(
    HOST_RULES,
    "ports",
    hint="end what holds them (ss -s), or widen net.ipv4.ip_local_port_range",
)
def ports(host: HostFacts, need: Need) -> Finding:
    """Connections take their ports from the range that servers' free ports come from, too."""
    found, wanted = known(host.ports), need.connections + SPARE_PORTS
    free = found.last - found.first + 1 - found.used
    text = f"{free:,} free of {found.first}-{found.last}"
    return Finding("failed" if free < wanted else "ok", text, f"{wanted:,} free")


@rule(HOST_RULES, "date", f"{FIRST_YEAR} or later", "set the machine's clock (timedatectl)")
def date(host: HostFacts, need: Need) -> Finding:  # noqa: ARG001
    """Certificates, waivers and the order of baselines depend on it."""
    is_sane = FIRST_YEAR <= host.year <= FIRST_YEAR + 50
    return Finding("ok" if is_sane else "failed", f"the year {host.year}")


@rule(HOST_RULES, "model cache", hint="free disk space, or choose another folder with HF_HOME")
def model_cache(host: HostFacts, need: Need) -> Finding | None:
    """Room for the part of the weights that would still have to be fetched."""
    if host.hub is None:
        return None
    free, held = known(host.hub.free_bytes), host.hub.held_bytes
    text = f"{gib(free)} free in {host.hub.folder}, {gib(held)} of the model"
    if need.weights_bytes is None:
        return Finding("unknown", f"{text}; the size of the model is unknown")
    missing = max(0, need.weights_bytes - held)
    expected = f"room for the missing {gib(missing)} of the weights"
    return Finding("failed" if free < missing else "ok", text, expected)


def _room(disk: Disk) -> Finding:
    free = known(disk.free_bytes)
    text = f"{gib(free)} free in {disk.folder}"
    if free < LEAST_FREE:
        return Finding("failed", text)
    return Finding("warning" if free < WELL_FREE else "ok", text)
