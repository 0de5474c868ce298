"""The constants behind a release's error rates are those that were simulated, and never better."""

from dataclasses import replace

import building
import pytest
from refusals import refused
from tables import each

from benchmarks.detection.error_rates import standard_error
from benchmarks.detection.release_run import STUDY, shapes_of
from benchmarks.detection.results import load
from perfgate.core.paths import scenario_folders
from perfgate.judging.forecast import release_rates
from perfgate.judging.forecast.release_rates import gated_comparisons, of_one_probe, probe_rates
from perfgate.plan.registered import registered
from perfgate.scenarios.files import load_suite
from perfgate.scenarios.scenario import GatePolicy

STORED = load("release_probes")


@each("rates", release_rates.PROBE_RATES, ids=lambda one: f"{one.control}-{one.band:g}")
def test_the_constants_are_the_worst_of_the_stored_results(rates) -> None:
    rows = [
        row
        for row in STORED
        if (row["control"], row["band"]) == (rates.control, rates.band) and row["sessions"] >= 3
    ]
    assert {row["n_base"] for row in rows} == {3, 10}
    assert {(row["trials"], row["found_trials"]) for row in rows} == {
        (release_rates.TRIALS, release_rates.FOUND_TRIALS)
    }
    for name in ("of_a_metric", "of_a_probe", "with_anchor"):
        assert getattr(rates, name) == max(row[name] for row in rows)
    assert rates.found == min(row["found"] for row in rows)


@each("row", load("release"), ids=lambda row: str(list(row.values())[:6]))
def test_a_release_of_such_probes_is_no_worse_than_told(row) -> None:
    """As simulated whole: twelve scenarios, and each packaged suite; `heavy` is not claimed."""
    reached = 1.0
    for shape in shapes_of(row["suite"]):
        rates = probe_rates(row["control"], shape.band)
        reached *= (1 - of_one_probe([rates] * shape.metrics, shape.metrics)) ** shape.probes
    told = 1 - reached
    error = standard_error(row["any_regression"], row["trials"])
    is_real = row["noise"] == "real"
    assert (row["any_regression"] <= told + 2 * error * is_real) == is_real
    # … nor is it told to be much worse than where each has its own luck
    if is_real and row["suite"] == STUDY and not row["shared"]:
        assert told < 1.5 * row["any_regression"] + 2 * error


@each("band, rates", [(1.99, None), (2.0, 2.0), (3.59, 3.0), (3.96, 3.9), (40.0, 3.9)])
def test_a_band_has_the_rates_of_the_next_narrower_one(band, rates) -> None:
    found = probe_rates("controlled", band)
    assert (found.band if found else None) == rates


def test_a_probe_is_never_told_worse_than_the_sum_of_its_comparisons() -> None:
    rates = probe_rates("controlled", 4.0)
    assert of_one_probe([], 0) == 0
    assert of_one_probe([rates], 0) == rates.of_a_metric
    assert of_one_probe([rates] * 3, 0) == rates.of_a_probe
    assert of_one_probe([rates] * 3, 3) == rates.with_anchor
    assert of_one_probe([rates] * 4, 0) == pytest.approx(4 * rates.of_a_metric)
    assert of_one_probe([rates] * 6, 6) == 2 * rates.with_anchor
    alone = probe_rates("alone", 2.0)
    assert of_one_probe([alone] * 90, 90) == 1


ONE = replace(building.SCENARIO, gate=GatePolicy(("output_throughput", building.SUMS)))


def test_a_speed_counts_at_each_point_against_baseline_and_anchor() -> None:
    assert gated_comparisons(ONE) == 4  # two points; an accuracy has constants of its own
    workload = replace(ONE.workload, concurrency=(1, 2, 4, 8))
    assert gated_comparisons(replace(ONE, workload=workload)) == 9  # and the curve
    # A machine that measures itself has rates of its own.
    assert gated_comparisons(replace(ONE, gate=replace(ONE.gate, noise="measured"))) == 0


def test_from_the_most_on_a_suite_is_refused_hardware_by_hardware() -> None:
    most = [ONE] * (release_rates.MOST_COMPARISONS // 4)
    release_rates.require_small_family(most)
    other = replace(ONE, hardware=replace(ONE.hardware, gpu="H200"))
    release_rates.require_small_family([*most, other])
    refused(release_rates.require_small_family, [*most, ONE], match="found: 504 comparisons")
    scenarios = load_suite(scenario_folders(), registered()).scenarios
    assert sum(map(gated_comparisons, scenarios)) > 100
    release_rates.require_small_family(scenarios)
