"""The watch of mpirun's hosts, over the real ssh: ranks and clients are ours, and nothing stays.

The hosts' processes are this machine's, so that every host shows the ranks of both.
"""

import os
import time
from pathlib import Path

import psutil
import pytest
from clusters import Cluster, eventually
from mpi_hosts import hosted, in_words, placed, python, two_hosts

from perfgate.core.programs.locations import Locations
from perfgate.launchers.nodes import watch as node_watch
from perfgate.launchers.nodes.watch import PLACE
from perfgate.machine.conditions.processes import Marked, process_table

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("hosts")]

BUSY = python("import os\nprint('works', os.getpid(), flush=True)\nwhile True: pass")
SLEEPS = python("import os, time\nprint('works', os.getpid(), flush=True)\ntime.sleep(600)")


def pids(output: Path) -> list[int]:
    """Of the processes that say that they work."""
    return [
        int(line.split()[1])
        for line in output.read_text().splitlines()
        if line.startswith("works ") and line.split()[1:]
    ]


def watches(cluster: Cluster) -> list[psutil.Process]:
    """The watches on hosts."""
    found = []
    for process in hosted(cluster):
        try:
            if node_watch.__name__ in process.cmdline():
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_each_host_is_watched_and_ranks_are_no_load_of_others(
    hosts: Cluster, tmp_path: Path
) -> None:
    scenario = two_hosts()
    with placed(tmp_path, scenario) as placement:
        command = placement.launched(BUSY, Locations())
        with placement.start(command, tmp_path, "server") as job:
            eventually(lambda: pids(job.stdout))
            (pid,) = pids(job.stdout)  # the first rank runs the program
            busy = psutil.Process(pid)
            began = psutil.cpu_times()
            with placement.watched(tmp_path / "watch") as watch:
                assert len(watches(hosts)) == 2, in_words(hosted(hosts))
                first_s = busy.cpu_times().user
                while busy.cpu_times().user < first_s + 1.0:
                    time.sleep(0.05)
                used_s = busy.cpu_times().user - first_s
            ended = psutil.cpu_times()
            assert not watches(hosts), in_words(watches(hosts))
    assert list(watch.conditions) == ["n1", "n2"]
    for seen in watch.conditions.values():
        assert seen.samples >= 2
        assert seen.cpu is not None, seen.notes
        assert seen.cpu.others_share is not None
        all_s = sum(getattr(ended, one) - getattr(began, one) for one in ("user", "system"))
        others_s = seen.cpu.others_share * seen.cpu.cores * seen.seconds
        assert others_s < all_s - used_s + 0.25
    eventually(lambda: not hosted(hosts))


def test_a_client_that_runs_here_is_ours_on_a_host_that_is_here(tmp_path: Path) -> None:
    """perfgate may run on the first host."""
    scenario = two_hosts()
    with (
        placed(tmp_path, scenario) as placement,
        placement.start_client(SLEEPS, tmp_path, "client") as client,
    ):
        eventually(lambda: pids(client.stdout))
        (pid,) = pids(client.stdout)
        mark = psutil.Process(pid).environ()[PLACE]
        found = Marked(PLACE, mark).among(process_table())
    assert pid in {one.pid for one in found}
    assert os.getpid() not in {one.pid for one in found}
