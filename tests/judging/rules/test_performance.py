"""Speeds by hand: the rule alone and with controls, a document, a whole probe, what is refused.

Verdict and starts of random cases: `test_rules_against_oracle`.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from plain_values import describe_change, judge_performance, judge_probe, judge_sweep
from refusals import refused
from rule_cases import GAIN, LOST, OPEN, PASS, SCORE, SPEED, TIME
from scipy import stats
from tables import each

from perfgate.core.metrics import METRICS
from perfgate.core.verdict import Rule, Verdict
from perfgate.judging.assembly.judge_input import NoTest
from perfgate.judging.rules import scale
from perfgate.judging.rules.constants import ControlRule
from perfgate.judging.rules.documented import DocumentedTest, documented_margin
from perfgate.judging.rules.performance import PerformanceTest

# Five equal values of five sessions: sigma = sqrt(10·0.005² / 14) = 0.0042258; with 0.3 of the
# variance shared by a session, SE(1) = sigma sqrt(1.2) = 0.0046291, SE(2) = sigma sqrt(0.85) =
# 0.0038960. U lies t(0.975, 14) = 2.14479 SE above the loss, L t(0.995, 14) = 2.97684 SE below;
# the margin of the band of 2 % is 0.0202027.
FLAT = [1000.0] * 5
STEADY = [1000.0, 1002.0, 998.0, 1001.0, 999.0]
# A machine that shows its own noise, against what it stored.
OWN_NOISE = {"sigma": 0.03, "rule": Rule(max_runs=4, prior_dof=2), "widen": True}


def test_one_run_by_hand() -> None:
    judged = judge_performance(SPEED, FLAT, [990.0])
    # d = -ln 0.99 = 0.0100503, L = -0.0037298, U = 0.0199787
    assert (judged.verdict, judged.runs_used, judged.notes) == (PASS, 1, ())
    assert (judged.baseline, judged.measured) == (pytest.approx(1000), pytest.approx(990))
    assert (judged.change, judged.band) == (pytest.approx(-0.01), pytest.approx(0.02))
    assert judged.interval == pytest.approx((-0.0197805, 0.0037368), abs=1e-6)
    assert judged.reason == (
        "-1.00 % (interval -1.98…+0.37 %), no worse than the baseline by the -2.00 % band, nor "
        "better: equal within it; 1 fresh start against 5 baseline runs"
    )


@each(
    "new, settings, verdict, used, note",
    [
        ([1015, 1000], {}, PASS, 1, ""),  # an improvement that is not confirmed
        ([1010, 1010], {}, PASS, 1, ""),  # a gain below half the band
        ([985], {"sigma": 0.001}, PASS, 1, ""),  # in place of the family's prior
        # d = -0.0040 leaves the first look open; the second run alone nearly has L > 0.
        ([1004, 987.2], {"band": 0.005}, OPEN, 2, "the band is below the noise floor: 5 fresh st"),
        ([960, 1003, 1003], {}, PASS, 3, "fresh start 1 lies -4.3 % (10.4 sigma) from the median"),
        ([960, 998, 980], {}, OPEN, 3, "the 3 fresh starts lie up to 3.8 % (9.2 sigma) apart;"),
        ([1.0, *FLAT[1:]], {}, OPEN, 5, "fresh start 1 lies -99.9 %"),  # no matter of units
    ],
)
def test_the_sequential_rule(new, settings, verdict, used, note) -> None:
    judged = judge_performance(SPEED, FLAT, new, **settings)
    assert (judged.verdict, judged.runs_used) == (verdict, used)
    assert any(one.startswith(note) for one in (*judged.notes, ""))


def test_the_p_value_is_that_of_a_one_sided_t_test() -> None:
    # d = 0.0100503, SE = 0.0042258·sqrt(1.2), nu = 14
    t = -math.log(0.99) / (0.005 * math.sqrt(10 / 14) * math.sqrt(1.2))
    for metric, new, expected in (
        (SPEED, 990.0, stats.t.sf(t, 14)),
        (SPEED, 1000.0, 0.5),
        (SPEED, 1100.0, 1.0),
        (TIME, 1100.0, 0.0),
    ):
        found = describe_change(metric, FLAT, [new]).p_value
        assert found == pytest.approx(expected, abs=1e-3 if expected in (0, 1) else 1e-9)


def test_a_metric_without_a_band_is_described_not_judged() -> None:
    refused(judge_performance, "ttft_p99_ms", [100.0], [120.0], match="only reported")
    change = describe_change("ttft_p99_ms", [100.0, 100.0], [120.0, 120.0])
    assert (change.metric, change.runs_used) == ("ttft_p99_ms", 2)
    assert (change.baseline, change.measured) == (pytest.approx(100), pytest.approx(120))
    assert change.change == pytest.approx(0.2)
    assert change.interval[0] < 0.2 < change.interval[1]
    assert judge_performance("ttft_p99_ms", [100.0] * 5, [120.0], band=0.5).verdict == PASS


@each("metric", sorted(name for name, one in METRICS.items() if one.family.band is not None))
@each("noise", [0.0, 0.02, 0.04])
def test_every_metric_on_a_machine_of_unknown_noise(metric, noise) -> None:
    baseline = [0.3 * math.exp(z * noise) for z in (-1.2, 0.4, 0.1, 1.1, -0.6)]
    worse = 0.5 if METRICS[metric].direction == "higher" else 2
    for factor, verdict in ((worse, LOST), (1, PASS), (1 / worse, GAIN)):
        new = [0.3 * factor * math.exp(z * noise) for z in (0.7, -0.9, 0.2, -0.1)]
        assert judge_performance(metric, baseline, new, sessions=3, **OWN_NOISE).verdict == verdict


@each("new, controls", [([72.4], None), ([200.0], None), ([40.0, 41.0, 40.0], [40.0, 41.0])])
def test_a_machine_too_noisy_proves_no_pass(new, controls) -> None:
    """The band that its noise forces is wider than a quarter."""
    base = (100.0, 130.0, 82.0, 115.0, 93.0, 70.0)
    judged = judge_performance(SPEED, base, new, controls=controls, **OWN_NOISE)
    assert judged.verdict == OPEN
    if controls is None:
        assert (judged.mark, judged.needs_more_runs) == ("MACHINE", False)
        assert "machine too noisy" in judged.reason


@each(
    "baseline, new", [([0.0] * 3, [0.0]), ([0.0] * 3, [9.0, 9.0]), ([9.0] * 3, [0.0, 0.0]),
                      ([9, 0, 9], [9.0])]
)  # fmt: skip
def test_a_median_of_0_is_told_and_never_passes(baseline, new) -> None:
    """Tokens may come in bursts: no relative change can be told of an ITL of 0."""
    for metric in ("itl_median_ms", "itl_p90_ms", "itl_p95_ms", "itl_p99_ms"):
        points = [[x] * 4 for x in baseline], [[5.0, 0.0, 5.0, 5.0] for _ in new]
        curve = judge_sweep(metric, *points, band=0.1)
        for judged in (judge_performance(metric, baseline, new, band=0.1), curve):
            assert (judged.verdict, judged.needs_more_runs) == (Verdict.NOT_COMPARABLE, False)
            assert metric in judged.reason
    for metric in ("itl_mean_ms", TIME, SPEED):
        why = "cannot be judged"
        refused(judge_performance, metric, [1.0] * 3, [0.0], band=0.1, match=why)


# With controls. Ten equal values of ten sessions: s = 0.005 √(10/19) = 0.0036274, nu = 19. --------
TEN = [10.0] * 10


@each(
    "new, settings, verdict, mark, needs, words",
    [
        ([10.3, 10.0], {"controls": []}, PASS, "", "", ""),
        ([10.3] * 2, {"controls": []}, OPEN, "", "control", ""),
        ([10.3] * 2, {"controls": [10.0] * 2}, OPEN, "", "new", ""),
        ([10.3] * 3, {"controls": [10.0] * 2, "policy": "required"}, LOST, "", "", ""),
        ([10.3] * 2, {"controls": [10.3] * 2}, PASS, "HOST_SHIFT", "", ""),
        ([12.0] * 4, {"controls": [12.0] * 3}, OPEN, "MACHINE", "", ""),
        ([10.3] * 2, {"why_no_control": "no image"}, LOST, "NO_CONTROL", "", "(no image)"),
        ([10.3] * 2, {"controls": [10.3] * 3, "policy": "none"}, LOST, "NO_CONTROL", "", ""),
        ([10.3] * 2, {"policy": "required"}, OPEN, "NO_CONTROL", "", "control requires a control"),
    ],
)
def test_with_controls_by_hand(new, settings, verdict, mark, needs, words) -> None:
    judged = judge_performance(TIME, TEN, new, **settings)
    assert (judged.verdict, judged.mark) == (verdict, mark)
    wanted = "control" if judged.needs_control else "new" if judged.needs_more_runs else ""
    assert wanted == needs
    assert words in " ".join((judged.reason, *judged.notes))


def test_a_probe_says_of_which_builds_controls_are_wanted_and_ends_with_a_proved_loss() -> None:
    def of(*controls: float, base: float = 10.0, starts: int = 2) -> PerformanceTest:
        return PerformanceTest(TIME, None, [base] * 10, [10.3] * starts, controls=controls)

    judged = judge_probe([of()], Rule(), [of(base=9.5)])
    assert (judged.needs_more_runs, judged.controls_wanted) == (True, {"baseline", "anchor"})
    decided = judge_probe([of(10.3, 10.3)], Rule())
    assert (decided.verdict, decided.controls_wanted) == (PASS, frozenset())
    open_one = replace(of(10.0, 10.3), metric="itl_mean_ms", new=[10.3, 10.1, 10.1])
    lost = judge_probe([of(10.0, 10.0, starts=3), open_one], Rule())
    assert (lost.verdict, lost.needs_more_runs) == (LOST, False)


# Documented 100 with sigma 0.5 %: SE = 0.00707 of one start, 0.00612 of two, 0.00577 of three; the
# margin of 10 % is 0.10536 on the log scale. So one start passes from 91.25 on; two are below the
# document by more than 10 % under 88.59, three under 88.67.
@each(
    "new, verdict, used, more",
    [
        ([91.2], OPEN, 1, True),
        ([88.5, 88.5], LOST, 2, False),
        ([200, 200], PASS, 1, False),  # better is no improvement
    ],
)
def test_against_a_documented_value(new, verdict, used, more) -> None:
    judged = DocumentedTest(SPEED, 0.1, 100, new, 0.005).judge(Rule())
    assert (judged.verdict, judged.runs_used, judged.needs_more_runs) == (verdict, used, more)
    assert judged.notes == ("against a documented number, perhaps of another machine",)
    assert "the documented value of 100 tokens/s" in judged.reason
    assert (judged.against, judged.needs_control) == ("documented", False)
    missed = judged.reason.startswith("misses the document by more than 10.0 %: ")
    assert missed == (verdict == LOST)


def test_a_tolerance_below_ten_per_cent_is_raised_and_told() -> None:
    low, high = (DocumentedTest(SPEED, x, 100, [100], 0.005).judge(Rule()) for x in (0.05, 0.2))
    assert (low.band, high.band) == (pytest.approx(0.10), pytest.approx(0.2))
    assert any("raised from 5.0 % to 10 %" in note for note in low.notes)
    metric = scale.performance_metric(SPEED)
    assert documented_margin(metric, 0.05) == documented_margin(metric, 0.10)


# A probe's tests together. ----------------------------------------------------------------------


def speed(*new: float, metric: str = SPEED) -> PerformanceTest:
    return PerformanceTest(metric, None, STEADY, new)


def test_the_anchor_has_one_and_a_half_bands_and_says_so() -> None:
    near, far = judge_probe([speed(1000)], Rule(), anchor=[speed(1000)]).judgements
    assert (near.against, far.against) == ("baseline", "anchor")
    assert (near.band, far.band) == (pytest.approx(0.02), pytest.approx(0.03, abs=0.001))
    assert far.reason.startswith("since the last release: +0.0 % (interval ")


def test_what_is_observed_spoils_no_verdict() -> None:
    zero = PerformanceTest("itl_median_ms", None, [0.0] * 5, [0.0])
    observed = [speed(900, metric=TIME), speed(1e6, metric="duration_s"), zero]
    judged = judge_probe([speed(1000)], Rule(), observed=observed)
    assert judged.verdict == PASS
    assert [one.metric for one in judged.observed] == [TIME]
    unit, of_zero = judged.notes
    assert unit.startswith("duration_s is not compared: the values of duration_s are hardly all in")
    assert "cannot be compared relatively" in of_zero
    refused(judge_probe, [observed[1]], Rule(), match="hardly all in")


def test_beside_a_documented_metric_the_others_are_only_listed() -> None:
    listed = NoTest(TIME, 0.02, 5.0, "nothing is documented", "documented")
    documented = DocumentedTest(SPEED, 0.10, 1000.0, [1000], None)
    judged = judge_probe([listed, documented], Rule())
    assert judged.verdict == PASS
    assert [(one.metric, one.measured) for one in judged.judgements[1:]] == [(TIME, 5.0)]
    missing = replace(listed, against="baseline")
    assert judge_probe([missing, documented], Rule()).verdict == Verdict.NO_BASELINE


@each(
    "metric, band, wide",
    [
        (SPEED, 0.02, 0.029849),  # 1 - 0.98^1.5
        (TIME, 0.02, 0.030150),  # 1.02^1.5 - 1
        ("ttft_median_ms", 0.15, 0.233238),
        ("ttft_p99_ms", 0.7, 0.999),  # 1.7^1.5 is more than twice: no band
        (SCORE, 0.02, 0.03),
        (SCORE, 0.8, 0.999),
    ],
)
def test_the_band_against_the_anchor_by_hand(metric, band, wide) -> None:
    assert scale.anchor_band(metric, band) == pytest.approx(wide, abs=1e-6)


# What no verdict can be given on. ----------------------------------------------------------------
NO_NUMBERS = (math.nan, math.inf, -math.inf, 0, 0.0, -1, True, np.True_, "1000", None, [1000],
              1 + 0j, 10**400)  # fmt: skip
NO_NOISE = (0.0, -0.01, 1.0, 5.0, math.nan, math.inf, True, "0.005")
NO_BAND = (0.0, 1.0, -0.02, math.nan, "0.02", True)


@each(
    "metric, baseline, new, settings, says",
    [
        *((SPEED, [1e3, x], [1e3], {}, "baseline value 2 of output_th") for x in NO_NUMBERS),
        *((SPEED, STEADY, [1e3, x], {}, "new value 2 of output_throughput") for x in NO_NUMBERS),
        (SPEED, [], [1000.0], {}, "no baseline values of output_throughput"),
        (SPEED, STEADY, np.array([]), {}, "no new values of output_throughput"),
        (SPEED, [*STEADY[1:], 1.0], [1000], {}, "baseline values differ among themselves, by a"),
        *((SPEED, STEADY, [1e3], {"sigma": x}, "the prior noise of one run") for x in NO_NOISE),
        *((SPEED, [0.9], [0.9], {"band": x}, "a fraction between 0 and 1") for x in NO_BAND),
        ("speed", [0.9], [0.9], {}, "unknown metric"),
        (SCORE, [0.9], [0.9], {}, "perfgate.judging.rules.accuracy"),
        ("draft_acceptance_rate", [0.7], [70.0], {}, "a share above 0 and up to 1"),
        ("draft_acceptance_rate", [0.7], [0.7, 1.01], {}, "not a percentage"),
    ],
)
def test_values_that_cannot_be_judged(metric, baseline, new, settings, says) -> None:
    for judge in (judge_performance, describe_change)[: 1 if "band" in settings else 2]:
        assert says in str(refused(judge, metric, baseline, new, **settings))


def test_documents_and_rules_that_cannot_be() -> None:
    for bad in (0.0, -1.0, math.nan, math.inf):
        for value, new, what in ((bad, 1000, "documented"), (1000, bad, "new")):
            test = DocumentedTest(SPEED, 0.1, value, [new], 0.005)
            refused(test.judge, Rule(), match=f"{what} value 1")
    for field, value in {"alpha": 0, "beta": -0.1, "max_runs": 0, "prior_dof": 0}.items():
        refused(Rule, **{field: value}, match=f"rule|{field} above 0")
    ones = {"alpha": 0.0, "beta": 0.5, "later_beta": -1, "half": 0, "needed": 1, "looks": ()}
    for field, value in (*ones.items(), ("far", math.nan), ("looks", ((0, 1),))):
        refused(ControlRule, **{field: value}, match="rule for controls cannot be used")


@each("unit", [1000, 1 / 1000, scale.UNIT_FACTOR * 1.02, 1e-6, 1e9])
@each("metric", [SPEED, "ttft_median_ms"])
@each("runs", [1, 3])
def test_values_in_another_unit(metric, unit, runs) -> None:
    new = [value * unit for value in STEADY[:runs]]
    for judge in (
        lambda: judge_performance(metric, STEADY, new),
        lambda: judge_performance(metric, STEADY, new, band=0.5, widen=True),
        lambda: describe_change(metric, STEADY, new),
        lambda: DocumentedTest(metric, 0.1, 1000.0, new).judge(Rule()),
    ):
        message = str(refused(judge, match=f"hardly all in {METRICS[metric].unit}"))
        assert "by a factor of" in message
        assert "baseline 99" in message or "baseline 1000" in message
        assert f"less than a factor of {scale.UNIT_FACTOR} apart" in message
        assert "ms against s" in message


@each("metric", sorted(METRICS))
@each("factor", [2, 10, 100])
def test_real_changes_are_not_refused(metric, factor) -> None:
    """Also of TTFT, which grows a hundredfold once requests have to queue."""
    for base, new in ((0.9, 0.9 / factor), (0.9 / factor, 0.9)):
        better = (new > base) == (METRICS[metric].direction == "higher")
        judged = judge_performance(metric, [base] * 5, [new] * 2, band=0.2)
        assert judged.verdict == (GAIN if better else LOST)
