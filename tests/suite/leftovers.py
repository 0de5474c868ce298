"""Checkouts of which all is known that a session could leave behind.

Their servers are families of processes with shared memory between them, as engines are.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from checkouts import Suite, make_suite, with_plugins
from sessions import is_held, untraced

NOTHING = {"processes": [], "leases": [], "ports": [], "shared memory": [], "temporary files": []}


@dataclass
class Watched(Suite):
    """A checkout with leases, temporary files and shared memory of its own."""

    def __post_init__(self) -> None:
        self.leases = self.folder / "leases"
        self.temporary = self.folder / "temporary"
        # What the names of its files in /dev/shm begin with.
        self.memory = f"perfgate-{self.folder.parent.name}-{os.getpid()}-"

    @property
    def environment(self) -> dict[str, str]:
        # What these sessions run is counted where they are let run to their end.
        return untraced(super().environment) | {
            "PERFGATE_LEASES": str(self.leases),
            "PERFGATE_STANDIN_MEMORY": self.memory,
            "TMPDIR": str(self.temporary),
        }

    def has(self) -> dict[str, list[str]]:
        """What of this checkout is there now, of all that could be left behind."""
        return {
            "processes": [words(one) for one in self.processes()],
            "leases": [lock.name for lock in self.leases.iterdir() if is_held(lock)],
            "ports": [str(port) for port in sorted(self._listening())],
            "shared memory": [one.name for one in self.memories()],
            "temporary files": [
                one.name
                for one in self.temporary.iterdir()
                if not one.name.startswith("pytest-of-")  # pytest removes all but the last three
            ],
        }

    def left(self) -> dict[str, list[str]]:
        """What is there when all processes are gone, or a generous while has passed."""
        self.wait_until_empty()
        return self.has()

    def memories(self) -> list[Path]:
        return list(Path("/dev/shm").glob(f"{self.memory}*"))

    def _listening(self) -> set[int]:
        """Ports of its servers on which something still listens, be it of an unknown process."""
        calls = [path.read_text() for path in self.folder.glob("run/*/start-*/server.sh")]
        ours = {int(port) for call in calls for port in re.findall(r"--port\W+(\d+)", call)}
        return {
            one.laddr.port
            for one in psutil.net_connections("tcp")
            if one.status == psutil.CONN_LISTEN
            and one.laddr.port in ours
            and (one.pid is None or "standin" in words(psutil.Process(one.pid)))
        }


def words(process: psutil.Process | None) -> str:
    """The command line of a process; empty if it is gone."""
    try:
        return " ".join(process.cmdline()) if process else ""
    except psutil.Error:
        return ""


@contextmanager
def watched(folder: Path) -> Iterator[Watched]:
    """A checkout in a folder, while the block runs."""
    suite = Watched(make_suite(folder / "suite").folder)
    with_plugins(suite, "standin_family")
    suite.leases.mkdir()
    suite.temporary.mkdir()
    yield suite
    for memory in suite.memories():
        memory.unlink()
