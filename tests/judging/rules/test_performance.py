"""The rule for a few expensive runs: tables of values and verdicts worked out by hand."""

import math

import pytest
from plain_values import describe_change, judge_performance, judge_probe, judge_sweep
from scipy import stats
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.metrics import METRICS
from perfgate.core.rule import Rule
from perfgate.core.verdict import Verdict
from perfgate.judging.rules.performance import PerformanceTest

# Five equal values of five sessions: sigma = sqrt(10·0.005² / 14) = 0.0042258; with 0.3 of the
# variance shared by a session, SE(1) = sigma sqrt(1.2) = 0.0046291, SE(2) = sigma sqrt(0.85) =
# 0.0038960. U lies t(0.975, 14) = 2.14479 SE above the loss, L t(0.995, 14) = 2.97684 SE below;
# the margin of the band of 2 % is 0.0202027.
FLAT = [1000.0] * 5
SCORE = "accuracy:gsm8k:exact_match:strict-match"


def test_one_run_by_hand() -> None:
    judged = judge_performance("output_throughput", FLAT, [990.0])
    # d = -ln 0.99 = 0.0100503, L = -0.0037298, U = 0.0199787
    assert judged.verdict == Verdict.PASS
    assert judged.baseline == pytest.approx(1000)
    assert judged.measured == pytest.approx(990)
    assert judged.change == pytest.approx(-0.01)
    assert judged.interval == pytest.approx((-0.0197805, 0.0037368), abs=1e-6)
    assert judged.band == pytest.approx(0.02)
    assert judged.runs_used == 1
    assert not judged.needs_more_runs
    assert judged.notes == ()
    assert judged.reason == (
        "-1.00 % (interval -1.98…+0.37 %), no worse than the baseline by the -2.00 % "
        "band, nor better: equal within it; 1 fresh start against "
        "5 baseline runs"
    )


@each(
    ("new", "verdict", "used", "more"),
    [
        pytest.param([1000], Verdict.PASS, 1, False, id="unchanged"),
        pytest.param([985], Verdict.INCONCLUSIVE, 1, True, id="band not excluded"),
        pytest.param([985, 1001], Verdict.PASS, 2, False, id="second run clears"),
        pytest.param([985, 985], Verdict.REGRESSION, 2, False, id="second run confirms"),
        pytest.param([960, 1003, 1003], Verdict.PASS, 3, False, id="first run was an accident"),
        pytest.param([1000, 500, 500], Verdict.PASS, 1, False, id="runs after the decision"),
        pytest.param([900, 1008, 995, 1000, 998], Verdict.INCONCLUSIVE, 5, False, id="never"),
        pytest.param([900, 1008, 995, 1000, 998, 1000, 1000], Verdict.INCONCLUSIVE, 5, False,
                     id="runs beyond the most allowed"),
        pytest.param([1015, 1000], Verdict.PASS, 1, False, id="improvement not confirmed"),
        pytest.param([1010, 1010], Verdict.PASS, 1, False, id="gain below half the band"),
    ],
)  # fmt: skip
def test_the_sequential_rule(new: list[float], verdict: Verdict, used: int, more: bool) -> None:
    judged = judge_performance("output_throughput", FLAT, new)
    assert (judged.verdict, judged.runs_used, judged.needs_more_runs) == (verdict, used, more)


def test_a_loss_must_show_in_all_runs_together_too() -> None:
    # Band narrower than the noise: d = -0.0040 leaves the first look open, the second run alone
    # nearly has L > 0, both together far from it.
    judged = judge_performance("output_throughput", FLAT, [1004, 987.2], band=0.005)
    assert judged.verdict == Verdict.INCONCLUSIVE
    assert judged.notes == ("the band is below the noise floor: 5 fresh starts resolve 1.6 %",)


@pytest.mark.parametrize(
    ("new", "note"),
    [
        ([960, 1003, 1003], "fresh start 1 lies -4.3 % (10.4 sigma) from the median of the other 2;"
                            " it is used like them"),
        ([960, 998, 980], "the 3 fresh starts lie up to 3.8 % (9.2 sigma) apart; all are used"),
    ],
)  # fmt: skip
def test_fresh_starts_that_lie_far_from_the_others_are_told(new: list[float], note: str) -> None:
    assert judge_performance("output_throughput", FLAT, new).notes[-1] == note


def test_the_p_value_is_that_of_a_one_sided_t_test() -> None:
    change = describe_change("output_throughput", FLAT, [990.0])
    # d = 0.0100503, SE = 0.0042258·sqrt(1.2), nu = 14
    t = -math.log(0.99) / (0.005 * math.sqrt(10 / 14) * math.sqrt(1.2))
    assert change.p_value == pytest.approx(stats.t.sf(t, 14))
    assert describe_change("output_throughput", FLAT, [1000.0]).p_value == pytest.approx(0.5)
    assert describe_change("output_throughput", FLAT, [1100.0]).p_value > 0.999
    assert describe_change("tpot_median_ms", FLAT, [1100.0]).p_value < 0.001


def test_a_sigma_of_its_own_replaces_the_family_prior() -> None:
    assert judge_performance("output_throughput", FLAT, [985], sigma=0.001).verdict == Verdict.PASS
    assert describe_change("output_throughput", [1000], [1000], sigma=0.01).interval[
        1
    ] == pytest.approx(math.expm1(3.169273 * 0.01 * math.sqrt(2)), abs=1e-7)


