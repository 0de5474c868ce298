"""GPUs: what NVML answers, or does not, and what the preflight makes of it."""

import os
import sys
import threading
from types import SimpleNamespace

import pynvml
import pytest
from fake_pynvml import GIB, MIB, Refusal
from tables import each

from perfgate.core.errors import InputError
from perfgate.machine import nvml
from perfgate.machine.leases.devices import Device
from perfgate.machine.nvml import NotReadable, Unreadable, known
from perfgate.machine.preflight.check import Check, Finding, Need, checked
from perfgate.machine.preflight.gpus import GPU_RULES, GpuLook, look_at_gpus

ONE, TWO = (Need(gpus=count, gpu="H200", gpus_in_all=count) for count in (1, 2))
LOST = Refusal(pynvml.NVML_ERROR_GPU_IS_LOST)
MEMORY = "nvmlDeviceGetMemoryInfo"
COMPUTING = "nvmlDeviceGetComputeRunningProcesses"
MIG = "nvmlDeviceGetMigMode"
ROWS, PAGES = "nvmlDeviceGetRemappedRows", "nvmlDeviceGetRetiredPagesPendingStatus"
MHZ, MOST_MHZ = "nvmlDeviceGetClockInfo", "nvmlDeviceGetMaxClockInfo"
ASKED, USUAL = "nvmlDeviceGetApplicationsClock", "nvmlDeviceGetDefaultApplicationsClock"
REASONS = "nvmlDeviceGetCurrentClocksEventReasons"
OLD_REASONS = "nvmlDeviceGetCurrentClocksThrottleReasons"
WATTS, USUAL_WATTS = (
    "nvmlDeviceGetEnforcedPowerLimit",
    "nvmlDeviceGetPowerManagementDefaultLimit",
)
PERSISTENCE = "nvmlDeviceGetPersistenceMode"
DEGREES, MARGIN = "nvmlDeviceGetTemperatureV", "nvmlDeviceGetMarginTemperature"
SLOWDOWN = "nvmlDeviceGetTemperatureThreshold"
LINKS = "nvmlDeviceGetNvLinkState"
GONE = SimpleNamespace(pid=2**22 + 1, usedGpuMemory=21_700 * MIB)
NO = Refusal()
REFUSED = "Not Supported"


def memory(free: int, used: int = 0) -> SimpleNamespace:
    return SimpleNamespace(total=141 * GIB, free=free, used=used)


def seen(need: Need = TWO, **more) -> GpuLook:
    found = look_at_gpus(need, **more)
    assert isinstance(found, GpuLook)
    return found


def check(name: str, need: Need = TWO) -> Check:
    return next(one for one in seen(need).checks if one.name == name)


