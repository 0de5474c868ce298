"""GPU probe: what NVML answers becomes facts; what it does not answer becomes an unread one."""

import os
import sys
import threading
from types import SimpleNamespace

import pynvml
import pytest
from fake_pynvml import MIB, Refusal
from made_gpus import REFUSED, WELL, gpu
from tables import each

from perfgate.core.errors import InputError
from perfgate.machine import nvml
from perfgate.machine.leases.devices import Device
from perfgate.machine.preflight.facts import GpuLook, Rows
from perfgate.machine.preflight.gpu_probe import look_at_gpus
from perfgate.machine.preflight.gpu_rules import judge_gpus
from perfgate.machine.preflight.need import Need
from perfgate.machine.reading import NotReadable, Unreadable, known

LOST = Refusal(pynvml.NVML_ERROR_GPU_IS_LOST)
MEMORY = SimpleNamespace(total=9, free=4)
MARGIN = "nvmlDeviceGetMarginTemperature"


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "PERFGATE_FAKE_GPUS"):
        monkeypatch.delenv(name, raising=False)


def look(wanted: int = 1, model: str = "H200", **more) -> GpuLook | Unreadable:
    return look_at_gpus(wanted, lambda name: model in name, **more)


def test_a_gpu_that_is_well(install) -> None:
    driver = install({}, {})
    assert look() == GpuLook((WELL,), ("NVIDIA H200",) * 2, driver="580.65.06", cuda="13.0")
    assert driver.open == 0


@each(
    ("answers", "facts"),
    [
        ({"nvmlDeviceGetMemoryInfo": MEMORY}, {"memory_bytes": 9, "free_bytes": 4}),
        ({"nvmlDeviceGetMigMode": [1, 1]}, {"is_split": True}),
        ({"nvmlDeviceGetMigMode": Refusal()}, {"is_split": False}),
        ({"nvmlDeviceGetMigMode": LOST}, {"is_split": Unreadable("GPU is lost")}),
        ({"uncorrected": 7}, {"uncorrected": 7}),
        ({"corrected": 7}, {"corrected": 7}),
        ({"nvmlDeviceGetRemappedRows": (2, 1, 1, 0)}, {"rows": Rows(3, True, False)}),
        ({"nvmlDeviceGetRemappedRows": (2, 1, 0, 1)}, {"rows": Rows(3, False, True)}),
        ({"nvmlDeviceGetRetiredPagesPendingStatus": 1}, {"retired_pending": True}),
        ({"nvmlDeviceGetEnforcedPowerLimit": 500_500}, {"power_w": 500.5}),
        ({"nvmlDeviceGetPersistenceMode": 0}, {"is_persistent": False}),
        ({MARGIN: 3}, {"margin": 3}),
        ({MARGIN: Refusal(), "nvmlDeviceGetTemperatureV": 80}, {"margin": 7, "degrees": 80}),
        (
            {MARGIN: Refusal(), "nvmlDeviceGetTemperatureThreshold": Refusal()},
            {"margin": Unreadable(REFUSED)},
        ),
        ({"nvmlDeviceGetNvLinkState": [1, 0]}, {"links": (True, False)}),
        ({"nvmlDeviceGetNvLinkState": Refusal()}, {"links": ()}),
        ({"nvmlDeviceGetNvLinkState": LOST}, {"links": Unreadable("GPU is lost")}),
        (
            {
                "nvmlDeviceGetCurrentClocksEventReasons": Refusal(),
                "nvmlDeviceGetCurrentClocksThrottleReasons": 0x40,
            },
            {"reasons": 0x40},
        ),
        ({"nvmlDeviceGetTemperatureV": Refusal()}, {"degrees": 31}),
        ({"nvmlDeviceGetApplicationsClock": Refusal()}, {"asked_mhz": Unreadable(REFUSED)}),
    ],
)
def test_answers_become_facts(install, answers: dict, facts: dict) -> None:
    install(answers)
    assert look().gpus == (gpu(**facts),)


# Read on an H200 under a load of bf16 matrix products (driver 580.159.04, a virtual machine).
H200_UNDER_LOAD = {
    "nvmlDeviceGetMemoryInfo": SimpleNamespace(
        total=150_754_820_096, free=127_346_540_544, used=21_709 * MIB, reserved=644_939_776
    ),
    "nvmlDeviceGetComputeRunningProcesses": [
        SimpleNamespace(pid=2**22 + 1, usedGpuMemory=21_700 * MIB)
    ],
    "nvmlDeviceGetClockInfo": 1500,
    "nvmlDeviceGetCurrentClocksEventReasons": 0x4,
    "nvmlDeviceGetTemperatureV": 60,
    MARGIN: 24,
    "nvmlDeviceGetNvLinkState": Refusal(),
}


