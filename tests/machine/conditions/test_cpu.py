"""The CPU under watch: the account is exact on given samples, and right about real processes."""

import os
import subprocess
import time
from collections import namedtuple
from pathlib import Path

import psutil
import pytest
from burners import burn, cpu_of, stranger
from hypothesis import given
from hypothesis import strategies as st

from perfgate.core.command import Command
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.machine.conditions import cpu, processes
from perfgate.machine.conditions.conditions import CpuConditions
from perfgate.machine.conditions.cpu import Core, CpuAccount, CpuSample, Spent, read_cpu
from perfgate.machine.conditions.processes import Process, process_table, tree_of

Frequency = namedtuple("Frequency", "current min max")
# Both reads of a moment, and the ticks of 10 ms that the kernel counts in.
TOLERANCE_S = 0.25


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


def test_others_is_what_is_not_ours_of_all_usable_cores() -> None:
    # 10 s on 2 cores: 6 s of work, 4 of them ours: 2 of 20 s
    found = shares(sample(100.0, 50.0, 70.0, ours_s=7.0), sample(110.0, 53.0, 73.0, ours_s=11.0))
    assert found == CpuConditions(cores=2, others_share=0.1, steal_share=0.0)


def test_steal_is_a_share_of_all_usable_cores() -> None:
    found = shares(sample(0.0, 1.0, 1.0), sample(10.0, 1.0, 1.0, steal_s=0.5))
    assert found.steal_share == pytest.approx(0.05)


def test_more_of_ours_than_the_cores_show_is_no_negative_load() -> None:
    assert shares(sample(0.0, 0.0), sample(1.0, 0.5, ours_s=0.52)).others_share == 0.0


def test_time_that_is_lost_with_a_process_is_not_given_to_others() -> None:
    # 100 s of an old process vanish with it; before and after it, ours worked as much as was seen.
    found = shares(
        sample(0.0, 0.0, ours_s=100.0),
        sample(10.0, 9.0, ours_s=109.0),
        sample(11.0, 9.0, ours_s=0.0),
        sample(21.0, 18.0, ours_s=9.0),
    )
    assert found.others_share == 0.0


def test_a_core_that_is_switched_off_is_left_out() -> None:
    found = shares(sample(0.0, 0.0, 0.0), sample(10.0, 5.0))
    assert (found.cores, found.others_share) == (1, 0.5)


@pytest.mark.parametrize("samples", [[], [sample(0.0, 1.0)], [sample(1.0, 1.0), sample(1.0, 2.0)]])
def test_without_a_duration_nothing_is_known(samples: list[CpuSample]) -> None:
    assert account(*samples).conditions() is None


def test_work_that_is_handed_over_cannot_be_told_apart() -> None:
    held = account(sample(0.0, 0.0), sample(9.0, 9.0, handed_over_by="docker"), sample(10.0, 10.0))
    found = held.conditions()
    assert found is not None
    assert (found.others_share, found.steal_share) == (None, 0.0)
    assert "docker has its work done by processes that are not ours" in held.notes()[0]


STEPS = st.lists(
    st.tuples(st.floats(0.2, 5.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0)),
    min_size=1,
    max_size=8,
)


@given(STEPS)
def test_splitting_the_time_into_samples_changes_nothing(steps: list[tuple[float, ...]]) -> None:
    moments = [sample(0.0, 0.0, 0.0)]
    at = work = ours = theirs = stolen = 0.0
    for seconds, busy, part, steal in steps:
        at += seconds
        work += seconds * busy
        ours += 2 * seconds * busy * part
        theirs += 2 * seconds * busy * (1 - part)
        stolen += seconds * steal
        moments.append(sample(at, work, work, ours_s=ours, steal_s=stolen))
    found = shares(*moments)
    assert found.others_share == pytest.approx(theirs / (2 * at), abs=1e-9)
    assert found.steal_share == pytest.approx(stolen / at, abs=1e-9)
    assert shares(moments[0], moments[-1]).others_share == pytest.approx(found.others_share)


# Several trees


def spent(*looks: list[tuple[int, int, float]]) -> float:
    """What is added up from looks at processes: pid, parent, CPU time."""
    held = Spent()
    for look in looks:
        held.add([Process(pid, parent, "x", used_s) for pid, parent, used_s in look])
    return held.total_s


