"""A process is told from another one that got its number."""

import os
import subprocess
import sys

from perfgate.core.process_identity import began, lives, pid_namespace


def test_a_living_process_is_known_by_its_start() -> None:
    start = began(os.getpid())
    assert start is not None
    assert lives(os.getpid(), start)
    assert not lives(os.getpid(), start + 1)


def test_one_that_has_ended_does_not_live_though_nobody_has_collected_it() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        start = began(process.pid)
        assert start
        assert lives(process.pid, start)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert began(process.pid) == 0
        assert not lives(process.pid, start)
    assert began(process.pid) is None
    assert not lives(process.pid, start)


def test_the_namespace_is_that_of_all_processes_here() -> None:
    code = "from perfgate.core.process_identity import pid_namespace; print(pid_namespace())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == pid_namespace() != ""
