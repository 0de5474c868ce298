"""Leases between processes: who gets what, in which order, and what the others are told."""

import os
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from perfgate.core.errors import InputError, RunError
from perfgate.machine.leases import GpuPool, Lease, LeaseOwner
from perfgate.machine.leases import pool as pool_module
from perfgate.machine.leases.lock_folder import LockFolder

NOBODY = 65534
ME = LeaseOwner("20261121-100000-2", "h200-serve")


def quiet(_: str) -> None:
    return None


def lease(
    pool: GpuPool, count: int, *, whole: bool = False, wait_s: float = 0.0, tell=quiet, **more
):
    return pool.lease(count, whole=whole, owner=ME, wait_s=wait_s, tell=tell, **more)


def words(lease: Lease) -> str:
    return ",".join(gpu.word for gpu in lease.gpus)


def refusal(pool: GpuPool, count: int, **more) -> str:
    with pytest.raises(RunError) as caught, lease(pool, count, **more):
        pass
    assert caught.value.failure == "gpus_busy"
    return caught.value.message


def waiting(locks: Path) -> list[str]:
    return sorted(file.name for file in locks.iterdir() if "waiting" in file.name)


# Who gets what


def test_two_of_four_gpus_run_side_by_side_and_a_third_waits(pool, start) -> None:
    first = start("holder", 4, "part", 0)
    first.says("got 0,1,2,3")
    with lease(pool, 4) as second:
        assert words(second) == "4,5,6,7"
        assert second.env == {"CUDA_VISIBLE_DEVICES": "4,5,6,7", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        assert second.synthetic
        third = start("holder", 1, "part", 30)
        told = third.says("waiting for 1 GPU: GPUs 0-3 are held by run 20261121-090000-1")
        assert f"(pid {first.pid}, " in told
        assert f"GPUs 4-7 are held by run {ME.run} (pid {os.getpid()}, " in told
    third.says("got 4")


def test_a_whole_node_excludes_everybody_even_if_it_shows_fewer_gpus(pool, start) -> None:
    with lease(pool, 2, whole=True) as whole:
        assert words(whole) == "0,1"
        other = start("holder", 1, "part", 0, env={"CUDA_VISIBLE_DEVICES": "7"})
        told = other.says(
            "error gpus_busy: 1 GPU did not become free in 0 s: the machine is held by"
        )
        assert ME.run in told
    assert "GPU 7 is held" in _blocked_by_seven(pool, start)


def _blocked_by_seven(pool: GpuPool, start) -> str:
    start("holder", 1, "part", 0, env={"CUDA_VISIBLE_DEVICES": "7"}).says("got 7")
    return refusal(pool, 8, whole=True)


def test_the_cpu_is_one_measurements_at_a_time_unless_shared_on_purpose(locks, start) -> None:
    start("holder", 0, "part", 0).says("got")
    assert "the CPU did not become free" in refusal(GpuPool.of_machine(), 0)
    with lease(GpuPool.of_machine(share_cpu=True), 0) as shared:
        assert shared == Lease()


def test_a_lease_of_the_cpu_is_of_the_real_one_where_gpus_are_made_up(pool, locks) -> None:
    with lease(pool, 0) as cpu, ExitStack() as stack:
        assert (cpu.gpus, cpu.env, cpu.synthetic) == ((), {}, False)
        # Another thread: one holds one lease.
        got: list[str] = []
        thread = threading.Thread(
            target=lambda: got.append(words(stack.enter_context(lease(pool, 8, whole=True))))
        )
        thread.start()
        thread.join()
        assert got == ["0,1,2,3,4,5,6,7"]
        assert {"machine.lock", "fake-machine.lock"} <= {file.name for file in locks.iterdir()}


def test_all_gpus_and_none_chosen_leaves_the_environment_as_it_is(pool) -> None:
    with lease(pool, 8, whole=True) as whole:
        assert whole.env == {}


def test_only_gpus_that_perfgate_was_given_are_leased_under_the_names_given(
    locks, monkeypatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "6, 2,5")
    pool = GpuPool.of_machine()
    with lease(pool, 3) as all_three:
        assert all_three.env["CUDA_VISIBLE_DEVICES"] == "6,2,5"
    with lease(pool, 2) as two:
        assert two.env["CUDA_VISIBLE_DEVICES"] == "6,2"
    with pytest.raises(InputError, match="more GPUs are requested"), lease(pool, 4):
        pass


def test_a_gpu_of_the_wrong_model_is_not_taken(pool) -> None:
    with pytest.raises(InputError), lease(pool, 1, fits=lambda name: "B200" in name):
        pass


def test_neighbours_are_preferred(pool, start) -> None:
    start("holder", 1, "part", 0).says("got 0")
    with lease(pool, 4) as block:
        assert words(block) == "4,5,6,7"
    with lease(pool, 6) as none_is_left:
        assert words(none_is_left) == "1,2,3,4,5,6"


def test_all_or_nothing_a_failed_try_holds_nothing(pool, start) -> None:
    start("holder", 4, "part", 0).says("got 0,1,2,3")
    assert "GPUs 0-3 are held" in refusal(pool, 5)
    start("holder", 4, "part", 0).says("got 4,5,6,7")


def test_a_lease_inside_a_lease_is_refused_since_it_could_wait_for_itself(pool) -> None:
    with lease(pool, 1), pytest.raises(ValueError, match="inside a lease"), lease(pool, 1):
        pass


# In which order


def test_a_whole_node_is_not_passed_by_small_ones(pool, start, locks) -> None:
    first = start("holder", 1, "part", 0)
    first.says("got 0")
    whole = start("holder", 8, "whole", 60)
    whole.says("waiting for the whole node (8 GPUs): GPU 0 is held by")
    for _ in range(20):  # a stream of small ones, each of which could have a free GPU
        assert "queued before: run 20261121-090000-1" in refusal(pool, 1)
    small = start("holder", 1, "part", 60)
    small.says("waiting for 1 GPU: queued before:")
    assert len(waiting(locks)) == 2
    first.let_go()
    whole.says("got 0,1,2,3,4,5,6,7")
    assert ", waiting for" not in small.says("waiting for 1 GPU: the machine is held by")
    whole.let_go()
    small.says("got 0")
    small.let_go()
    assert waiting(locks) == []


def test_a_small_one_that_is_not_in_the_way_may_pass(pool, start) -> None:
    left = {"CUDA_VISIBLE_DEVICES": "0,1,2,3"}
    start("holder", 1, "part", 0, env=left).says("got 0")
    start("holder", 4, "part", 60, env=left).says("waiting for 4 GPUs: GPU 0 is held")
    start("holder", 4, "part", 0, env={"CUDA_VISIBLE_DEVICES": "4,5,6,7"}).says("got 4,5,6,7")


def test_a_whole_node_is_not_passed_by_those_with_other_gpus(start) -> None:
    start("holder", 1, "part", 0, env={"CUDA_VISIBLE_DEVICES": "7"}).says("got 7")
    start("holder", 1, "whole", 60, env={"CUDA_VISIBLE_DEVICES": "0"}).says("waiting")
    other = start("holder", 1, "part", 0, env={"CUDA_VISIBLE_DEVICES": "6"})
    other.says("error gpus_busy: 1 GPU did not become free in 0 s: queued before:")


def test_the_order_is_the_order_of_asking(start) -> None:
    first = start("holder", 8, "whole", 0)
    first.says("got")
    others = []
    for number in range(4):
        others.append(start("holder", 8 - number, "part", 60))
        others[-1].says("waiting")
    first.let_go()
    for other in others:
        while not (line := other.says("")).startswith("got"):
            assert line.startswith("waiting")
        other.let_go()


def test_a_killed_waiter_loses_its_place(pool, start, locks) -> None:
    start("holder", 1, "part", 0).says("got 0")
    whole = start("holder", 8, "whole", 60)
    whole.says("waiting")
    assert "queued before" in refusal(pool, 1)
    whole.kill()
    with lease(pool, 1) as mine:
        assert words(mine) == "1"
    assert waiting(locks) == []


def test_the_clock_of_the_day_does_not_matter(pool, start, monkeypatch) -> None:
    """Order and limit are kept while the clock jumps by years, in both directions."""
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


def test_it_tells_once_per_reason_and_now_and_then(pool, start, monkeypatch) -> None:
    start("holder", 8, "part", 0).says("got")
    told: list[str] = []
    refusal(pool, 1, wait_s=0.6, tell=told.append)
    assert len(told) == 1
    monkeypatch.setattr(pool_module, "TELL_EVERY_S", 0.0)
    refusal(pool, 1, wait_s=0.6, tell=told.append)
    assert len(told) > 3


def test_waiting_leaves_no_place_in_the_queue_when_it_is_given_up(pool, start, locks) -> None:
    start("holder", 8, "part", 0).says("got")
    refusal(pool, 1, wait_s=0.2)

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), lease(pool, 1, wait_s=60, tell=interrupt):
        pass
    assert waiting(locks) == []


