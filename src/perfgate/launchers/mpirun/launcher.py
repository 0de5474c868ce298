"""mpirun: run each fresh start on hosts that Open MPI reaches by ssh.

The engine's programs are started by an mpirun that runs here, under this machine's wardens: one
rank per GPU where the scenario's document has several nodes, else one process on the first host.
Over ssh the hosts' processes are nobody's children here: mpirun ends them, and where it cannot,
perfgate does by the mark that they carry, or the cleanup guard when perfgate is gone.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

from perfgate.core.errors import InputError, RunError
from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.program_query import ask_here
from perfgate.core.programs.programs import MPIRUN
from perfgate.core.programs.raw_log import end_of
from perfgate.launchers.base import Exit, Job, Placement, PlacementRequest, launcher
from perfgate.launchers.local.job import MARK, look_argv, signal_of
from perfgate.launchers.local.launcher import guarded
from perfgate.launchers.mpirun import hosts
from perfgate.launchers.nodes.placement import (
    LOOK_S,
    NEVER_OF_A_NODE,
    NodesLauncher,
    NodesPlacement,
    RemoteJob,
    at_once,
)
from perfgate.launchers.site import MpirunSite
from perfgate.plan.wrapping import wrapped
from perfgate.scenarios.scenario import Scenario

RSH_ARGS = "plm_rsh_args"
AFTER_S = 3.0  # mpirun takes a second to end its ranks
TRIES, EVERY_S = 3, 5.0
GUARD_S = 240.0  # as long as all tries take at most
VERSION_S = 30.0
_VERSION = re.compile(r"\(Open MPI\) (\S+)")
_OF_ITS_OWN = {132, 135}  # no such program, no such folder: neither SIGILL nor SIGBUS
_SAID = re.compile(r"process rank \d+ .{0,300}?exited on signal (\d+)", re.DOTALL)
_TAIL = 8192


@launcher("mpirun")
class MpirunLauncher(NodesLauncher[MpirunSite]):
    """Start programs on hosts by mpirun."""

    name = "mpirun"
    starts_by = (MPIRUN,)

    @contextmanager
    def placed(self, request: PlacementRequest) -> Iterator[Placement]:
        site, launch = self.site, request.scenario.launch
        if job := os.environ.get("SLURM_JOB_ID"):
            raise InputError(
                "inside a Slurm allocation mpirun takes its hosts from Slurm, and no ssh",
                field="SLURM_JOB_ID",
                found=job,
                hint="run it with --launcher slurm, which starts the same ranks",
            )
        version = open_mpi_version(MPIRUN.find())
        reach = hosts.HostQuery(site, site.ssh_port or (launch.ssh_port if launch else None))
        request.folder.mkdir(parents=True, exist_ok=True)
        place = uuid4().hex
        names = site.hosts or Locations.of_environment().hosts
        why, hint = "there are no others", "name more hosts in site.yaml (mpirun: hosts)"
        good = self.good_nodes(names, request, f"{why}: {' '.join(names)}", hint)
        with hosts.chosen_hosts(good, request, site, reach, place) as locks:
            placement = MpirunPlacement(self, locks, reach, request, place=place, version=version)
            calls = [reach.argv(lock.host, look_argv("end", *lock.marks)) for lock in locks]
            pace = {"after_s": AFTER_S, "tries": TRIES, "every_s": EVERY_S}
            task = {"guards": "hosts", "calls": calls, **pace}
            with guarded(task, request.folder, "hosts", GUARD_S, placement.clear):
                yield placement


@cache
def open_mpi_version(program: tuple[str, ...]) -> str:
    """The version of Open MPI whose mpirun `program` is.

    Raises:
        InputError: it is another MPI's.
    """
    said = ask_here((*program, "--version"), VERSION_S).text
    found = _VERSION.search(said)
    if found is None:
        raise InputError(
            "this is not the mpirun of Open MPI",
            field=MPIRUN.variable,
            found=f"{program[0]} says {said.strip()[:200] or 'nothing'}",
            expected="mpirun (Open MPI) 4 or 5",
            hint=f"install Open MPI, or say where its mpirun is with {MPIRUN.variable}",
        )
    return found[1]


def status_of_rank(ended: Exit, stderr: Path) -> int | None:
    """The end of mpirun as that of the rank that ended first: -N when signal N ended it.

    Args:
        ended: mpirun's: with the status of the rank, 128 + N after a signal, or one of its own.
        stderr: what it said.
    """
    number = signal_of(ended.status)
    if number is None:
        return ended.status
    match = _SAID.search(end_of(stderr, _TAIL))
    is_told = match is not None and int(match[1]) == number
    return ended.status if ended.status in _OF_ITS_OWN and not is_told else -number


class MpirunPlacement(NodesPlacement[MpirunSite]):
    """Hosts; the server is on the first of them.

    Args:
        launcher: whose place it is.
        locks: the hosts, locked for this start.
        reach: how they are asked.
        request: the start.
        place: what all processes of this start are known by.
        version: of Open MPI.
    """

    def __init__(
        self,
        launcher: MpirunLauncher,
        locks: tuple[hosts.HostLock, ...],
        reach: hosts.HostQuery,
        request: PlacementRequest,
        *,
        place: str,
        version: str,
    ) -> None:
        self._locks = {lock.host.name: lock for lock in locks}
        nodes, server = tuple(self._locks), locks[0].host
        if server.address is None:
            raise InputError(
                "the server's host has no address here",
                field="mpirun.hosts",
                found=server.name,
                expected="a name that resolves here, or whose HostName in ssh's configuration does",
                hint="perfgate must reach the server over the network",
            )
        address, seen = server.address, hosts.HOST_LIST
        super().__init__(launcher, nodes, address, request, place=place, seen=seen)
        self._reach = reach
        self.facts = {"mpirun": {"hosts": list(self.nodes), "version": version}}

    def launched(self, command: Command, locations: Locations) -> Command:
        """As in `Placement`: one rank per GPU wherever the document has several nodes."""
        here = replace(locations, hosts=self.nodes)
        return by_mpirun(command, self.request.scenario, here, self._reach.ssh_port)

    def start(self, command: Command, folder: Path, name: str) -> Job:
        has_ranks = calls_mpirun(command.argv, MPIRUN.find())
        return self._started(command, folder, name, self.nodes if has_ranks else self.nodes[:1])

    def free_port(self) -> int:
        self.require()
        return super().free_port()

    def require(self) -> None:
        """As in `Placement`: every host still answers."""
        if lost := self._lost():
            raise self._node_failed(lost)

    def explained(self, error: RunError) -> RunError:
        """The error, or the host that was lost."""
        lost = {} if error.failure in NEVER_OF_A_NODE else self._lost()
        return self._node_failed(lost, error) if lost else error

    def clear(self) -> None:
        """End what is left on the hosts, where mpirun did not; a lost host keeps its marks."""

        def ended(name: str) -> str:
            lock = self._locks[name]
            try:
                left = int(self._reach.look(lock.host, "end", *lock.marks))
            except hosts.HostUnfit as error:
                return f"{name} may have processes left: {error}"
            lock.write([])
            return f"{name}: {left} processes were left, and are ended" if left else ""

        for problem in filter(None, at_once(self.nodes, ended)):
            self.request.tell(problem)

    def _started(
        self, command: Command, folder: Path, name: str, nodes: tuple[str, ...]
    ) -> RemoteJob:
        mark = uuid4().hex
        command = self._known(command)
        argv = started_by(
            MPIRUN.find(),
            command,
            (command.cwd or folder).resolve(),
            nodes[0],
            self._site,
            ssh_port=self._reach.ssh_port,
            mark="/".join(filter(None, (os.environ.get(MARK), self._place, mark))),
            environment=os.environ,
            root=os.geteuid() == 0,
        )
        mpirun = self._launcher.local.start(replace(command, argv=argv), folder, name)
        return RemoteJob(mpirun, self, nodes, mark, status_of_rank)

    def _beside(self, command: Command, folder: Path, name: str) -> Job:
        return self.start(command, folder, name)

    def _on_node(self, command: Command, folder: Path, name: str) -> Job:
        """As in `NodesPlacement`, as the engine is started: by an mpirun."""
        env = {variable: text for variable, text in os.environ.items() if _is_ours(variable)}
        return self._started(replace(command, env=env), folder, name, (name,))

    def _ask(self, name: str, argv: Sequence[str], seconds: float) -> str:
        try:
            return self._reach.ask(self._locks[name].host, argv, seconds)
        except hosts.HostUnfit as error:
            raise RunError("mpi", f"{name} could not be queried: {error}") from error

    def _lost(self) -> dict[str, str]:
        """The hosts that do not answer now, and why."""

        def why(name: str) -> str:
            try:
                self._reach.ask(self._locks[name].host, ("true",), LOOK_S)
            except hosts.HostUnfit as error:
                return str(error) if isinstance(error, hosts.Unreachable) else ""
            return ""

        found = zip(self.nodes, at_once(self.nodes, why), strict=True)
        return {name: words for name, words in found if words}

    def _node_failed(self, lost: Mapping[str, str], error: RunError | None = None) -> RunError:
        self._launcher.bad.update(lost)
        silent = [f"{name} does not answer: {why}" for name, why in lost.items()]
        message = "; ".join([*silent, *([error.message] if error else [])])
        hint = "look at the host itself; where mpirun.hosts names others they are tried once"
        evidence = error.evidence if error else ()
        return RunError("node_failed", message, evidence=evidence, hint=hint)


def _is_ours(variable: str) -> bool:
    """Whether it says where perfgate itself finds things; its marks are of this start here."""
    ours = variable == "PYTHONPATH" or variable.startswith("PERFGATE_")
    return ours and variable != MARK


def by_mpirun(
    command: Command, scenario: Scenario, locations: Locations, ssh_port: int | None
) -> Command:
    """The engine's command as mpirun starts it on `locations.hosts`: one rank per GPU.

    A document that launches by srun or sbatch has the same ranks, each under the same program
    (`perfgate.plan.ranks`); only what starts them is another.

    Raises:
        InputError: the GPUs do not spread evenly over the hosts.
        MissingProgram: mpirun or trtllm-llmapi-launch is not here.
    """
    launch = scenario.launch
    if launch is None:
        return command
    output = launch.output if launch.by == "mpirun" else None
    by = replace(launch, by="mpirun", output=output, ssh_port=ssh_port, time_limit=None)
    return wrapped(command, replace(scenario, launch=by), locations)


def started_by(
    program: Sequence[str],
    command: Command,
    cwd: Path,
    host: str,
    site: MpirunSite,
    *,
    ssh_port: int | None,
    mark: str,
    environment: Collection[str],
    root: bool,
) -> tuple[str, ...]:
    """The whole argv: of a command that calls mpirun itself, or of one process on `host`.

    What is added stands before what the command has.

    Args:
        program: how mpirun is called.
        command: what runs; its variables reach the ranks, as nothing else does over ssh.
        cwd: working folder of every rank.
        host: where a command that calls no mpirun runs.
        site: what else is said.
        ssh_port: port of the SSH daemons, for one process.
        mark: what the processes are known by.
        environment: names of the variables here.
        root: whether mpirun runs as root, which it refuses unless told.
    """
    calls = calls_mpirun(command.argv, program)
    given = command.argv[len(program) :] if calls else ()
    parameters = dict(site.mca)
    if site.rsh_agent is not None:
        parameters["plm_rsh_agent"] = site.rsh_agent
    if RSH_ARGS in given:
        parameters.pop(RSH_ARGS, None)  # the same parameter twice is an error
    elif ssh_port is not None:
        parameters[RSH_ARGS] = f"-p {ssh_port}"
    argv = [*program]
    if root and "--allow-run-as-root" not in given:
        argv.append("--allow-run-as-root")
    for name, value in parameters.items():
        argv += ["-mca", name, value]
    argv += ["--wdir", str(cwd), *_words(site.options)]
    argv += _variables(
        [*(name for name in site.pass_on if name in environment), *command.env], mark, given
    )
    if calls:
        return (*argv, *given)
    # One process would be bound to one core, all its threads with it.
    unbound = () if any("bind-to" in option for option in site.options) else ("--bind-to", "none")
    return (*argv, *unbound, "-H", f"{host}:1", "-n", "1", *command.argv)


def calls_mpirun(argv: Sequence[str], program: Sequence[str]) -> bool:
    """Whether a command is a call of that mpirun."""
    return tuple(argv[: len(program)]) == tuple(program)


def _words(options: Sequence[str]) -> list[str]:
    """Options and their values are words of their own: mpirun knows no ``--option=value``."""
    return [word for option in options for word in option.split(maxsplit=1)]


def _variables(names: Sequence[str], mark: str, given: Sequence[str]) -> list[str]:
    """``-x`` for each that is not given yet, by name: mpirun has the values in its environment.

    The one value that is written is the mark of the ranks, which is no secret: mpirun's own process
    has another.
    """
    there = {word for option, word in pairwise(given) if option == "-x"}
    added = [name for name in dict.fromkeys(names) if name not in {MARK, *there}]
    options = [word for name in added for word in ("-x", name)]
    return [*options, "-x", f"{MARK}={mark}"]
