"""The rule for a few expensive runs: tables of values and verdicts worked out by hand."""

import math

import pytest
from scipy import stats
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.metrics import METRICS
from perfgate.gate.performance import (
    describe_change,
    judge_performance,
)
from perfgate.gate.probe import PerformanceTest, ProbeTests, judge_probe
from perfgate.gate.rule import Rule
from perfgate.gate.sweep import judge_sweep
from perfgate.gate.verdict import Verdict

# Five equal values of five sessions: sigma = sqrt(10·0.005² / 14) = 0.0042258; with 0.3 of the
# variance shared by a session, SE(1) = sigma sqrt(1.2) = 0.0046291, SE(2) = sigma sqrt(0.85) =
# 0.0038960. U lies t(0.975, 14) = 2.14479 SE above the loss, L t(0.995, 14) = 2.97684 SE below;
# the margin of the band of 2 % is 0.0202027.
FLAT = [1000.0] * 5


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


def test_lower_is_better_by_hand() -> None:
    judged = judge_performance("tpot_median_ms", [10.0] * 5, [10.3, 10.4])
    # d = (ln 1.03 + ln 1.04)/2 = 0.0343898, L = 0.0227920, U = 0.0427459
    assert judged.verdict == Verdict.REGRESSION
    assert judged.measured == pytest.approx(10.34988)
    assert judged.change == pytest.approx(0.034988, abs=1e-6)
    assert judged.interval == pytest.approx((0.0230537, 0.0436727), abs=1e-6)
    assert judged.runs_used == 2
    assert judged.reason == (
        "+3.5 % (interval +2.3…+4.4 %), beyond the +2.0 % band; confirmed by the later starts "
        "alone; 2 fresh starts against 5 baseline runs"
    )


def test_a_loss_that_is_real_and_smaller_than_the_band_says_so() -> None:
    judged = judge_performance("output_throughput", FLAT, [985, 984])
    assert judged.verdict == Verdict.REGRESSION
    assert judged.reason == (
        "-1.6 % (interval -2.4…-0.4 %), a real loss that may reach the -2.0 % band; confirmed by "
        "the later starts alone; 2 fresh starts against 5 baseline runs"
    )


@each(
    ("new", "verdict", "used", "more"),
    [
        pytest.param([1000], Verdict.PASS, 1, False, id="unchanged"),
        pytest.param([995], Verdict.PASS, 1, False, id="small loss, in the noise"),
        pytest.param([985], Verdict.INCONCLUSIVE, 1, True, id="band not excluded"),
        pytest.param([500], Verdict.INCONCLUSIVE, 1, True, id="one run never proves a loss"),
        pytest.param([985, 1001], Verdict.PASS, 2, False, id="second run clears"),
        pytest.param([985, 985], Verdict.REGRESSION, 2, False, id="second run confirms"),
        pytest.param([960, 998], Verdict.INCONCLUSIVE, 2, True, id="second run does not confirm"),
        pytest.param([960, 1003, 1003], Verdict.PASS, 3, False, id="first run was an accident"),
        pytest.param([960, 990, 982], Verdict.REGRESSION, 3, False, id="confirmed by the third"),
        pytest.param([1000, 500, 500], Verdict.PASS, 1, False, id="runs after the decision"),
        pytest.param([960, 1001, 992, 991, 996], Verdict.PASS, 5, False, id="decided at the last"),
        pytest.param([900, 1008, 995, 1000, 998], Verdict.INCONCLUSIVE, 5, False, id="never"),
        pytest.param([900, 1008, 995, 1000, 998, 1000, 1000], Verdict.INCONCLUSIVE, 5, False,
                     id="runs beyond the most allowed"),
        pytest.param([1015], Verdict.PASS, 1, False, id="improved once"),
        pytest.param([1015, 1014], Verdict.IMPROVEMENT, 2, False, id="improved twice"),
        pytest.param([1015, 1000], Verdict.PASS, 1, False, id="improvement not confirmed"),
        pytest.param([1009, 1009], Verdict.PASS, 1, False, id="gain below half the band"),
    ],
)  # fmt: skip
def test_the_sequential_rule(new: list[float], verdict: Verdict, used: int, more: bool) -> None:
    judged = judge_performance("output_throughput", FLAT, new)
    assert (judged.verdict, judged.runs_used, judged.needs_more_runs) == (verdict, used, more)


def test_a_gain_counts_from_half_the_band_on() -> None:
    new = [1015, 1015]  # a real gain: U = -0.0050
    assert judge_performance("output_throughput", FLAT, new).verdict == Verdict.IMPROVEMENT
    wide = judge_performance("output_throughput", FLAT, new, band=0.04)
    assert (wide.verdict, wide.notes) == (Verdict.PASS, ())


