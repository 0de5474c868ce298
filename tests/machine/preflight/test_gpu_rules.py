"""GPU rules: one table a question; each row is what NVML told and what it amounts to."""

from fake_pynvml import GIB
from made_gpus import gpu
from tables import each

from perfgate.machine.preflight import gpu_rules
from perfgate.machine.preflight.check import Case
from perfgate.machine.preflight.facts import Rows
from perfgate.machine.preflight.gpu_rules import GPU_RULES, judge_gpus
from perfgate.machine.preflight.need import Need
from perfgate.machine.reading import Unreadable

ONE = Need(gpus=1, gpu="H200", gpus_in_all=1)
TWO = Need(gpus=2, gpu="H200", gpus_in_all=2)
NO = Unreadable("Not Supported")
FREE = " of 141.0 GiB free"

TABLE = [
    # question, what NVML told, outcome, what is said
    ("split", {}, "ok", "whole"),
    ("split", {"is_split": True}, "failed", "split (MIG)"),
    ("split", {"is_split": NO}, "unknown", "Not Supported"),
    ("processes", {}, "ok", "none"),
    ("processes", {"processes": ("pid 4 (x)", "pid 8")}, "failed", "pid 4 (x), pid 8"),
    ("processes", {"processes": NO}, "unknown", "Not Supported"),
    ("memory", {}, "ok", "140.0 GiB of 141.0 GiB free"),
    ("memory", {"free_bytes": 136 * GIB}, "warning", "136.0 GiB of 141.0 GiB free"),
    ("memory", {"free_bytes": NO}, "unknown", "Not Supported"),
    ("memory", {"memory_bytes": NO}, "unknown", "Not Supported"),
    ("errors", {}, "ok", "none"),
    ("errors", {"uncorrected": 1, "corrected": 9}, "failed", "1 uncorrected"),
    ("errors", {"corrected": 9}, "warning", "9 corrected"),
    ("errors", {"uncorrected": NO}, "unknown", "Not Supported"),
    ("errors", {"uncorrected": 2, "corrected": NO}, "failed", "2 uncorrected"),
    ("errors", {"corrected": NO}, "unknown", "Not Supported"),
    ("rows", {}, "ok", "none"),
    ("rows", {"rows": Rows(3, False, False)}, "ok", "3 replaced, none waits"),
    ("rows", {"rows": Rows(3, True, False)}, "warning", "rows wait to be replaced"),
    ("rows", {"rows": Rows(3, True, True)}, "failed", "a row could not be replaced"),
    ("rows", {"rows": NO}, "unknown", "Not Supported"),
    ("rows", {"rows": NO, "retired_pending": True}, "warning", "pages wait to be retired"),
    ("rows", {"rows": NO, "retired_pending": False}, "ok", "none"),
    ("clocks", {}, "ok", "at most 1980 MHz, idle now"),
    ("clocks", {"reasons": 0x4, "sm_mhz": 1500}, "ok", "1500 of 1980 MHz"),
    ("clocks", {"reasons": 0, "sm_mhz": 1980}, "ok", "1980 of 1980 MHz"),
    ("clocks", {"reasons": 0, "sm_mhz": 1500}, "warning", "NVML gives no reason: locked?"),
    ("clocks", {"asked_mhz": 1200}, "warning", "is 1200 MHz, by default 1980 MHz"),
    ("clocks", {"reasons": 0x2, "sm_mhz": 1200}, "warning", "limited by the applications clock"),
    ("clocks", {"asked_mhz": NO, "asked_mhz_default": NO}, "ok", "at most 1980 MHz, idle now"),
    ("clocks", {"sm_mhz": NO}, "unknown", "Not Supported"),
    ("clocks", {"sm_mhz_most": NO}, "unknown", "Not Supported"),
    ("clocks", {"reasons": NO}, "unknown", "Not Supported"),
    ("throttling", {}, "ok", "gpu_idle"),
    ("throttling", {"reasons": 0}, "ok", "by nothing"),
    ("throttling", {"reasons": 0x4}, "ok", "sw_power_cap"),
    ("throttling", {"reasons": 0x20}, "failed", "slowed down by heat (sw_thermal_slowdown)"),
    ("throttling", {"reasons": 0x88}, "failed", "(hw_slowdown, hw_power_brake_slowdown)"),
    ("throttling", {"reasons": NO}, "unknown", "Not Supported"),
    ("power", {}, "ok", "700 W, by default 700 W"),
    ("power", {"power_w": 500.0}, "warning", "500 W, by default 700 W"),
    ("power", {"power_w": NO}, "unknown", "Not Supported"),
    ("power", {"power_w_default": NO}, "unknown", "Not Supported"),
    ("persistence", {}, "ok", "on"),
    ("persistence", {"is_persistent": False}, "warning", "off"),
    ("persistence", {"is_persistent": NO}, "unknown", "Not Supported"),
    ("temperature", {}, "ok", "30 °C, 57 °C before it slows down"),
    ("temperature", {"margin": 6}, "ok", "30 °C, 6 °C before it slows down"),
    ("temperature", {"margin": 5, "degrees": 82}, "warning", "82 °C, 5 °C before it slows down"),
    ("temperature", {"margin": 0, "degrees": NO}, "failed", "0 °C before it slows down"),
    ("temperature", {"margin": NO}, "unknown", "Not Supported"),
    ("links", {}, "ok", "18 up"),
    ("links", {"links": (True, False, True)}, "warning", "1 of 3 down (1)"),
    ("links", {"links": (False, False)}, "failed", "2 of 2 down (0, 1)"),
    ("links", {"links": ()}, "unknown", "NVML reports no NVLink"),
    ("links", {"links": NO}, "unknown", "Not Supported"),
]


