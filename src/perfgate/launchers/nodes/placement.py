"""Other nodes as the place of a fresh start: what the launchers slurm and mpirun share.

The server of a start asks nobody for a key. On this machine it listens at the loopback device; on
another node at the node's own address, as perfgate and its clients come from here: whoever reaches
the node can use the server, and a session is told so once, unless the site says that it knows.
"""

import math
import os
import socket
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import cached_property, partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Generic, TypeVar

import psutil

from perfgate.core.errors import InputError, RunError
from perfgate.core.files.durable_files import write_text
from perfgate.core.files.untrusted_files import created_regular, make_new_folder
from perfgate.core.measurement import Json
from perfgate.core.programs.command import Command
from perfgate.core.programs.program_query import Answer
from perfgate.launchers.base import Exit, Job, Launcher, Placement, PlacementRequest
from perfgate.launchers.local.job import (
    LocalJob,
    OuterJob,
    evidence_argv,
    look_argv,
    write_evidence,
)
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.launchers.nodes.preflight import (
    SAME_PATH,
    SCENARIO,
    ask_doctors,
    doctor_command,
    scenario_text,
)
from perfgate.launchers.nodes.watch import PLACE, watching
from perfgate.launchers.site import MpirunSite, SlurmSite, load_site
from perfgate.machine.conditions.watch import NodesWatch
from perfgate.machine.leases.file_locks import FileLock, lock_folder, take, wait_until_free

LOOK_S = 60.0
TERM_S = 15.0  # to ask the processes to end; a node that is lost does not answer
EVIDENCE_S = 90.0  # a little less than all of its parts may take, which none ever does
LOOPBACK = "127.0.0.1"
NODE = "node"
# Failures that a lost node or a cancelled job cannot look like.
NEVER_OF_A_NODE = {
    *("config_error", "cli_drift", "model_file", "port_in_use", "disk_full", "unwritable"),
}


_Site = TypeVar("_Site", bound=SlurmSite | MpirunSite)
_Told = TypeVar("_Told")


class NodesLauncher(Launcher, Generic[_Site]):
    """Start programs on other nodes.

    Args:
        site: how they are had and reached; None: as the site's file says, read when first needed.

    Attributes:
        local: starts here what reaches the nodes.
        bad: nodes that were lost in this session.
        told: fields of the site file that the session was told of once.
    """

    here = False

    def __init__(self, site: _Site | None = None) -> None:
        self._given = site
        self.local = LocalLauncher()
        self.bad: set[str] = set()
        self.told: set[str] = set()

    @cached_property
    def site(self) -> _Site:
        """The launcher's part of the site."""
        site: _Site = self._given or getattr(load_site(), self.name)
        return site

    def good_nodes(
        self, names: Sequence[str], request: PlacementRequest, why: str, hint: str | None = None
    ) -> tuple[str, ...]:
        """Those of the nodes that the start must have, else those not lost in this session.

        Args:
            names: the nodes that there are, in order.
            request: the start.
            why: they are too few without those that were lost.
            hint: what to do then; None: as the class of the failure says.

        Raises:
            RunError: class ``node_failed``: without those that were lost there are too few.
        """
        good = tuple(name for name in names if name not in self.bad)
        if len(good) < request.scenario.hardware.nodes <= len(names):
            bad = ", ".join(name for name in names if name in self.bad)
            message = f"{bad} failed in this session, and {why}"
            raise RunError("node_failed", message, hint=hint)
        same = {*request.nodes}
        return tuple(name for name in good if name in same) if same and same <= {*good} else good

    def listens_at(self, node: str, address: str, tell: Callable[[str], None]) -> str:
        """Where the server on a node listens, which is reached from here under `address`.

        Args:
            node, address: the node.
            tell: tells the session.

        Raises:
            InputError: it must be the loopback device, and the node is another machine.
        """
        word, key = self.site.listen, f"{self.name}.listen"
        if word != NODE and address in own_addresses():
            return LOOPBACK
        if ip_address(address).is_loopback:
            return address
        if word == "loopback":
            raise InputError(
                "a server on another machine's loopback device cannot be reached",
                field=key,
                found=f"loopback, and the server's node is {node} ({address})",
                expected="node; or perfgate runs on the server's node",
            )
        if word is None and key not in self.told:
            self.told.add(key)
            tell(
                f"the server listens at {address} of {node} and asks for no key: whoever reaches "
                f"that address can use it ({key}: node in site.yaml says that this is known)"
            )
        return address


