"""Documented claims: better, worse or not so than another result, or than a number.

The rule itself: `test_paired`; the words of each shipped claim: `test_shipped_claims`; claims
without meaning are refused where they are read: `test_scenario_claims`.
"""

import math
from typing import Any

import numpy as np
import pytest
from claimed import Expect, judge_accuracy_claim, judge_claim, statement
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.metrics import METRICS
from perfgate.core.verdict import Judgement, Verdict
from perfgate.judging.forecast.noise_scenarios import starts
from perfgate.judging.rules.accuracy import counted_score
from perfgate.judging.rules.claims import EarlierStarts

SCORE = "accuracy:gsm8k:exact_match:flexible-extract"
SPEED, TIME, TOTAL = "output_throughput", "tpot_mean_ms", "total_token_throughput"
SIGMA = 0.005  # prior noise of a throughput, of which a session has 0.3 in common
PASS, LOST, OPEN = Verdict.PASS, Verdict.REGRESSION, Verdict.INCONCLUSIVE


def claimed(
    expect: Expect, new: list[float], versus: list[float], metric: str = SPEED, **more: Any
) -> Judgement:
    """The judgement of a claim; `more` are fields of the claim, and arguments of the judge."""
    settings = {key: more.pop(key) for key in ("earlier", "own_noise", "sigma") if key in more}
    return judge_claim(statement(metric, expect, **more), new, versus, **settings)


def of_score(
    expect: Expect, new: list[dict[str, bool]], versus: list[dict[str, bool]], **more: Any
) -> Judgement:
    """The judgement of a claim about an accuracy."""
    return judge_accuracy_claim(statement(SCORE, expect, **more), new, versus)


@each(
    ("expect", "new", "versus", "verdict"),
    [
        pytest.param("better", [1030] * 2, [1000] * 2, OPEN, id="two pairs"),
        pytest.param("better", [1020] * 3, [1000] * 2, OPEN, id="no third partner"),
        pytest.param("better", [1010] * 3, [1000] * 3, OPEN, id="1 % better"),
        pytest.param("better", [1010] * 4, [1000] * 4, PASS, id="1 %, four pairs"),
        pytest.param("better", [1000] * 6, [1000] * 6, OPEN, id="equal"),
        pytest.param("better", [980] * 3, [1000] * 3, LOST, id="2 % worse"),
        pytest.param("not_worse", [1000] * 3, [1000] * 3, PASS, id="equal is not worse"),
        pytest.param("not_worse", [980] * 6, [1000] * 6, OPEN, id="at the margin"),
        pytest.param("not_worse", [960] * 3, [1000] * 3, LOST, id="4 % worse"),
        pytest.param("not_better", [1020] * 3, [1000] * 3, OPEN, id="at the gain"),
        pytest.param("not_better", [1050] * 3, [1000] * 3, LOST, id="5 % better"),
        pytest.param("worse", [960], [1000], PASS, id="the cost shows"),
        pytest.param("worse", [1100], [1000], PASS, id="a gain instead"),
    ],
)
def test_against_another_scenario(
    expect: Expect, new: list[float], versus: list[float], verdict: Verdict
) -> None:
    judged = claimed(expect, new, versus)
    assert (judged.verdict, judged.against) == (verdict, "claim")
    assert judged.runs_used == min(len(new), len(versus))
    assert judged.needs_more_runs == (verdict == OPEN and judged.runs_used < 6)


@each(
    ("expect", "new", "verdict"),
    [
        pytest.param("better", [255] * 2, OPEN, id="over the floor, two starts"),
        pytest.param("better", [251] * 3, OPEN, id="just over it"),
        pytest.param("better", [252] * 5, PASS, id="just over it, five times"),
        pytest.param("better", [245] * 3, LOST, id="below it"),
        pytest.param("not_worse", [250] * 3, PASS, id="reached"),
        pytest.param("not_worse", [240] * 3, LOST, id="4 % below"),
    ],
)
def test_against_a_number(expect: Expect, new: list[float], verdict: Verdict) -> None:
    judged = claimed(expect, new, [], "output_speed_per_user", value=250)
    assert (judged.verdict, judged.baseline) == (verdict, pytest.approx(250))
    assert judged.reason.endswith(" against the claimed 250 tokens/s")


@each(
    ("metric", "new", "verdict"),
    [
        pytest.param(SPEED, 1050, PASS, id="just what is asked"),
        pytest.param(SPEED, 1030, PASS, id="real, and over the half"),
        pytest.param(SPEED, 1020, LOST, id="a gain of 2 %"),
        pytest.param(TIME, 920, PASS, id="8 % less time"),
        pytest.param(TIME, 980, LOST, id="2 % less time"),
    ],
)
def test_a_minimum_effect(metric: str, new: float, verdict: Verdict) -> None:
    judged = claimed("better", [new] * 3, [1000] * 3, metric, minimum_effect=0.05)
    assert judged.verdict == verdict
    assert judged.notes == ("minimum effect 5 %, ours: the document gives no number",)


