"""The watch of nodes: as a program it ends when asked or alone; from here its faults are notes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "machine" / "conditions"))

from burners import cpu_of, stranger

from perfgate.core.command import Command
from perfgate.core.errors import RunError
from perfgate.launchers.local.job import LocalJob
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.launchers.nodes import watch as node_watch
from perfgate.launchers.nodes.watch import PLACE, WATCHES, watching
from perfgate.machine.conditions.conditions import Conditions, conditions_of, not_watched
from perfgate.scenarios.scenario import Hardware

ARGV = (sys.executable, "-P", "-m", node_watch.__name__, "a", "0")
PATIENCE_S = 60.0
# Starts the watch, hands its output on, and is killed.
PARENT = """\
import subprocess, sys, time
child = subprocess.Popen(sys.argv[2:], stdout=open(sys.argv[1], "w"))
print(child.pid, flush=True)
time.sleep(600)
"""


@contextmanager
def running() -> Iterator["subprocess.Popen[str]"]:
    """The program, when its first look is over."""
    with subprocess.Popen(ARGV, stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None
            assert program.stdout.readline() == f"{WATCHES}\n"
            yield program
        finally:
            program.kill()


def told(text: str) -> Conditions:
    (line,) = text.splitlines()
    return conditions_of(json.loads(line))


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_asked_to_end_it_tells_what_it_saw(sent: signal.Signals) -> None:
    with running() as program:
        program.send_signal(sent)
        output, _ = program.communicate(timeout=PATIENCE_S)
    assert program.returncode == 0
    seen = told(output)
    assert seen.samples >= 2
    assert seen.cpu is not None
    assert seen.cpu.others_share is not None
    assert seen.notes == ()


@pytest.mark.parametrize("mark", ["b", "ab"])
@pytest.mark.skipif(os.getpid() == 1, reason="process 1 adopts every orphan")
def test_who_has_another_mark_is_a_load_of_others(tmp_path: Path, mark: str) -> None:
    with stranger(tmp_path, **{PLACE: mark}) as burner, running() as program:
        first_s = cpu_of(burner)
        while cpu_of(burner) < first_s + 0.6:
            time.sleep(0.05)
        used_s = cpu_of(burner) - first_s
        program.terminate()
        output, _ = program.communicate(timeout=PATIENCE_S)
    seen = told(output)
    assert seen.cpu is not None
    assert seen.cpu.others_share is not None
    assert seen.cpu.others_share * seen.cpu.cores * seen.seconds > used_s - 0.25


def test_it_ends_when_what_started_it_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "told"
    with subprocess.Popen(
        (sys.executable, "-c", PARENT, file, *ARGV), stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        watch = psutil.Process(int(parent.stdout.readline()))
        while not file.read_text():
            time.sleep(0.01)
        parent.kill()
    try:
        watch.wait(PATIENCE_S)
    finally:
        if watch.is_running():
            watch.kill()
    first, rest = file.read_text().split("\n", 1)
    assert first == WATCHES
    assert told(rest).samples >= 2


def test_a_reader_that_is_gone_is_no_trouble() -> None:
    with running() as program:
        assert program.stdout is not None
        program.stdout.close()
        program.terminate()
        assert program.wait(PATIENCE_S) == 0


# From here. ----------------------------------------------------------------------

TOLD = json.dumps(not_watched("made up").plain())
TWO = Hardware("B200", 8, 2)


def says(text: str) -> str:
    """A program that watches until it is asked to end, and says that then."""
    return (
        "import signal\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n"
        "print('watches', flush=True)\n"
        "signal.sigwait([signal.SIGTERM])\n"
        f"print({text!r}, flush=True)\n"
    )


@dataclass
class Nodes:
    """Nodes on this machine, on which other programs than the watch are started.

    Attributes:
        programs: node → the program; what has none runs the watch itself.
    """

    programs: dict[str, str] = field(default_factory=dict)
    jobs: dict[str, LocalJob] = field(default_factory=dict)
    argv: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def start(self, command: Command, folder: Path, node: str) -> LocalJob:
        self.argv[node] = command.argv
        if node in self.programs:
            command = Command((sys.executable, "-c", self.programs[node]))
        self.jobs[node] = LocalLauncher().start(command, folder, node)
        return self.jobs[node]

    @property
    def running(self) -> list[str]:
        return [node for node, job in self.jobs.items() if job.poll() is None]


def test_every_node_is_watched_while_the_block_runs(tmp_path: Path) -> None:
    nodes = Nodes({"n1": says(TOLD)})
    with watching(
        ("n1", "n2"), "mark", Hardware("none", 0, 2), tmp_path / "w", nodes.start
    ) as watch:
        assert nodes.running == ["n1", "n2"]
        assert watch.conditions == {}
    assert nodes.running == []
    assert [*watch.conditions] == ["n1", "n2"]
    assert watch.conditions["n1"] == not_watched("made up")
    assert watch.conditions["n2"].samples >= 2
    with watching(("n1",), "mark", TWO, tmp_path, nodes.start):
        pass
    assert nodes.argv["n1"][1:] == ("-P", "-m", "perfgate.launchers.nodes.watch", "mark", "4")


def test_a_watch_that_goes_wrong_is_a_note_of_its_node(tmp_path: Path) -> None:
    programs = {
        "dies": "import sys; print('watches', flush=True); sys.exit('no memory left')",
        "fails": "import sys; sys.exit('no such module')",
        "raves": says("no JSON"),
        "lies": says("{}"),
        "well": says(TOLD),
    }
    nodes = Nodes(programs)
    with watching(tuple(programs), "a", TWO, tmp_path, nodes.start) as watch:
        nodes.jobs["dies"].wait(total_s=60.0)
    told = {node: " ".join(seen.notes) for node, seen in watch.conditions.items()}
    assert told["dies"] == "not watched: the watch ended with status 1: no memory left"
    assert told["fails"] == "not watched: the watch ended with status 1: no such module"
    assert told["raves"].startswith("not watched: ")
    assert "not the plain form of Conditions" in told["lies"]
    assert told["well"] == "not watched: made up"
    assert nodes.running == []
    (tmp_path / "file").write_text("")
    with watching(("n1",), "a", TWO, tmp_path / "file" / "w", nodes.start) as watch:
        pass
    assert "Not a directory" in watch.conditions["n1"].notes[0]


DEAF = says(TOLD).replace("signal.sigwait", "import time; time.sleep(600)  # ")


@pytest.mark.parametrize(
    ("limit", "program", "note"),
    [
        ("BEGUN_S", "import time; time.sleep(600)", "not watched: the watch did not start in 0 s"),
        ("GRACE_S", DEAF, "not watched: the watch ended with status -9"),
    ],
)
def test_a_watch_that_does_not_begin_or_end_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, program: str, note: str
) -> None:
    monkeypatch.setattr(node_watch, limit, 0.2)
    nodes = Nodes({"n1": program})
    with watching(("n1",), "a", TWO, tmp_path, nodes.start) as watch:
        assert nodes.running == ["n1"]
    assert watch.conditions["n1"].notes == (note,)
    assert nodes.running == []


def test_a_node_that_starts_nothing_is_a_note_and_the_others_are_watched(tmp_path: Path) -> None:
    nodes = Nodes({"n2": says(TOLD)})

    def start(command: Command, folder: Path, node: str) -> LocalJob:
        if node == "n1":
            raise RunError("slurm_unreachable", "nobody answers")
        return nodes.start(command, folder, node)

    with watching(("n1", "n2"), "a", TWO, tmp_path, start) as watch:
        assert nodes.running == ["n2"]
    assert watch.conditions["n1"].notes == ("not watched: slurm_unreachable: nobody answers",)
    assert watch.conditions["n2"] == not_watched("made up")


@pytest.mark.parametrize("raised", [KeyError, KeyboardInterrupt])
def test_a_block_that_fails_ends_its_watch(tmp_path: Path, raised: type[BaseException]) -> None:
    nodes = Nodes({"n1": says(TOLD)})

    def fail() -> None:
        assert nodes.running == ["n1"]
        raise raised

    with pytest.raises(raised), watching(("n1",), "a", TWO, tmp_path, nodes.start):
        fail()
    assert nodes.running == []
