"""Guarding: what a measurement carries of the conditions it was made in."""

from dataclasses import replace

import building
import pytest

from perfgate.environment.conditions import Conditions, CpuConditions
from perfgate.environment.watch import Watch
from perfgate.guarding import guarded, watch_over
from perfgate.measurement import Measurement
from perfgate.scenarios.scenario import Launch

MEASURED = Measurement({"output_throughput": 100.0}, {"osl": 32})


def seen(others_share: float) -> Watch:
    watch = Watch()
    cpu = CpuConditions(cores=2, others_share=others_share, steal_share=0.0)
    watch.conclude(Conditions(seconds=60.0, samples=60, cpu=cpu, gpus=(), notes=()))
    return watch


def test_a_quiet_measurement_carries_its_conditions() -> None:
    found = guarded(MEASURED, seen(0.01), building.SCENARIO)
    assert (found.disturbed, found.metrics) == ((), MEASURED.metrics)
    assert set(found.facts) == {"osl", "environment"}


def test_what_is_over_the_scenarios_limits_disturbs_it() -> None:
    (told,) = guarded(MEASURED, seen(0.5), building.SCENARIO).disturbed
    assert told == "other processes used 50 % of 2 cores (limit 20 %)"
    limits = replace(building.SCENARIO.gate.disturbance, others_cpu=0.6)
    lenient = replace(building.SCENARIO, gate=replace(building.SCENARIO.gate, disturbance=limits))
    assert guarded(MEASURED, seen(0.5), lenient).disturbed == ()


def test_what_nothing_watched_is_left_as_it_is() -> None:
    assert guarded(MEASURED, None, building.SCENARIO) is MEASURED


@pytest.mark.parametrize("by", ["srun", "sbatch"])
def test_a_login_node_is_not_watched_for_what_runs_elsewhere(by: str) -> None:
    elsewhere = replace(building.SCENARIO, launch=Launch(by))  # type: ignore[arg-type]
    with watch_over(elsewhere) as watch:
        assert watch is None
    with watch_over(building.SCENARIO, wanted=False) as watch:
        assert watch is None


def test_a_block_on_this_machine_is_watched() -> None:
    with watch_over(building.SCENARIO) as start, watch_over(building.SCENARIO, start) as watch:
        assert watch is not None
    assert watch.conditions.samples >= 1
