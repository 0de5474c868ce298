"""No container outlives perfgate, whoever is killed: perfgate, its wardens, the guard, all."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from building import SCENARIO
from docker_host import IMAGE, PROGRAMS, DockerHost, docker_host
from witnesses import eventually, kill_at_once

from perfgate.launchers.base import PlacementRequest
from perfgate.launchers.docker.launcher import DockerLauncher
from perfgate.launchers.site import DockerSite
from perfgate.scenarios.scenario import Hardware

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parents[2]
# Hears no SIGTERM, as an engine that is stuck in a kernel.
STUBBORN = "trap '' TERM; while :; do sleep 1; done"
OBEDIENT = "exec sleep 600"


@pytest.fixture
def host() -> Iterator[DockerHost]:
    """A machine with Docker: its daemon is played, and its program where it is not installed."""
    with docker_host(real=shutil.which("docker") is not None) as host:
        host.image(stubborn=STUBBORN, obedient=OBEDIENT)
        yield host


@contextmanager
def perfgate(
    host: DockerHost, tmp_path: Path, program: str = "stubborn", then: str = "wait"
) -> Iterator["subprocess.Popen[str]"]:
    """A process that has a container of `program`; dead after the block."""
    task = {"image": IMAGE, "folder": str(tmp_path / "run"), "argv": [program], "then": then}
    paths = (str(TESTS.parent / "src"), str(TESTS))
    environment = {
        **os.environ,
        **host.environment,
        "PYTHONPATH": os.pathsep.join(paths),
        "PERFGATE_HOME": str(tmp_path / "home"),
    }
    with subprocess.Popen(
        [sys.executable, str(PROGRAMS / "docker_driver.py"), json.dumps(task)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: "subprocess.Popen[str]", word: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == word:
            return
    raise AssertionError(f"it never said {word}")


def named(process: "subprocess.Popen[str]", program: str) -> list[psutil.Process]:
    """Its descendants of that name."""
    found = psutil.Process(process.pid).children(recursive=True)
    return [one for one in found if program in " ".join(one.cmdline())]


def nothing_is_left(host: DockerHost) -> None:
    eventually(lambda: not host.containers)


@pytest.mark.parametrize(
    ("program", "sent"),
    [
        ("stubborn", signal.SIGTERM),
        ("stubborn", signal.SIGKILL),
        ("obedient", signal.SIGINT),
    ],
)
def test_perfgate_is_ended(
    host: DockerHost, tmp_path: Path, program: str, sent: signal.Signals
) -> None:
    with perfgate(host, tmp_path, program) as process:
        said(process, "started")
        eventually(lambda: host.containers)
        process.send_signal(sent)
        nothing_is_left(host)


def test_a_test_fails(host: DockerHost, tmp_path: Path) -> None:
    with perfgate(host, tmp_path, "obedient", then="fail") as process:
        process.wait(60)
        assert process.returncode == 1
        nothing_is_left(host)


def test_perfgate_is_killed_before_the_container_is_there(host: DockerHost, tmp_path: Path) -> None:
    with perfgate(host, tmp_path) as process:
        host.trouble("slow", "0.8")
        said(process, "started")
        eventually(lambda: host.runs)
        assert not host.containers
        process.kill()
        time.sleep(1.0)  # now the daemon makes it, although nobody waits for it
        nothing_is_left(host)


def test_the_guard_is_killed_and_perfgate_goes_on(host: DockerHost, tmp_path: Path) -> None:
    with perfgate(host, tmp_path, "obedient") as process:
        said(process, "started")
        eventually(lambda: host.containers)
        guards = named(process, "cleanup_guard.py")
        assert guards
        for guard in guards:
            guard.kill()
        assert host.containers
        process.send_signal(signal.SIGINT)
        nothing_is_left(host)


@pytest.mark.parametrize("killed", ["guard", "everything"])
def test_what_is_left_when_all_are_killed_at_once_the_next_start_removes(
    host: DockerHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: str
) -> None:
    with perfgate(host, tmp_path) as process:
        said(process, "started")
        eventually(lambda: host.containers)
        family = [psutil.Process(process.pid)]
        if killed == "guard":
            family += named(process, "cleanup_guard.py")
        else:
            family += family[0].children(recursive=True)
        kill_at_once(*family)
        process.wait()
    assert host.containers, "a container is no child of perfgate"
    for name, value in {**host.environment, "PERFGATE_HOME": str(tmp_path / "home")}.items():
        monkeypatch.setenv(name, value)
    told: list[str] = []
    site = DockerSite(image=IMAGE, user=None, cache=None, pass_on=())
    scenario = replace(SCENARIO, hardware=Hardware("none", 0, 1))
    with DockerLauncher(site).placed(
        PlacementRequest(scenario, tmp_path / "next", 60, told.append)
    ):
        assert not host.containers
    (line,) = told
    assert line.endswith("whose perfgate process has ended")