def test_what_was_used_before_the_first_look_does_not_count() -> None:
    assert spent([(5, 1, 100.0)]) == 0.0
    assert spent([(5, 1, 100.0), (6, 5, 3.0)], [(5, 1, 101.0), (6, 5, 5.0)]) == 3.0


def test_a_tree_that_comes_and_goes_hides_nothing_of_the_others() -> None:
    server = [(5, 1, used_s) for used_s in (100.0, 101.0, 102.0, 103.0)]
    client = [(8, 1, used_s) for used_s in (4.0, 5.0)]
    with_client = spent([server[0]], [server[1], client[0]], [server[2], client[1]], [server[3]])
    assert with_client == 3.0 + 5.0


def test_a_process_that_its_parent_has_waited_for_counts_once() -> None:
    assert spent([(5, 1, 1.0)], [(5, 1, 1.0), (6, 5, 2.0)], [(5, 1, 3.0)]) == 2.0


def test_a_process_that_loses_its_parent_counts_once() -> None:
    before = [(5, 1, 1.0), (6, 5, 2.0)]
    assert spent(before, [(6, 1, 2.5)], [(6, 1, 3.0)]) == 0.5


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


def test_clocks_as_psutil_tells_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        psutil,
        "cpu_freq",
        lambda percpu: [
            Frequency(3500.0, 800.0, 3800.0),
            Frequency(800.0, 800.0, 3800.0),
            Frequency(900.0, 800.0, 5000.0),
        ],
    )
    assert cpu._clocks((0, 2, 5), {0, 2}) == ({0: 3500.0, 2: 800.0}, 3800.0)


def test_a_virtual_machine_names_no_highest_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "cpu_freq", lambda percpu: [Frequency(2445.0, 0.0, 0.0)])
    assert cpu._clocks((0,), {0}) == ({0: 2445.0}, None)


@pytest.mark.parametrize("error", [NotImplementedError("no file"), FileNotFoundError("/sys")])
def test_clocks_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def refuse(percpu: bool) -> None:
        raise error

    monkeypatch.setattr(psutil, "cpu_freq", refuse)
    assert cpu._clocks((0,), {0}) == ({}, None)


def test_clocks_of_fewer_cores_than_there_are_belong_to_nobody(monkeypatch) -> None:
    monkeypatch.setattr(psutil, "cpu_freq", lambda percpu: [Frequency(2445.0, 0.0, 0.0)])
    assert cpu._clocks((0, 1), {0, 1}) == ({}, None)


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


@pytest.mark.parametrize("name", ["a b) (c", "x)"])
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


def test_a_child_is_ours_while_it_runs_and_once_when_it_has_ended() -> None:
    before = ours_now()
    with subprocess.Popen(burn(0.5), stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        burnt_s = float(child.stdout.readline())
        not_waited_for = ours_now()
        child.communicate()
    after = ours_now()
    for now in (not_waited_for, after):
        used_s = now.ours_s - before.ours_s
        assert burnt_s - TOLERANCE_S < used_s < burnt_s + TOLERANCE_S


def test_what_the_launcher_starts_is_ours_orphans_too(tmp_path: Path) -> None:
    """A program that leaves its family is adopted by the warden, which is our child."""
    before = ours_now()
    command = Command(("/bin/sh", "-c", " ".join((*burn(0.5, tmp_path / "pid"), "; sleep 60"))))
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
        assert ours_now().ours_s - before.ours_s > 0.5 - 0.05
    # Also when its wardens are gone: what a finished client used is no load of others.
    assert ours_now().ours_s - before.ours_s > 0.5 - 0.05


@pytest.mark.skipif(os.getpid() == 1, reason="process 1 adopts every orphan")
def test_a_stranger_is_not_ours(tmp_path: Path) -> None:
    with stranger(tmp_path) as burner:
        held = CpuAccount()
        held.add(ours_now())
        first_s = cpu_of(burner)
        while cpu_of(burner) < first_s + 0.6:
            time.sleep(0.05)
        last_s = cpu_of(burner)
        held.add(ours_now())
        assert burner.pid not in {one.pid for one in tree_of(os.getpid(), process_table())}
    assert held.first is not None
    assert held.last is not None
    found = held.conditions()
    assert found is not None
    assert found.others_share is not None
    # However busy the machine is otherwise, at least the stranger's time is others'.
    others_s = found.others_share * found.cores * (held.last.at_s - held.first.at_s)
    assert others_s > last_s - first_s - TOLERANCE_S
