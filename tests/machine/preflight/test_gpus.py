"""GPUs: what NVML answers, or does not, and what the preflight makes of it."""

import sys
import threading
from types import SimpleNamespace
from unittest.mock import Mock

import pynvml
import pytest
from fake_pynvml import GIB, MIB, Refusal
from tables import each, tables_of

from perfgate.machine import nvml
from perfgate.machine.preflight.check import Check, Finding, Need, checked
from perfgate.machine.preflight.gpus import judge_gpus

ONE, TWO = (Need(gpus=count, gpu="H200", gpus_in_all=count) for count in (1, 2))
TABLE = tables_of("preflight_gpus")
GET = "nvmlDeviceGet"
PERSISTENCE = f"{GET}PersistenceMode"
GONE = SimpleNamespace(pid=2**22 + 1, usedGpuMemory=21_700 * MIB)
NO = Refusal()
WORDS = {"refused": NO, "lost": Refusal(pynvml.NVML_ERROR_GPU_IS_LOST), "gone": [GONE]}
REFUSED = "Not Supported"


def memory(free_gib: int = 0, used_mib: int = 0) -> SimpleNamespace:
    return SimpleNamespace(total=141 * GIB, free=free_gib * GIB, used=used_mib * MIB)


def answer(plain):
    """NVML's answer as the table has it."""
    if isinstance(plain, dict):
        return memory(**plain)
    return WORDS.get(plain, plain) if isinstance(plain, str) else plain


def answers(table):
    """NVML's function, or kind of errors → its answer."""
    return {name if "corrected" in name else GET + name: answer(one) for name, one in table.items()}


def seen(need: Need = TWO, lacking: str | None = None, **more) -> dict[str, Check]:
    return {check.name: check for check in judge_gpus(need, lacking, **more)[0]}


@each(
    ("question", "plain", "outcome", "text"),
    [(question, *row) for question, rows in TABLE.items() for row in rows],
)
def test_what_a_gpu_amounts_to(install, question, plain: dict, outcome: str, text: str) -> None:
    driver = install(answers(plain))
    check = seen()[question]
    assert check.outcome == outcome
    assert text in check.found
    assert driver.open == 0


def test_every_question_has_rows_for_well_not_well_and_unknown(install) -> None:
    install({}, {})
    for name in list(seen())[1:]:
        outcomes = {outcome for _, outcome, _ in TABLE[name]}
        assert {"ok", "unknown"} < outcomes, name
        check = checked(name, Finding("failed", ""), free=0.97, close_c=5)
        assert check.expected, name
        assert check.hint, name


@each(("weights", "free", "outcome", "text"), tables_of("machine_tables")["weights"])
def test_weights_must_fit(install, weights, free: int, outcome: str, text: str) -> None:
    install({f"{GET}MemoryInfo": memory(free)})
    size = weights * GIB or None
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
    used, total, free = 21_709 * MIB, 150_754_820_096, 127_346_540_544
    plain = {"ComputeRunningProcesses": "gone", "ClockInfo": 1500, "NvLinkState": "refused"}
    plain |= {"CurrentClocksEventReasons": 4, "TemperatureV": 60, "MarginTemperature": 24}
    held = SimpleNamespace(total=total, free=free, used=used)
    install(answers(plain) | {f"{GET}MemoryInfo": held})
    assert {name: one.found for name, one in seen(ONE).items() if one.outcome != "ok"} == {
        "gpu processes": f"GPU 0: pid {2**22 + 1}",
        "gpu memory": "GPU 0: 118.6 GiB of 140.4 GiB free",
    }


def test_only_gpus_of_the_model_and_no_more_than_asked(install, monkeypatch) -> None:
    install({f"{GET}Name": "NVIDIA A2"}, {}, {}, {})
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
    lost = Mock(side_effect=pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST))
    monkeypatch.setattr(install({}, {}), f"{GET}HandleByUUID", lost)
    presence, *of_each = seen().values()
    assert presence.outcome == "ok"
    assert {(one.outcome, one.found) for one in of_each} == {("unknown", "GPU 0, 1: GPU is lost")}


@each(
    ("made_up", "module", "why"),
    [
        ("8", {}, "the GPUs are simulated (PERFGATE_FAKE_GPUS)"),
        ("", {"init_error": pynvml.NVML_ERROR_LIBRARY_NOT_FOUND}, "NVML Shared Library Not Fou"),
        ("", None, "no nvidia-ml-py in this environment"),
    ],
)
def test_nvidia_smi_alone_is_not_enough_to_be_sure(install, monkeypatch, made_up, module, why):
    install({}, **(module or {}))
    if module is None:
        monkeypatch.setitem(sys.modules, "pynvml", None)  # what import finds when there is none
    monkeypatch.setenv("PERFGATE_FAKE_GPUS", made_up)
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