def test_a_loss_must_show_in_all_runs_together_too() -> None:
    # Band narrower than the noise: d = -0.0040 leaves the first look open, the second run alone
    # nearly has L > 0, both together far from it.
    judged = judge_performance("output_throughput", FLAT, [1004, 987.2], band=0.005)
    assert judged.verdict == Verdict.INCONCLUSIVE
    assert judged.notes == ("the band is below the noise floor: 5 fresh starts resolve 1.6 %",)


@pytest.mark.parametrize(
    ("new", "note"),
    [
        ([1015], "improved; a second fresh start would have to agree"),
        ([1015, 1000], "improved, but not in each of the first two fresh starts"),
    ],
)
def test_unconfirmed_improvements_are_noted(new: list[float], note: str) -> None:
    assert judge_performance("output_throughput", FLAT, new).notes == (note,)


def test_an_improvement_explains_itself() -> None:
    judged = judge_performance("output_throughput", FLAT, [1015, 1014])
    # d = -0.0143957 (+1.45 %), U = d + 0.0083561; half the margin is 0.0101014
    assert judged.reason == (
        "+1.4 % (interval +0.6…+2.6 %), beyond the +1.0 % that counts as a gain; each of the "
        "first two starts agrees; 2 fresh starts against 5 baseline runs"
    )
    assert judged.against == "baseline"


@each(
    ("new", "notes"),
    [
        # sigma is 0.42258 %; two starts are told from 4 of them on
        pytest.param([985, 1001], (), id="two, 3.8 sigma apart"),
        pytest.param(
            [960, 998],
            ("fresh start 2 lies +4.0 % (9.2 sigma) from fresh start 1; both are used",),
            id="two, far apart",
        ),
        pytest.param(
            [960, 1003, 1003],
            (
                "small loss within the band",
                "fresh start 1 lies -4.3 % (10.4 sigma) from the median of the other 2; it is used "
                "like them",
            ),
            id="one of three",
        ),
        pytest.param(
            [1008, 900, 1008, 995, 1000],
            (),
            id="the first decides alone",
        ),
        pytest.param(
            [985, 982, 900, 984, 1040],
            ("no control: the machine is not excluded",),
            id="decided before the far one",
        ),
        pytest.param(
            [960, 998, 980],
            ("the 3 fresh starts lie up to 3.8 % (9.2 sigma) apart; all are used",),
            id="no two agree",
        ),
    ],
)
def test_fresh_starts_that_lie_far_from_the_others_are_told(
    new: list[float], notes: tuple[str, ...]
) -> None:
    judged = judge_performance("output_throughput", FLAT, new)
    assert judged.notes == notes


def test_a_far_start_is_told_in_the_metrics_own_direction_and_used() -> None:
    judged = judge_performance("tpot_median_ms", [10.0] * 5, [12.0, 10.05, 10.05, 10.05, 10.05])
    assert judged.runs_used == 5
    assert judged.measured == pytest.approx((12 * 10.05**4) ** 0.2)
    assert judged.notes[-1] == (
        "fresh start 1 lies +19.4 % (42.0 sigma) from the median of the other 4; it is used like "
        "them"
    )


def test_the_p_value_is_that_of_a_one_sided_t_test() -> None:
    change = describe_change("output_throughput", FLAT, [990.0])
    # d = 0.0100503, SE = 0.0042258·sqrt(1.2), nu = 14
    t = -math.log(0.99) / (0.005 * math.sqrt(10 / 14) * math.sqrt(1.2))
    assert change.p_value == pytest.approx(stats.t.sf(t, 14))
    assert describe_change("output_throughput", FLAT, [1000.0]).p_value == pytest.approx(0.5)
    assert describe_change("output_throughput", FLAT, [1100.0]).p_value > 0.999
    assert describe_change("tpot_median_ms", FLAT, [1100.0]).p_value < 0.001


def test_measured_is_the_mean_of_the_runs_used() -> None:
    judged = judge_performance("output_throughput", FLAT, [985, 1001, 1])
    assert judged.measured == pytest.approx(math.sqrt(985 * 1001))


def test_undecided_says_what_may_still_happen() -> None:
    first = judge_performance("output_throughput", FLAT, [985], rule=Rule(max_runs=2))
    assert first.reason == (
        "-1.5 % (interval -2.5…-0.1 %): a loss is likely but not confirmed, and the -2.0 % band is "
        "not excluded; 1 fresh start against 5 baseline runs, up to 1 more may decide"
    )
    last = judge_performance("output_throughput", FLAT, [960, 998], rule=Rule(max_runs=2))
    assert not last.needs_more_runs
    assert last.reason.endswith("no more are allowed")