@each(
    ("new", "documented", "verdict", "words"),
    [
        pytest.param(1800, 0.21, PASS, "direction and size", id="far better"),
        pytest.param(1149.5, 0.21, OPEN, "its direction holds", id="at the limit"),
        pytest.param(1050, 0.21, LOST, "its size does not hold", id="the direction alone"),
        pytest.param(1000, 0.21, LOST, "its direction is not proved", id="no gain"),
        pytest.param(950, 0.21, LOST, "the direction is the opposite", id="a loss"),
        pytest.param(1018, 0.018, PASS, "our tolerance of 5 %: the direction", id="a small size"),
        pytest.param(1000, 0.018, OPEN, "our tolerance of 5 %: the direction", id="none of it"),
    ],
)
def test_a_gain_of_a_documented_size(
    new: float, documented: float, verdict: Verdict, words: str
) -> None:
    judged = claimed("better", [new] * 3, [1000] * 3, TOTAL, documented=documented, tolerance=0.05)
    assert (judged.verdict, judged.band) == (verdict, 0.05)
    assert words in judged.reason


@each("expect", ["not_worse", "not_better"])
def test_a_margin_may_stand_beside_a_documented_change_of_none(expect: Expect) -> None:
    judged = claimed(expect, [1000] * 3, [1000] * 3, TOTAL, margin=0.03, documented=0.0)
    assert judged.verdict == Verdict.PASS


@each(("new", "verdict"), [(304.71, PASS), (200.0, PASS), (365.6, OPEN), (400.0, LOST)])
def test_a_documented_cost_may_be_missing_and_not_larger(new: float, verdict: Verdict) -> None:
    judged = claimed("worse", [new] * 3, [227.45] * 3, TIME, documented=0.3397, tolerance=0.2)
    assert judged.verdict == verdict
    assert "documented +34.0 %, limit +60.8 % with our tolerance of 20 %" in judged.reason


@each("metric", sorted(METRICS))
def test_every_metric_twice_as_good_and_twice_as_bad(metric: str) -> None:
    good, bad = (0.8, 0.4) if METRICS[metric].direction == "higher" else (0.4, 0.8)
    expected = {"better": (PASS, LOST), "not_worse": (PASS, LOST), "not_better": (LOST, PASS)}
    for expect, verdicts in expected.items():
        margin = 0.0 if expect == "better" else 0.2
        for (new, other), verdict in zip(((good, bad), (bad, good)), verdicts, strict=True):
            paired = claimed(expect, [new] * 3, [other] * 3, metric, margin=margin)
            number = claimed(expect, [new] * 3, [], metric, margin=margin, value=other)
            assert (paired.verdict, number.verdict) == (verdict, verdict)
    cost = claimed("worse", [bad], [good], metric)
    assert cost.notes == ("the cost that the document warns of shows",)


@pytest.mark.parametrize("earlier", [None, EarlierStarts("other", 3)])
def test_the_bounds_by_hand(earlier: EarlierStarts | None) -> None:
    """Each side with its own spread; that of a baseline with what a session has in common."""
    new = [1003.0, 1000.0, 997.0]
    x = [-math.log(one) for one in new]
    mean = sum(x) / 3
    squares, prior = sum((one - mean) ** 2 for one in x), 10 * 0.7 * SIGMA**2
    error = max((prior + squares) / 12, squares / 2) / 3 + prior / 12 / 3
    error += 0.3 * SIGMA**2 * (1 + 1 / 3) if earlier else 0.0
    size = {"documented": 0.1, "tolerance": 0.05}
    judged = claimed("better", new, [1000.0] * 3, TOTAL, earlier=earlier, **size)
    reach, loss = float(stdtrit(12, 0.998)) * math.sqrt(error), mean + math.log(1000)
    bounds = (math.expm1(-loss - reach), math.expm1(-loss + reach))
    assert judged.interval == pytest.approx(bounds, abs=1e-7)
    assert judged.measured == pytest.approx(math.exp(-mean))


def test_a_baseline_is_used_whole_and_must_have_three_starts() -> None:
    def judged(baseline: int, now: int) -> Judgement:
        earlier = EarlierStarts("other", 2)
        return claimed("better", [1100.0] * now, [1000.0] * baseline, TOTAL, earlier=earlier)

    few = judged(2, 6)
    assert (few.verdict, few.needs_more_runs) == (OPEN, False)
    assert "the baseline has 2 fresh starts, at least 3 a side decide" in few.reason
    assert judged(9, 2).needs_more_runs
    held = judged(9, 3)
    assert held.verdict == PASS
    assert held.reason.endswith("; 3 fresh starts against 9 of the baseline")
    ours = claimed("better", [1100.0] * 5, [1000.0] * 3, TOTAL, earlier=EarlierStarts("new", 5))
    assert (ours.verdict, ours.runs_used) == (PASS, 3)


