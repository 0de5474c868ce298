"""What counts as a disturbance, and how it is said."""

from dataclasses import replace

import pytest
from tables import each

from perfgate.machine.conditions.conditions import (
    Conditions,
    CpuConditions,
    GpuConditions,
    disturbances,
)
from perfgate.scenarios.scenario import DisturbanceLimits

LIMITS = DisturbanceLimits()
CALM = CpuConditions(2, 0.02, 0.001, 3400.0, 3450.0, 3500.0)
COOL = GpuConditions(3, "NVIDIA B200", "GPU-3", 1950.0, 1965.0, 950.0, 66.0, slowed_share=0.0)


STOLEN = "the hypervisor took 9 % of 2 cores for other machines (limit 5 %)"


def of_cpu(seconds: float = 60.0, **changes) -> tuple[str, ...]:
    return disturbances(Conditions(seconds, 61, replace(CALM, **changes)), LIMITS)


def of_gpu(samples: int = 100, **changes) -> tuple[str, ...]:
    gpus = (replace(COOL, index=0, uuid="GPU-0"), replace(COOL, **changes))
    return disturbances(Conditions(60.0, samples, CALM, gpus), LIMITS)


def test_a_calm_machine() -> None:
    assert of_cpu() == ()
    assert of_gpu() == ()


def test_an_unknown_machine_is_not_accused() -> None:
    assert disturbances(Conditions(60.0, 61, None, notes=("not watched",)), LIMITS) == ()
    unknown = CpuConditions(2, None, 0.0)
    nothing = GpuConditions(0, "NVIDIA B200", "GPU-0")
    assert disturbances(Conditions(60.0, 61, unknown, (nothing,)), LIMITS) == ()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"others_share": 0.41}, "other processes used 41 % of 2 cores (limit 20 %)"),
        ({"others_share": 0.41, "cores": 1}, "other processes used 41 % of 1 core (limit 20 %)"),
        ({"others_share": 0.2004}, "other processes used 20.04 % of 2 cores (limit 20 %)"),
        ({"steal_share": 0.09}, STOLEN),
        ({"mhz_median": 1085.0}, "CPU clock fell to 31 % of 3.5 GHz (limit 40 %)"),
    ],
)
def test_each_of_the_cpu_in_one_sentence(changes: dict[str, float], sentence: str) -> None:
    assert of_cpu(**changes) == (sentence,)


@each(
    "changes",
    [
        {"others_share": 0.2},
        {"steal_share": 0.05},
        {"mhz_median": 1400.0},
        {"mhz_low": 100.0},  # one slow moment
        {"mhz_median": 100.0, "mhz_top": None},  # a virtual machine
        {"mhz_median": None},
    ],
)
def test_within_the_limits(changes: dict[str, float | None]) -> None:
    assert of_cpu(**changes) == ()


def test_the_cpu_of_a_moment_is_not_judged() -> None:
    assert of_cpu(0.49, others_share=1.0, steal_share=1.0, mhz_median=1.0) == ()
    assert len(of_cpu(0.5, others_share=1.0, steal_share=1.0, mhz_median=1.0)) == 3


@pytest.mark.parametrize(
    ("slowdown", "by"),
    [
        ({"hw_thermal_slowdown": 0.12, "hw_slowdown": 0.12}, "heat"),
        ({"sw_thermal_slowdown": 0.12, "sw_power_cap": 1.0}, "heat"),
        ({"hw_power_brake_slowdown": 0.12, "hw_slowdown": 0.12}, "the power brake"),
        ({"hw_slowdown": 0.12}, "its hardware protection"),
        ({"hw_power_brake_slowdown": 0.1, "sw_thermal_slowdown": 0.02}, "the power brake and heat"),
    ],
)
def test_a_slow_gpu_and_why(slowdown: dict[str, float], by: str) -> None:
    assert of_gpu(slowdown=slowdown, slowed_share=0.12) == (
        f"GPU 3 was slowed down by {by} in 12 % of the samples (limit 5 %)",
    )


def test_a_gpu_at_its_power_cap_is_well() -> None:
    assert of_gpu(slowdown={"sw_power_cap": 1.0, "sync_boost": 1.0}, slowed_share=0.0) == ()


def test_one_slow_sample_is_a_change_of_clocks() -> None:
    hot = {"slowdown": {"hw_slowdown": 0.5}, "slowed_share": 0.5}
    assert of_gpu(samples=2, **hot) == ()
    assert len(of_gpu(samples=4, **hot)) == 1


def test_each_stranger() -> None:
    assert of_gpu(strangers=("pid 4711 (python)", "pid 9")) == (
        "GPU 3 is also used by pid 4711 (python)",
        "GPU 3 is also used by pid 9",
    )


def test_the_limits_are_the_scenarios() -> None:
    loose = DisturbanceLimits(others_cpu=0.5, steal=0.5, cpu_clock=0.1, slowdown=0.5)
    cpu = replace(CALM, others_share=0.41, steal_share=0.2, mhz_median=1085.0)
    gpu = replace(COOL, slowdown={"hw_slowdown": 0.4}, slowed_share=0.4)
    conditions = Conditions(60.0, 61, cpu, (gpu,))
    assert len(disturbances(conditions, LIMITS)) == 4
    assert disturbances(conditions, loose) == ()
