"""Soak tests: many tiny scenarios in sessions that go on with one run, and random kills of them.

The kills are seeded: which process, with which signal, and when. What is killed is chosen by its
kind first, so that each kind gets its share.
"""

import contextlib
import itertools
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import yaml
from checkouts import begun
from plain_records import recorded

from perfgate.runs.run_folder import RunFolder

KINDS_OF_SCENARIOS = Path(__file__).parents[1] / "standins" / "soak.yaml"
TESTS = (3, 1, 1, 1, 1, 1)


def scenarios(count: int) -> str:
    """So many scenarios, of all kinds in turn."""
    document = yaml.safe_load(KINDS_OF_SCENARIOS.read_text())
    kinds = itertools.cycle(document["scenarios"])
    document["scenarios"] = [{**next(kinds), "id": f"soak-{n:02}"} for n in range(count)]
    return yaml.safe_dump(document)


# Exit statuses of a session that ended by itself, each test judged; none is a regression.
ENDED = (0, 10, 11)


@contextmanager
def begun_or_resumed(
    argv: Sequence[str], run: Path, environment: Mapping[str, str], log: Path
) -> Iterator["subprocess.Popen[str]"]:
    """A session in the folder above the run, which it begins or goes on with."""
    is_run = (run / "run.json").exists()
    if not is_run:
        shutil.rmtree(run, ignore_errors=True)  # killed before it was a run
    where = ("--resume" if is_run else "--run-dir", str(run))
    call = [*argv, "-q", *where, "-n", "2", "-m", "standin", "perf_tests"]
    with log.open("w") as out, begun(call, run.parent, environment, out) as session:
        yield session


def finished(run: Path) -> set[str]:
    """The scenarios of a run with the record of a group."""
    if not (run / "run.json").exists():
        return set()
    return {line["scenario"] for line in recorded(RunFolder(run), "group")}


def judged_once(run: Path, count: int) -> str:
    """The records in words; an AssertionError unless each group and each test has just one."""
    groups = Counter(one["scenario"] for one in recorded(RunFolder(run), "group"))
    judged = recorded(RunFolder(run), "verdict")
    verdicts = Counter(one["test"] for one in judged)
    assert set(groups.values()) == {1}, groups
    assert len(groups) == count
    assert set(verdicts.values()) == {1}, verdicts
    assert len(verdicts) == sum(itertools.islice(itertools.cycle(TESTS), count))
    assert not recorded(RunFolder(run), "skipped")
    reached = Counter(one["verdict"] for one in judged)
    return f"{len(groups)} groups, {len(verdicts)} verdicts {dict(reached)}"


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
        kinds: what may be drawn, each as likely as the others.
        done: what was killed and how → how often.
        killed: the kinds killed in the session that it accompanied last.
        extra: further victims → what kills one of them; answers whether there was one.
    """

    seed: int
    left: int
    kinds: tuple[str, ...] = KINDS
    done: Counter[tuple[str, str]] = field(default_factory=Counter)
    killed: set[str] = field(default_factory=set)
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
        self.killed = set()
        # Some die while they begin; the others not before they have started a program.
        spared = self.left > 0 and self._draw.random() > DYING_YOUNG
        while session.poll() is None:
            assert time.monotonic() < deadline, f"a session lives after {patience_s:.0f} s"
            with contextlib.suppress(subprocess.TimeoutExpired):
                session.wait(0.2 if spared else self._draw.uniform(0.1, 5.0) if self.left else 1.0)
                return
            if spared:
                spared = all(kind_of(one, session.pid) != "outer warden" for one in processes())
            elif self.left and self._strike(session.pid, processes):
                self.left -= 1

    def _strike(self, main: int, processes: Callable[[], Iterable[psutil.Process]]) -> bool:
        """Kill something of the first kind drawn that is there; False if nothing is."""
        there = list(processes())
        drawn = self._draw.choice(WAYS)
        every = (*self.kinds, *self.extra)
        for kind in self._draw.sample(every, len(every)):
            way = drawn
            if kind == EVERYTHING:
                way = WAYS[-1]
                kill_all(processes)
            elif kind in self.extra:
                way = ""
                if not self.extra[kind](self._draw):
                    continue
            elif found := [one for one in there if kind_of(one, main) == kind]:
                self._kill(self._draw.choice(found), way)
            else:
                continue
            self.done[kind, way] += 1
            self.killed.add(kind)
            return True
        return False

    def _kill(self, victim: psutil.Process, way: str) -> None:
        if way == WAYS[-1]:  # one that is stopped first cannot act on the death of another
            _send([victim], signal.SIGSTOP)
            time.sleep(0.1)
            way = "SIGKILL"
        _send([victim], signal.Signals[way])

    def told(self) -> str:
        """The kills, counted."""
        counted = [f"{kind} {way} {count}" for (kind, way), count in sorted(self.done.items())]
        return f"{sum(self.done.values())} kills ({', '.join(counted)})"
