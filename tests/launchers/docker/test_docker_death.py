"""No container outlives perfgate, whoever is killed: perfgate, its wardens, the guard, all."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from docker_host import CPU, SITE, DockerHost
from witnesses import eventually, kill_at_once, program

from perfgate.launchers.base import PlacementRequest
from perfgate.launchers.docker.launcher import DockerLauncher

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parents[2]
# The first hears no SIGTERM, as an engine that is stuck in a kernel.
PROGRAMS = {"stubborn": "trap '' TERM; while :; do sleep 1; done", "obedient": "exec sleep 600"}
Process = subprocess.Popen[str]


@contextmanager
def perfgate(host: DockerHost, tmp_path, name="stubborn", then="wait") -> Iterator[Process]:
    """A process that has a container of that program; dead after the block."""
    host.image(**PROGRAMS)
    paths = os.pathsep.join((str(TESTS.parent / "src"), str(TESTS)))
    with subprocess.Popen(
        program("docker_driver", tmp_path / "run", name, then),
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def started(process: Process, host: DockerHost) -> None:
    """Wait until it has its container."""
    assert "started\n" in iter(process.stdout.readline, "")
    eventually(lambda: host.containers)


def guards(process: Process) -> list[psutil.Process]:
    family = psutil.Process(process.pid).children(recursive=True)
    return [one for one in family if "cleanup_guard.py" in " ".join(one.cmdline())]


@pytest.mark.parametrize(
    ("name", "sent"),
    [("stubborn", signal.SIGTERM), ("stubborn", signal.SIGKILL), ("obedient", signal.SIGINT)],
)
def test_perfgate_is_ended(host, tmp_path, name, sent):
    with perfgate(host, tmp_path, name) as process:
        started(process, host)
        process.send_signal(sent)
        eventually(lambda: not host.containers)


def test_a_test_fails(host, tmp_path):
    with perfgate(host, tmp_path, "obedient", then="fail") as process:
        process.wait(60)
        assert process.returncode == 1
        eventually(lambda: not host.containers)


def test_perfgate_is_killed_before_the_container_is_there(host, tmp_path):
    with perfgate(host, tmp_path) as process:
        host.trouble("slow", "0.8")
        eventually(lambda: host.runs)
        assert not host.containers
        process.kill()
        time.sleep(1.0)  # now the daemon makes it, although nobody waits for it
        eventually(lambda: not host.containers)


def test_the_guard_is_killed_and_perfgate_goes_on(host, tmp_path):
    with perfgate(host, tmp_path, "obedient") as process:
        started(process, host)
        killed = guards(process)
        assert killed
        for guard in killed:
            guard.kill()
        assert host.containers
        process.send_signal(signal.SIGINT)
        eventually(lambda: not host.containers)


@pytest.mark.parametrize("killed", ["guard", "everything"])
def test_what_is_left_when_all_are_killed_at_once_the_next_start_removes(host, tmp_path, killed):
    with perfgate(host, tmp_path) as process:
        started(process, host)
        driver = psutil.Process(process.pid)
        others = guards(process) if killed == "guard" else driver.children(recursive=True)
        kill_at_once(driver, *others)
        process.wait()
    assert host.containers, "a container is no child of perfgate"
    told: list[str] = []
    request = PlacementRequest(CPU, tmp_path / "next", 60, told.append)
    with DockerLauncher(SITE).placed(request):
        assert not host.containers
    (line,) = told
    assert line.endswith("whose perfgate process has ended")
