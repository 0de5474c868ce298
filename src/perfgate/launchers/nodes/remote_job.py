"""RemoteJob: a program on other nodes, seen through what runs here: srun, or mpirun."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import psutil

from perfgate.core.errors import RunError
from perfgate.core.program_query import Answer
from perfgate.launchers.base import Exit, Reason
from perfgate.launchers.hang_dump import evidence_argv, look_argv, write_evidence
from perfgate.launchers.local.job import LocalJob, OuterJob

LOOK_S = 60.0
TERM_S = 15.0  # to ask the processes to end; a node that is lost does not answer
EVIDENCE_S = 90.0  # a little less than all of its parts may take, which none ever does

_Told = TypeVar("_Told")


@dataclass(frozen=True)
class Nodes:
    """Asks nodes, all of them at the same time.

    Attributes:
        names: of the nodes.
        ask: what a program prints on the node of that name, for at most some seconds; raises
            RunError where it is not reached, or the program fails.
    """

    names: tuple[str, ...]
    ask: Callable[[str, Sequence[str], float], str]

    def look(self, *words: str, seconds: float = LOOK_S) -> str:
        """What `look.py` answers, a line for each node.

        Raises:
            RunError: a node could not be asked.
        """
        argv = look_argv(*words)
        return "\n".join(self.each(lambda node: self.ask(node, argv, seconds).strip()))

    def evidence(self, mark: str, file: Path) -> None:
        """Append to `file` what the launch does on each node, or why that is not known."""

        def ask(node: str) -> Answer:
            try:
                return Answer(0, self.ask(node, evidence_argv(mark), EVIDENCE_S))
            except RunError as error:
                return Answer(None, why=f"nothing is known: {error}")

        for node, answer in zip(self.names, [*self.each(ask)], strict=True):
            write_evidence(file, f"on {node}:", answer)

    def each(self, call: Callable[[str], _Told]) -> Iterator[_Told]:
        """What `call` gives for each node, in their order."""
        with ThreadPoolExecutor(len(self.names)) as pool:
            yield from pool.map(call, self.names)


class RemoteJob(OuterJob):
    """A started step, or ranks.

    Its processes here are those of what started it; what the nodes know of its own is asked there.

    Args:
        outer: the call of srun or mpirun, under its wardens.
        nodes: those that it runs on.
        mark: what its processes are known by there.
        status_of: exit status of what ended first, by the call's own end and what it said; -N when
            signal N ended it.
    """

    def __init__(
        self,
        outer: LocalJob,
        nodes: Nodes,
        mark: str,
        status_of: Callable[[Exit, Path], int | None],
    ) -> None:
        super().__init__(outer)
        self._nodes = nodes
        self._mark = mark
        self._status_of = status_of
        self._why: Reason | None = None

    def poll(self) -> Exit | None:
        ended = self._outer.poll()
        return None if ended is None else self._of_program(ended)

    def keep_evidence(self, why: str) -> None:
        """As in `Job`: the processes here, then those of the launch on the nodes."""
        self._outer.keep_evidence(why)
        self._nodes.evidence(self._mark, self._outer.evidence)

    def processes(self) -> Sequence[psutil.Process]:
        """Those of the call here."""
        return self._outer.processes()

    def cpu_seconds(self) -> float:
        """As in `Job`, read on the nodes."""
        try:
            return sum(map(float, self._nodes.look("cpu", self._mark).split()))
        except (RunError, ValueError):
            return math.nan

    def listens(self, port: int) -> bool:
        """As in `Job`, looked up on the nodes.

        Raises:
            RunError: they could not be asked.
        """
        return "yes" in self._nodes.look("listens", self._mark, str(port)).split()

    def _end(self, why: Reason, grace_s: float) -> Exit:
        """As in `Job`: its processes on the nodes are asked first, as srun would kill them."""
        if (ended := self.poll()) is not None:
            return ended
        self._why = why
        deadline = time.monotonic() + grace_s
        try:
            if grace_s > 0:
                with suppress(RunError):  # a node that does not answer is not asked
                    self._nodes.look("term", self._mark, seconds=TERM_S)
                    self._outer.until(max(0.0, deadline - time.monotonic()))
        except BaseException:
            self._outer.release()  # a second Ctrl-C: the warden ends srun, and srun its tasks
            raise
        return self._of_program(self._outer.stop(grace_s))

    def _of_program(self, ended: Exit) -> Exit:
        """The end of the call here as that of the program."""
        if self._why is not None and ended.reason in ("exited", "stopped"):
            ended = replace(ended, reason=self._why)
        return replace(ended, status=self._status_of(ended, self.stderr))
