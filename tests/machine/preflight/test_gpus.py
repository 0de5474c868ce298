"""GPUs: what NVML answers, or does not, and what the preflight makes of it."""

import sys
import threading
from types import SimpleNamespace

import pynvml
import pytest
from fake_pynvml import GIB, MIB, Refusal
from tables import each

from perfgate.machine import nvml
from perfgate.machine.preflight.check import Check, Finding, Need, checked
from perfgate.machine.preflight.gpus import judge_gpus

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
WATTS = "nvmlDeviceGetEnforcedPowerLimit"
USUAL_WATTS = "nvmlDeviceGetPowerManagementDefaultLimit"
PERSISTENCE = "nvmlDeviceGetPersistenceMode"
DEGREES, MARGIN = "nvmlDeviceGetTemperatureV", "nvmlDeviceGetMarginTemperature"
OLD_DEGREES, SLOWDOWN = "nvmlDeviceGetTemperature", "nvmlDeviceGetTemperatureThreshold"
LINKS = "nvmlDeviceGetNvLinkState"
GONE = SimpleNamespace(pid=2**22 + 1, usedGpuMemory=21_700 * MIB)
NO = Refusal()
GRAPHICS = "nvmlDeviceGetGraphicsRunningProcesses"
UNSEEN = "an unseen process with 4.2 GiB (in another container?)"
REFUSED = "Not Supported"


def memory(free: int, used: int = 0) -> SimpleNamespace:
    return SimpleNamespace(total=141 * GIB, free=free, used=used)


USED = {MEMORY: memory(4, used=4300 * MIB)}


def seen(need: Need = TWO, lacking: str | None = None, **more) -> dict[str, Check]:
    return {check.name: check for check in judge_gpus(need, lacking, **more)[0]}


TABLE = [
    # question, what NVML answers, outcome, what is said
    ("gpu split", {}, "ok", "whole"),
    ("gpu split", {MIG: [1, 1]}, "failed", "split (MIG)"),
    ("gpu split", {MIG: NO}, "ok", "whole"),
    ("gpu split", {MIG: LOST}, "unknown", "GPU is lost"),
    ("gpu processes", {}, "ok", "none"),
    ("gpu processes", {COMPUTING: [GONE]}, "failed", f"pid {GONE.pid}"),
    ("gpu processes", {COMPUTING: NO}, "unknown", REFUSED),
    ("gpu processes", USED, "failed", UNSEEN),
    # A desktop holds memory and computes nothing; a split GPU does not list all processes.
    ("gpu processes", {**USED, GRAPHICS: [GONE]}, "ok", "none"),
    ("gpu processes", {**USED, MIG: [1, 1]}, "ok", "none"),
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
    ("gpu temperature", {MARGIN: 9, DEGREES: NO, OLD_DEGREES: NO}, "ok", "GPU 0: 9 °C before it "),
    ("nvlink", {}, "ok", "18 up"),
    ("nvlink", {LINKS: [1, 0, 1]}, "warning", "1 of 3 down (1)"),
    ("nvlink", {LINKS: [0, 0]}, "failed", "2 of 2 down (0, 1)"),
    ("nvlink", {LINKS: NO}, "unknown", "NVML reports no NVLink"),
    ("nvlink", {LINKS: LOST}, "unknown", "GPU is lost"),
]


@each(("question", "answers", "outcome", "text"), TABLE)
def test_what_a_gpu_amounts_to(install, question, answers: dict, outcome: str, text: str) -> None:
    driver = install(answers)
    check = seen()[question]
    assert check.outcome == outcome
    assert text in check.found
    assert driver.open == 0


def test_every_question_has_rows_for_well_not_well_and_unknown(install) -> None:
    install({}, {})
    for name in list(seen())[1:]:
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
    check = seen(Need(gpus=8, gpu="H200", weights_bytes=size, gpus_in_all=8))["gpu memory"]
    assert (check.outcome, check.found) == (outcome, f"GPU 0: {text}")


def test_well_gpus_are_told_together(install) -> None:
    install({}, {})
    checks = seen()
    assert {(check.outcome, check.hint) for check in checks.values()} == {("ok", "")}
    assert checks["gpus"].found == "2×NVIDIA H200: 0, 1"
    assert checks["gpu processes"].found == "GPU 0, 1: none"
    assert judge_gpus(TWO, None)[1] == {"driver": "580.65.06", "cuda of the driver": "13.0"}
    assert "nvlink" not in seen(ONE)  # links matter where GPUs work together


