"""Random kills of a session's processes, seeded: which one, with which signal, and when.

For the soak tests. What is killed is chosen by its kind first, so that each kind gets its share.
"""

import contextlib
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import psutil

EVERYTHING = "everything at once"
KINDS = ("pytest", "worker", "outer warden", "inner warden", "server", "client", EVERYTHING)
DYING_YOUNG = 0.2
WAYS = ("SIGTERM", "SIGINT", "SIGKILL", "SIGSTOP and SIGKILL")
PROGRAMS = {
    "standin_family.py": "server",
    "standin_server.py": "server",
    "standin_client.py": "client",
    "cleanup_guard.py": "guard",
}


def kind_of(process: psutil.Process, main: int) -> str | None:
    """What a process of the session that began with `main` is; None where that cannot be told."""
    try:
        words, parent = process.cmdline(), process.parent()
        above = parent.cmdline() if parent is not None else []
    except psutil.Error:
        return None
    if process.pid == main:
        return "pytest"
    if _runs("warden.py", words):
        return "inner warden" if _runs("warden.py", above) else "outer warden"
    if words and words[0].rpartition("/")[2] == "srun":
        return "srun"
    for program, kind in PROGRAMS.items():
        if _runs(program, words):
            return kind
    return "worker" if parent is not None and parent.pid == main else None


def _runs(program: str, words: Iterable[str]) -> bool:
    return any(word.endswith(f"/{program}") for word in words)


def kill(victim: psutil.Process, way: str) -> None:
    """Do as `way` says; one that is stopped first cannot act on the death of another."""
    if way == WAYS[-1]:
        _send([victim], signal.SIGSTOP)
        time.sleep(0.1)
        way = "SIGKILL"
    _send([victim], signal.Signals[way])


def kill_all(processes: Callable[[], Iterable[psutil.Process]]) -> None:
    """Stop all, until nobody is left who could start one more; then kill them."""
    stopped: set[psutil.Process] = set()
    while more := set(processes()) - stopped:
        _send(more, signal.SIGSTOP)
        stopped |= more
        time.sleep(0.05)
    _send(stopped, signal.SIGKILL)


def _send(victims: Iterable[psutil.Process], number: signal.Signals) -> None:
    for one in victims:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.send_signal(number)


@dataclass
class Killer:
    """Kills at random moments until it has killed often enough.

    Attributes:
        seed: of all that is random; the moments depend on the machine as well.
        left: kills still to be done.
        done: what was killed and how → how often.
        has_killed_everything, has_killed_a_server: in the session that it accompanied last.
        kinds: what may be drawn, each as likely as the others.
        extra: further victims → what kills one of them; answers whether there was one.
    """

    seed: int
    left: int
    done: Counter[tuple[str, str]] = field(default_factory=Counter)
    has_killed_everything: bool = False
    has_killed_a_server: bool = False
    kinds: tuple[str, ...] = KINDS
    extra: dict[str, Callable[[random.Random], bool]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._draw = random.Random(self.seed)

    def accompany(
        self,
        session: subprocess.Popen[str],
        processes: Callable[[], Iterable[psutil.Process]],
        patience_s: float,
    ) -> None:
        """Kill now and then until the session ends, among the `processes` of it that live.

        One that lives longer than `patience_s` hangs: an AssertionError.
        """
        deadline = time.monotonic() + patience_s
        self.has_killed_everything = self.has_killed_a_server = False
        # Some die while they begin; the others not before they have started a program.
        spared = self.left > 0 and self._draw.random() > DYING_YOUNG
        while session.poll() is None:
            assert time.monotonic() < deadline, f"a session lives after {patience_s:.0f} s"
            with contextlib.suppress(subprocess.TimeoutExpired):
                session.wait(0.2 if spared else self._draw.uniform(0.1, 5.0) if self.left else 1.0)
                return
            there = list(processes()) if self.left else []
            if spared:
                spared = "outer warden" not in {kind_of(one, session.pid) for one in there}
            elif self.left and self._strike(session.pid, there, processes):
                self.left -= 1

    def _strike(
        self,
        main: int,
        there: list[psutil.Process],
        processes: Callable[[], Iterable[psutil.Process]],
    ) -> bool:
        """Kill something of the first kind drawn that is there; False if nothing is."""
        way = self._draw.choice(WAYS)
        every = (*self.kinds, *self.extra)
        for kind in self._draw.sample(every, len(every)):
            if kind == EVERYTHING:
                kill_all(processes)
                self.has_killed_everything = True
                self.done[kind, WAYS[-1]] += 1
                return True
            if kind in self.extra:
                if self.extra[kind](self._draw):
                    self.done[kind, ""] += 1
                    return True
            elif found := [one for one in there if kind_of(one, main) == kind]:
                kill(self._draw.choice(found), way)
                self.has_killed_a_server |= kind == "server"
                self.done[kind, way] += 1
                return True
        return False

    def told(self) -> str:
        """The kills, counted."""
        counted = [f"{kind} {way} {count}" for (kind, way), count in sorted(self.done.items())]
        return f"{sum(self.done.values())} kills ({', '.join(counted)})"
