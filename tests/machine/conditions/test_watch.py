"""The watch: it looks at least twice, ends with its block, and never fails a measurement."""

import os
import subprocess
import threading
import time
from contextlib import contextmanager
from unittest.mock import Mock

import psutil
import pynvml
import pytest
from burners import burn, burnt_s, stranger
from fake_pynvml import FakeGpu

from perfgate.machine.conditions import watch as module
from perfgate.machine.conditions.conditions import disturbances
from perfgate.machine.conditions.cpu import read_cpu
from perfgate.machine.conditions.processes import Marked, Process, tree_of
from perfgate.machine.conditions.watch import Watch, watched
from perfgate.scenarios.scenario import DisturbanceLimits

PIDS = "nvmlDeviceGetComputeRunningProcesses"
MARK = {"PERFGATE_PLACE": "a"}
no_orphans = pytest.mark.skipif(os.getpid() == 1, reason="process 1 adopts every orphan")


def marked() -> Marked:
    return Marked("PERFGATE_PLACE", "a")


def watchers() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "perfgate-watch"]


@pytest.fixture(autouse=True)
def nobody_watches_afterwards():
    yield
    assert not watchers()


@contextmanager
def sleeper(program="/bin/sleep", **variables: str):
    """Pid of a child that does nothing while the block runs."""
    with subprocess.Popen((program, "60"), env={**os.environ, **variables}) as child:
        yield child.pid
        child.kill()


def others_s(watch: Watch) -> float:
    """CPU time of others, in seconds."""
    cpu = watch.conditions.cpu
    return cpu.others_share * cpu.cores * watch.conditions.seconds


def all_s() -> float:
    """CPU time of everybody since boot: user, nice, system."""
    return sum(psutil.cpu_times()[:3])


def test_it_looks_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with watched(0, interval_s=3600.0) as watch:
        time.sleep(0.01)
    assert (watch.conditions.samples, watch.conditions.notes) == (2, ())
    assert watch.conditions.cpu is not None
    assert watch.conditions.seconds >= 0.01
    looks = threading.Semaphore(0)
    monkeypatch.setattr(module, "read_cpu", lambda *rest: looks.release() or read_cpu(*rest))
    with watched(0, interval_s=0.001) as watch:
        for _ in range(3):
            assert looks.acquire(timeout=40.0)
    assert watch.conditions.samples >= 4


def test_a_look_that_costs_much_is_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    """By this clock each look takes a second; a hundredth of a core is one in 100 s."""
    clock = iter(range(1000))
    monkeypatch.setattr(module.time, "thread_time", lambda: float(next(clock)))
    with watched(0, interval_s=0.001) as watch:
        time.sleep(0.2)
    assert watch.conditions.samples == 2


# Nothing that goes wrong is raised


def test_an_error_of_a_look_is_a_note_and_one_of_the_block_ends_it(monkeypatch) -> None:
    with pytest.raises(KeyError), watched(0, interval_s=3600.0) as watch:
        {}["an error of the block"]
    assert watch.conditions.samples == 2
    monkeypatch.setattr(module, "read_cpu", Mock(side_effect=PermissionError("/proc/stat")))
    with watched(0, interval_s=0.01) as watch:
        time.sleep(0.05)
    assert watch.conditions.cpu is None
    assert watch.conditions.notes == (
        "not all was watched: PermissionError: /proc/stat",
        "CPU not watched: fewer than two samples",
    )