def test_stale_text_is_not_believed(pool, start, locks) -> None:
    holder = start("holder", 8, "part", 0)
    holder.says("got")
    holder.kill()
    assert "20261121-090000-1" in (locks / "fake-gpu-0.lock").read_text()
    with lease(pool, 8) as mine:
        assert len(mine.gpus) == 8


def test_nonsense_in_a_lock_is_told_as_nobodys_name(pool, start, locks) -> None:
    start("holder", 8, "part", 0).says("got")
    for number, text in enumerate(("", "{", "[]", '{"pid": "x"}', "\x1b[2J", "\xff")):
        (locks / f"fake-gpu-{number}.lock").write_text(text)
    message = refusal(pool, 8)
    assert "GPUs 0-5 are held by an unknown holder" in message
    assert "GPUs 6-7 are held by run 20261121-090000-1" in message


def test_whoever_is_stuck_at_the_door_is_told(pool, locks) -> None:
    with LockFolder(locks).guarded(time.monotonic() + 9):
        told = refusal(pool, 1)
    me = os.getpid()
    assert f"guard.lock, which a session locks for milliseconds, is kept locked by pid {me}" in told
    assert "its user or root must end that process" in told


def test_whoever_is_stuck_at_the_door_is_told_while_one_waits(pool, locks, monkeypatch) -> None:
    monkeypatch.setattr(pool_module, "GUARD_S", 0.01)
    told: list[str] = []
    with ExitStack() as stack:
        stack.enter_context(LockFolder(locks).guarded(time.monotonic() + 9))

        def tell(line: str) -> None:
            told.append(line)
            stack.close()

        with lease(pool, 1, wait_s=60, tell=tell):
            assert "guard.lock, which" in told[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_of_the_machine(pool, start, locks, tmp_path) -> None:
    """A real second user, whose files and processes are not ours; both directions."""
    locks.chmod(0o1777)
    for folder in tmp_path, *tmp_path.parents[:3]:  # pytest's own, which nobody else may enter
        folder.chmod(folder.stat().st_mode | 0o011)
    mine = {"PERFGATE_HOME": str(tmp_path / "mine"), "USER": "ada", "LOGNAME": "ada"}
    theirs = {"PERFGATE_HOME": str(tmp_path / "theirs"), "LOGNAME": "grace"}
    ada = start("holder", 4, "part", 0, env=mine)
    ada.says("got 0,1,2,3")
    grace = start("holder", 8, "whole", 60, NOBODY, env=theirs)
    told = grace.says("waiting for the whole node (8 GPUs): GPUs 0-3 are held by")
    assert f"(pid {ada.pid}, ada)" in told
    assert "grace" in refusal(pool, 1)
    ada.kill()
    grace.says("got")
    again = start("holder", 1, "part", 60, env=mine)
    assert "grace" in again.says("waiting for 1 GPU: the machine is held by")
    grace.kill()
    again.says("got 0")


def test_two_stores_are_one_machine(start, tmp_path) -> None:
    start("holder", 8, "whole", 0, env={"PERFGATE_HOME": str(tmp_path / "a")}).says("got")
    start("holder", 8, "whole", 0, env={"PERFGATE_HOME": str(tmp_path / "b")}).says(
        "error gpus_busy"
    )
