"""The CPU under watch: the account is exact on given samples, and right about real processes."""

import os
import subprocess
import time
from collections import namedtuple
from pathlib import Path

import psutil
from burners import burn
from tables import each

from perfgate.core.command import Command
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.machine.conditions import cpu, processes
from perfgate.machine.conditions.conditions import CpuConditions
from perfgate.machine.conditions.cpu import Core, CpuAccount, CpuSample, Spent, read_cpu
from perfgate.machine.conditions.processes import Process, process_table, tree_of

Frequency = namedtuple("Frequency", "current min max")


def sample(at_s: float, *work_s: float, ours_s: float = 0.0, **fields) -> CpuSample:
    steal = fields.pop("steal_s", 0.0)
    cores = {number: Core(work, steal) for number, work in enumerate(work_s)}
    return CpuSample(at_s, cores, ours_s, **fields)


def account(*samples: CpuSample) -> CpuAccount:
    held = CpuAccount()
    for one in samples:
        held.add(one)
    return held


def shares(*samples: CpuSample) -> CpuConditions:
    found = account(*samples).conditions()
    assert found is not None
    return found


# The account, on given samples


@each(
    ("samples", "found"),
    [
        # 10 s on 2 cores: 6 s of work, 4 of them ours: 2 of 20 s
        (
            [sample(100.0, 50.0, 70.0, ours_s=7.0), sample(110.0, 53.0, 73.0, ours_s=11.0)],
            CpuConditions(cores=2, others_share=0.1, steal_share=0.0),
        ),
        # the hypervisor took 0.5 s of each core
        (
            [sample(0.0, 1.0, 1.0), sample(10.0, 1.0, 1.0, steal_s=0.5)],
            CpuConditions(cores=2, others_share=0.0, steal_share=0.05),
        ),
        # more of ours than the cores show
        ([sample(0.0, 0.0), sample(1.0, 0.5, ours_s=0.52)], CpuConditions(1, 0.0, 0.0)),
        # 100 s of an old process vanish with it; before and after it, ours worked as was seen
        (
            [sample(0.0, 0.0, ours_s=100.0), sample(10.0, 9.0, ours_s=109.0)]
            + [sample(11.0, 9.0, ours_s=0.0), sample(21.0, 18.0, ours_s=9.0)],
            CpuConditions(1, 0.0, 0.0),
        ),
        # a core is switched off
        ([sample(0.0, 0.0, 0.0), sample(10.0, 5.0)], CpuConditions(1, 0.5, 0.0)),
    ],
    ids=["others", "steal", "ours", "vanished", "off"],
)
def test_shares_of_all_usable_cores(samples: list[CpuSample], found: CpuConditions) -> None:
    assert shares(*samples) == found


@each("samples", [[], [sample(0.0, 1.0)], [sample(1.0, 1.0), sample(1.0, 2.0)]])
def test_without_a_duration_nothing_is_known(samples: list[CpuSample]) -> None:
    assert account(*samples).conditions() is None


def test_work_that_is_handed_over_cannot_be_told_apart() -> None:
    held = account(sample(0.0, 0.0), sample(9.0, 9.0, handed_over_by="docker"), sample(10.0, 10.0))
    found = held.conditions()
    assert found is not None
    assert (found.others_share, found.steal_share) == (None, 0.0)
    assert "docker has its work done by processes that are not ours" in held.notes()[0]


# Several trees


@each(
    ("looks", "total_s"),
    [
        # what was used before the first look does not count
        ([[(5, 1, 100.0)]], 0.0),
        ([[(5, 1, 100.0), (6, 5, 3.0)], [(5, 1, 101.0), (6, 5, 5.0)]], 3.0),
        # a tree that comes and goes hides nothing of the others
        ([[(5, 1, 1.0)], [(5, 1, 2.0), (8, 1, 4.0)], [(5, 1, 3.0), (8, 1, 5.0)], [(5, 1, 4.0)]], 8),
        # its parent has waited for it
        ([[(5, 1, 1.0)], [(5, 1, 1.0), (6, 5, 2.0)], [(5, 1, 3.0)]], 2.0),
        # it has lost its parent
        ([[(5, 1, 1.0), (6, 5, 2.0)], [(6, 1, 2.5)], [(6, 1, 3.0)]], 0.5),
    ],
)
def test_time_of_several_trees_counts_once(looks, total_s: float) -> None:
    held = Spent()
    for look in looks:
        held.add([Process(pid, parent, "x", used_s) for pid, parent, used_s in look])
    assert held.total_s == total_s


# Clocks


