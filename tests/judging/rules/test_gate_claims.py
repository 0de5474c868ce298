"""Documented claims: better, worse or not worse than another result, or than a number."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.metrics import METRICS
from perfgate.core.verdict import Verdict
from perfgate.judging.rules.claims import judge_accuracy_claim, judge_claim
from perfgate.judging.rules.scores import counted_score

SCORE = "accuracy:gsm8k:exact_match:flexible-extract"
# output_throughput: s0 = 0.005, of which a session has 0.3 in common; three equal starts a side:
# s² = 10 · 0.7 s0² / 12, t(0.998, 12), SE = s √(2/3). Against a number SE = s √(1/3), all of s0.
T12 = float(stdtrit(12, 0.998))
REACH = T12 * 0.005 * math.sqrt(10 * 0.7 / 12) * math.sqrt(2 / 3)  # 1.1 %
REACH_OF_NUMBER = T12 * 0.005 * math.sqrt(10 / 12) * math.sqrt(1 / 3)


@each(
    ("expect", "new", "versus", "verdict"),
    [
        pytest.param("better", [1030] * 2, [1000] * 2, Verdict.INCONCLUSIVE, id="two pairs"),
        pytest.param("better", [1020] * 3, [1000] * 3, Verdict.PASS, id="2 % better"),
        pytest.param("better", [1020] * 3, [1000] * 2, Verdict.INCONCLUSIVE, id="no third partner"),
        pytest.param("better", [1010] * 3, [1000] * 3, Verdict.INCONCLUSIVE, id="1 % better"),
        pytest.param("better", [1010] * 4, [1000] * 4, Verdict.PASS, id="1 %, four pairs"),
        pytest.param("better", [1000] * 6, [1000] * 6, Verdict.INCONCLUSIVE, id="equal"),
        pytest.param("better", [980] * 3, [1000] * 3, Verdict.REGRESSION, id="2 % worse"),
        pytest.param("not_worse", [1000] * 3, [1000] * 3, Verdict.PASS, id="equal is not worse"),
        pytest.param("not_worse", [980] * 6, [1000] * 6, Verdict.INCONCLUSIVE, id="at the margin"),
        pytest.param("not_worse", [960] * 3, [1000] * 3, Verdict.REGRESSION, id="4 % worse"),
        pytest.param("worse", [960], [1000], Verdict.PASS, id="the cost shows"),
        pytest.param("worse", [1000], [1000], Verdict.PASS, id="no cost to be seen"),
        pytest.param("worse", [1100], [1000], Verdict.PASS, id="a gain instead"),
    ],
)
def test_against_another_scenario(
    expect: str, new: list[float], versus: list[float], verdict: Verdict
) -> None:
    judged = judge_claim("output_throughput", expect, new, versus)  # type: ignore[arg-type]
    assert judged.verdict == verdict
    assert judged.runs_used == min(len(new), len(versus))
    assert judged.against == "claim"


@each(
    ("expect", "new", "verdict"),
    [
        pytest.param("better", [255] * 2, Verdict.INCONCLUSIVE, id="over the floor, two starts"),
        pytest.param("better", [255] * 3, Verdict.PASS, id="over the floor"),
        pytest.param("better", [251] * 3, Verdict.INCONCLUSIVE, id="just over it"),
        pytest.param("better", [252] * 5, Verdict.PASS, id="just over it, five times"),
        pytest.param("better", [245] * 3, Verdict.REGRESSION, id="below it"),
        pytest.param("not_worse", [250] * 3, Verdict.PASS, id="reached"),
        pytest.param("not_worse", [240] * 3, Verdict.REGRESSION, id="4 % below"),
        pytest.param("worse", [240], Verdict.PASS, id="as bad as given"),
    ],
)
def test_against_a_number(expect: str, new: list[float], verdict: Verdict) -> None:
    judged = judge_claim("output_speed_per_user", expect, new, value=250)  # type: ignore[arg-type]
    assert judged.verdict == verdict
    assert judged.baseline == pytest.approx(250)


def test_the_bounds_by_hand() -> None:
    judged = judge_claim("output_throughput", "better", [1030] * 3, [1000] * 3)
    loss = -math.log(1.03)
    assert judged.change == pytest.approx(0.03)
    assert judged.interval == pytest.approx(
        (math.expm1(-loss - REACH), math.expm1(-loss + REACH)), abs=1e-7
    )
    assert judged.measured == pytest.approx(1030)
    assert judged.band is None
    one = judge_claim("output_speed_per_user", "better", [255] * 3, value=250)
    gain, reach = math.log(255 / 250), REACH_OF_NUMBER
    assert one.interval == pytest.approx(
        (math.expm1(gain - reach), math.expm1(gain + reach)), abs=1e-7
    )


def test_the_reasons_have_the_numbers() -> None:
    held = judge_claim("output_throughput", "better", [1030] * 3, [1000] * 3)
    assert held.reason == (
        "the claim holds: +3.0 % (interval +1.9…+4.1 %), better; 3 pairs of starts"
    )
    broken = judge_claim("tpot_mean_ms", "not_worse", [11] * 3, [10] * 3, margin=0.05)
    assert broken.reason == (
        "the claim does not hold: +10.0 % (interval +8.8…+11.2 %), worse by more than +5.0 %; "
        "3 pairs of starts"
    )
    floor = judge_claim("output_speed_per_user", "better", [200] * 3, value=250.5)
    assert floor.reason.startswith("the claim does not hold: -20.2 %")
    assert floor.reason.endswith("; 3 fresh starts against the claimed 250.5 tokens/s")
    early = judge_claim("output_throughput", "better", [1030], [1000])
    assert early.reason.endswith("at least 3 fresh starts a side decide; 1 pair of starts")


@pytest.mark.parametrize(
    ("new", "note"),
    [
        (900, "the cost that the document warns of shows"),
        (1000, "no cost shows here: neither a loss nor a gain is proved"),
        (1100, "there is no cost here, but a gain"),
    ],
)
def test_a_cost_is_told_and_never_fails(new: float, note: str) -> None:
    judged = judge_claim("output_throughput", "worse", [new], [1000])
    assert (judged.verdict, judged.notes) == (Verdict.PASS, (note,))
    assert not judged.needs_more_runs


def test_undecided_asks_for_more_starts_of_the_side_that_has_fewer() -> None:
    def more(new: int, versus: int) -> bool:
        judged = judge_claim("output_throughput", "better", [1.0] * new, [1.0] * versus)
        assert judged.verdict == Verdict.INCONCLUSIVE
        return judged.needs_more_runs

    assert more(1, 1)
    assert more(6, 5)
    assert more(5, 6)
    assert not more(6, 6)
    assert judge_claim("output_throughput", "better", [1.0] * 5, value=1).needs_more_runs
    assert not judge_claim("output_throughput", "better", [1.0] * 6, value=1).needs_more_runs


@each("metric", sorted(METRICS))
def test_every_metric_twice_as_good_and_twice_as_bad(metric: str) -> None:
    good, bad = (0.8, 0.4) if METRICS[metric].direction == "higher" else (0.4, 0.8)

    def verdict(expect: str, new: float, other: float) -> tuple[Verdict, Verdict]:
        margin = 0.2 if expect == "not_worse" else 0.0
        news, others = [new] * 3, [other] * 3
        against = judge_claim(metric, expect, news, others, margin=margin)  # type: ignore[arg-type]
        number = judge_claim(metric, expect, news, value=other, margin=margin)  # type: ignore[arg-type]
        return against.verdict, number.verdict

    assert verdict("better", good, bad) == (Verdict.PASS, Verdict.PASS)
    assert verdict("better", bad, good) == (Verdict.REGRESSION, Verdict.REGRESSION)
    assert verdict("not_worse", good, bad) == (Verdict.PASS, Verdict.PASS)
    assert verdict("not_worse", bad, good) == (Verdict.REGRESSION, Verdict.REGRESSION)
    assert verdict("worse", bad, good) == (Verdict.PASS, Verdict.PASS)
    cost = judge_claim(metric, "worse", [bad], [good])
    assert cost.notes == ("the cost that the document warns of shows",)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_values_that_cannot_be_judged(bad: float) -> None:
    for arguments in (([bad], [1.0]), ([1.0], [bad])):
        with pytest.raises(InputError, match="value 1 of output_throughput cannot be judged"):
            judge_claim("output_throughput", "better", *arguments)
    with pytest.raises(InputError, match="claimed value 1"):
        judge_claim("output_throughput", "better", [1.0], value=bad)


def test_a_claim_needs_one_thing_to_be_compared_with() -> None:
    with pytest.raises(InputError, match="found: none"):
        judge_claim("output_throughput", "better", [1.0])
    with pytest.raises(InputError, match="found: two"):
        judge_claim("output_throughput", "better", [1.0], [1.0], value=1.0)
    with pytest.raises(InputError, match="no new values"):
        judge_claim("output_throughput", "better", [], [1.0])
    with pytest.raises(InputError, match="found: none"):
        judge_accuracy_claim(SCORE, "better", [{"q": True}])
    with pytest.raises(InputError, match="no score"):
        judge_accuracy_claim(SCORE, "better", [{}], [answers(9)])


@each(
    ("metric", "new", "verdict"),
    [
        pytest.param("output_throughput", 1080, Verdict.PASS, id="8 % of asked 5 %"),
        pytest.param("output_throughput", 1050, Verdict.PASS, id="just what is asked"),
        pytest.param("output_throughput", 1030, Verdict.PASS, id="real, and over the half"),
        pytest.param("output_throughput", 1020, Verdict.REGRESSION, id="a gain of 2 %"),
        pytest.param("output_throughput", 1000, Verdict.REGRESSION, id="no gain"),
        pytest.param("tpot_mean_ms", 920, Verdict.PASS, id="8 % less time"),
        pytest.param("tpot_mean_ms", 980, Verdict.REGRESSION, id="2 % less time"),
    ],
)
def test_a_minimum_effect(metric: str, new: float, verdict: Verdict) -> None:
    judged = judge_claim(metric, "better", [new] * 3, [1000] * 3, minimum_effect=0.05)
    assert judged.verdict == verdict
    assert judged.notes == ("minimum effect 5 %, ours: the document gives no number",)


@pytest.mark.parametrize(
    ("right", "verdict"),
    [(990, Verdict.PASS), (965, Verdict.PASS), (951, Verdict.REGRESSION)],
)
def test_a_minimum_effect_of_an_accuracy_is_absolute(right: int, verdict: Verdict) -> None:
    judged = judge_accuracy_claim(
        SCORE, "better", [answers(right)], [answers(950)], minimum_effect=0.02
    )
    assert judged.verdict == verdict
    assert judged.notes == ("minimum effect 2 points, ours: the document gives no number",)


def test_minimum_effects_without_meaning() -> None:
    for expect, value in (("not_worse", None), ("worse", None), ("better", 1.0)):
        versus = [1.0] if value is None else []
        with pytest.raises(InputError, match="a minimum effect says nothing"):
            judge_claim(
                "output_throughput",
                expect,  # type: ignore[arg-type]
                [1.0],
                versus,
                value=value,
                minimum_effect=0.1,
            )


def test_margins_without_meaning() -> None:
    with pytest.raises(InputError, match="a margin says nothing"):
        judge_claim("output_throughput", "better", [1.0], [1.0], margin=0.1)
    with pytest.raises(InputError, match="needs a margin"):
        judge_claim("ttft_p99_ms", "not_worse", [1.0], [1.0])
    wide = judge_claim("ttft_p99_ms", "not_worse", [1.0] * 3, [1.0] * 3, margin=0.5)
    assert wide.verdict == Verdict.PASS


values = st.lists(st.floats(50, 200), min_size=1, max_size=7)
expectations = st.sampled_from(["better", "not_worse", "worse"])
ORDER = [Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.REGRESSION]


@given(expectations, values, values, st.floats(0, 1))
def test_a_worse_result_never_betters_the_verdict(
    expect: str, new: list[float], versus: list[float], loss: float
) -> None:
    worse = [value * math.exp(-loss) for value in new]
    before = judge_claim("output_throughput", expect, new, versus)  # type: ignore[arg-type]
    after = judge_claim("output_throughput", expect, worse, versus)  # type: ignore[arg-type]
    assert ORDER.index(after.verdict) >= ORDER.index(before.verdict)


def answers(right: int, questions: int = 1000) -> dict[str, bool]:
    return {f"q{number}": number < right for number in range(questions)}


@each(
    ("expect", "right", "verdict"),
    [
        pytest.param("not_worse", 950, Verdict.PASS, id="the same"),
        pytest.param("not_worse", 990, Verdict.PASS, id="better is not worse"),
        pytest.param("not_worse", 940, Verdict.INCONCLUSIVE, id="one point lost"),
        pytest.param("not_worse", 900, Verdict.REGRESSION, id="five points lost"),
        pytest.param("better", 990, Verdict.PASS, id="four points gained"),
        pytest.param("better", 951, Verdict.INCONCLUSIVE, id="one answer gained"),
        pytest.param("better", 900, Verdict.REGRESSION, id="lost, not gained"),
        pytest.param("worse", 900, Verdict.PASS, id="the cost shows"),
        pytest.param("worse", 990, Verdict.PASS, id="no cost"),
    ],
)
def test_accuracies_by_their_answers(expect: str, right: int, verdict: Verdict) -> None:
    judged = judge_accuracy_claim(
        SCORE,
        expect,  # type: ignore[arg-type]
        [answers(right)],
        [answers(950)],
        margin=0.01 if expect == "not_worse" else 0.0,
    )
    assert judged.verdict == verdict
    assert judged.change == pytest.approx((right - 950) / 1000)
    assert judged.reason.startswith("the claim does not hold") == (verdict == Verdict.REGRESSION)
    assert judged.against == "claim"


@pytest.mark.parametrize(
    ("right", "verdict"),
    [(990, Verdict.PASS), (950, Verdict.INCONCLUSIVE), (900, Verdict.REGRESSION)],
)
def test_an_accuracy_against_a_number(right: int, verdict: Verdict) -> None:
    judged = judge_accuracy_claim(SCORE, "better", [answers(right)], value=0.95)
    assert judged.verdict == verdict
    assert judged.baseline == 0.95


def test_other_questions_are_not_comparable() -> None:
    judged = judge_accuracy_claim(SCORE, "better", [answers(9, 10)], [answers(9, 11)])
    assert (judged.verdict, judged.against) == (Verdict.NOT_COMPARABLE, "claim")


def test_each_kind_of_metric_has_its_own_function() -> None:
    with pytest.raises(InputError, match="judge_accuracy_claim"):
        judge_claim(SCORE, "better", [0.9], [0.8])
    with pytest.raises(InputError, match="judge_claim"):
        judge_accuracy_claim("output_throughput", "better", [{"q": True}], [{"q": True}])


def test_answers_tell_more_than_scores() -> None:
    paired = judge_accuracy_claim(SCORE, "not_worse", [answers(950)], [answers(950)], margin=0.01)
    unpaired = judge_accuracy_claim(
        SCORE,
        "not_worse",
        [],
        [{}],
        new_score=counted_score(950, 1000),
        versus_score=counted_score(950, 1000),
        margin=0.01,
    )
    assert (paired.verdict, unpaired.verdict) == (Verdict.PASS, Verdict.INCONCLUSIVE)
    mixed = judge_accuracy_claim(
        SCORE, "better", [answers(950)], versus_score=counted_score(700, 1000)
    )
    assert mixed.verdict == Verdict.PASS