@given(
    st.sampled_from(["better", "not_worse", "worse"]),
    st.lists(st.floats(50, 200), min_size=1, max_size=7),
    st.lists(st.floats(50, 200), min_size=1, max_size=7),
    st.floats(0, 1),
)
def test_a_worse_result_never_betters_the_verdict(
    expect: Expect, new: list[float], versus: list[float], loss: float
) -> None:
    order = [PASS, OPEN, LOST]
    before = claimed(expect, new, versus).verdict
    after = claimed(expect, [value * math.exp(-loss) for value in new], versus).verdict
    assert order.index(after) >= order.index(before)


@pytest.mark.parametrize("sessions", [0, 10])
def test_the_error_rates_of_the_size(sessions: int) -> None:
    """+7.6 % with a tolerance of 5 % (statistics §10): at the limit neither is said."""
    kind, counts = ("real", [6] + [1] * sessions) if sessions else ("heavy", [12])
    drawn = starts(np.random.default_rng([16, 4]), kind, 400, 1, counts)[:, 0].astype(float)
    more: dict[str, Any] = {"documented": 0.076, "tolerance": 0.05}
    more["earlier"] = EarlierStarts("other", sessions) if sessions else None

    def share(true: float, verdict: Verdict) -> float:
        found = [
            claimed("better", ((1 + true) * row[:6]).tolist(), row[6:].tolist(), TOTAL, **more)
            for row in 1000 * np.exp(-SIGMA * drawn)
        ]
        return sum(one.verdict == verdict for one in found) / len(found)

    assert share(1.076 * 0.95 - 1, PASS) <= 0.015
    assert share(1.076 * 0.95 - 1, LOST) <= 0.03
    assert share(0.076, PASS) >= 0.985
    assert share(0.0, LOST) >= 0.97


@each(
    ("changes", "why"),
    [
        ({"expect": "not_worse", "metric": "ttft_p99_ms"}, "needs a margin"),
        ({"versus": []}, "no compared values"),
        ({"new": []}, "no new values"),
        ({"versus": [], "value": 0.0}, "claimed value 1"),
        *(({"new": [x]}, "value 1 of .* cannot be judged") for x in (0.0, -1.0, math.nan)),
        ({"versus": [math.inf]}, "value 1 of .* cannot be judged"),
    ],
)
def test_claims_that_cannot_be_judged(changes: dict[str, Any], why: str) -> None:
    arguments = {"metric": TOTAL, "expect": "better", "new": [1.0], "versus": [1.0], **changes}
    with pytest.raises(InputError, match=why):
        claimed(**arguments)


def answers(right: int, questions: int = 1000) -> dict[str, bool]:
    return {f"q{number}": number < right for number in range(questions)}


@each(
    ("expect", "right", "more", "verdict"),
    [
        ("not_worse", 950, {"margin": 0.01}, PASS),
        ("not_worse", 940, {"margin": 0.01}, OPEN),
        ("not_worse", 900, {"margin": 0.01}, LOST),
        ("not_better", 950, {"margin": 0.02}, PASS),
        ("not_better", 999, {"margin": 0.02}, LOST),
        ("better", 990, {}, PASS),
        ("better", 951, {}, OPEN),
        ("better", 900, {}, LOST),
        ("better", 965, {"minimum_effect": 0.02}, PASS),
        ("better", 951, {"minimum_effect": 0.02}, LOST),
        ("worse", 900, {}, PASS),
    ],
)
def test_accuracies_by_their_answers(
    expect: Expect, right: int, more: dict[str, float], verdict: Verdict
) -> None:
    judged = of_score(expect, [answers(right)], [answers(950)], **more)
    assert (judged.verdict, judged.against) == (verdict, "claim")
    assert judged.change == pytest.approx((right - 950) / 1000)
    assert judged.reason.startswith("the claim does not hold") == (verdict == LOST)


@each(("right", "verdict"), [(990, PASS), (950, OPEN), (900, LOST)])
def test_an_accuracy_against_a_number(right: int, verdict: Verdict) -> None:
    judged = of_score("better", [answers(right)], [], value=0.95)
    assert (judged.verdict, judged.baseline) == (verdict, 0.95)


def test_accuracies_that_cannot_be_compared() -> None:
    judged = of_score("better", [answers(9, 10)], [answers(9, 11)])
    assert (judged.verdict, judged.against) == (Verdict.NOT_COMPARABLE, "claim")
    for new, versus in (([{"q": True}], []), ([{}], [answers(9)])):
        with pytest.raises(InputError, match="no score"):
            of_score("better", new, versus)


def test_answers_tell_more_than_scores() -> None:
    score = counted_score(950, 1000)
    paired = of_score("not_worse", [answers(950)], [answers(950)], margin=0.01)
    said = statement(SCORE, "not_worse", margin=0.01)
    unpaired = judge_accuracy_claim(said, [], [{}], score, score)
    assert (paired.verdict, unpaired.verdict) == (PASS, OPEN)