def test_a_baseline_of_one_run_relies_on_the_prior() -> None:
    # t(0.975, 10) = 2.228139, t(0.995, 10) = 3.169273, SE = 0.005·sqrt(2)
    judged = judge_performance("output_throughput", [1000], [1000])
    assert judged.verdict == Verdict.PASS
    error = 0.005 * math.sqrt(2)
    bounds = math.expm1(-2.228139 * error), math.expm1(3.169273 * error)
    assert judged.interval == pytest.approx(bounds, abs=1e-7)
    assert judged.notes == ("the band is below the noise floor: 5 fresh starts resolve 2.9 %",)


def test_outlying_baseline_values_are_pulled_in_and_told() -> None:
    judged = judge_performance("output_throughput", [1000, 1001, 999, 1000, 500], [1000])
    assert judged.verdict == Verdict.PASS
    assert judged.baseline == pytest.approx(1000, rel=0.002)
    assert "1 outlying baseline value winsorised" in judged.notes


def test_the_baseline_spread_widens_the_interval_and_the_new_one_does_not() -> None:
    def width(baseline: list[float], new: list[float]) -> float:
        low, high = describe_change("output_throughput", baseline, new).interval
        return math.log1p(high) - math.log1p(low)

    quiet = width(FLAT, [1000, 1000])
    assert width([980, 990, 1000, 1010, 1020], [1000, 1000]) > 2 * quiet
    assert width(FLAT, [800, 1250]) == pytest.approx(quiet)


def test_a_sigma_of_its_own_replaces_the_family_prior() -> None:
    assert judge_performance("output_throughput", FLAT, [985], sigma=0.001).verdict == Verdict.PASS
    assert describe_change("output_throughput", [1000], [1000], sigma=0.01).interval[
        1
    ] == pytest.approx(math.expm1(3.169273 * 0.01 * math.sqrt(2)), abs=1e-7)


def test_a_metric_without_a_band_is_described_not_judged() -> None:
    with pytest.raises(InputError, match="only reported"):
        judge_performance("ttft_p99_ms", [100.0], [120.0])
    change = describe_change("ttft_p99_ms", [100.0, 100.0], [120.0, 120.0])
    assert change.metric == "ttft_p99_ms"
    assert (change.baseline, change.measured) == (pytest.approx(100), pytest.approx(120))
    assert change.change == pytest.approx(0.2)
    assert change.interval[0] < 0.2 < change.interval[1]
    assert change.runs_used == 2
    assert judge_performance("ttft_p99_ms", [100.0] * 5, [120.0], band=0.5).verdict == Verdict.PASS


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, -math.inf])
def test_values_that_cannot_be_judged(bad: float) -> None:
    with pytest.raises(InputError, match="baseline value 2 of output_throughput"):
        judge_performance("output_throughput", [1000, bad], [1000])
    with pytest.raises(InputError, match="new value 1 of output_throughput"):
        judge_performance("output_throughput", [1000], [bad, 1000])
    with pytest.raises(InputError, match="new value 1"):
        describe_change("output_throughput", [1000], [bad])


@each("band", [0.0, 1.0, -0.02, 5.0, math.nan, "0.02", True])
def test_bands_that_are_no_fraction(band: float) -> None:
    with pytest.raises(InputError, match="a fraction between 0 and 1"):
        judge_performance("output_throughput", FLAT, [1000], band=band)