def test_a_real_gpu_under_load(install) -> None:
    """Its own 9 MiB are nobody's, and its power cap is no slowdown."""
    install(H200_UNDER_LOAD)
    (found,) = look().gpus
    assert found == gpu(
        memory_bytes=150_754_820_096,
        free_bytes=127_346_540_544,
        processes=(f"pid {2**22 + 1}",),
        sm_mhz=1500,
        reasons=0x4,
        degrees=60,
        margin=24,
        links=(),
    )
    need = Need(1, "H200", 1, False, None, 1, 1, None)
    outcomes = {check.name: check.outcome for check in judge_gpus((found,), need)}
    assert {name for name, outcome in outcomes.items() if outcome != "ok"} == {
        "gpu processes",
        "gpu memory",
    }


def test_who_is_on_a_gpu_is_named(install) -> None:
    ours, gone = os.getpid(), 2**22 + 1
    install(
        {"nvmlDeviceGetComputeRunningProcesses": [SimpleNamespace(pid=p) for p in (gone, ours)]}
    )
    (found,) = look().gpus
    assert isinstance(found.processes, tuple)
    assert found.processes[0].startswith(f"pid {ours} (")
    assert found.processes[1] == f"pid {gone}"


@each(
    ("drawing", "split", "users"),
    [
        ((), 0, ("an unseen process with 4.2 GiB (in another container?)",)),
        # A desktop holds memory and computes nothing; a split GPU does not list all processes.
        ([SimpleNamespace(pid=9, usedGpuMemory=4300 * MIB)], 0, ()),
        ((), 1, ()),
    ],
)
def test_a_program_that_is_not_listed_is_known_by_its_memory(
    install, drawing, split, users
) -> None:
    install(
        {
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=9, free=4, used=4300 * MIB),
            "nvmlDeviceGetGraphicsRunningProcesses": drawing,
            "nvmlDeviceGetMigMode": [split, split],
        }
    )
    (found,) = look().gpus
    assert found.processes == users


def test_only_gpus_of_the_model_and_no_more_than_asked(install) -> None:
    install({"nvmlDeviceGetName": "NVIDIA A2"}, {}, {}, {})
    found = look(2)
    assert [one.label for one in found.gpus] == ["1", "2"]
    assert found.names == ("NVIDIA A2", *["NVIDIA H200"] * 3)


def test_those_that_are_visible(install, monkeypatch: pytest.MonkeyPatch) -> None:
    install({}, {}, {})
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,0")
    assert [one.label for one in look(3).gpus] == ["2", "0"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    with pytest.raises(InputError, match="7 names no GPU"):
        look(3)


def test_those_that_are_leased(install) -> None:
    install({}, {"nvmlDeviceGetTemperatureV": 44})
    leased = [Device("gpu-GPU-1", "1", "1", "NVIDIA H200", "GPU-1")]
    (found,) = look(1, leased=leased).gpus
    assert (found.label, found.degrees) == ("1", 44)


def test_a_gpu_that_fell_off_the_bus_is_all_unread(install, monkeypatch) -> None:
    driver = install({})

    def lost(uuid: str) -> int:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)

    monkeypatch.setattr(driver, "nvmlDeviceGetHandleByUUID", lost)
    (found,) = look().gpus
    assert isinstance(found.free_bytes, Unreadable)
    assert isinstance(found.links, Unreadable)


def test_made_up_gpus_are_not_asked(install, monkeypatch: pytest.MonkeyPatch) -> None:
    install({})
    monkeypatch.setenv("PERFGATE_FAKE_GPUS", "8")
    assert look(8) == Unreadable("the GPUs are simulated (PERFGATE_FAKE_GPUS)")


def test_without_a_driver(install) -> None:
    install(init_error=pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
    assert look().why == str(pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND))


def test_without_the_bindings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)  # what import finds when there is none
    assert look().why == "no nvidia-ml-py in this environment"


def test_a_driver_that_hangs_is_given_up(install, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, over = install({}), threading.Event()
    monkeypatch.setattr(driver, "nvmlInit", lambda: over.wait(20), raising=False)
    monkeypatch.setattr(nvml, "PATIENCE_S", 0.05)
    found = look()
    over.set()
    assert found == Unreadable("the driver did not answer in 0 s")
    assert found.kind == "hangs"
    with pytest.raises(NotReadable, match="did not answer"):
        known(found)


def test_an_error_that_is_none_of_nvmls_is_no_error_either(install, monkeypatch) -> None:
    driver = install({})
    monkeypatch.setattr(driver, "nvmlDeviceGetPersistenceMode", lambda gpu: 1 / 0, raising=False)
    (found,) = look().gpus
    assert found.is_persistent == Unreadable("ZeroDivisionError: division by zero")


def test_an_error_of_the_reading_itself_is_raised_where_it_was_asked_for(install) -> None:
    driver = install({})
    with pytest.raises(ZeroDivisionError):
        nvml.read_nvml(lambda opened: 1 / 0)
    assert driver.open == 0


def test_the_real_nvml_is_asked_without_harm() -> None:
    found = look(8, model="")
    assert found.why if isinstance(found, Unreadable) else found.names
