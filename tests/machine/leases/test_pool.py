"""Leases between processes: who gets what, what others read, and what a death frees."""

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from perfgate.core.errors import InputError, RunError
from perfgate.machine.conditions.processes import began
from perfgate.machine.leases import GpuPool, Lease, file_locks, kept_open

NOBODY = 65534
ME = "20261121-100000-2"


def lease(pool: GpuPool, count: int, **more):
    """A lease for which nobody waits and nobody reads, unless said otherwise."""
    return pool.lease(count, **{"whole": False, "run": ME, "wait_s": 0.0, "tell": list, **more})


def refusal(pool: GpuPool, count: int, **more) -> str:
    with pytest.raises(RunError) as caught, lease(pool, count, **more):
        pass
    assert caught.value.failure == "gpus_busy"
    return caught.value.message


# Who gets what


def test_two_of_four_gpus_run_side_by_side_and_a_third_waits(pool, start) -> None:
    first = start("holder", 4, "part", 0)
    first.says("got 0,1,2,3")
    with lease(pool, 4) as second:
        assert second.env == {"CUDA_VISIBLE_DEVICES": "4,5,6,7", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        assert second.synthetic
        third = start("holder", 1, "part", 30)
        told = third.says("waiting for 1 GPU: GPU 0, GPU 1, GPU 2, GPU 3 held by run 20261121-09")
        assert f"(pid {first.popen.pid}, " in told
        assert f"; GPU 4, GPU 5, GPU 6, GPU 7 held by run {ME} (pid {os.getpid()}, " in told
    third.says("got 4")


def test_a_whole_node_excludes_everybody_even_if_it_shows_fewer_gpus(start, monkeypatch) -> None:
    whole = start("holder", 2, "whole", 0)
    whole.says("got 0,1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    pool = GpuPool.of_machine()
    message = refusal(pool, 1)
    assert "1 GPU did not become free in 0 s: the machine held by run 20261121" in message
    whole.let_go()
    with lease(pool, 1):  # the refused request holds GPU 7 no more
        all_eight = {"CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7"}
        told = start("holder", 8, "whole", 0, env=all_eight).says("error gpus_busy: the whole node")
    assert f"GPU 7 held by run {ME}" in told


def test_the_cpu_is_one_measurements_at_a_time_unless_shared_on_purpose(pool, locks, start) -> None:
    holder = start("holder", 0, "part", 0)
    holder.says("got")
    assert "the CPU did not become free" in refusal(pool, 0)
    with lease(GpuPool.of_machine(share_cpu=True), 0) as shared:
        assert shared == Lease()
    holder.let_go()
    with lease(pool, 0) as cpu:  # the real one, where GPUs are made up
        assert (cpu.gpus, cpu.env, cpu.synthetic) == ((), {}, False)
        start("holder", 8, "whole", 0).says("got 0,1,2,3,4,5,6,7")
        assert {"machine.lock", "fake-machine.lock"} <= {file.name for file in locks.iterdir()}


def test_only_gpus_that_perfgate_was_given_are_leased_under_their_names(locks, monkeypatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "6, 2,5")
    pool = GpuPool.of_machine()
    for count, visible in ((3, "6,2,5"), (2, "6,2")):
        with lease(pool, count) as some:
            assert some.env["CUDA_VISIBLE_DEVICES"] == visible
    for count, fits in ((4, None), (1, lambda name: "B200" in name)):
        with pytest.raises(InputError, match="more GPUs are"), lease(pool, count, fits=fits):
            pass


def test_neighbours_are_preferred_and_a_failed_try_holds_nothing(pool, start) -> None:
    start("holder", 1, "part", 0).says("got 0")
    with lease(pool, 4) as block:
        assert block.env["CUDA_VISIBLE_DEVICES"] == "4,5,6,7"
    with lease(pool, 6) as none_is_left:
        assert none_is_left.env["CUDA_VISIBLE_DEVICES"] == "1,2,3,4,5,6"
    assert "GPU 0 held" in refusal(pool, 8)
    start("holder", 7, "part", 0).says("got 1,2,3,4,5,6,7")


def test_the_clock_of_the_day_does_not_matter(pool, start, monkeypatch) -> None:
    """The limit is kept while the clock jumps by years, in both directions."""
    jumps = iter(range(10**6))
    monkeypatch.setattr(time, "time", lambda: (-1) ** next(jumps) * 1e9)
    holder = start("holder", 8, "part", 0)
    holder.says("got")
    began = time.monotonic()
    refusal(pool, 1, wait_s=0.5)
    assert 0.5 <= time.monotonic() - began < 5
    threading.Timer(0.3, holder.popen.stdin.close).start()
    with lease(pool, 1, wait_s=30):
        pass


# What is told


def test_it_tells_at_once_and_now_and_then_not_stale_text(pool, start, locks, monkeypatch) -> None:
    holder = start("holder", 8, "part", 0)
    holder.says("got")
    told: list[str] = []
    refusal(pool, 1, wait_s=0.6, tell=told.append)
    assert len(told) == 1
    monkeypatch.setattr(file_locks, "TELL_EVERY_S", 0.0)
    refusal(pool, 1, wait_s=0.6, tell=told.append)
    assert len(told) > 2
    holder.kill()
    assert "20261121-090000-1" in (locks / "fake-gpu-0.lock").read_text()
    with lease(pool, 8) as mine:
        assert (len(mine.gpus), mine.env) == (8, {})


def test_nonsense_in_a_lock_names_nobody_and_reaches_no_terminal(pool, start, locks) -> None:
    start("holder", 8, "part", 0).says("got")
    note = json.dumps({"pid": [1], "user": "\x1b[2Jada\n", "run": "x" * 1000})
    for number, text in enumerate(("", "{", "[]", '{"pid": "x"}', "\x1b[2J", "\xff", note)):
        (locks / f"fake-gpu-{number}.lock").write_text(text)
    message = refusal(pool, 8)
    assert "GPU 0, GPU 1, GPU 2, GPU 3, GPU 4, GPU 5 held by an unknown process" in message
    assert f"run {'x' * 120} (pid [1], \\x1b[2Jada\\n)" in message
    assert "GPU 7 held by run 20261121-090000-1" in message


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_of_the_machine(pool, start, locks, tmp_path) -> None:
    """A real second user, whose files and processes are not ours; both directions."""
    locks.chmod(0o1777)
    mine = {"PERFGATE_HOME": str(tmp_path / "mine")}
    theirs = {"PERFGATE_HOME": str(tmp_path / "theirs")}
    ada = start("holder", 4, "part", 0, env=mine)
    ada.says("got 0,1,2,3")
    grace = start("holder", 8, "whole", 60, NOBODY, env=theirs)
    told = grace.says("waiting for the whole node (8 GPUs): GPU 0, GPU 1, GPU 2, GPU 3 held by")
    assert f"(pid {ada.popen.pid}, root (uid 0))" in told
    assert f"(pid {ada.popen.pid}, " in refusal(pool, 8)
    ada.kill()
    grace.says("got")
    again = start("holder", 1, "part", 60, env=mine)
    assert f"(uid {NOBODY})" in again.says("waiting for 1 GPU: GPU 0")
    grace.kill()
    again.says("got 0")


# Owners that die: a lease is free when what they started is gone, and not a moment before.


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
    with lease(pool, 8, wait_s=60, tell=told.append) as mine:
        took = time.monotonic()
        assert len(mine.gpus) == 8
        assert not began(program)
        # The warden's patience of 1 s went by, in which the program used its GPUs.
        assert killed + 0.5 < float((tmp_path / "beats").read_text().split()[0]) < took
    held = "GPU 0, GPU 1, GPU 2, GPU 3 held by run 20261121-090000-1"
    assert told[0].startswith(f"waiting for 8 GPUs: {held} (pid {process.popen.pid}, ")


def test_the_same_when_one_warden_dies_with_the_owner(pool, measuring, tmp_path) -> None:
    process, program, _, inner = measuring
    os.kill(inner, signal.SIGKILL)
    process.kill()
    with lease(pool, 8, wait_s=60):
        assert not began(program)


def test_a_lease_ends_with_its_block_and_nothing_is_kept_then(pool, measuring, tmp_path) -> None:
    process, program, *_ = measuring
    process.let_go()
    assert not began(program)
    with lease(pool, 8):
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
