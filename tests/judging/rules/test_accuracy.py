"""Accuracy: from the answers of both builds to the same questions, or from scores alone.

Verdict and evaluations of random cases: `test_rules_against_oracle`.
"""

import math

import pytest
from refusals import refused
from rule_cases import GAIN, LOST, OPEN, PASS, SCORE, SPEED
from tables import each

from perfgate.core.verdict import Verdict
from perfgate.judging.rules import accuracy
from perfgate.judging.rules.accuracy import Score, documented_score, judge_paired, judge_unpaired


def answers(right: int, lost: int = 0, gained: int = 0, total: int = 1319) -> dict[str, bool]:
    """The first `right` questions are right, but for the first `lost`; `gained` more are."""
    return {f"q{number}": lost <= number < right + gained for number in range(total)}


BASE = answers(1253)  # 95.0 % of GSM8K


def test_answers_of_three_evaluations_by_hand() -> None:
    base = [answers(1253), answers(1253, lost=30), answers(1253, gained=15)]
    judged = judge_paired(SCORE, base, [answers(1253, lost=40)], margin=0.02)
    # D: 2/3 of 30 questions, 1 of 10, 1/3 of 15: sum 35, squares 30·4/9 + 10 + 15/9 = 25
    drop = 35 / 1319
    error = math.sqrt(25 - 1319 * drop**2 + 1) / 1319
    assert judged.baseline == pytest.approx((3 * 1253 - 30 + 15) / 3 / 1319)
    assert judged.change == pytest.approx(-drop)
    assert judged.measured == pytest.approx(judged.baseline - drop)
    assert judged.interval == pytest.approx((-drop - 1.645 * error, -drop + 2.88 * error))
    assert "35 answers lost and 0 gained on average; 1 evaluation against 3" in judged.reason


@each(
    "new, verdict, used, more, reason",
    [
        ([(35, 20)] * 3 + [(0, 0)], OPEN, 3, False, ""),
        # d 0.0106 + 1.645·0.00559 = 0.0198
        ([(34, 20)], PASS, 1, False, "-1.1 points (interval -2.0…+0.6 points), no worse than the "
         "baseline by the -2.0 points band, nor better: equal within it; of 1319 questions 34 "
         "answers lost and 20 gained; 1 evaluation against 1 of the baseline"),
        ([(35, 20)], OPEN, 1, True, "-1.1 points (interval -2.1…+0.5 points): no loss is proved, "
         "and the -2.0 points band is not excluded; of 1319 questions 35 answers lost and 20 "
         "gained; 1 evaluation against 1 of the baseline, up to 2 more may decide"),
        ([(54, 26)] * 2, LOST, 2, False, "-2.1 points (interval -3.2…-0.2 points), beyond the -2.0 "
         "points band; two evaluations or more agree; of 1319 questions 54 answers lost and 26 "
         "gained on average; 2 evaluations against 1 of the baseline"),
        ([(0, 40)] * 2, GAIN, 2, False, "+3.0 points (interval +2.2…+4.4 points), beyond the +1.0 "
         "points that count as a gain; each of the first two evaluations agrees; of 1319 questions "
         "0 answers lost and 40 gained on average; 2 evaluations against 1 of the baseline"),
        ([(0, 40)], PASS, 1, False, "improved; a second evaluation would have to agree"),
        ([(0, 40), (0, 0)], PASS, 1, False, "improved, but not in each of the first two evaluat"),
    ],
)  # fmt: skip
def test_by_answers(new, verdict, used, more, reason) -> None:
    runs = [answers(1253, lost, gained) for lost, gained in new]
    judged = judge_paired(SCORE, [BASE], runs, margin=0.02)
    assert (judged.verdict, judged.runs_used, judged.needs_more_runs) == (verdict, used, more)
    assert reason in " ".join((judged.reason, *judged.notes))
    once = judge_paired(SCORE, [BASE], runs, margin=0.02, max_runs=1)
    assert once.runs_used == 1 or verdict == GAIN
    assert not once.needs_more_runs


def test_other_questions_are_not_comparable() -> None:
    new = {key: value for key, value in BASE.items() if key not in ("q3", "q4")} | {"other": True}
    for base, runs, reason in (
        ([BASE], [BASE, new], "not the same questions: 2 of the baseline's 1319 were not asked "
         "now, 1 of 1318 asked now are not in the baseline"),
        ([BASE, new], [BASE], "the baseline's evaluations did not ask the same questions: 2 of "
         "1319 are missing from one, which has 1 others"),
    ):  # fmt: skip
        judged = judge_paired(SCORE, base, runs, margin=0.02)
        assert (judged.verdict, judged.needs_more_runs) == (Verdict.NOT_COMPARABLE, False)
        assert judged.reason == reason


# The quick start recipe of DeepSeek-R1 documents 0.95 ± 0.006; 1319 questions are asked.
DOCUMENT = documented_score(0.95, 0.006)
ERROR = math.sqrt(0.006**2 + 0.95 * 0.05 / 1319)  # of one evaluation: 0.008486


