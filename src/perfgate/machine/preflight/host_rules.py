"""Host rules: room, limits, ports and date that a run needs of its machine. Pure."""

from perfgate.machine.preflight.check import Case, Check, Finding, Rule, gib, rule
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
    answers = [(question, question.judge(Case(host, need))) for question in HOST_RULES]
    return tuple(question.check(found) for question, found in answers if found is not None)


@rule(
    HOST_RULES,
    "run folder",
    f"{gib(WELL_FREE)} free",
    "free disk space, or choose another folder with --run-dir",
)
def run_folder(case: Case[HostFacts]) -> Finding:
    """Room for the run's own files."""
    return _room(case.facts.run_folder)


@rule(
    HOST_RULES,
    "own store",
    f"{gib(WELL_FREE)} free",
    "free disk space, or choose another folder with PERFGATE_HOME",
)
def store(case: Case[HostFacts]) -> Finding:
    """Room for what is kept: tokenizers, synthetic datasets, own baselines."""
    return _room(case.facts.store)


@rule(
    HOST_RULES,
    "shared memory",
    f"{gib(WELL_SHM)} free in /dev/shm",
    "start the container with --ipc=host as documented, or with --shm-size=8g",
)
def shared_memory(case: Case[HostFacts]) -> Finding | None:
    """NCCL and MPI exchange data of the ranks of one machine there."""
    if case.need.gpus < 2:
        return None
    size, free = known(case.facts.shm_bytes), known(case.facts.shm_free_bytes)
    text = f"{gib(free)} of {gib(size)} free in /dev/shm"
    if free <= DOCKERS_SHM:
        return Finding("failed", text)
    return Finding("warning" if free < WELL_SHM else "ok", text)


@rule(HOST_RULES, "open files")
def open_files(case: Case[HostFacts]) -> Finding:
    """Each request in flight is an open file of the client and of the server."""
    wanted = case.need.connections + SPARE_FILES
    expected = f"{wanted:,}: {case.need.connections:,} requests at once and {SPARE_FILES:,} more"
    soft, hard = case.facts.open_files, case.facts.open_files_most
    if hard is not None and hard < case.need.connections:
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
def locked_memory(case: Case[HostFacts]) -> Finding | None:
    """Memory that other GPUs or network cards read from must stay where it is."""
    if case.need.gpus < 2:
        return None
    if case.facts.locked_bytes is None:
        return Finding("ok", "no limit")
    return Finding("warning", f"{gib(case.facts.locked_bytes)} for a process")


@rule(
    HOST_RULES,
    "ports",
    hint="end what holds them (ss -s), or widen net.ipv4.ip_local_port_range",
)
def ports(case: Case[HostFacts]) -> Finding:
    """Connections take their ports from the range that servers' free ports come from, too."""
    found, wanted = known(case.facts.ports), case.need.connections + SPARE_PORTS
    free = found.last - found.first + 1 - found.used
    text = f"{free:,} free of {found.first}-{found.last}"
    return Finding("failed" if free < wanted else "ok", text, f"{wanted:,} free")


@rule(HOST_RULES, "date", f"{FIRST_YEAR} or later", "set the machine's clock (timedatectl)")
def date(case: Case[HostFacts]) -> Finding:
    """Certificates, waivers and the order of baselines depend on it."""
    is_sane = FIRST_YEAR <= case.facts.year <= FIRST_YEAR + 50
    return Finding("ok" if is_sane else "failed", f"the year {case.facts.year}")


@rule(HOST_RULES, "model cache", hint="free disk space, or choose another folder with HF_HOME")
def model_cache(case: Case[HostFacts]) -> Finding | None:
    """Room for the part of the weights that would still have to be fetched."""
    if case.facts.hub is None:
        return None
    free, held = known(case.facts.hub.free_bytes), case.facts.hub.held_bytes
    text = f"{gib(free)} free in {case.facts.hub.folder}, {gib(held)} of the model"
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