def test_a_metric_without_a_band_is_described_not_judged() -> None:
    with pytest.raises(InputError, match="only reported"):
        judge_performance("ttft_p99_ms", [100.0], [120.0])
    change = describe_change("ttft_p99_ms", [100.0, 100.0], [120.0, 120.0])
    assert (change.metric, change.runs_used) == ("ttft_p99_ms", 2)
    assert (change.baseline, change.measured) == (pytest.approx(100), pytest.approx(120))
    assert change.change == pytest.approx(0.2)
    assert change.interval[0] < 0.2 < change.interval[1]
    assert judge_performance("ttft_p99_ms", [100.0] * 5, [120.0], band=0.5).verdict == Verdict.PASS


@each(
    ("metric", "settings", "says"),
    [
        *(("output_throughput", {"band": x}, "a fraction between 0 and 1")
          for x in (0.0, 1.0, -0.02, math.nan, "0.02", True)),
        ("speed", {}, "unknown metric"),
        (SCORE, {}, "perfgate.judging.rules.accuracy"),
    ],
)  # fmt: skip
def test_input_without_sense(metric: str, settings: dict[str, float], says: str) -> None:
    with pytest.raises(InputError, match=says):
        judge_performance(metric, [0.9], [0.9], **settings)


@pytest.mark.parametrize(
    "values", [{"alpha": 0}, {"alpha": 0.5}, {"beta": -0.1}, {"max_runs": 0}, {"prior_dof": -1}]
)
def test_rules_that_cannot_be_used(values: dict[str, float]) -> None:
    with pytest.raises(InputError, match="rule"):
        Rule(**values)  # type: ignore[arg-type]


GATING = sorted(name for name, metric in METRICS.items() if metric.family.band is not None)


# A machine that shows its own noise, against what it stored.
OWN_NOISE = {"sigma": 0.03, "rule": Rule(max_runs=4, prior_dof=2), "widen": True}


@each("metric", GATING)
@each("noise", [0.0, 0.02, 0.04])
def test_every_metric_on_a_machine_of_unknown_noise(metric: str, noise: float) -> None:
    found = METRICS[metric]
    baseline = [0.3 * math.exp(z * noise) for z in (-1.2, 0.4, 0.1, 1.1, -0.6)]
    worse = 0.5 if found.direction == "higher" else 2
    pattern = [math.exp(z * noise) for z in (0.7, -0.9, 0.2, -0.1)]

    def verdict(factor: float) -> Verdict:
        new = [0.3 * factor * wiggle for wiggle in pattern]
        return judge_performance(metric, baseline, new, sessions=3, **OWN_NOISE).verdict  # type: ignore[arg-type]

    assert verdict(worse) == Verdict.REGRESSION
    assert verdict(1) == Verdict.PASS
    assert verdict(1 / worse) == Verdict.IMPROVEMENT


@each(
    ("new", "controls"),
    [([72.4], None), ([100.0], None), ([200.0], None), ([40.0, 41.0, 40.0], [40.0, 41.0])],
)
def test_a_machine_too_noisy_proves_no_pass(new: list[float], controls: list[float] | None) -> None:
    """The band that its noise forces is wider than a quarter."""
    base = (100.0, 130.0, 82.0, 115.0, 93.0, 70.0)
    judged = judge_performance("output_throughput", base, new, controls=controls, **OWN_NOISE)  # type: ignore[arg-type]
    assert judged.verdict == Verdict.INCONCLUSIVE
    if controls is None:
        assert (judged.mark, judged.needs_more_runs) == ("MACHINE", False)
        assert "machine too noisy" in judged.reason


class TestZero:
    """A median of ITL is 0 where tokens come in bursts: no relative change can be told of it."""

    @each(
        ("baseline", "new"),
        [([0.0] * 3, [0.0]), ([0.0] * 3, [9.0, 9.0]), ([9.0] * 3, [0.0, 0.0]), ([9, 0, 9], [9.0])],
    )
    def test_is_told_and_never_passes(self, baseline: list[float], new: list[float]) -> None:
        for metric in ("itl_median_ms", "itl_p90_ms", "itl_p95_ms", "itl_p99_ms"):
            points = [[x] * 4 for x in baseline], [[5.0, 0.0, 5.0, 5.0] for _ in new]
            curve = judge_sweep(metric, *points, band=0.1)
            for judged in (judge_performance(metric, baseline, new, band=0.1), curve):
                assert judged.verdict == Verdict.NOT_COMPARABLE
                assert not judged.needs_more_runs
                assert metric in judged.reason
        for metric in ("itl_mean_ms", "tpot_median_ms", "output_throughput"):
            with pytest.raises(InputError, match="cannot be judged"):
                judge_performance(metric, [1.0] * 3, [0.0], band=0.1)

    def test_of_a_metric_that_does_not_gate_is_a_note(self) -> None:
        gating = PerformanceTest("tpot_mean_ms", 0.1, [5.0] * 5, [5.0])
        beside = PerformanceTest("itl_median_ms", None, [0.0] * 5, [0.0])
        judged = judge_probe([gating], Rule(), observed=[beside])
        assert judged.verdict == Verdict.PASS
        assert "cannot be compared relatively" in judged.notes[0]