def test_gpus_that_cannot_be_watched_do_not_stop_the_cpu(install) -> None:
    install(init_error=pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
    with watched(8) as watch:
        pass
    assert watch.conditions.cpu is not None
    assert watch.conditions.gpus == ()
    assert watch.conditions.notes == ("GPUs not watched: Driver Not Loaded",)


def test_a_driver_that_hangs_does_not_hang_the_measurement(install, monkeypatch) -> None:
    nvml, answered = install(FakeGpu()), threading.Event()
    nvml.nvmlDeviceGetPowerUsage = lambda gpu: answered.wait() and 1000
    monkeypatch.setattr(module, "PATIENCE_S", 0.05)
    with watched(1) as watch:
        (thread,) = watchers()
    told = watch.conditions
    assert told.cpu is None
    assert "does the GPU's driver hang?" in told.notes[0]
    answered.set()
    thread.join()
    assert watch.conditions is told


# GPUs


def test_watches_may_be_nested(install) -> None:
    hot = pynvml.nvmlClocksEventReasonHwSlowdown | pynvml.nvmlClocksEventReasonHwThermalSlowdown
    nvml = install(FakeGpu(), FakeGpu(uuid="GPU-hot", reasons=(hot,), degrees=(91,)))
    with watched(2) as outer:
        with watched(1, since=outer) as inner:
            assert nvml.open == 2
        assert nvml.open == 1
    assert nvml.open == 0
    assert outer.conditions.seconds > inner.conditions.seconds
    assert len(inner.conditions.gpus) == 1
    cool, warm = outer.conditions.gpus
    assert (cool.slowed_share, warm.slowed_share, warm.temperature_c_top) == (0.0, 1.0, 91.0)
    told = "GPU 1 was slowed down by heat in 100 % of the samples (limit 5 %)"
    assert disturbances(outer.conditions, DisturbanceLimits()) == (told,)


def strangers(watch: Watch) -> tuple[str, ...]:
    return watch.conditions.gpus[0].strangers


def test_who_was_on_the_gpu_before_the_start_is_always_a_stranger(install, monkeypatch) -> None:
    """In a container: the driver's pids are not those of this namespace."""
    # A server of tests/forked.py may run already: other tests have started it.
    earlier = {child.pid for child in psutil.Process().children(recursive=True)}

    def tree(*given) -> list[Process]:
        return [one for one in tree_of(*given) if one.pid not in earlier]

    monkeypatch.setattr(module, "tree_of", tree)
    gpu = FakeGpu(uuid="GPU-a", pids=[[645000]])
    install(gpu)
    with watched(1) as start:
        gpu.answers |= {PIDS: FakeGpu(pids=[[645000, 645400]]).answers[PIDS]}  # the engine's
        with sleeper(), watched(1, since=start) as measurement:
            pass
    assert strangers(start) == strangers(measurement) == ("pid 645000",)


def test_a_process_of_ours_on_the_gpu_and_one_that_is_not(install) -> None:
    """On this machine's own numbers: our child, and the process that started the tests."""
    parent = os.getppid()
    if not parent:
        pytest.skip("nobody is seen above this process")
    with sleeper() as server:
        install(FakeGpu(pids=[[server, parent]]))
        with watched(1) as watch:
            pass
    (seen,) = strangers(watch)
    assert seen.startswith(f"pid {parent} (")


def test_while_something_of_ours_runs_nobody_is_accused_for_being_first(install) -> None:
    """A watch that does not know of the one before the start would accuse the engine.

    So would that of a node, which begins when the engine already runs, maybe with other pids.
    """
    install(FakeGpu(uuid="GPU-a", pids=[[645400]]))
    with sleeper(**MARK), watched(1) as here, watched(1, marked=marked()) as node:
        pass
    assert (strangers(here), strangers(node)) == ((), ())


# Real load


@no_orphans
def test_a_real_stranger_is_a_load_of_others_and_a_marked_one_is_none(tmp_path) -> None:
    """Of the marked one: at most what all cores did, less what that one did."""
    with stranger(tmp_path, **MARK) as burner:
        with watched(0, interval_s=0.1) as watch:
            used_s = burnt_s(burner, 0.5)
        assert others_s(watch) > used_s - 0.25
        began = all_s()
        with watched(0, interval_s=0.1, marked=marked()) as watch:
            used_s = burnt_s(burner, 0.5)
        ended = all_s()
    assert others_s(watch) < ended - began - used_s + 0.25


def test_srun_below_ours_hides_nothing_where_processes_are_marked(tmp_path) -> None:
    srun = tmp_path / "srun"
    srun.symlink_to("/bin/sleep")
    with sleeper(srun, **MARK), watched(0) as here, watched(0, marked=marked()) as node:
        time.sleep(0.01)
    assert here.conditions.cpu.others_share is None
    assert node.conditions.cpu.others_share is not None
    assert node.conditions.notes == ()


def test_our_own_load_is_no_load_of_others() -> None:
    """At most what all cores did, less what our child did: true on a crowded machine, too."""
    began = all_s()
    with watched(0, interval_s=0.1) as watch:
        done = subprocess.run(burn(0.5), capture_output=True, text=True, check=True)
    assert others_s(watch) < all_s() - began - float(done.stdout) + 0.25
