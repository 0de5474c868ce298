"""Conditions: as JSON, what of them counts as a disturbance, and what NVML says of the GPUs."""

import json
import re
import sys
from dataclasses import replace
from types import SimpleNamespace

import pynvml
import pytest
from fake_pynvml import MIB, FakeGpu, Looks, Refusal
from tables import each, tables_of

from perfgate.core.errors import InputError
from perfgate.machine import nvml
from perfgate.machine.conditions import conditions as module
from perfgate.machine.conditions.conditions import Conditions, CpuConditions, GpuConditions
from perfgate.machine.conditions.gpu import Gpus, open_gpus
from perfgate.machine.conditions.processes import Process
from perfgate.scenarios.scenario import DisturbanceLimits

TABLES = tables_of("machine_tables")
LIMITS = DisturbanceLimits()
CALM = CpuConditions(2, 0.02, 0.001, 3400.0, 3450.0, 3500.0)
COOL = GpuConditions(3, "NVIDIA B200", "GPU-3", 1950.0, 1965.0, 950.0, 66.0, slowed_share=0.0)


def test_plain_values_by_name() -> None:
    """A field's name is an interface: records have it."""
    gpu = replace(COOL, slowdown={"sw_power_cap": 2 / 3}, strangers=("pid 4711 (python)",))
    cpu = replace(CALM, others_share=0.0312345)
    conditions = Conditions(61.23456, 62, cpu, (gpu,), ("a note",))
    plain = json.loads(json.dumps(conditions.plain(), allow_nan=False))
    assert plain == {
        "seconds": 61.2346, "samples": 62, "notes": ["a note"],
        "cpu": {
            "cores": 2, "others_share": 0.0312, "steal_share": 0.001,
            "mhz_low": 3400.0, "mhz_median": 3450.0, "mhz_top": 3500.0,
        },
        "gpus": [{
            "index": 3, "name": "NVIDIA B200", "uuid": "GPU-3",
            "sm_mhz_low": 1950.0, "sm_mhz_median": 1965.0, "power_w_mean": 950.0,
            "temperature_c_top": 66.0, "slowdown": {"sw_power_cap": 0.6667}, "slowed_share": 0.0,
            "strangers": ["pid 4711 (python)"],
        }],
    }  # fmt: skip
    assert module.conditions_of(plain).plain() == plain
    silent = module.not_watched("the driver hangs")
    assert module.conditions_of(json.loads(json.dumps(silent.plain()))) == silent


@each(
    "plain",
    [{}, [], 3, None, {"seconds": 1.0}, {**module.not_watched("").plain(), "cpu": {"x": 1}}],
)
def test_what_is_none_is_refused(plain: object) -> None:
    with pytest.raises(InputError, match="not the plain form of Conditions"):
        module.conditions_of(plain)


def of_cpu(seconds: float = 60.0, **changes) -> tuple[str, ...]:
    return module.disturbances(Conditions(seconds, 61, replace(CALM, **changes)), LIMITS)


def of_gpu(samples: int = 100, **changes) -> tuple[str, ...]:
    gpus = (replace(COOL, index=0, uuid="GPU-0"), replace(COOL, **changes))
    return module.disturbances(Conditions(60.0, samples, CALM, gpus), LIMITS)


def test_an_unknown_machine_is_not_accused() -> None:
    assert module.disturbances(Conditions(60.0, 61, None, notes=("not watched",)), LIMITS) == ()
    unknown = CpuConditions(2, None, 0.0)
    nothing = GpuConditions(0, "NVIDIA B200", "GPU-0")
    assert module.disturbances(Conditions(60.0, 61, unknown, (nothing,)), LIMITS) == ()


@each(
    ("changes", "sentence"),
    [*TABLES["cpu"], ({"mhz_median": 100.0, "mhz_top": None}, ""), ({"mhz_median": None}, "")],
)
def test_each_of_the_cpu_in_one_sentence(changes: dict[str, float], sentence: str) -> None:
    assert of_cpu(**changes) == ((sentence,) if sentence else ())


def test_the_cpu_of_a_moment_is_not_judged_and_each_stranger_on_a_gpu_is() -> None:
    assert of_cpu(0.49, others_share=1.0, steal_share=1.0, mhz_median=1.0) == ()
    assert len(of_cpu(0.5, others_share=1.0, steal_share=1.0, mhz_median=1.0)) == 3
    strangers = ("pid 4711 (python)", "pid 9")
    assert of_gpu(strangers=strangers) == tuple(f"GPU 3 is also used by {one}" for one in strangers)


@each(("slowdown", "by"), TABLES["gpu"])
def test_a_slow_gpu_and_why(slowdown: dict[str, float], by: str) -> None:
    told = f"GPU 3 was slowed down by {by} in 12 % of the samples (limit 5 %)"
    assert of_gpu(slowdown=slowdown, slowed_share=0.12) == (told,)