TABLE = [
    # question, what NVML answers, outcome, what is said
    ("gpu split", {}, "ok", "whole"),
    ("gpu split", {MIG: [1, 1]}, "failed", "split (MIG)"),
    ("gpu split", {MIG: NO}, "ok", "whole"),
    ("gpu split", {MIG: LOST}, "unknown", "GPU is lost"),
    ("gpu processes", {}, "ok", "none"),
    ("gpu processes", {COMPUTING: [GONE]}, "failed", f"pid {GONE.pid}"),
    ("gpu processes", {COMPUTING: NO}, "unknown", REFUSED),
    ("gpu memory", {}, "ok", "140.0 GiB of 141.0 GiB free"),
    ("gpu memory", {MEMORY: memory(136 * GIB)}, "warning", "136.0 GiB of 141.0 GiB free"),
    ("gpu memory", {MEMORY: NO}, "unknown", REFUSED),
    ("gpu errors", {}, "ok", "none"),
    ("gpu errors", {"uncorrected": 1, "corrected": 9}, "failed", "1 uncorrected"),
    ("gpu errors", {"corrected": 9}, "warning", "9 corrected"),
    ("gpu errors", {"uncorrected": NO}, "unknown", REFUSED),
    ("gpu errors", {"uncorrected": 2, "corrected": NO}, "failed", "2 uncorrected"),
    ("gpu errors", {"corrected": NO}, "unknown", REFUSED),
    ("gpu rows", {}, "ok", "none"),
    ("gpu rows", {ROWS: (2, 1, 0, 0)}, "ok", "3 replaced, none waits"),
    ("gpu rows", {ROWS: (2, 1, 1, 0)}, "warning", "rows wait to be replaced"),
    ("gpu rows", {ROWS: (2, 1, 1, 1)}, "failed", "a row could not be replaced"),
    ("gpu rows", {ROWS: NO}, "unknown", REFUSED),
    ("gpu rows", {ROWS: NO, PAGES: 1}, "warning", "pages wait to be retired"),
    ("gpu rows", {ROWS: NO, PAGES: 0}, "ok", "none"),
    ("gpu clocks", {}, "ok", "at most 1980 MHz, idle now"),
    ("gpu clocks", {REASONS: 0x4, MHZ: 1500}, "ok", "1500 of 1980 MHz"),
    ("gpu clocks", {REASONS: 0, MHZ: 1980}, "ok", "1980 of 1980 MHz"),
    ("gpu clocks", {REASONS: 0, MHZ: 1500}, "warning", "NVML gives no reason: locked?"),
    ("gpu clocks", {ASKED: 1200}, "warning", "is 1200 MHz, by default 1980 MHz"),
    ("gpu clocks", {REASONS: 0x2, MHZ: 1200}, "warning", "limited by the applications clock"),
    ("gpu clocks", {ASKED: NO, USUAL: NO}, "ok", "at most 1980 MHz, idle now"),
    ("gpu clocks", {MHZ: NO}, "unknown", REFUSED),
    ("gpu clocks", {MOST_MHZ: NO}, "unknown", REFUSED),
    ("gpu clocks", {REASONS: NO, OLD_REASONS: NO}, "unknown", REFUSED),
    ("gpu throttling", {}, "ok", "gpu_idle"),
    ("gpu throttling", {REASONS: 0}, "ok", "by nothing"),
    ("gpu throttling", {REASONS: 0x4}, "ok", "sw_power_cap"),
    ("gpu throttling", {REASONS: 0x20}, "failed", "slowed down by heat (sw_thermal_slowdown)"),
    ("gpu throttling", {REASONS: 0x88}, "failed", "(hw_slowdown, hw_power_brake_slowdown)"),
    ("gpu throttling", {REASONS: NO, OLD_REASONS: 0x40}, "failed", "(hw_thermal_slowdown)"),
    ("gpu throttling", {REASONS: NO, OLD_REASONS: NO}, "unknown", REFUSED),
    ("gpu power limit", {}, "ok", "700 W, by default 700 W"),
    ("gpu power limit", {WATTS: 500_000}, "warning", "500 W, by default 700 W"),
    ("gpu power limit", {WATTS: NO}, "unknown", REFUSED),
    ("gpu power limit", {USUAL_WATTS: NO}, "unknown", REFUSED),
    ("gpu persistence", {}, "ok", "on"),
    ("gpu persistence", {PERSISTENCE: 0}, "warning", "off"),
    ("gpu persistence", {PERSISTENCE: NO}, "unknown", REFUSED),
    ("gpu temperature", {}, "ok", "30 °C, 57 °C before it slows down"),
    ("gpu temperature", {MARGIN: 6}, "ok", "30 °C, 6 °C before it slows down"),
    ("gpu temperature", {MARGIN: 5}, "warning", "30 °C, 5 °C before it slows down"),
    ("gpu temperature", {MARGIN: 0, DEGREES: NO}, "failed", "31 °C, 0 °C before it slows down"),
    ("gpu temperature", {MARGIN: NO, DEGREES: 80}, "ok", "80 °C, 7 °C before it slows down"),
    ("gpu temperature", {MARGIN: NO, SLOWDOWN: NO}, "unknown", REFUSED),
    (
        "gpu temperature",
        {MARGIN: 9, DEGREES: NO, "nvmlDeviceGetTemperature": NO},
        "ok",
        "GPU 0: 9 °C before it slows down",
    ),
    ("nvlink", {}, "ok", "18 up"),
    ("nvlink", {LINKS: [1, 0, 1]}, "warning", "1 of 3 down (1)"),
    ("nvlink", {LINKS: [0, 0]}, "failed", "2 of 2 down (0, 1)"),
    ("nvlink", {LINKS: NO}, "unknown", "NVML reports no NVLink"),
    ("nvlink", {LINKS: LOST}, "unknown", "GPU is lost"),
]


