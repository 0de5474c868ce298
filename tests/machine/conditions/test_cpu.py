"""The CPU under watch: an exact account on given samples; which processes are ours."""

import os
import subprocess
import sys
from collections import namedtuple
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import Mock

import psutil
from burners import burn
from tables import each, tables_of
from witnesses import eventually

from perfgate.core.cpu_times import TICKS_PER_S, Core, core_times
from perfgate.core.programs.command import Command
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.machine.conditions import cpu, processes
from perfgate.machine.conditions.conditions import CpuConditions
from perfgate.machine.conditions.cpu import CpuAccount, CpuSample
from perfgate.machine.conditions.processes import Marked, Process, process_table, tree_of

Frequency = namedtuple("Frequency", "current min max")


def sample(at_s: float, *work_s: float, ours_s: float = 0.0, **fields) -> CpuSample:
    steal = fields.pop("steal_s", 0.0)
    cores = {number: Core(work, steal) for number, work in enumerate(work_s)}
    return CpuSample(at_s, cores, (Process(5, 1, "x", ours_s),), **fields)


def account(*samples: CpuSample) -> CpuAccount:
    held = CpuAccount()
    for one in samples:
        held.add(one)
    return held


def shares(*samples: CpuSample) -> CpuConditions:
    return account(*samples).conditions()


# The account, on given samples

# 100 s of an old process vanish with it; before and after it, ours worked as was seen.
BEFORE = [sample(0.0, 0.0, ours_s=100.0), sample(10.0, 9.0, ours_s=109.0)]
AFTER = [sample(11.0, 9.0, ours_s=0.0), sample(21.0, 18.0, ours_s=9.0)]


@each(
    ("samples", "cores", "others", "steal"),
    [
        # 10 s on 2 cores: 6 s of work, 4 of them ours: 2 of 20 s
        ([sample(9, 50, 70, ours_s=7.0), sample(19, 53, 73, ours_s=11.0)], 2, 0.1, 0.0),
        # the hypervisor took 0.5 s of each core
        ([sample(0, 1, 1), sample(10, 1, 1, steal_s=0.5)], 2, 0.0, 0.05),
        ([sample(0, 0), sample(1, 0.5, ours_s=0.52)], 1, 0.0, 0.0),  # more of ours than of all
        ([*BEFORE, *AFTER], 1, 0.0, 0.0),
        ([sample(0, 0, 0), sample(10, 5)], 1, 0.5, 0.0),  # a core is switched off
    ],
)
def test_shares_of_all_usable_cores(samples: list[CpuSample], cores, others, steal) -> None:
    assert shares(*samples) == CpuConditions(cores, others, steal)


def test_without_a_duration_nothing_is_known_and_of_work_handed_over_not_all() -> None:
    for samples in ([], [sample(0.0, 1.0)], [sample(1.0, 1.0), sample(1.0, 2.0)]):
        assert shares(*samples) is None
    held = account(sample(0.0, 0.0), sample(9.0, 9.0, handed_over_by="docker"), sample(10.0, 10.0))
    found = held.conditions()
    assert (found.others_share, found.steal_share) == (None, 0.0)
    assert "docker has its work done by processes that are not ours" in held.notes()[0]


# Several trees


@each(("looks", "total_s"), tables_of("machine_tables")["trees"])
def test_time_of_several_trees_counts_once(looks, total_s: float) -> None:
    held = CpuAccount()
    for look in looks:
        held.add(CpuSample(0.0, {}, [Process(pid, up, "x", used_s) for pid, up, used_s in look]))
    assert held.ours_s == total_s


# Cores


STAT = """\
cpu  700 20 300 9000 50 7 8 40 90 0
cpu0 500 20 100 4000 20 3 4 30 90 0
cpu3 200 0 200 5000 30 4 4 10 0 0
intr 12345 0 1
ctxt 99
"""


def test_core_times_as_the_kernel_writes_them(monkeypatch) -> None:
    """Interrupts, cores that wait, steal and guests, which are in the user's, are no work."""
    monkeypatch.setattr(Path, "read_text", lambda path: STAT if f"{path}" == "/proc/stat" else "")
    work, steal, work_of_3, steal_of_3 = (ticks / TICKS_PER_S for ticks in (620, 30, 400, 10))
    assert core_times() == {0: Core(work, steal), 3: Core(work_of_3, steal_of_3)}


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
    moment = shares(sample(0.0, 0.0), sample(0.02, 0.02, mhz={0: 800.0}))
    assert (moment.mhz_low, moment.mhz_median) == (None, None)


