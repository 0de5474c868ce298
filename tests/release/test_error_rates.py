"""A release's error rates: how often it errs, what that rests on, and that no more is claimed."""

import math
from dataclasses import replace

import numpy as np
import pytest
from made_checks import checked
from plain_values import judge_performance
from run_reports import judged
from sizes import sized
from tables import each

from benchmarks.detection.error_rates import standard_error
from benchmarks.detection.release_run import STUDY, shapes_of
from benchmarks.detection.results import load
from perfgate.core.measurement import ChangedQuestions, MeasuredControl
from perfgate.core.metrics import lookup
from perfgate.core.verdict import Judgement, Verdict
from perfgate.judging.forecast.simulation import REAL, starts
from perfgate.release.check_result import CheckedTest, Finding
from perfgate.release.error_rates import (
    DOCUMENTED_SPEED,
    FOUND_TRIALS,
    IN_TURNS,
    PAIRED,
    PROBE_RATES,
    SCORE,
    TRIALS,
    at_most,
    band_in_sigma,
    error_rates,
    of_one_probe,
    probe_rates,
)

TIGHT = (-0.006, 0.004)
NONE_STARTED = (MeasuredControl("baseline", None, 0, "the image is gone"),)


def with_judgements(*judgements: Judgement, number: int = 0, **changes) -> CheckedTest:
    one = checked(number)
    found = replace(one.result, judgements=judgements, **changes)
    return replace(one, result=found, metrics=len(judgements))


def found_of(*tests: CheckedTest):
    return error_rates(tests)


def test_what_is_not_checked_adds_nothing() -> None:
    """A stale run, or a test that another requirement names too, is no further comparison."""
    alone = found_of(checked(0))
    assert found_of(checked(0), checked(1, Finding.STALE)) == alone
    assert found_of(checked(0), replace(checked(0), requirement="floor")) == alone


def test_a_whole_release_with_controls() -> None:
    """72 probes of three metrics with their anchors, as docs/explanation/detection.md has them."""
    speeds = [
        judged(Verdict.PASS, -0.001, metric=metric, against=against, interval=TIGHT, band=band)
        for metric in ("output_throughput", "tpot_mean_ms", "request_throughput")
        for against, band in (("baseline", 0.02), ("anchor", 0.03))
    ]
    rates = found_of(*(with_judgements(*speeds, number=place) for place in range(72)))
    simulated = probe_rates("controlled", 3.9)
    assert rates.false_alarm == pytest.approx(1 - (1 - simulated.with_anchor) ** 72)
    assert 0.0074 < rates.false_alarm < 0.01
    assert rates.found == simulated.found
    for told in ("at most 0.9 %", "432 comparisons in 72 tests", '"real"', "3.9 sigma", "91 %"):
        assert told in rates.sentence


def test_a_scenario_whose_control_could_not_be_started_counts_as_without() -> None:
    """Whichever of its tests asked for one."""
    lacking = replace(checked(0).result, controls=NONE_STARTED)
    rates = found_of(replace(checked(0), result=lacking), checked(1), checked(5))
    alone, other = probe_rates("alone", 3.9), probe_rates("controlled", 3.9)
    sound = (1 - 2 * alone.of_a_metric) ** 2 * (1 - 2 * other.of_a_metric)
    assert rates.false_alarm == pytest.approx(1 - sound)
    assert rates.found == min(alone.found, other.found)
    assert "in 1 scenario the baseline's build could not be started" in rates.sentence
    # A loss without control says so by its mark.
    marked = judged(Verdict.REGRESSION, mark="NO_CONTROL")
    assert found_of(with_judgements(marked)).false_alarm > 0.02


def test_the_band_of_noise_that_is_clearly_more() -> None:
    """Several nodes: the interval is as wide as three times that noise makes it."""
    wide = judged(Verdict.PASS, -0.001, interval=(-0.045, 0.045), band=0.06, runs_used=1)
    assert 3 < band_in_sigma(wide) < 4


@each("scale", [1.0, 3.0])
def test_a_band_is_not_told_wider_than_the_noise_makes_it(scale) -> None:
    """By the gate's own intervals, whatever the baseline."""
    rng, sigma = np.random.default_rng(7), scale * 0.005
    for sessions in (3, 10):
        base = (1000 * np.exp(sigma * rng.standard_normal(sessions))).tolist()
        one = judge_performance("output_throughput", base, [1000.0], band=0.05, sigma=sigma)
        assert band_in_sigma(one) < 1.15 * -math.log(0.95) / sigma


