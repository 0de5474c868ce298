"""Accuracy known only as a score: Wilson's and Newcombe's intervals, and the verdicts from them."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from perfgate.core.errors import InputError
from perfgate.gate.scores import Score, counted_score, documented_score, judge_unpaired
from perfgate.gate.verdict import Verdict

NAME = "accuracy:gsm8k:exact_match:flexible-extract"
Z95 = 1.6448536269514722


@settings(deadline=None)
@given(st.integers(1, 2000), st.floats(0, 1))
def test_the_interval_is_wilsons(questions: int, share: float) -> None:
    right = round(share * questions)
    expected = binomtest(right, questions).proportion_ci(0.90, "wilson")
    low, high = counted_score(right, questions).interval(Z95, Z95)
    assert low == pytest.approx(expected.low, abs=1e-9)
    assert high == pytest.approx(expected.high, abs=1e-9)


def test_against_a_documented_number_the_bounds_are_wilsons_own() -> None:
    interval = binomtest(1240, 1319).proportion_ci(0.90, "wilson")
    judged = judge_unpaired(
        NAME, documented_score(0.95), counted_score(1240, 1319), margin=0.02, alpha=0.05
    )
    assert judged.interval == pytest.approx((interval.low - 0.95, interval.high - 0.95))
    assert judged.change == pytest.approx(1240 / 1319 - 0.95)


def test_between_two_runs_the_bounds_are_newcombes() -> None:
    # Newcombe (1998), table II, (a): 56/70 - 48/80 = 0.2, method 10: 0.0524 … 0.3339 at 95 %
    judged = judge_unpaired(
        NAME,
        counted_score(56, 70),
        counted_score(48, 80),
        margin=0.5,
        alpha=0.025,
        beta=0.025,
    )
    assert judged.interval == pytest.approx((-0.3339, -0.0524), abs=5e-5)


def test_each_bound_has_its_own_error_rate() -> None:
    def interval(alpha: float, beta: float) -> tuple[float, float]:
        judged = judge_unpaired(
            NAME,
            counted_score(56, 70),
            counted_score(48, 80),
            margin=0.5,
            alpha=alpha,
            beta=beta,
        )
        assert judged.interval is not None
        return judged.interval

    low, high = interval(0.01, 0.05)
    assert low == interval(0.05, 0.05)[0]
    assert high == interval(0.01, 0.01)[1]


# Against a documented 0.95 on 1319 questions: U < 0.02 passes, L > 0 (alpha 0.01) is a regression.
@pytest.mark.parametrize(
    ("right", "verdict"),
    [
        pytest.param(1253, Verdict.PASS, id="as documented"),
        pytest.param(1319, Verdict.PASS, id="better"),
        pytest.param(1242, Verdict.PASS, id="0.8 points below"),
        pytest.param(1239, Verdict.INCONCLUSIVE, id="1.1 points below"),
        pytest.param(1230, Verdict.REGRESSION, id="1.7 points below"),
        pytest.param(0, Verdict.REGRESSION, id="nothing right"),
    ],
)
def test_against_a_documented_score(right: int, verdict: Verdict) -> None:
    judged = judge_unpaired(NAME, documented_score(0.95), counted_score(right, 1319), margin=0.02)
    assert judged.verdict == verdict
    assert not judged.needs_more_runs
    assert judged.runs_used == 1
    assert judged.notes[0].startswith("against a documented number")


def test_a_documented_standard_error_widens_the_bounds() -> None:
    # 0.95 ± 0.006 is worth 0.95·0.05/0.006² = 1319.4 questions
    documented = documented_score(0.95, 0.006)
    assert documented.questions == pytest.approx(1319.44, abs=0.01)
    new = counted_score(1235, 1319)
    as_exact = judge_unpaired(NAME, documented_score(0.95), new, margin=0.02)
    judged = judge_unpaired(NAME, documented, new, margin=0.02)
    counted = judge_unpaired(NAME, Score(0.95, 1319.44), new, margin=0.02)
    assert judged.interval is not None
    assert as_exact.interval is not None
    assert judged.interval[0] < as_exact.interval[0]
    assert judged.interval[1] > as_exact.interval[1]
    assert judged.interval == pytest.approx(counted.interval, abs=1e-6)
    assert judged.notes == ()


@pytest.mark.parametrize(
    ("right", "says"),
    [
        (1253, "+0.0 points (interval -1.1…+1.2 points), within the -2.0 points band"),
        (1239, "-1.1 points (interval -2.2…+0.3 points): no loss is proved, and the -2.0 points "
               "band is not excluded"),
        (1230, "-1.7 points (interval -3.0…-0.3 points), a real loss that may reach the -2.0 "
               "points band"),
        (1200, "-4.0 points (interval -5.4…-2.4 points), beyond the -2.0 points band"),
    ],
)  # fmt: skip
def test_the_reason_has_the_numbers(right: int, says: str) -> None:
    judged = judge_unpaired(NAME, documented_score(0.95), counted_score(right, 1319), margin=0.02)
    assert judged.reason == f"{says}; 1319 questions whose answers cannot be paired"


@pytest.mark.parametrize(("right", "questions"), [(-1, 10), (11, 10), (0, 0)])
def test_counts_that_do_not_fit(right: int, questions: int) -> None:
    with pytest.raises(InputError, match="right answers"):
        counted_score(right, questions)


@pytest.mark.parametrize(
    ("value", "stderr"),
    [
        (1.2, None),
        (math.nan, None),
        (-0.1, None),
        ("0.5", None),
        (True, None),
        (0.5, 0.0),
        (0.5, math.nan),
        (1.0, 0.01),
    ],
)
def test_documents_that_cannot_be(value: float, stderr: float | None) -> None:
    with pytest.raises(InputError, match="score"):
        documented_score(value, stderr)


def test_other_bad_input() -> None:
    good = counted_score(9, 10)
    with pytest.raises(InputError, match="number of questions"):
        judge_unpaired(NAME, good, documented_score(0.9), margin=0.02)
    with pytest.raises(InputError, match="not an accuracy"):
        judge_unpaired("output_throughput", good, good, margin=0.02)
    with pytest.raises(InputError, match="two points"):
        judge_unpaired(NAME, good, good, margin=2.0)


@settings(deadline=None)
@given(st.integers(1, 500), st.floats(0, 1), st.floats(0, 1), st.integers(0, 100))
def test_fewer_right_answers_never_better_the_verdict(
    questions: int, reference: float, share: float, fewer: int
) -> None:
    order = [Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.REGRESSION]
    right = round(share * questions)

    def rank(right: int) -> int:
        new = counted_score(right, questions)
        return order.index(
            judge_unpaired(NAME, documented_score(reference), new, margin=0.03).verdict
        )

    assert rank(max(0, right - fewer)) >= rank(right)