def test_a_well_gpu_and_one_slow_sample_of_a_change_of_clocks() -> None:
    assert of_gpu(slowdown={"sw_power_cap": 1.0, "sync_boost": 1.0}, slowed_share=0.0) == ()
    hot = {"slowdown": {"hw_slowdown": 0.5}, "slowed_share": 0.5}
    assert of_gpu(samples=2, **hot) == ()
    assert len(of_gpu(samples=4, **hot)) == 1


def test_the_limits_are_the_scenarios() -> None:
    loose = DisturbanceLimits(others_cpu=0.5, steal=0.5, cpu_clock=0.1, slowdown=0.5)
    cpu = replace(CALM, others_share=0.41, steal_share=0.2, mhz_median=1085.0)
    gpu = replace(COOL, slowdown={"hw_slowdown": 0.4}, slowed_share=0.4)
    conditions = Conditions(60.0, 61, cpu, (gpu,))
    assert len(module.disturbances(conditions, LIMITS)) == 4
    assert module.disturbances(conditions, loose) == ()


# GPUs under watch

MAKERS = {100: "python", 101: "trtllm-serve", 4711: "python", 77: "nvidia-cuda-mps"}
TABLE = {pid: Process(pid, 1, name, 0.0) for pid, name in MAKERS.items()}
OURS = frozenset({100, 101})


def opened(wanted: int = 1) -> Gpus:
    return open_gpus(wanted, [])


def after(gpus: Gpus, looks: int, table=TABLE, ours=OURS, before=None) -> list[GpuConditions]:
    for _ in range(looks):
        gpus.sample()
        gpus.tell_apart(table, ours)
    return [*gpus.conditions(before or {})]


# What is measured


def test_units_and_statistics(install) -> None:
    """The clock of an idle GPU is no slow clock."""
    watts, degrees = (900_000, 1_000_000, 1_100_000, 1_000_000), (55, 67, 60, 55)
    idle = (0, 0, 0, pynvml.nvmlClocksEventReasonGpuIdle)
    mhz = (1900, 1965, 1965, 120)
    install(FakeGpu(mhz=mhz, milliwatts=watts, degrees=degrees, reasons=idle))
    (gpu,) = after(opened(), 4)
    assert gpu == GpuConditions(
        0, "NVIDIA B200", "GPU-00000000-aaaa", sm_mhz_low=1900.0, sm_mhz_median=1965.0,
        power_w_mean=1000.0, temperature_c_top=67.0, slowdown={"gpu_idle": 0.25}, slowed_share=0.0,
    )  # fmt: skip


# Why clocks are what they are

SLOWING = ["HwSlowdown", "HwThermalSlowdown", "SwThermalSlowdown", "HwPowerBrakeSlowdown"]
NORMAL = ["GpuIdle", "ApplicationsClocksSetting", "SwPowerCap", "SyncBoost", "DisplayClockSetting"]


@each("nvml_name", SLOWING + NORMAL)
def test_each_reason_by_its_name(install, nvml_name: str) -> None:
    name = re.sub(r"\B(?=[A-Z])", "_", nvml_name).lower()
    install(FakeGpu(reasons=(getattr(pynvml, f"nvmlClocksEventReason{nvml_name}"), 0, 0, 0)))
    (gpu,) = after(opened(), 4)
    assert gpu.slowdown == {name: 0.25}
    assert gpu.slowed_share == (0.25 if nvml_name in SLOWING else 0.0)


def test_a_sample_with_two_reasons_counts_once(install) -> None:
    hot = pynvml.nvmlClocksEventReasonHwSlowdown | pynvml.nvmlClocksEventReasonHwThermalSlowdown
    install(FakeGpu(reasons=(hot, hot, pynvml.nvmlClocksEventReasonSwThermalSlowdown, 0)))
    (gpu,) = after(opened(), 4)
    assert gpu.slowed_share == 0.75
    assert nvml.culprits(gpu.slowdown) == ("heat",)


def test_every_bit_of_the_real_module_is_known() -> None:
    everything = pynvml.nvmlClocksThrottleReasonAll
    assert not [name for name in nvml.reasons_in(everything) if "unknown" in name]
    assert nvml.reasons_in(1 << 40) == ("unknown_0x10000000000",)
    assert not nvml.slows(1 << 40)


# What NVML does not say


def test_what_a_gpu_refuses_is_missing_and_noted_once(install) -> None:
    """Also when it refuses in the middle: what was seen before stays."""
    asked = ["PowerUsage", "Temperature", "TemperatureV", "ClockInfo", "ComputeRunningProcesses"]
    asked += ["CurrentClocksEventReasons", "CurrentClocksThrottleReasons"]
    names = [f"nvmlDeviceGet{what}" for what in asked]
    lost = FakeGpu(uuid="GPU-b", milliwatts=(500_000,))
    install(FakeGpu(refuses=dict.fromkeys(names, pynvml.NVML_ERROR_NOT_SUPPORTED)), lost)
    gpus = opened(2)
    after(gpus, 1)
    lost.refuses[names[0]] = pynvml.NVML_ERROR_GPU_IS_LOST
    refusing, seen = after(gpus, 2)
    assert refusing == GpuConditions(0, "NVIDIA B200", "GPU-00000000-aaaa")
    assert seen.power_w_mean == 500.0
    kinds = ("SM clock", "clock reasons", "power", "processes", "temperature")
    refused = [f"GPU 0: {what} not readable: Not Supported" for what in kinds]
    assert sorted(gpus.notes) == [*refused, "GPU 1: power not readable: GPU is lost"]