@each(
    "fields",
    [
        {"metric": "of another version"},
        {"band": None},
        {"band": 0.005},
        {"interval": (-0.3, 0.3)},
        {"interval": (-1.0, 0.3)},
    ],
)
def test_what_was_not_simulated_claims_nothing(fields) -> None:
    rates = found_of(with_judgements(judged(Verdict.PASS, -0.001, **fields)), checked(5))
    assert (rates.false_alarm, rates.found) == (1, 0)
    assert "No error rate can be told: of 3 comparisons, 1 have" in rates.sentence


SCORED = judged(Verdict.PASS, 0.0, metric="accuracy:gsm8k:exact_match:strict-match")
MOVED = ChangedQuestions(SCORED.metric, "baseline", 198, 1, 1, ("a",), ("b",))


@each(
    "judgement, changed, kind",
    [
        (SCORED, (MOVED,), PAIRED),
        (SCORED, (), SCORE),
        (replace(SCORED, against="documented"), (), SCORE),
        (judged(Verdict.PASS, 0.0, against="documented"), (), DOCUMENTED_SPEED),
        (replace(judged(Verdict.PASS, 0.0), is_interleaved=True), (), IN_TURNS),
    ],
)
def test_tests_of_other_kinds_have_their_own(judgement, changed, kind) -> None:
    rates = found_of(with_judgements(judgement, changed=changed))
    assert (rates.false_alarm, rates.found) == (pytest.approx(kind.false_alarm), kind.found)
    assert kind.words in rates.sentence
    assert "simulated with the noise" not in rates.sentence


@each(
    "share, told",
    [
        (0.0, "less than 0.01 %"),
        (0.0001, "less than 0.01 %"),
        (0.00011, "at most 0.02 %"),
        (0.0066, "at most 0.7 %"),
        (0.007, "at most 0.7 %"),
        (0.0071, "at most 0.8 %"),
        (0.9711, "at most 98 %"),
        (1.0, "at most 100 %"),
    ],
)
def test_shares_are_rounded_up(share, told) -> None:
    assert at_most(share) == told


@pytest.mark.nightly
def test_the_combination_holds_by_the_rule_of_the_gate() -> None:
    """Unchanged releases of four probes of three metrics, without controls, each with its anchor.

    Every test by the gate's own function; the releases that end red are no more than told.
    """
    releases, probes = sized(120, 1200), 4
    rng = np.random.default_rng(20)
    rows = releases * probes
    base, anchor = (starts(rng, REAL, rows, 3, [1] * 3) for _ in range(2))
    session = starts(rng, REAL, rows, 3, [5])
    red, told = 0, 0.0
    for release in range(releases):
        tests = []
        for probe in range(probes):
            row = release * probes + probe
            tests.append(
                with_judgements(
                    *(
                        replace(_judged(place, side[row], session[row], band), against=against)
                        for place in range(3)
                        for side, band, against in (
                            (base, 0.02, "baseline"),
                            (anchor, 0.03, "anchor"),
                        )
                    ),
                    number=probe,
                    controls=(MeasuredControl("baseline", None, 0, "none here"),),
                )
            )
        red += any(
            judgement.verdict == Verdict.REGRESSION
            for one in tests
            if one.result
            for judgement in one.result.judgements
        )
        if release == 0:
            told = found_of(*tests).false_alarm
    seen, error = red / releases, math.sqrt(told * (1 - told) / releases)
    assert 0.15 < told < 0.2
    assert seen < told + 3 * error
    assert seen > told / 2  # it is no idle bound either


_METRICS = ("output_throughput", "output_speed_per_user", "ttft_mean_ms")


def _judged(place: int, base, new, band: float) -> Judgement:
    """A metric of the probe by the gate; all have the prior noise of its family."""
    metric = lookup(_METRICS[place])
    scale = metric.family.sigma * (-1 if metric.direction == "higher" else 1)
    wide = band if metric.family.band == 0.02 else 0.15 if band == 0.02 else 0.21
    sides = ((1000 * np.exp(scale * side[place].astype(float))).tolist() for side in (base, new))
    return judge_performance(metric.name, *sides, band=wide)


# The constants are those that were simulated, and never better. ----------------------------------

STORED = load("release_probes")


@each("rates", PROBE_RATES, ids=lambda one: f"{one.control}-{one.band:g}")
def test_the_constants_are_the_worst_of_the_stored_results(rates) -> None:
    rows = [
        row
        for row in STORED
        if (row["control"], row["band"]) == (rates.control, rates.band) and row["sessions"] >= 3
    ]
    assert {row["n_base"] for row in rows} == {3, 10}
    assert {(row["trials"], row["found_trials"]) for row in rows} == {(TRIALS, FOUND_TRIALS)}
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
