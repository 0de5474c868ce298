"""The watch of nodes: as a program it ends when asked or alone; from here its faults are notes."""

import json
import signal
import subprocess
import sys
from contextlib import contextmanager

import psutil
import pytest
from tables import each
from witnesses import eventually

from perfgate.core.errors import RunError
from perfgate.core.programs.command import Command
from perfgate.launchers.local.job import LocalJob, kill
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.launchers.nodes import watch as node_watch
from perfgate.launchers.nodes.watch import WATCHES, watching
from perfgate.machine.conditions.conditions import conditions_of, not_watched
from perfgate.scenarios.scenario import Hardware

ARGV = (sys.executable, "-P", "-m", node_watch.__name__, "a", "0")
PATIENCE_S = 60.0
# Starts the watch, hands its output on, and is killed.
PARENT = ("/bin/sh", "-c", '"$@" >"$0" & echo $!; exec sleep 600')


@contextmanager
def running():
    """The program, when its first look is over."""
    with subprocess.Popen(ARGV, stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout.readline() == f"{WATCHES}\n"
            yield program
        finally:
            program.kill()


@each("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_asked_to_end_it_tells_what_it_saw(sent: signal.Signals) -> None:
    with running() as program:
        program.send_signal(sent)
        output, _ = program.communicate(timeout=PATIENCE_S)
    seen = conditions_of(json.loads(output))
    assert program.returncode == 0
    assert seen.samples >= 2
    assert seen.cpu.others_share is not None
    assert seen.notes == ()


def test_it_ends_when_what_started_it_is_gone(tmp_path) -> None:
    file = tmp_path / "told"
    with subprocess.Popen((*PARENT, file, *ARGV), stdout=subprocess.PIPE, text=True) as parent:
        try:
            watch = psutil.Process(int(parent.stdout.readline()))
            eventually(file.read_text)
        finally:
            parent.kill()
    try:
        watch.wait(PATIENCE_S)
    finally:
        kill([watch])
    begun, seen = file.read_text().splitlines()
    assert (begun, conditions_of(json.loads(seen)).samples >= 2) == (WATCHES, True)


def test_a_reader_that_is_gone_is_no_trouble() -> None:
    with running() as program:
        program.stdout.close()
        program.terminate()
        assert program.wait(PATIENCE_S) == 0


# From here. ----------------------------------------------------------------------

TOLD = json.dumps(not_watched("made up").plain())
TWO = Hardware("B200", 8, 2)
DEAD = "dead"  # of a node on which nothing can be started


def says(text: str) -> str:
    """A program that watches until it is asked to end, and says that then."""
    return (
        "import signal\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n"
        "print('watches', flush=True)\n"
        "signal.sigwait([signal.SIGTERM])\n"
        f"print({text!r}, flush=True)\n"
    )


class Nodes:
    """Nodes on this machine; `programs` are started there instead of the watch, by node."""

    def __init__(self, folder, **programs: str) -> None:
        self.folder, self.programs = folder, programs
        self.jobs: dict[str, LocalJob] = {}
        self.argv: dict[str, tuple[str, ...]] = {}

    def start(self, command: Command, folder, node: str) -> LocalJob:
        if self.programs.get(node) == DEAD:
            raise RunError("slurm_unreachable", "nobody answers")
        self.argv[node] = command.argv
        if node in self.programs:
            command = Command((sys.executable, "-c", self.programs[node]))
        self.jobs[node] = LocalLauncher().start(command, folder, node)
        return self.jobs[node]

    @property
    def running(self) -> list[str]:
        return [node for node, job in self.jobs.items() if job.poll() is None]

    @contextmanager
    def watched(self, *names: str, hardware: Hardware = TWO):
        """Watch these nodes, else those with programs; nothing runs there afterwards."""
        names = names or tuple(self.programs)
        try:
            with watching(names, "mark", hardware, self.folder / "w", self.start) as watch:
                yield watch
        finally:
            assert self.running == []


def test_every_node_is_watched_while_the_block_runs(tmp_path) -> None:
    two = Nodes(tmp_path, n1=says(TOLD))
    with two.watched("n1", "n2", hardware=Hardware("none", 0, 2)) as watch:
        assert two.running == ["n1", "n2"]
        assert watch.conditions == {}
    assert [*watch.conditions] == ["n1", "n2"]
    assert watch.conditions["n1"] == not_watched("made up")
    assert watch.conditions["n2"].samples >= 2
    with two.watched("n1"):
        pass
    assert two.argv["n1"][1:] == ("-P", "-m", "perfgate.launchers.nodes.watch", "mark", "4")


def test_a_watch_that_goes_wrong_is_a_note_of_its_node(tmp_path) -> None:
    many = Nodes(
        tmp_path,
        dies="import sys; print('watches', flush=True); sys.exit('no memory left')",
        fails="import sys; sys.exit('no such module')",
        raves=says("no JSON"),
        lies=says("{}"),
        dead=DEAD,
        well=says(TOLD),
    )
    with many.watched() as watch:
        many.jobs["dies"].wait(total_s=60.0)
    told = {node: " ".join(seen.notes) for node, seen in watch.conditions.items()}
    assert told["dies"] == "not watched: the watch ended with status 1: no memory left"
    assert told["fails"] == "not watched: the watch ended with status 1: no such module"
    assert told["raves"].startswith("not watched: ")
    assert "not the plain form of Conditions" in told["lies"]
    assert told["dead"] == "not watched: slurm_unreachable: nobody answers"
    assert told["well"] == "not watched: made up"
    (tmp_path / "file").write_text("")
    with watching(("n1",), "a", TWO, tmp_path / "file" / "w", many.start) as watch:
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
def test_no_watch_is_waited_for_without_limit(tmp_path, monkeypatch, limit, program, note):
    monkeypatch.setattr(node_watch, limit, 0.2)
    one = Nodes(tmp_path, n1=program)
    with one.watched() as watch:
        assert one.running == ["n1"]
    assert watch.conditions["n1"].notes == (note,)


@pytest.mark.parametrize("raised", [KeyError, KeyboardInterrupt])
def test_a_block_that_fails_ends_its_watch(tmp_path, raised: type[BaseException]) -> None:
    one = Nodes(tmp_path, n1=says(TOLD))

    def fail() -> None:
        assert one.running == ["n1"]
        raise raised

    with pytest.raises(raised), one.watched():
        fail()