def test_the_worst_gpu_decides_and_all_that_is_not_well_is_told(install) -> None:
    install({}, {"corrected": 2}, {"uncorrected": NO}, {"uncorrected": 1}, {"uncorrected": 1})
    errors = seen(Need(gpus=5, gpu="H200"))["gpu errors"]
    assert errors.outcome == "failed"
    assert errors.found == f"GPU 3, 4: 1 uncorrected; GPU 1: 2 corrected; GPU 2: {REFUSED}"
    assert "dmesg" in errors.hint


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
    assert {name: one.found for name, one in seen(ONE).items() if one.outcome != "ok"} == {
        "gpu processes": f"GPU 0: pid {2**22 + 1}",
        "gpu memory": "GPU 0: 118.6 GiB of 140.4 GiB free",
    }


def test_only_gpus_of_the_model_and_no_more_than_asked(install, monkeypatch) -> None:
    install({"nvmlDeviceGetName": "NVIDIA A2"}, {}, {}, {})
    assert seen()["gpus"].found == "2×NVIDIA H200: 1, 2"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-3,GPU-0")
    assert seen()["gpus"].outcome == "failed"
    assert seen()["gpus"].found == "1×NVIDIA A2, 1×NVIDIA H200"


@each(
    ("version", "outcome"),
    [("580.65.06", "ok"), ("575", "ok"), ("570.124.06", "warning"), ("nonsense", "unknown")],
)
def test_the_documents_driver(install, version: str, outcome: str) -> None:
    install({}).nvmlSystemGetDriverVersion = lambda: version
    assert seen(Need(gpus=1, gpu="H200", driver=575))["driver"].outcome == outcome
    assert "driver" not in seen(ONE)


def test_a_gpu_that_fell_off_the_bus_is_all_unread(install, monkeypatch) -> None:
    driver = install({}, {})

    def lost(uuid: str) -> int:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)

    monkeypatch.setattr(driver, "nvmlDeviceGetHandleByUUID", lost)
    presence, *of_each = seen().values()
    assert presence.outcome == "ok"
    assert {(one.outcome, one.found) for one in of_each} == {("unknown", "GPU 0, 1: GPU is lost")}


@each(
    ("made_up", "module", "why"),
    [
        (True, {}, "the GPUs are simulated (PERFGATE_FAKE_GPUS)"),
        (False, {"init_error": pynvml.NVML_ERROR_LIBRARY_NOT_FOUND}, "NVML Shared Library Not Fou"),
        (False, None, "no nvidia-ml-py in this environment"),
    ],
)
def test_nvidia_smi_alone_is_not_enough_to_be_sure(
    install, monkeypatch, made_up, module, why: str
) -> None:
    install({}, **(module or {}))
    if module is None:
        monkeypatch.setitem(sys.modules, "pynvml", None)  # what import finds when there is none
    with monkeypatch.context() as here:
        if made_up:
            here.setenv("PERFGATE_FAKE_GPUS", "8")
        shown, lacking = (seen(Need(2, "H200", driver=575), lacks) for lacks in (None, "needs 2"))
    assert [check.outcome for check in shown.values()] == ["unknown", "unknown"]
    assert shown["gpus"].found.startswith(f"NVML: {why}")
    assert shown["driver"].found.startswith(f"NVML: {why}")
    assert lacking["gpus"].outcome == "failed"
    assert lacking["gpus"].found.startswith(f"needs 2; NVML: {why}")


def test_a_driver_that_hangs_is_given_up(install, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, over = install({}), threading.Event()
    monkeypatch.setattr(driver, "nvmlInit", lambda: over.wait(20), raising=False)
    monkeypatch.setattr(nvml, "PATIENCE_S", 0.05)
    (check,) = seen().values()
    over.set()
    assert (check.outcome, check.found) == ("failed", "the driver did not answer in 0 s")
    assert "dmesg" in check.hint


def test_an_error_that_is_none_of_nvmls_is_no_error_either(install, monkeypatch) -> None:
    driver = install({})
    monkeypatch.setattr(driver, PERSISTENCE, lambda gpu: 1 / 0, raising=False)
    assert seen()["gpu persistence"].found == "GPU 0: ZeroDivisionError: division by zero"
    install({}, missing=(PERSISTENCE,))
    lacking = f"GPU 0: this nvidia-ml-py has no {PERSISTENCE}"
    assert seen()["gpu persistence"].found == lacking
    with pytest.raises(ZeroDivisionError):  # one of the reading itself is
        nvml.read_nvml(lambda opened: 1 / 0)
    assert driver.open == 0


def test_the_real_nvml_is_asked_without_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERFGATE_FAKE_GPUS", raising=False)
    assert seen(Need(gpus=8, gpu="H200"))