@pytest.mark.parametrize(
    ("metric", "baseline", "new", "says"),
    [
        ("output_throughput", [], [1.0], "no baseline values"),
        ("output_throughput", [1.0], [], "no new values"),
        ("speed", [1.0], [1.0], "unknown metric"),
        ("accuracy:gsm8k:exact_match:strict-match", [0.9], [0.9], "perfgate.gate.accuracy"),
    ],
)
def test_input_without_sense(
    metric: str, baseline: list[float], new: list[float], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        judge_performance(metric, baseline, new)
    with pytest.raises(InputError, match=says):
        describe_change(metric, baseline, new)


@each("sigma", [0.0, -0.01, math.nan, 0.5e2, True, "0.005"])
def test_a_prior_that_is_none(sigma: float) -> None:
    with pytest.raises(InputError, match="prior noise"):
        judge_performance("output_throughput", FLAT, [1000], sigma=sigma)


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


def test_a_widened_band_says_so() -> None:
    judged = judge_performance("output_throughput", [100.0] * 5, [95.0], **OWN_NOISE)  # type: ignore[arg-type]
    # sigma = 0.03·sqrt(2/6) = 0.01732; SE = sigma·sqrt(0.3·(1 + 1/5) + 0.7·(1/4 + 1/5)) = 0.01423;
    # margin (3.7074 + 1.9432)·0.01423 = 0.08041
    assert judged.verdict == Verdict.INCONCLUSIVE
    assert judged.band == pytest.approx(1 - math.exp(-0.08041), abs=1e-4)
    assert judged.notes == (
        "band widened from 2.0 % to 7.7 %, the smallest detectable with this machine's noise of "
        "1.7 % per start",
    )


def test_a_declared_band_that_is_wide_enough_stays() -> None:
    judged = judge_performance(
        "output_throughput",
        [100.0] * 5,
        [90.0],
        band=0.5,
        **OWN_NOISE,  # type: ignore[arg-type]
    )
    assert (judged.verdict, judged.band) == (Verdict.PASS, pytest.approx(0.5))
    assert judged.notes == ("small loss within the band",)


class TestTooNoisyAMachine:
    """The band that its noise forces is wider than a quarter."""

    BASE = (100.0, 130.0, 82.0, 115.0, 93.0, 70.0)

    @pytest.mark.parametrize("new", [72.4, 100.0, 200.0])
    def test_proves_no_pass(self, new: float) -> None:
        judged = judge_performance("output_throughput", self.BASE, [new], **OWN_NOISE)  # type: ignore[arg-type]
        assert judged.verdict == Verdict.INCONCLUSIVE
        assert judged.mark == "MACHINE"
        assert "machine too noisy" in judged.reason
        assert not judged.needs_more_runs

    def test_neither_beside_a_control(self) -> None:
        judged = judge_performance(
            "output_throughput",
            self.BASE,
            [40.0, 41.0, 40.0],
            controls=[40.0, 41.0],
            **OWN_NOISE,  # type: ignore[arg-type]
        )
        assert judged.verdict != Verdict.PASS

    def test_one_value_shows_no_noise(self) -> None:
        judged = judge_performance("output_throughput", [100.0], [100.0], **OWN_NOISE)  # type: ignore[arg-type]
        assert judged.mark == "MACHINE"


class TestZero:
    """A median of ITL is 0 where tokens come in bursts: no relative change can be told of it."""

    @pytest.mark.parametrize(
        ("baseline", "new"),
        [([0.0] * 3, [0.0]), ([0.0] * 3, [9.0, 9.0]), ([9.0] * 3, [0.0, 0.0]), ([9, 0, 9], [9.0])],
    )
    def test_is_told_and_never_passes(self, baseline: list[float], new: list[float]) -> None:
        for metric in ("itl_median_ms", "itl_p90_ms", "itl_p95_ms", "itl_p99_ms"):
            judged = judge_performance(metric, baseline, new, band=0.1)
            assert judged.verdict == Verdict.NOT_COMPARABLE
            assert not judged.needs_more_runs
            assert "cannot be compared relatively" in judged.reason
            assert metric in judged.reason

    def test_is_refused_where_no_whole_result_has_one(self) -> None:
        for metric in ("itl_mean_ms", "tpot_median_ms", "output_throughput"):
            with pytest.raises(InputError, match="cannot be judged"):
                judge_performance(metric, [1.0] * 3, [0.0], band=0.1)

    def test_of_a_point_spoils_the_curve_alone(self) -> None:
        judged = judge_sweep(
            "itl_median_ms", [[5.0, 0.0, 5.0, 5.0]] * 3, [[5.0, 1.0, 5.0, 5.0]], band=0.1
        )
        assert judged.verdict == Verdict.NOT_COMPARABLE

    def test_of_a_metric_that_does_not_gate_is_a_note(self) -> None:
        gating = PerformanceTest("tpot_mean_ms", 0.1, [5.0] * 5, [5.0])
        beside = PerformanceTest("itl_median_ms", None, [0.0] * 5, [0.0])
        judged = judge_probe(ProbeTests([gating], observed=[beside]), Rule())
        assert judged.verdict == Verdict.PASS
        assert "cannot be compared relatively" in judged.notes[0]

    def test_of_one_metric_decides_over_the_others_that_pass(self) -> None:
        gating = PerformanceTest("tpot_mean_ms", 0.1, [5.0] * 5, [5.0])
        zero = PerformanceTest("itl_median_ms", 0.1, [0.0] * 5, [0.0])
        assert judge_probe(ProbeTests([gating, zero]), Rule()).verdict == Verdict.NOT_COMPARABLE