def test_only_cores_that_worked_tell_the_clock() -> None:
    idle, busy = 800.0, 3500.0
    found = shares(
        sample(0.0, 0.0, 0.0),
        sample(1.0, 0.9, 0.0, mhz={0: busy, 1: idle}, mhz_top=3800.0),
        sample(2.0, 0.9, 0.0, mhz={0: idle, 1: idle}, mhz_top=3800.0),  # nobody worked
        sample(3.0, 1.8, 0.9, mhz={0: busy, 1: 3000.0}, mhz_top=3800.0),
    )
    assert (found.mhz_low, found.mhz_median, found.mhz_top) == (3250.0, 3375.0, 3800.0)


def test_two_looks_in_the_same_moment_tell_no_clock() -> None:
    found = shares(sample(0.0, 0.0), sample(0.02, 0.02, mhz={0: 800.0}))
    assert (found.mhz_low, found.mhz_median) == (None, None)


FREQUENCIES = [
    Frequency(3500.0, 800.0, 3800.0),
    Frequency(800.0, 800.0, 3800.0),
    Frequency(900.0, 800.0, 5000.0),
]


@each(
    ("told", "online", "found"),
    [
        (FREQUENCIES, (0, 2, 5), ({0: 3500.0, 2: 800.0}, 3800.0)),
        ([Frequency(2445.0, 0.0, 0.0)], (0,), ({0: 2445.0}, None)),  # a virtual machine
        ([Frequency(2445.0, 0.0, 0.0)], (0, 2), ({}, None)),  # fewer than there are cores
        (NotImplementedError("no file"), (0,), ({}, None)),
        (FileNotFoundError("/sys"), (0,), ({}, None)),
    ],
)
def test_clocks_as_psutil_tells_them(monkeypatch, told, online, found) -> None:
    def answer(percpu: bool) -> list[Frequency]:
        if isinstance(told, Exception):
            raise told
        return told

    monkeypatch.setattr(psutil, "cpu_freq", answer)
    assert cpu._clocks(online, {0, 2}) == found


def test_core_times_as_the_kernel_writes_them() -> None:
    stat = (
        "cpu  700 20 300 9000 50 7 8 40 0 0\n"
        "cpu0 500 20 100 4000 20 3 4 30 0 0\n"
        "cpu3 200 0 200 5000 30 4 4 10 0 0\n"
        "intr 12345 0 1\nctxt 99\n"
    )
    ticks = processes.TICKS_PER_S
    assert cpu._cores(stat) == {
        0: Core(620 / ticks, 30 / ticks),  # interrupts, cores that wait and steal are no work
        3: Core(400 / ticks, 10 / ticks),
    }


# The process table


def test_a_tree_is_found_whatever_the_order_of_pids() -> None:
    table = {
        pid: Process(pid, parent, "x", 1.0)
        for pid, parent in {5: 9, 9: 1, 7: 5, 1: 0, 3: 1}.items()
    }
    assert {one.pid for one in tree_of(9, table)} == {9, 5, 7}
    assert tree_of(4, table) == []


def test_the_table_agrees_with_psutil() -> None:
    me = process_table()[os.getpid()]
    real = psutil.Process()
    assert (me.parent, me.name) == (real.ppid(), real.name()[:15])
    before, times, after = me.cpu_s, real.cpu_times(), process_table()[os.getpid()].cpu_s
    of_children = times.children_user + times.children_system
    assert before - 0.02 <= times.user + times.system + of_children <= after + 0.02


@each("name", ["a b) (c", "x)"])
def test_a_name_that_looks_like_a_line_of_the_table(tmp_path: Path, name: str) -> None:
    program = tmp_path / name
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "60"]) as child:
        try:
            found = process_table()[child.pid]
            assert (found.parent, found.name) == (os.getpid(), name)
        finally:
            child.kill()


# Real processes


def ours_now() -> CpuSample:
    return read_cpu(time.monotonic(), tree_of(os.getpid(), process_table()))


def test_what_the_launcher_starts_is_ours_orphans_too(tmp_path: Path) -> None:
    """A program that leaves its family is adopted by the warden, which is our child."""
    before = ours_now()
    command = Command(("/bin/sh", "-c", " ".join((*burn(0.3, tmp_path / "pid"), "; sleep 60"))))
    with LocalLauncher(1.0).start(command, tmp_path / "run", "job"):
        deadline = time.monotonic() + 40.0
        while not (tmp_path / "pid").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        pid = int((tmp_path / "pid").read_text())
        assert pid in {one.pid for one in tree_of(os.getpid(), process_table())} or (
            not psutil.pid_exists(pid)
        )
        while psutil.pid_exists(pid):  # until its warden has waited for it
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert ours_now().ours_s - before.ours_s > 0.3 - 0.05
    # Also when its wardens are gone: what a finished client used is no load of others.
    assert ours_now().ours_s - before.ours_s > 0.3 - 0.05
