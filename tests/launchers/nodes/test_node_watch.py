"""The watch of a node as a program: it says when it watches, ends when asked or alone, tells."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "machine" / "conditions"))

from burners import cpu_of, stranger

from perfgate.launchers.nodes import watch as node_watch
from perfgate.launchers.nodes.watch import PLACE, WATCHES
from perfgate.machine.conditions.conditions import Conditions, conditions_of

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
