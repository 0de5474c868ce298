"""Owners that die: their lease is free when what they started is gone, and not a moment before."""

import os
import signal
import time
from pathlib import Path

import psutil
import pytest

from perfgate.machine.leases import GpuPool, kept_open


def lease(pool: GpuPool, count: int, wait_s: float = 60.0, tell=lambda _: None):
    return pool.lease(count, whole=False, run="20261121-100000-2", wait_s=wait_s, tell=tell)


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.fixture
def measuring(start, tmp_path):
    """An owner with a program that ignores SIGTERM; pids: owner, program, outer, inner warden."""
    process = start("measuring", tmp_path)
    return process, *map(int, process.says("measuring").split()[1:])


def test_kill_9_of_the_owner_frees_its_lease_when_its_program_is_gone(pool, measuring, tmp_path):
    process, program, *_ = measuring
    assert (tmp_path / "beats").read_text().split()[1] == "0,1,2,3"
    process.kill()
    killed = time.monotonic()
    told: list[str] = []
    with lease(pool, 8, tell=told.append) as mine:
        took = time.monotonic()
        assert len(mine.gpus) == 8
        assert gone(program)
        # The warden's patience of 1 s went by, in which the program used its GPUs.
        assert killed + 0.5 < float((tmp_path / "beats").read_text().split()[0]) < took
    assert told[0].startswith(
        "waiting for 8 GPUs: GPU 0, GPU 1, GPU 2, GPU 3 held by run 20261121-090000-1 "
        f"(pid {process.pid}, "
    )


def test_the_same_when_one_warden_dies_with_the_owner(pool, measuring, tmp_path) -> None:
    process, program, _, inner = measuring
    os.kill(inner, signal.SIGKILL)
    process.kill()
    with lease(pool, 8):
        assert gone(program)


def test_a_lease_ends_with_its_block_and_nothing_is_kept_then(pool, measuring, tmp_path) -> None:
    process, program, *_ = measuring
    process.let_go()
    assert gone(program)
    with lease(pool, 8, wait_s=0):
        pass


def test_programs_do_not_inherit_the_locks_only_wardens_do(measuring, locks) -> None:
    _, program, outer, inner = measuring

    def open_locks(pid: int) -> set[str]:
        links = [fd.readlink() for fd in Path(f"/proc/{pid}/fd").iterdir()]
        return {link.name for link in links if link.parent == locks}

    leased = {"fake-machine.lock", *(f"fake-gpu-{number}.lock" for number in range(4))}
    assert open_locks(outer) == open_locks(inner) == leased
    assert open_locks(program) == set()


def test_without_a_lease_nothing_is_handed_on(pool) -> None:
    with kept_open() as locks:
        assert locks == ()
    with lease(pool, 2), kept_open() as locks:
        assert len(locks) == 3
    with kept_open() as locks:
        assert locks == ()
