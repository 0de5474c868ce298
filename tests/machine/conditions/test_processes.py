"""The process table, and which processes are ours where they carry a mark and descend elsewhere."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from tables import each

from perfgate.machine.conditions import processes
from perfgate.machine.conditions.processes import Marked, Process, began, lives, process_table

VARIABLE = "PERFGATE_PLACE"
# It tells when it runs, so that its environment is its own; what it starts has cleared its own.
FAMILY = """\
import subprocess
child = subprocess.Popen(("/bin/sleep", "60"), env={})
print(child.pid, flush=True)
child.wait()
"""


@contextmanager
def family(mark: str) -> Iterator[tuple[int, int]]:
    """Pids of a process with the mark and of its child without."""
    with subprocess.Popen(
        (sys.executable, "-I", "-S", "-c", FAMILY),
        env={**os.environ, VARIABLE: mark},
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
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
    assert pids(processes.tree_of(9, table)) == {9, 5, 7}
    assert processes.tree_of(4, table) == []


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
        start = began(process.pid)
        assert start
        assert lives(process.pid, start)
        assert not lives(process.pid, start + 1)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert began(process.pid) == 0
        assert not lives(process.pid, start)
    assert began(process.pid) is None
    assert not lives(process.pid, start)


def test_the_namespace_is_that_of_all_processes_here() -> None:
    code = "from perfgate.machine.conditions.processes import pid_namespace; print(pid_namespace())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == processes.pid_namespace() != ""
