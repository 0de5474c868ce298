"""Documented claims: better, worse or not worse than another result, or than a number."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfgate.core.errors import InputError
from perfgate.core.metrics import METRICS
from perfgate.gate.claims import judge_accuracy_claim, judge_claim
from perfgate.gate.rule import Rule
from perfgate.gate.scores import counted_score
from perfgate.gate.verdict import Verdict

SCORE = "accuracy:gsm8k:exact_match:flexible-extract"
# output_throughput: s = 0.005, t(0.975, 10) = 2.228139; one start a side reaches ± 0.0157553,
# two ± 0.0111407; a fixed number ± 0.0111407 from one start, ± 0.0078777 from two.
REACH = 2.228139 * 0.005


@pytest.mark.parametrize(
    ("expect", "new", "versus", "verdict"),
    [
        pytest.param("better", [1020], [1000], Verdict.PASS, id="2 % better"),
        pytest.param("better", [1010], [1000], Verdict.INCONCLUSIVE, id="1 % better, one start"),
        pytest.param("better", [1012] * 2, [1000] * 2, Verdict.PASS, id="1.2 % better, two starts"),
        pytest.param("better", [1000] * 5, [1000] * 5, Verdict.INCONCLUSIVE, id="equal"),
        pytest.param("better", [980], [1000], Verdict.REGRESSION, id="2 % worse"),
        pytest.param("not_worse", [1000], [1000], Verdict.PASS, id="equal is not worse"),
        pytest.param("not_worse", [990], [1000], Verdict.INCONCLUSIVE, id="1 % may be 2 %"),
        pytest.param("not_worse", [980] * 5, [1000] * 5, Verdict.INCONCLUSIVE, id="at the margin"),
        pytest.param(
            "not_worse", [985], [1000], Verdict.INCONCLUSIVE, id="real, within the margin"
        ),
        pytest.param("not_worse", [960], [1000], Verdict.REGRESSION, id="4 % worse"),
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
    assert judged.runs_used == len(new)
    assert judged.against == "claim"


@pytest.mark.parametrize(
    ("expect", "new", "verdict"),
    [
        pytest.param("better", [255], Verdict.PASS, id="over the floor"),
        pytest.param("better", [252], Verdict.INCONCLUSIVE, id="just over it"),
        pytest.param("better", [252.5] * 2, Verdict.PASS, id="just over it, twice"),
        pytest.param("better", [245], Verdict.REGRESSION, id="below it"),
        pytest.param("not_worse", [250], Verdict.PASS, id="reached"),
        pytest.param("not_worse", [240], Verdict.REGRESSION, id="4 % below"),
        pytest.param("worse", [240], Verdict.PASS, id="as bad as given"),
    ],
)
def test_against_a_number(expect: str, new: list[float], verdict: Verdict) -> None:
    judged = judge_claim("output_speed_per_user", expect, new, value=250)  # type: ignore[arg-type]
    assert judged.verdict == verdict
    assert judged.baseline == pytest.approx(250)


def test_the_bounds_by_hand() -> None:
    judged = judge_claim("output_throughput", "better", [1030, 1010], [1000, 1000])
    loss = -(math.log(1.03) + math.log(1.01)) / 2
    assert judged.change == pytest.approx(math.expm1(-loss))
    assert judged.interval == pytest.approx(
        (math.expm1(-loss - REACH), math.expm1(-loss + REACH)), abs=1e-7
    )
    assert judged.measured == pytest.approx(math.sqrt(1030 * 1010))
    assert judged.band is None
    one = judge_claim("output_speed_per_user", "better", [255], value=250)
    gain = math.log(255 / 250)
    assert one.interval == pytest.approx(
        (math.expm1(gain - REACH), math.expm1(gain + REACH)), abs=1e-7
    )


def test_the_reasons_have_the_numbers() -> None:
    held = judge_claim("output_throughput", "better", [1030], [1000])
    assert held.reason == (
        "the claim holds: +3.0 % (interval +1.4…+4.6 %), better; 1 fresh start against 1 fresh "
        "start"
    )
    broken = judge_claim("tpot_mean_ms", "not_worse", [11], [10], margin=0.05)
    assert broken.reason == (
        "the claim does not hold: +10.0 % (interval +8.3…+11.7 %), worse by more than +5.0 %; "
        "1 fresh start against 1 fresh start"
    )
    floor = judge_claim("output_speed_per_user", "better", [200], value=250.5)
    assert floor.reason.startswith("the claim does not hold: -20.2 %")
    assert floor.reason.endswith("against the claimed 250.5 tokens/s")


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


def test_the_margin_is_the_familys_band_unless_given() -> None:
    assert judge_claim("output_throughput", "not_worse", [1000], [1000]).band == 0.02
    judged = judge_claim("output_throughput", "not_worse", [960], [1000], margin=0.08)
    assert (judged.verdict, judged.band) == (Verdict.PASS, 0.08)


def test_undecided_asks_for_more_starts_of_the_side_that_has_fewer() -> None:
    rule = Rule(max_runs=2)

    def more(new: int, versus: int) -> bool:
        judged = judge_claim("output_throughput", "better", [1] * new, [1] * versus, rule=rule)
        assert judged.verdict == Verdict.INCONCLUSIVE
        return judged.needs_more_runs

    assert more(1, 1)
    assert more(2, 1)
    assert more(1, 2)
    assert not more(2, 2)
    assert judge_claim("output_throughput", "better", [1], value=1, rule=rule).needs_more_runs
    assert not judge_claim(
        "output_throughput", "better", [1, 1], value=1, rule=rule
    ).needs_more_runs


@pytest.mark.parametrize("metric", sorted(METRICS))
def test_every_metric_twice_as_good_and_twice_as_bad(metric: str) -> None:
    good, bad = (0.8, 0.4) if METRICS[metric].direction == "higher" else (0.4, 0.8)

    def verdict(expect: str, new: float, other: float) -> tuple[Verdict, Verdict]:
        margin = 0.2 if expect == "not_worse" else 0.0
        against = judge_claim(metric, expect, [new], [other], margin=margin)  # type: ignore[arg-type]
        number = judge_claim(metric, expect, [new], value=other, margin=margin)  # type: ignore[arg-type]
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


@pytest.mark.parametrize("margin", [-0.1, 1.0, math.nan])
def test_margins_that_are_no_fraction(margin: float) -> None:
    with pytest.raises(InputError, match="margin"):
        judge_claim("output_throughput", "not_worse", [1.0], [1.0], margin=margin)


@pytest.mark.parametrize(
    ("metric", "new", "versus", "verdict"),
    [
        pytest.param("output_throughput", [1080], [1000], Verdict.PASS, id="8 % of asked 5 %"),
        pytest.param("output_throughput", [1060], [1000], Verdict.INCONCLUSIVE, id="6 %, one"),
        pytest.param("output_throughput", [1065] * 2, [1000] * 2, Verdict.PASS, id="6.5 %, two"),
        pytest.param("output_throughput", [1050] * 5, [1000] * 5, Verdict.INCONCLUSIVE, id="at it"),
        pytest.param("output_throughput", [1020], [1000], Verdict.REGRESSION, id="a gain of 2 %"),
        pytest.param("output_throughput", [1000], [1000], Verdict.REGRESSION, id="no gain"),
        pytest.param("tpot_mean_ms", [9.2], [10], Verdict.PASS, id="8 % less time"),
        pytest.param("tpot_mean_ms", [9.8], [10], Verdict.REGRESSION, id="2 % less time"),
    ],
)
def test_a_minimum_effect(
    metric: str, new: list[float], versus: list[float], verdict: Verdict
) -> None:
    judged = judge_claim(metric, "better", new, versus, minimum_effect=0.05)
    assert judged.verdict == verdict
    assert judged.notes == ("minimum effect 5 %, ours: the document gives no number",)


def test_a_minimum_effect_moves_the_edge_by_hand() -> None:
    """The verdict turns where the bound of the gain meets ln 1.05, on either side."""
    reach, edge = 2.228139 * 0.005 * math.sqrt(2), math.log(1.05)
    for metric, sign in (("output_throughput", 1), ("tpot_mean_ms", -1)):
        edge = math.log(1.05) if sign == 1 else -math.log(0.95)
        seen = [
            judge_claim(
                metric, "better", [1000 * math.exp(sign * gain)], [1000], minimum_effect=0.05
            ).verdict
            for gain in (edge + reach + 1e-6, edge + reach - 1e-6, edge - reach - 1e-6)
        ]
        assert seen == [Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.REGRESSION]


def test_a_minimum_effect_is_told() -> None:
    held = judge_claim("output_throughput", "better", [1100], [1000], minimum_effect=0.05)
    assert held.reason == (
        "the claim holds: +10.0 % (interval +8.3…+11.7 %), better by +5.0 %; 1 fresh start "
        "against 1 fresh start"
    )
    broken = judge_claim("output_throughput", "better", [1020], [1000], minimum_effect=0.05)
    assert broken.reason.startswith("the claim does not hold: +2.0 %")
    assert "not better by +5.0 %" in broken.reason


@pytest.mark.parametrize(
    ("right", "verdict"),
    [(990, Verdict.PASS), (970, Verdict.INCONCLUSIVE), (951, Verdict.REGRESSION)],
)
def test_a_minimum_effect_of_an_accuracy_is_absolute(right: int, verdict: Verdict) -> None:
    judged = judge_accuracy_claim(
        SCORE, "better", [answers(right)], [answers(950)], minimum_effect=0.02
    )
    assert judged.verdict == verdict
    assert judged.notes == ("minimum effect 2 points, ours: the document gives no number",)


@pytest.mark.parametrize("effect", [-0.1, 1.0, math.nan])
def test_minimum_effects_that_are_no_fraction(effect: float) -> None:
    with pytest.raises(InputError, match="minimum effect"):
        judge_claim("output_throughput", "better", [1.0], [1.0], minimum_effect=effect)


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
    assert judge_claim("ttft_p99_ms", "not_worse", [1.0], [1.0], margin=0.5).verdict == Verdict.PASS


def test_each_kind_of_metric_has_its_own_function() -> None:
    with pytest.raises(InputError, match="judge_accuracy_claim"):
        judge_claim(SCORE, "better", [0.9], [0.8])
    with pytest.raises(InputError, match="judge_claim"):
        judge_accuracy_claim("output_throughput", "better", [{"q": True}], [{"q": True}])


values = st.lists(st.floats(50, 200), min_size=1, max_size=4)
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


@given(values, values)
def test_two_sides_never_both_claim_to_be_better(a: list[float], b: list[float]) -> None:
    verdicts = {
        judge_claim("output_throughput", "better", a, b).verdict,
        judge_claim("output_throughput", "better", b, a).verdict,
    }
    assert verdicts in ({Verdict.PASS, Verdict.REGRESSION}, {Verdict.INCONCLUSIVE})


# expected, true loss in standard errors of the comparison (margin: 4, minimum effect: 6) → PASS %,
# REGRESSION %
RATES = [
    ("better", -6.0, 100.0, 0.0),
    ("better", -4.1, 96.9, 0.0),
    ("better", 0.0, 1.3, 1.3),
    ("better", 4.1, 0.0, 96.9),
    ("better by an effect", -10.1, 96.9, 0.0),
    ("better by an effect", -6.0, 1.3, 1.3),
    ("better by an effect", -1.9, 0.0, 96.9),
    ("not_worse", 0.0, 96.2, 0.0),
    ("not_worse", 4.0, 1.3, 1.3),
    ("not_worse", 8.0, 0.0, 96.2),
]


@pytest.mark.slow
@pytest.mark.parametrize(("expect", "loss", "passes", "fails"), RATES)
@pytest.mark.parametrize("starts", [(1, 1), (3, 2), (2, None)])
def test_error_rates(
    expect: str, loss: float, passes: float, fails: float, starts: tuple[int, int | None]
) -> None:
    """With the prior right the rates are those of a normal z beyond t(0.975, 10) = 2.23."""
    random = np.random.default_rng(24)
    trials, (count, others) = 2000, starts
    error = 0.005 * math.sqrt(1 / count + (1 / others if others else 0))
    margin = -math.expm1(-4 * error) if expect == "not_worse" else 0.0
    effect = math.expm1(6 * error) if expect == "better by an effect" else 0.0
    if effect and others is None:
        pytest.skip("a minimum effect is one against another scenario")
    seen: Counter[Verdict] = Counter()
    for _ in range(trials):
        noise = 0.005 * random.standard_normal(count + (others or 0))
        new = 1000 * np.exp(-loss * error + noise[:count])
        versus = 1000 * np.exp(noise[count:])
        judged = judge_claim(
            "output_throughput",
            expect.partition(" ")[0],  # type: ignore[arg-type]
            new.tolist(),
            versus.tolist(),
            value=None if others else 1000.0,
            margin=margin,
            minimum_effect=effect,
        )
        seen[judged.verdict] += 1
    for share, verdict in ((passes, Verdict.PASS), (fails, Verdict.REGRESSION)):
        near = 4 * 100 * math.sqrt(max(share * (100 - share), 1) / 1e4 / trials) + 0.2
        assert 100 * seen[verdict] / trials == pytest.approx(share, abs=near)


def answers(right: int, questions: int = 1000) -> dict[str, bool]:
    return {f"q{number}": number < right for number in range(questions)}


@pytest.mark.parametrize(
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


def test_an_accuracy_without_numbers_is_refused() -> None:
    with pytest.raises(InputError, match="no score"):
        judge_accuracy_claim(SCORE, "better", [{}], [answers(9)])
    with pytest.raises(InputError, match="score"):
        judge_accuracy_claim(SCORE, "better", [answers(9)], value=math.nan)