def scores(*right: int, questions: int = 1319) -> list[Score]:
    return [accuracy.counted_score(one, questions) for one in right]


# m = 3.5 SE = 0.0297: one evaluation passes from a drop of 0.0157 down (right 1233), a loss is
# proved by two from 0.0190 on (mean right 1228), by three from 0.0180 on.
@each(
    "right, verdict, used, more",
    [
        ([1319], PASS, 1, False),  # better is no improvement
        ([1229, 1230, 1226], LOST, 3, False),
        ([1229, 1230, 1231, 0], PASS, 3, False),  # three at most
    ],
)
def test_against_a_documented_score(right, verdict, used, more) -> None:
    judged = judge_unpaired(SCORE, DOCUMENT, scores(*right), margin=0.02)
    assert (judged.verdict, judged.runs_used, judged.needs_more_runs) == (verdict, used, more)
    assert judged.band == pytest.approx(3.5 * ERROR) == accuracy.least_margin(DOCUMENT, 1319)
    assert judged.measured == pytest.approx(sum(right[:used]) / used / 1319)
    assert judged.notes[0] == (
        "margin raised from 2.0 to 3.0 points, 3.5 standard errors of one evaluation: a smaller "
        "drop would not be found"
    )
    wide = judge_unpaired(SCORE, DOCUMENT, scores(1253), margin=0.05)
    assert (wide.band, wide.notes) == (0.05, ())


def test_scores_by_hand() -> None:
    judged = judge_unpaired(SCORE, DOCUMENT, scores(1230, 1240), margin=0.02)
    assert judged.baseline == 0.95
    assert judged.reason == (
        "-1.4 points (interval -2.6…+0.5 points), no worse than the baseline by the -3.0 points "
        "band; 1319 questions whose answers cannot be paired, in 2 evaluations"
    )
    exact = judge_unpaired(SCORE, documented_score(0.95), scores(1240), margin=0.05)
    assert exact.notes == ("against a documented number without a standard error, taken as exact",)
    for found, stderr, right, asked in ((judged, 0.006, 1235, 2638), (exact, 0, 1240, 1319)):
        drop, error = 0.95 - right / 1319, math.sqrt(stderr**2 + 0.95 * 0.05 / asked)
        assert found.interval == pytest.approx((-drop - 1.645 * error, -drop + 2.576 * error))


def test_the_spread_of_a_baseline_without_answers_and_of_a_share_of_all() -> None:
    """One wrong answer of 200 does not refute a documented 1."""
    pooled = accuracy.pooled_score(scores(1253, 1250, 1256))
    assert (pooled.value, pooled.questions) == (pytest.approx(1253 / 1319), 3 * 1319)
    of_both = math.sqrt(2 * (1253 / 1319) * (66 / 1319) / 3957)
    assert accuracy.standard_error(pooled, 1319, 3) == pytest.approx(of_both)
    right = scores(199, 199, questions=200)
    assert judge_unpaired(SCORE, documented_score(1.0), right, margin=0.02).verdict == PASS
    spread = math.sqrt(199) / 200 / 200**0.5
    assert accuracy.standard_error(Score(1.0, None), 200, 1) == pytest.approx(spread)


@each(
    "judge, metric, base, new, margin, says",
    [
        (judge_paired, SPEED, [BASE], [BASE], 0.02, "not an accuracy metric"),
        (judge_paired, SCORE, [], [BASE], 0.02, "no answers"),
        (judge_paired, SCORE, [BASE, {}], [BASE], 0.02, "no answers"),
        (judge_paired, SCORE, [BASE], [], 0.02, "no answers"),
        *((judge_paired, SCORE, [BASE], [BASE], x, "two points") for x in (0.0, 1.0, math.nan)),
        (judge_unpaired, SPEED, DOCUMENT, scores(9), 0.02, "not an accuracy"),
        (judge_unpaired, SCORE, DOCUMENT, [documented_score(0.9)], 0.02, "number of questions"),
        (judge_unpaired, SCORE, DOCUMENT, [], 0.02, "no score"),
    ],
)
def test_what_cannot_be_judged(judge, metric, base, new, margin, says) -> None:
    refused(judge, metric, base, new, margin=margin, match=says)


@each(
    "make, values, says",
    [
        *((documented_score, one, "score") for one in ((1.2,), (math.nan,), (-0.1,), (True,))),
        *((documented_score, one, "score") for one in ((0.5, 0.0), (0.5, math.nan), (1.0, 0.01))),
        *((accuracy.counted_score, one, "right answers") for one in ((-1, 10), (11, 10), (0, 0))),
        (accuracy.pooled_score, ([documented_score(0.95)],), "number of questions"),
    ],
)
def test_scores_that_cannot_be(make, values, says) -> None:
    refused(make, *values, match=says)