FREQUENCIES = [Frequency(now, 800.0, top) for now, top in ((3500, 3800), (800, 3800), (900, 5000))]


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
    says = {"side_effect" if isinstance(told, Exception) else "return_value": told}
    monkeypatch.setattr(psutil, "cpu_freq", Mock(**says))
    assert cpu._clocks(online, {0, 2}) == found


# Real processes


def ours_s() -> float:
    return sum(one.cpu_s for one in tree_of(os.getpid(), process_table()))


def test_what_the_launcher_starts_is_ours_orphans_too(tmp_path: Path) -> None:
    """A program that leaves its family is adopted by the warden, which is our child."""
    before_s = ours_s()
    command = Command(("/bin/sh", "-c", " ".join((*burn(0.3, tmp_path / "pid"), "; sleep 60"))))
    with LocalLauncher(1.0).start(command, tmp_path / "run", "job"):
        eventually((tmp_path / "pid").exists)
        pid = int((tmp_path / "pid").read_text())
        ours = {one.pid for one in tree_of(os.getpid(), process_table())}
        assert pid in ours or not psutil.pid_exists(pid)
        eventually(lambda: not psutil.pid_exists(pid))  # until its warden has waited for it
        assert ours_s() - before_s > 0.3 - 0.05
    # Also when its wardens are gone: what a finished client used is no load of others.
    assert ours_s() - before_s > 0.3 - 0.05


# Which processes are ours where they carry a mark and descend elsewhere

VARIABLE = "PERFGATE_PLACE"
FAMILY = ("/bin/sh", "-c", "env -i sleep 60 & echo $!; wait")


@contextmanager
def family(mark: str):
    """Pids of a process with the mark and of its child without."""
    env = {**os.environ, VARIABLE: mark}
    with subprocess.Popen(FAMILY, env=env, stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        try:
            yield parent.pid, child
        finally:
            os.kill(child, 9)
            parent.wait()


def pids(found: list[Process]) -> set[int]:
    return {one.pid for one in found}


# The process table


def test_a_tree_is_found_whatever_the_order_of_pids() -> None:
    parents = {5: 9, 9: 1, 7: 5, 1: 0, 3: 1}
    table = {pid: Process(pid, parent, "x", 1.0) for pid, parent in parents.items()}
    assert pids(tree_of(9, table)) == {9, 5, 7}
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
        found = process_table()[child.pid]
        child.kill()
    assert (found.parent, found.name) == (os.getpid(), name)


# Ours by their mark


def test_ours_carry_the_mark_or_are_below_one_that_does() -> None:
    with family("a") as ours, family("ab") as others:
        found = pids(Marked(VARIABLE, "a").among(process_table()))
    assert found >= set(ours)
    assert not found & {*others, os.getpid()}


class Read(Marked):
    """Marked by what a test says of a pid, which is asked once, in place of /proc."""

    def __init__(self, *ours: int) -> None:
        super().__init__(VARIABLE, "a")
        self.ours = list(ours)

    def _carries(self, pid: int) -> bool:
        return pid in self.ours and not self.ours.remove(pid)

    def look(self, *table: tuple[int, int, str], started: int = 10) -> set[int]:
        seen = {pid: Process(pid, parent, name, 0.0, started) for pid, parent, name in table}
        return pids(self.among(seen))


def test_a_process_that_becomes_another_program_is_asked_again() -> None:
    marked = Read()
    assert marked.look((5, 1, "slurmstepd")) == set()
    marked.ours = [5]
    assert marked.look((5, 1, "python")) == {5}
    # What once was ours stays it, also when it writes its title over its environment.
    assert marked.look((5, 1, "VLLM::Engine")) == {5}
    # A later process of the same number is another one.
    assert marked.look((5, 1, "VLLM::Engine"), started=99) == set()


def test_an_orphan_of_ours_and_what_starts_ours_for_slurm_or_open_mpi_are_ours() -> None:
    marked = Read(5)
    assert marked.look((5, 1, "x"), (6, 5, "y")) == {5, 6}
    assert marked.look((6, 1, "y")) == {6}
    for name, ours in (("slurmstepd", {4, 5, 6}), ("orted", {4, 5, 6}), ("sh", {5})):
        assert Read(5).look((4, 1, name), (5, 4, "x"), (6, 4, "z")) == ours


def test_one_that_has_ended_does_not_live_though_nobody_has_collected_it() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        start = processes.began(process.pid)
        assert start
        assert processes.lives(process.pid, start)
        assert not processes.lives(process.pid, start + 1)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert processes.began(process.pid) == 0
        assert not processes.lives(process.pid, start)
    assert processes.began(process.pid) is None
    assert not processes.lives(process.pid, start)


def test_the_namespace_is_that_of_all_processes_here() -> None:
    code = "from perfgate.machine.conditions.processes import pid_namespace; print(pid_namespace())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == processes.pid_namespace() != ""