@each(("question", "told", "outcome", "text"), TABLE)
def test_what_a_gpu_amounts_to(question: str, told: dict, outcome: str, text: str) -> None:
    finding = getattr(gpu_rules, question)(Case(gpu(**told), TWO))
    assert finding.outcome == outcome
    assert finding.text.endswith(text)


def test_every_question_has_rows_for_well_not_well_and_unknown() -> None:
    for rule in GPU_RULES:
        outcomes = {row[2] for row in TABLE if row[0] == rule.judge.__name__}
        assert {"ok", "unknown"} < outcomes, rule.name
        assert rule.expected, rule.name
        assert rule.hint, rule.name


@each(
    ("weights", "free", "outcome", "text"),
    [
        (640 * GIB, 140 * GIB, "ok", f"140.0 GiB{FREE}, the weights need 80.0 GiB"),
        (640 * GIB, 79 * GIB, "failed", f"79.0 GiB{FREE}, the weights alone need 80.0 GiB"),
        (640 * GIB, 81 * GIB, "warning", f"81.0 GiB{FREE}, the weights need 80.0 GiB"),
        (None, 1 * GIB, "warning", f"1.0 GiB{FREE}"),
    ],
)
def test_weights_must_fit(weights, free: int, outcome: str, text: str) -> None:
    need = Need(gpus=8, gpu="H200", weights_bytes=weights, gpus_in_all=8)
    finding = gpu_rules.memory(Case(gpu(free_bytes=free), need))
    assert (finding.outcome, finding.text) == (outcome, text)


def test_well_gpus_are_told_together() -> None:
    checks = judge_gpus([gpu(), gpu(label="1")], TWO)
    assert {check.outcome for check in checks} == {"ok"}
    assert [check.found for check in checks][1] == "GPU 0, 1: none"
    assert [check.hint for check in checks] == [""] * len(GPU_RULES)


def test_the_worst_gpu_decides_and_all_that_is_not_well_is_told() -> None:
    found = [{}, {"corrected": 2}, {"uncorrected": NO}, {"uncorrected": 1}, {"uncorrected": 1}]
    gpus = [gpu(label=str(number), **facts) for number, facts in enumerate(found)]
    errors = next(check for check in judge_gpus(gpus, TWO) if check.name == "gpu errors")
    assert errors.outcome == "failed"
    assert errors.found == "GPU 3, 4: 1 uncorrected; GPU 1: 2 corrected; GPU 2: Not Supported"
    assert "dmesg" in errors.hint


def test_links_matter_where_gpus_work_together() -> None:
    assert "nvlink" not in [check.name for check in judge_gpus([gpu()], ONE)]
    assert "nvlink" in [check.name for check in judge_gpus([gpu(), gpu(label="1")], TWO)]
