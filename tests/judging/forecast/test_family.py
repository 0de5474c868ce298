"""How many comparisons a suite gates, and from when on that is too many."""

from dataclasses import replace

import building
import pytest

from perfgate.core.errors import InputError
from perfgate.core.paths import scenario_folders
from perfgate.judging.forecast.family import (
    MOST_COMPARISONS,
    gated_comparisons,
    require_small_family,
)
from perfgate.plan.registered import registered
from perfgate.scenarios.files import load_suite
from perfgate.scenarios.scenario import GatePolicy

ONE = replace(building.SCENARIO, gate=GatePolicy(("output_throughput", building.SUMS)))


def test_a_speed_counts_at_each_point_against_baseline_and_anchor() -> None:
    assert gated_comparisons(ONE) == 4  # two points; an accuracy has constants of its own
    workload = replace(ONE.workload, concurrency=(1, 2, 4, 8))  # type: ignore[type-var]
    assert gated_comparisons(replace(ONE, workload=workload)) == 9  # and the curve


def test_a_machine_that_measures_itself_has_rates_of_its_own() -> None:
    assert gated_comparisons(replace(ONE, gate=replace(ONE.gate, noise="measured"))) == 0


def test_from_the_most_on_a_suite_is_refused_hardware_by_hardware() -> None:
    most = [ONE] * (MOST_COMPARISONS // 4)
    require_small_family(most)
    other = replace(ONE, hardware=replace(ONE.hardware, gpu="H200"))
    require_small_family([*most, other])
    with pytest.raises(InputError, match=r"found: 504 comparisons"):
        require_small_family([*most, ONE])


def test_the_packaged_suite_is_well_below() -> None:
    scenarios = load_suite(scenario_folders(), registered()).scenarios
    assert sum(map(gated_comparisons, scenarios)) > 100
    require_small_family(scenarios)