def locked(
    files: Mapping[str, str],
    request: PlacementRequest,
    run: str,
    what: str,
    limit_s: float,
    **otherwise: str,
) -> tuple[FileLock, ...]:
    """Locks of the first free nodes, as many as the start needs; all at once, or none.

    The locks are files of this machine, so they part the sessions that run here.

    Args:
        files: names of the locks, in the order of their nodes → what each stands for.
        request: the start.
        run: who asks, for the messages of others.
        what, limit_s, otherwise: as `wait_until_free` takes them.

    Raises:
        RunError: others had them all the time.
        InputError: the folder of the locks cannot be used.
    """
    folder, count = lock_folder(os.environ), request.scenario.hardware.nodes
    paths = {folder / file: label for file, label in files.items()}
    return wait_until_free(
        partial(take, paths, count, run), what, limit_s, request.tell, **otherwise
    )


def own_addresses() -> set[str]:
    """The addresses of this machine."""
    return {one.address for many in psutil.net_if_addrs().values() for one in many}


def address_of(name: str) -> str | None:
    """The address that a name stands for here: IPv4 where it has one, else IPv6; None: neither."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError:
        return None
    best = min(found, key=lambda one: one[0] != socket.AF_INET)
    return str(best[4][0])


def at_once(names: Sequence[str], call: Callable[[str], _Told]) -> list[_Told]:
    """What `call` gives for each node, in their order; all are asked at the same time."""
    with ThreadPoolExecutor(len(names)) as pool:
        return [*pool.map(call, names)]


class RemoteJob(OuterJob):
    """A started step, or ranks.

    Its processes here are those of what started it; what the nodes know of its own is asked there.

    Args:
        outer: the call of srun or mpirun, under its wardens.
        placement: asks the nodes.
        nodes: names of those that it runs on.
        mark: what its processes are known by there.
        status_of: exit status of what ended first, by the call's own end and what it said; -N when
            signal N ended it.
    """

    def __init__(
        self,
        outer: LocalJob,
        placement: "NodesPlacement[Any]",
        nodes: Sequence[str],
        mark: str,
        status_of: Callable[[Exit, Path], int | None],
    ) -> None:
        super().__init__(outer)
        self._placement = placement
        self._nodes = nodes
        self._mark = mark
        self._status_of = status_of

    def keep_evidence(self, why: str) -> None:
        """As in `Job`: the processes here, then those of the launch on the nodes."""
        self._outer.keep_evidence(why)
        self._placement.keep_evidence(self._nodes, self._mark, self._outer.evidence)

    def processes(self) -> Sequence[psutil.Process]:
        """Those of the call here."""
        return self._outer.processes()

    def cpu_seconds(self) -> float:
        """As in `Job`, read on the nodes."""
        try:
            return sum(map(float, self._look("cpu", self._mark).split()))
        except (RunError, ValueError):
            return math.nan

    def listens(self, port: int) -> bool:
        """As in `Job`, looked up on the nodes.

        Raises:
            RunError: they could not be asked.
        """
        return "yes" in self._look("listens", self._mark, str(port)).split()

    def _look(self, *words: str, seconds: float = LOOK_S) -> str:
        return self._placement.look(self._nodes, *words, seconds=seconds)

    def _stopped(self, grace_s: float) -> Exit:
        """As in `OuterJob`: its processes on the nodes are asked first, as srun would kill them."""
        deadline = time.monotonic() + grace_s
        try:
            if grace_s > 0:
                with suppress(RunError):  # a node that does not answer is not asked
                    self._look("term", self._mark, seconds=TERM_S)
                    self._outer.until(max(0.0, deadline - time.monotonic()))
        except BaseException:
            self._outer.release()  # a second Ctrl-C: the warden ends srun, and srun its tasks
            raise
        return self._outer.stop(grace_s)

    def _concluded(self, ended: Exit) -> Exit:
        if self._why is not None and ended.reason in ("exited", "stopped"):
            ended = replace(ended, reason=self._why)
        return replace(ended, status=self._status_of(ended, self.stderr))


class NodesPlacement(Placement, Generic[_Site]):
    """Nodes; the server is on the first of them.

    Args:
        launcher: whose place it is.
        nodes: the nodes' names.
        address: of the first, as it is reached from here.
        request: the start.
        place: what all processes of this start are known by.
        seen: a file of the start's folder that every node must see; made where it is missing.
        contained: whether the engine's programs are in a container.
    """

    def __init__(
        self,
        launcher: NodesLauncher[_Site],
        nodes: tuple[str, ...],
        address: str,
        request: PlacementRequest,
        *,
        place: str,
        seen: str,
        contained: bool = False,
    ) -> None:
        self.host = launcher.listens_at(nodes[0], address, request.tell)
        self.nodes = nodes
        self._launcher = launcher
        self._site = launcher.site
        self.request = request
        self._folder = request.folder.absolute()
        self._place = place
        self._seen = self._folder / seen
        self._contained = contained

    def start_client(self, command: Command, folder: Path, name: str) -> Job:
        """As in `Placement`: on the server's node, or here where the site says so."""
        if self._site.clients == "beside":
            return self._beside(command, folder, name)
        return self._launcher.local.start(self._known(command), folder, name)

    def free_port(self) -> int:
        """As in `Placement`; tells as well whether the node sees the start's folder."""
        first = self.nodes[0]
        if not self._seen.exists():
            os.close(created_regular(self._seen))
        try:
            return int(self.look((first,), "port", self.host, str(self._seen)))
        except (RunError, ValueError) as error:
            why, lines = f"{first} cannot be used: {error}", tuple(str(error).splitlines()[-5:])
            unusable = RunError("config_error", why, evidence=lines, hint=SAME_PATH)
            raise self.explained(unusable) from error

    def doctor(self) -> Mapping[str, Json] | None:
        """As in `Placement`; all nodes are asked at the same time."""
        folder = self._folder / "doctor"
        with suppress(FileExistsError):
            make_new_folder(folder)
        scenario = self.request.scenario
        write_text(folder / SCENARIO, scenario_text(scenario))
        command = doctor_command(scenario, folder, contained=self._contained)
        try:
            return ask_doctors({name: self._on_node(command, folder, name) for name in self.nodes})
        except RunError as error:
            raise self.explained(error) from error

    def watched(self, folder: Path) -> AbstractContextManager[NodesWatch]:
        """As in `Placement`: by a program on each node, outside of any container."""
        hardware = self.request.scenario.hardware
        return watching(self.nodes, self._place, hardware, folder, self._on_node)

    @abstractmethod
    def _beside(self, command: Command, folder: Path, name: str) -> Job:
        """Start a client on the first node, outside of any container."""

    @abstractmethod
    def _on_node(self, command: Command, folder: Path, name: str) -> Job:
        """Start a call of perfgate's own on the node of that name."""

    def look(self, names: Sequence[str], *words: str, seconds: float = LOOK_S) -> str:
        """What `look.py` answers on these nodes, a line for each.

        Raises:
            RunError: a node could not be asked.
        """
        argv = look_argv(*words)
        return "\n".join(at_once(names, lambda name: self._ask(name, argv, seconds).strip()))

    def keep_evidence(self, names: Sequence[str], mark: str, file: Path) -> None:
        """Append to `file` what a launch does on each of these nodes, or why that is unknown."""

        def ask(name: str) -> Answer:
            try:
                return Answer(0, self._ask(name, evidence_argv(mark), EVIDENCE_S))
            except RunError as error:
                return Answer(None, why=f"nothing is known: {error}")

        for name, answer in zip(names, at_once(names, ask), strict=True):
            write_evidence(file, f"on {name}:", answer)

    @abstractmethod
    def _ask(self, name: str, argv: Sequence[str], seconds: float) -> str:
        """What a program prints on the node of that name, for at most some seconds.

        Raises:
            RunError: the node is not reached, or the program fails.
        """

    def _known(self, command: Command) -> Command:
        """The command whose processes a watch of the nodes knows as ours."""
        return replace(command, env={**command.env, PLACE: self._place})
