"""Which GPUs may be leased: those that CUDA would show, and that no stranger uses."""

import os

import pynvml
import pytest
from fake_pynvml import FakeGpu
from refusals import refused
from tables import each, tables_of

from perfgate.core.errors import RunError
from perfgate.machine import nvml
from perfgate.machine.leases import GpuPool, Lease
from perfgate.machine.leases import pool as pool_module
from perfgate.machine.leases.devices import environment_of, visible_devices

TABLES = tables_of("machine_tables")
B200 = [FakeGpu(f"GPU-{letter * 8}-0000") for letter in "abcd"]
BY_SLOT = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def keys(visible: str | None, **more: str) -> list[str]:
    environ = {**more, **({} if visible is None else {"CUDA_VISIBLE_DEVICES": visible})}
    return [gpu.key for gpu in visible_devices(environ).gpus]


@each(("visible", "letters"), [(None, "abcd"), *TABLES["visible"]])
def test_the_gpus_are_those_that_cuda_would_show(install, visible, letters) -> None:
    driver = install(*B200)
    assert keys(visible) == [f"gpu-GPU-{letter * 8}-0000" for letter in letters]
    assert driver.open == 0


@each(("visible", "says"), TABLES["refused"])
def test_a_name_that_cannot_be_followed_is_the_persons_error(install, visible, says) -> None:
    install(*B200)
    caught = refused(keys, visible, match=says)
    assert caught.field == "CUDA_VISIBLE_DEVICES"


def test_numbers_are_doubtful_where_models_differ(install) -> None:
    install(FakeGpu("GPU-a", "NVIDIA T400"), FakeGpu("GPU-b", "NVIDIA H200"))
    refused(keys, "0", match="a number can mean two GPUs")
    assert keys("0", **BY_SLOT) == ["gpu-GPU-a"]
    assert keys("GPU-b") == ["gpu-GPU-b"]
    pool = GpuPool.of_machine({})
    assert environment_of(pool.gpus[1:], pool.devices) == {"CUDA_VISIBLE_DEVICES": "1", **BY_SLOT}


def test_a_part_of_a_gpu_is_leased_under_its_own_name(install) -> None:
    install(*B200)
    devices = visible_devices({"CUDA_VISIBLE_DEVICES": "MIG-1234/5"})
    (gpu,) = devices.gpus
    assert (gpu.key, gpu.word) == ("gpu-MIG-1234-5", "MIG-1234/5")
    assert environment_of(devices.gpus, devices) == {"CUDA_VISIBLE_DEVICES": "MIG-1234/5"}


def test_without_a_driver_there_is_none_and_it_says_why(install) -> None:
    install(init_error=pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
    for environ in ({}, {"CUDA_VISIBLE_DEVICES": "0"}):
        devices = visible_devices(environ)
        assert (devices.gpus, devices.note) == ((), "Driver Not Loaded")


def test_made_up_gpus_never_ask_the_driver(install) -> None:
    driver = install(*B200)
    driver.nvmlInit = lambda: pytest.fail("the driver was asked")
    pool = GpuPool.of_machine({"PERFGATE_FAKE_GPUS": "8", "CUDA_VISIBLE_DEVICES": "7,0"})
    assert pool.synthetic
    assert [gpu.word for gpu in pool.gpus] == ["7", "0"]


@each("number", ["0", "-1", "many", "8.0", "1e3", "1000"])
def test_a_number_of_made_up_gpus_is_a_number(number) -> None:
    refused(visible_devices, {"PERFGATE_FAKE_GPUS": number}, match="not a number of GPUs")


# Programs on GPUs that nobody has leased: avoided, waited for, and then an error.

US = os.getpid()  # for the driver a stranger like any other, as nothing is ours yet
NOBODY = 4_000_000  # no such process, as one of another pid namespace


def gpus(*pids) -> list[FakeGpu]:
    return [FakeGpu(f"GPU-{number}", pids=looks) for number, looks in enumerate(pids)]


def words(lease: Lease) -> str:
    return ",".join(gpu.word for gpu in lease.gpus)


def leased(count: int, **more) -> Lease:
    usual = {"whole": False, "run": "run", "wait_s": 0.0, "tell": list}
    with GpuPool.of_machine().lease(count, **{**usual, **more}) as lease:
        return lease


def test_gpus_with_strangers_are_left_alone_while_there_are_others(install) -> None:
    driver = install(*gpus([()], [(NOBODY,)], [()], [()], [(US,)], [()]))
    lease = leased(4)
    assert words(lease) == "0,2,3,5"
    assert (lease.synthetic, lease.notes, driver.open) == (False, (), 0)


def test_it_waits_until_a_stranger_has_gone(install) -> None:
    install(*gpus([()], [(NOBODY,), (NOBODY,), ()]))
    told: list[str] = []
    assert words(leased(2, wait_s=30, tell=told.append)) == "0,1"
    assert told == [f"waiting for 2 GPUs: GPU 1 is used by pid {NOBODY}, without a lease"]


@pytest.mark.parametrize(("wait_s", "patience_s"), [(0.3, 300.0), (60.0, 0.3)])
def test_a_stranger_who_stays_is_an_error(install, monkeypatch, wait_s, patience_s) -> None:
    monkeypatch.setattr(pool_module, "FOREIGN_S", patience_s)
    install(*gpus([(US,)], [()]))
    caught = refused(leased, 2, wait_s=wait_s, error=RunError)
    assert caught.failure == "gpus_busy"
    assert f"GPU 0 is used by pid {US} (" in caught.message
    assert "in 60 s" not in caught.message
    # Nothing is held afterwards.
    install(*gpus([()], [()]))
    assert words(leased(2)) == "0,1"


def test_a_whole_node_has_strangers_on_none_of_its_gpus(install) -> None:
    install(*gpus([()], [()], [(NOBODY,)]))
    assert words(leased(1)) == "0"
    refused(leased, 1, whole=True, match="GPU 2 is used by", error=RunError)


def test_what_cannot_be_read_is_a_note(install, monkeypatch) -> None:
    install(*gpus([None], [()]))
    assert leased(2).notes == ("GPU 0: who uses it is unknown: Insufficient Permissions",)
    monkeypatch.setattr(nvml, "PATIENCE_S", 0.1)
    install(*gpus([()]), hangs_s=1.0)
    assert leased(1).notes == ("who uses the GPUs is unknown: the driver did not answer in 0 s",)


def test_no_mps_server_is_a_stranger_and_a_cpu_lease_asks_no_driver(install, monkeypatch) -> None:
    monkeypatch.setattr(nvml, "_name", lambda pid: "nvidia-cuda-mps-server")
    install(*gpus([(77,)]))
    assert words(leased(1)) == "0"
    driver = install(*gpus([(NOBODY,)]))
    assert leased(0) == Lease(waited_s=pytest.approx(0, abs=5))
    assert "nvmlDeviceGetComputeRunningProcesses" not in driver.gpus[0].looks
