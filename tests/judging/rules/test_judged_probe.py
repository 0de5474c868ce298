"""A probe's tests, judged together: the anchor's bands, one verdict."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_values import judge_probe
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.metrics import METRICS
from perfgate.core.rule import Rule
from perfgate.core.verdict import Verdict
from perfgate.judging.assembly.judge_input import NoTest
from perfgate.judging.rules import scale
from perfgate.judging.rules.accuracy import AccuracyTest, counted_score
from perfgate.judging.rules.documented import DocumentedTest
from perfgate.judging.rules.noise import RunNoise
from perfgate.judging.rules.performance import PerformanceTest
from perfgate.judging.rules.scale import ANCHOR_MARGIN, anchor_band

SPEED, TIME = "output_throughput", "tpot_mean_ms"
SCORE = "accuracy:gsm8k:exact_match:strict-match"
STEADY = [1000.0, 1001.0, 999.0, 1000.0, 1000.0]


def speed(*new: float, metric: str = SPEED, noise: RunNoise | None = None) -> PerformanceTest:
    return PerformanceTest(metric, None, STEADY, new, noise or RunNoise())


def test_the_anchor_has_one_and_a_half_bands_and_says_so() -> None:
    judged = judge_probe([speed(1000)], Rule(), anchor=[speed(1000)])
    near, far = judged.judgements
    assert (near.against, far.against) == ("baseline", "anchor")
    assert near.band == pytest.approx(0.02)
    assert far.band == pytest.approx(0.03, abs=0.001)
    assert far.reason.startswith("since the last release: +0.0 % (interval ")


def test_what_is_observed_spoils_no_verdict() -> None:
    observed = [speed(900, metric=TIME), speed(1e6, metric="duration_s")]
    judged = judge_probe([speed(1000)], Rule(), observed=observed)
    assert judged.verdict == Verdict.PASS
    assert [one.metric for one in judged.observed] == [TIME]
    (note,) = judged.notes
    assert note.startswith("duration_s is not compared: the values of duration_s are hardly all in")
    with pytest.raises(InputError, match="hardly all in"):
        judge_probe([observed[1]], Rule())


def test_beside_a_documented_metric_the_others_are_only_listed() -> None:
    listed = NoTest(TIME, 0.02, 5.0, "nothing is documented", "documented")
    documented = DocumentedTest(SPEED, 0.10, 1000.0, [1000], None)
    judged = judge_probe([listed, documented], Rule())
    assert judged.verdict == Verdict.PASS
    assert [one.metric for one in judged.judgements] == [SPEED, TIME]
    assert judged.judgements[1].measured == 5.0
    missing = replace(listed, against="baseline")
    assert judge_probe([missing, documented], Rule()).verdict == Verdict.NO_BASELINE


def test_an_accuracy_goes_by_its_answers_or_else_by_scores() -> None:
    before = {f"q{n}": True for n in range(200)}
    now = {f"q{n}": n >= 190 for n in range(200)}
    measured = ({SCORE: 1.0}, {SCORE: 0.05})
    paired = AccuracyTest(SCORE, None, ([before], [now] * 2), None, measured).judge(Rule())
    assert (paired.verdict, paired.band) == (Verdict.REGRESSION, 0.02)
    assert "190 answers lost" in paired.reason
    assert "BROKEN_OUTPUT" in paired.notes
    scores = (counted_score(200, 200), [counted_score(10, 200)] * 2)
    test = AccuracyTest(SCORE, 0.03, ((), ()), scores, measured, against="documented")
    told = test.judge(Rule())
    assert (told.verdict, told.band, told.against) == (Verdict.REGRESSION, 0.03, "documented")
    assert told.reason.startswith("worse than the documented score: -95.0 points")


@each(
    ("metric", "band", "wide"),
    [
        ("output_throughput", 0.02, 0.029849),  # 1 - 0.98^1.5
        ("output_throughput", 0.9, 0.968377),
        ("tpot_median_ms", 0.02, 0.030150),  # 1.02^1.5 - 1
        ("ttft_median_ms", 0.15, 0.233238),
        ("ttft_p99_ms", 0.7, 0.999),  # 1.7^1.5 is more than twice: no band
        (SCORE, 0.02, 0.03),
        (SCORE, 0.8, 0.999),
    ],
)
def test_the_band_against_the_anchor_by_hand(metric: str, band: float, wide: float) -> None:
    assert anchor_band(metric, band) == pytest.approx(wide, abs=1e-6)


@settings(deadline=None)
@given(st.sampled_from(sorted(METRICS)), st.floats(1e-4, 0.55))
def test_it_is_one_and_a_half_margins(metric: str, band: float) -> None:
    found = METRICS[metric]
    margin = scale.margin(found, anchor_band(metric, band))
    assert margin == pytest.approx(ANCHOR_MARGIN * scale.margin(found, band))