def test_gpus_that_are_not_wanted_are_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    notes: list[str] = []
    assert open_gpus(0, notes).gpus == []
    assert (notes, "pynvml" in sys.modules) == ([], False)


# Which GPUs

FOUR = [f"GPU-{number}{number}{number}-x" for number in range(4)]


ALL = [(None, 2, [0, 1], ""), (None, 8, [0, 1, 2, 3], "4 of 8 GPUs watched")]


@each(("visible", "wanted", "watched", "note"), [*ALL, *TABLES["watched"]])
def test_the_gpus_that_the_program_will_use(install, monkeypatch, visible, wanted, watched, note):
    install(*(FakeGpu(uuid=uuid) for uuid in FOUR))  # which unsets the variable
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    gpus = opened(wanted)
    assert [gpu.index for gpu in after(gpus, 1)] == watched
    assert bool(gpus.notes) is bool(note)
    assert not note or any(note in one for one in gpus.notes)


@each(("looks", "before", "strangers", "note"), TABLES["strangers"])
def test_who_is_a_stranger(install, looks, before, strangers, note: str) -> None:
    install(FakeGpu(uuid="GPU-a", pids=looks))
    gpus = opened()
    (gpu,) = after(gpus, len(looks), before={"GPU-a": frozenset(before)})
    assert gpu.strangers == tuple(strangers)
    assert len(gpus.notes) == bool(note)
    assert not note or note in gpus.notes[0]


# Read on an H200 (driver 580.159.04) in a pid namespace of its own, where NVML lists the caller's
# processes alone: ours held 2018 MiB; with a program outside, 4306 MiB more were in use.
OURS_HOLDS, ALONE, SHARED = 2018 * MIB, 2026 * MIB, 6324 * MIB
UNSEEN = "an unseen process with 4.2 GiB (in another container?)"
MEMORY, COMPUTING = "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetComputeRunningProcesses"
MAYBE = [f"GPU 0 may also be used by {UNSEEN}"]
NO_MEMORY = "memory of unseen processes not readable: NVML reports no memory of each process"


def held(*used: int, pid: int = 100, by_it: int | None = OURS_HOLDS) -> dict[str, object]:
    """What NVML answers of memory in use, one a look, and of the process that is listed."""
    process = SimpleNamespace(pid=pid, usedGpuMemory=by_it)
    return {MEMORY: Looks([SimpleNamespace(used=one) for one in used]), COMPUTING: [process]}


@each(
    ("answers", "strangers", "notes"),
    [
        (held(ALONE, ALONE, ALONE), (), []),
        (held(ALONE, SHARED, SHARED), (UNSEEN,), []),
        (held(ALONE, SHARED, ALONE), (), []),  # a process that ended between two readings
        (held(SHARED, SHARED, SHARED), (), MAYBE),
        # None of ours is listed: the engine itself may be in another container.
        (held(ALONE, SHARED, SHARED, pid=4711), ("pid 4711 (python)",), MAYBE),
        # Where NVML does not tell who holds memory nobody is accused.
        ({MEMORY: Refusal()}, (), []),
        (held(ALONE, by_it=None), (), [f"GPU 0: {NO_MEMORY}"]),
        ({**held(ALONE, SHARED, SHARED), "nvmlDeviceGetName": "NVIDIA GB200"}, (), []),
    ],
)
def test_memory_that_no_listed_process_holds(install, answers, strangers, notes) -> None:
    install(FakeGpu(uuid="GPU-a", answers=answers))
    gpus = opened()
    (gpu,) = after(gpus, 3, before={"GPU-a": frozenset({4711})})
    assert (gpu.strangers, gpus.notes) == (strangers, notes)


def test_one_of_ours_on_another_gpu_shows_the_namespace_and_a_split_one_nobody(install) -> None:
    install(FakeGpu(uuid="GPU-a", pids=[[100]]), FakeGpu(uuid="GPU-b", pids=[[4711]]))
    ours, theirs = after(opened(2), 1)
    assert (ours.strangers, theirs.strangers) == ((), ("pid 4711 (python)",))
    install(FakeGpu(pids=[[100, 4711]], mig=True))
    gpus = opened()
    assert after(gpus, 1)[0].strangers == ()
    assert gpus.notes == ["GPU 0 is split (MIG): who else uses it is not watched"]
