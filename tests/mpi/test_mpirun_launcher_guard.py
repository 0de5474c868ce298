"""Nothing stays on the hosts, whatever is killed where perfgate runs. The ranks heed no SIGTERM."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from clusters import Cluster, eventually
from mpi_hosts import PROGRAMS, SITE, hosted, in_words, local_scenario, on_host, orteds, request

from perfgate.launchers.local.launcher import GUARD
from perfgate.launchers.mpirun.launcher import MpirunLauncher

pytestmark = pytest.mark.slow

RANKS_EACH = 2


@contextmanager
def holding(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """A perfgate that has ranks on both hosts; killed at the end of the block at the latest."""
    tests = PROGRAMS.parents[1]
    paths = (tests, tests / "mpi", tests / "slurm", tests.parent / "src")
    with subprocess.Popen(
        (sys.executable, PROGRAMS / "holding.py", folder),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as driver:
        try:
            assert driver.stdout is not None
            assert driver.stdout.readline() == "holds\n"
            yield driver
        finally:
            driver.kill()


def family_of(driver: "subprocess.Popen[str]") -> list[int]:
    """Perfgate, its wardens, guard, mpirun and ssh calls."""
    return [driver.pid, *(one.pid for one in psutil.Process(driver.pid).children(recursive=True))]


def kill_at_once(pids: list[int]) -> None:
    """As when the machine is switched off: nobody gets to notice the others' death."""
    for sent in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            os.kill(pid, sent)


@pytest.mark.parametrize("killed", ["perfgate", "perfgate and an orted", "all of perfgate"])
def test_no_rank_stays(hosts: Cluster, tmp_path: Path, killed: str) -> None:
    """The guard ends them where Open MPI does not; an orted, when it loses its lifeline."""
    with holding(tmp_path) as driver:
        assert len(orteds(hosts, "n1")) == len(orteds(hosts, "n2")) == 1
        victims = family_of(driver) if killed == "all of perfgate" else [driver.pid]
        if killed == "perfgate and an orted":
            victims.append(orteds(hosts, "n2")[0].pid)
        kill_at_once(victims)
        eventually(lambda: not hosted(hosts))


def test_what_nobody_was_left_to_end_is_ended_by_the_next_start(
    hosts: Cluster, tmp_path: Path
) -> None:
    with holding(tmp_path / "one") as driver:
        kill_at_once([*family_of(driver), orteds(hosts, "n2")[0].pid])
        eventually(lambda: not on_host(hosts, "n1"))
    assert len(on_host(hosts, "n2")) == RANKS_EACH, in_words(on_host(hosts, "n2"))
    start = MpirunLauncher(replace(SITE, hosts=("n2",)))
    with start.placed(request(local_scenario(), tmp_path / "two")):
        assert not on_host(hosts, "n2"), in_words(on_host(hosts, "n2"))


def test_the_guard_tries_again_and_tells_when_it_could_not(tmp_path: Path) -> None:
    done = tmp_path / "done"
    script = 'test -e "$0.tried" && exec touch "$0"; touch "$0.tried"; exit 1'
    calls = [["sh", "-c", script, str(done)]]
    call = {"guards": "hosts", "calls": calls, "after_s": 0.0, "tries": 2, "every_s": 0.1}
    assert kept(call) == 0
    assert done.exists()
    assert kept({**call, "calls": [["false"]]}) == 1


def kept(call: dict[str, object]) -> int:
    """The guard's exit status, once it has been asked to end."""
    with subprocess.Popen(
        (sys.executable, "-I", "-S", GUARD, json.dumps(call)),
        stdout=subprocess.PIPE,
        text=True,
    ) as guard:
        assert guard.stdout is not None
        assert guard.stdout.readline() == "guards\n"
        guard.terminate()
        return guard.wait(60)