@each(("question", "answers", "outcome", "text"), TABLE)
def test_what_a_gpu_amounts_to(install, question, answers: dict, outcome: str, text: str) -> None:
    driver = install(answers)
    found = check(question)
    assert found.outcome == outcome
    assert found.found.endswith(text)
    assert driver.open == 0


def test_every_question_has_rows_for_well_not_well_and_unknown() -> None:
    for name in GPU_RULES:
        outcomes = {row[2] for row in TABLE if row[0] == name}
        assert {"ok", "unknown"} < outcomes, name
        check = checked(name, Finding("failed", ""), free=0.97, close_c=5)
        assert check.expected, name
        assert check.hint, name


@each(
    ("weights", "free", "outcome", "text"),
    [
        (640, 140, "ok", "140.0 GiB of 141.0 GiB free, the weights need 80.0 GiB"),
        (640, 79, "failed", "79.0 GiB of 141.0 GiB free, the weights alone need 80.0 GiB"),
        (640, 81, "warning", "81.0 GiB of 141.0 GiB free, the weights need 80.0 GiB"),
        (None, 1, "warning", "1.0 GiB of 141.0 GiB free"),
    ],
)
def test_weights_must_fit(install, weights, free: int, outcome: str, text: str) -> None:
    install({MEMORY: memory(free * GIB)})
    size = weights and weights * GIB
    found = check("gpu memory", Need(gpus=8, gpu="H200", weights_bytes=size, gpus_in_all=8))
    assert (found.outcome, found.found) == (outcome, f"GPU 0: {text}")


def test_well_gpus_are_told_together(install) -> None:
    install({}, {})
    found = seen()
    assert {check.outcome for check in found.checks} == {"ok"}
    assert found.checks[1].found == "GPU 0, 1: none"
    assert [check.hint for check in found.checks] == [""] * len(GPU_RULES)
    assert (found.driver, found.cuda) == ("580.65.06", "13.0")


def test_the_worst_gpu_decides_and_all_that_is_not_well_is_told(install) -> None:
    install({}, {"corrected": 2}, {"uncorrected": NO}, {"uncorrected": 1}, {"uncorrected": 1})
    errors = check("gpu errors", Need(gpus=5, gpu="H200"))
    assert errors.outcome == "failed"
    assert errors.found == f"GPU 3, 4: 1 uncorrected; GPU 1: 2 corrected; GPU 2: {REFUSED}"
    assert "dmesg" in errors.hint


def test_links_matter_where_gpus_work_together(install) -> None:
    install({}, {})
    assert "nvlink" not in [check.name for check in seen(ONE).checks]


def test_a_real_gpu_under_load(install) -> None:
    """Read on an H200 under a load of bf16 matrix products (driver 580.159.04).

    Its own 9 MiB are nobody's, and its power cap is no slowdown.
    """
    used = 21_709 * MIB
    install(
        {
            MEMORY: SimpleNamespace(total=150_754_820_096, free=127_346_540_544, used=used),
            COMPUTING: [GONE],
            MHZ: 1500,
            REASONS: 0x4,
            DEGREES: 60,
            MARGIN: 24,
            LINKS: NO,
        }
    )
    found = {check.name: check.found for check in seen(ONE).checks if check.outcome != "ok"}
    assert found == {
        "gpu processes": f"GPU 0: pid {2**22 + 1}",
        "gpu memory": "GPU 0: 118.6 GiB of 140.4 GiB free",
    }


def test_who_is_on_a_gpu_is_named(install) -> None:
    ours, gone = os.getpid(), 2**22 + 1
    install({COMPUTING: [SimpleNamespace(pid=p) for p in (gone, ours)]})
    found = check("gpu processes")
    assert found.outcome == "failed"
    assert found.found.startswith(f"GPU 0: pid {ours} (")
    assert found.found.endswith(f"), pid {gone}")


