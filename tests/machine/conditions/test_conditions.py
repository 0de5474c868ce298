"""Conditions: as JSON, and what of them counts as a disturbance."""

import json
from dataclasses import replace

import pytest
from tables import each, tables_of

from perfgate.core.errors import InputError
from perfgate.machine.conditions import conditions as module
from perfgate.machine.conditions.conditions import Conditions, CpuConditions, GpuConditions
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
