"""Which GPUs may be leased, what programs call them, and what is refused."""

import pynvml
import pytest
from fake_pynvml import FakeGpu
from refusals import refused
from tables import each, tables_of

from perfgate.machine.leases import GpuPool
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
