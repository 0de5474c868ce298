"""Watch each node of a start while load is measured on it.

``python -P -m perfgate.launchers.nodes.watch MARK GPUS`` runs on a node: it says when its first
look is over, watches until SIGTERM or until what started it is gone, and then tells what it saw as
one line of JSON. Ours are the processes with the mark in PERFGATE_PLACE.

`watching` starts it on the nodes. Nothing that goes wrong with it fails the block, and every wait
has a limit: what is not watched is a note in the conditions of that node.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from perfgate.core.errors import PerfgateError
from perfgate.core.files import json_text
from perfgate.core.files.untrusted_files import read_regular
from perfgate.core.programs import raw_log
from perfgate.core.programs.command import Command
from perfgate.launchers.base import POLL_S, Job
from perfgate.machine.conditions.conditions import Conditions, conditions_of, not_watched
from perfgate.machine.conditions.processes import Marked
from perfgate.machine.conditions.watch import NodesWatch, watched
from perfgate.scenarios.scenario import Hardware

PROGRAM = "perfgate.launchers.nodes.watch"  # this module
PLACE = "PERFGATE_PLACE"
WATCHES = "watches"
ENDING = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
PARENT_S = 1.0  # between two looks whether the parent lives
BEGUN_S = 20.0  # Python from a slow file system, and a first look
GRACE_S = 15.0  # a last look, which gives a hanging driver up after 10 s
HASTE_S = 1.0  # without an answer; not 0: an srun that is killed leaves its task on the node

Start = Callable[[Command, Path, str], Job]


@contextmanager
def watching(
    nodes: Sequence[str], mark: str, hardware: Hardware, folder: Path, start: Start
) -> Iterator[NodesWatch]:
    """Watch the nodes while the block runs.

    Args:
        nodes: their names.
        mark: of our processes there, in PERFGATE_PLACE.
        hardware: the GPUs of the scenario.
        folder: the watches' own files.
        start: starts a command on the node of that name.
    """
    gpus = 0 if hardware.gpu == "none" else hardware.gpus // hardware.nodes
    command = Command((sys.executable, "-P", "-m", PROGRAM, mark, str(gpus)))
    watch, jobs = NodesWatch(), dict[str, Job]()
    grace_s = HASTE_S  # nobody asks what a measurement that failed was like
    try:
        for node in nodes:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                jobs[node] = start(command, folder, node)
            except (PerfgateError, OSError) as error:
                watch.conditions[node] = _failed(error)
        _begun(jobs)
        yield watch
        grace_s = GRACE_S
    finally:
        watch.conditions |= _ended(jobs, grace_s)


def _begun(jobs: Mapping[str, Job]) -> None:
    """Wait until all of them watch, or have ended, but not for long."""
    deadline = time.monotonic() + BEGUN_S
    while time.monotonic() < deadline:
        if all(_lines(job) or job.poll() is not None for job in jobs.values()):
            break
        time.sleep(POLL_S)


def _ended(jobs: Mapping[str, Job], grace_s: float) -> dict[str, Conditions]:
    """End all of them at the same time; what they tell."""

    def end(job: Job) -> Conditions:
        try:
            ended = job.stop(grace_s if _lines(job) else HASTE_S)
            lines = _lines(job)
            if len(lines) > 1:
                return conditions_of(json_text.parse(lines[-1]))
        except (PerfgateError, OSError, ValueError) as error:
            return _failed(error)
        if not lines and ended.reason == "stopped":
            return not_watched(f"the watch did not start in {BEGUN_S:.0f} s")
        said = [f": {line}" for line in job.tail(2) if line != WATCHES][-1:]
        return not_watched("".join([f"the watch ended with status {ended.status}", *said]))

    if not jobs:
        return {}
    with ThreadPoolExecutor(len(jobs)) as pool:
        return dict(zip(jobs, pool.map(end, jobs.values()), strict=True))


def _failed(error: Exception) -> Conditions:
    """A watch that could not be started, ended or read; what to do next is of no use here."""
    return not_watched(str(error).split("\n", 1)[0])


def _lines(job: Job) -> list[str]:
    """What it has told: nothing before it watches."""
    try:
        content = read_regular(job.stdout, raw_log.MOST_SEARCHED)
        return content.decode("utf-8", errors="replace").splitlines()
    except OSError:
        return []


def main(mark: str, gpus: int) -> None:
    """Watch as many GPUs, and the CPU; the watch's thread must not get the signals either."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    parent = os.getppid()
    with suppress(BrokenPipeError), watched(gpus, marked=Marked(PLACE, mark)) as watch:
        print(WATCHES, flush=True)
        while signal.sigtimedwait(ENDING, PARENT_S) is None and os.getppid() == parent:
            pass
    with suppress(BrokenPipeError):
        print(json.dumps(watch.conditions.plain()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