@each(
    ("drawing", "split", "users"),
    [
        ((), 0, "an unseen process with 4.2 GiB (in another container?)"),
        # A desktop holds memory and computes nothing; a split GPU does not list all processes.
        ([SimpleNamespace(pid=9, usedGpuMemory=4300 * MIB)], 0, "none"),
        ((), 1, "none"),
    ],
)
def test_a_program_that_is_not_listed_is_known_by_its_memory(
    install, drawing, split, users
) -> None:
    graphics = {"nvmlDeviceGetGraphicsRunningProcesses": drawing, MIG: [split, split]}
    install({MEMORY: memory(4, used=4300 * MIB), **graphics})
    assert check("gpu processes").found == f"GPU 0: {users}"


def test_only_gpus_of_the_model_and_no_more_than_asked(install, monkeypatch) -> None:
    install({"nvmlDeviceGetName": "NVIDIA A2"}, {}, {}, {})
    found = seen()
    assert [one.label for one in found.gpus] == ["1", "2"]
    assert found.names == ("NVIDIA A2", *["NVIDIA H200"] * 3)
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    assert [one.label for one in seen().gpus] == ["3", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    with pytest.raises(InputError, match="7 names no GPU"):
        seen()


def test_those_that_are_leased(install) -> None:
    install({}, {DEGREES: 44})
    found = seen(ONE, leased=[Device("gpu-GPU-1", "1", "1", "NVIDIA H200", "GPU-1")])
    (degrees,) = (check.found for check in found.checks if check.name == "gpu temperature")
    assert degrees.startswith("GPU 1: 44 °C")


def test_a_gpu_that_fell_off_the_bus_is_all_unread(install, monkeypatch) -> None:
    driver = install({})

    def lost(uuid: str) -> int:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)

    monkeypatch.setattr(driver, "nvmlDeviceGetHandleByUUID", lost)
    found = seen().checks
    assert {(one.outcome, one.found) for one in found} == {("unknown", "GPU 0: GPU is lost")}
    assert len(found) == len(GPU_RULES)


@each(
    ("made_up", "module", "why"),
    [
        (True, {}, "the GPUs are simulated (PERFGATE_FAKE_GPUS)"),
        (False, {"init_error": pynvml.NVML_ERROR_LIBRARY_NOT_FOUND}, "NVML Shared Library Not"),
        (False, None, "no nvidia-ml-py in this environment"),
    ],
)
def test_why_there_is_nothing_to_ask(install, monkeypatch, made_up, module, why: str) -> None:
    install({}, **(module or {}))
    if module is None:
        monkeypatch.setitem(sys.modules, "pynvml", None)  # what import finds when there is none
    with monkeypatch.context() as here:
        if made_up:
            here.setenv("PERFGATE_FAKE_GPUS", "8")
        found = look_at_gpus(TWO)
    assert isinstance(found, Unreadable)
    assert found.why.startswith(why)


def test_a_driver_that_hangs_is_given_up(install, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, over = install({}), threading.Event()
    monkeypatch.setattr(driver, "nvmlInit", lambda: over.wait(20), raising=False)
    monkeypatch.setattr(nvml, "PATIENCE_S", 0.05)
    found = look_at_gpus(TWO)
    over.set()
    assert found == Unreadable("the driver did not answer in 0 s")
    assert found.kind == "hangs"
    with pytest.raises(NotReadable, match="did not answer"):
        known(found)


def test_an_error_that_is_none_of_nvmls_is_no_error_either(install, monkeypatch) -> None:
    driver = install({})
    monkeypatch.setattr(driver, PERSISTENCE, lambda gpu: 1 / 0, raising=False)
    assert check("gpu persistence").found == "GPU 0: ZeroDivisionError: division by zero"


def test_an_error_of_the_reading_itself_is_raised_where_it_was_asked_for(install) -> None:
    driver = install({})
    with pytest.raises(ZeroDivisionError):
        nvml.read_nvml(lambda opened: 1 / 0)
    assert driver.open == 0


def test_the_real_nvml_is_asked_without_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERFGATE_FAKE_GPUS", raising=False)
    found = look_at_gpus(Need(gpus=8, gpu="H200"))
    assert found.why if isinstance(found, Unreadable) else found.names
