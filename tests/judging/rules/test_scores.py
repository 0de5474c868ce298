"""Accuracy known only as a score: documented ones, and those without answers."""

import math

import pytest
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.verdict import Verdict
from perfgate.judging.forecast import odds
from perfgate.judging.rules.accuracy import (
    Score,
    counted_score,
    documented_score,
    judge_unpaired,
    least_margin,
    pooled_score,
    standard_error,
)
from perfgate.judging.rules.sequential import PASS, REGRESSION

NAME = "accuracy:gsm8k:exact_match:flexible-extract"
# The quick start recipe of DeepSeek-R1 documents 0.95 ± 0.006; 1319 questions are asked.
DOCUMENT = documented_score(0.95, 0.006)
ERROR = math.sqrt(0.006**2 + 0.95 * 0.05 / 1319)  # of one evaluation: 0.008486


def scores(*right: int, questions: int = 1319) -> list[Score]:
    return [counted_score(one, questions) for one in right]


# m = 3.5 SE = 0.0297: one evaluation passes from a drop of 0.0157 down (right 1233), a loss is
# proved by two from 0.0190 on (mean right 1228), by three from 0.0180 on.
@each(
    ("right", "verdict", "used", "more"),
    [
        pytest.param([1253], Verdict.PASS, 1, False, id="as documented"),
        pytest.param([1319], Verdict.PASS, 1, False, id="better is no improvement"),
        pytest.param([1234], Verdict.PASS, 1, False, id="1.4 points below"),
        pytest.param([1230], Verdict.INCONCLUSIVE, 1, True, id="1.7 points below"),
        pytest.param([1230, 1240], Verdict.PASS, 2, False, id="the repeat clears it"),
        pytest.param([1229, 1230], Verdict.INCONCLUSIVE, 2, True, id="open after two"),
        pytest.param([1229, 1230, 1226], Verdict.REGRESSION, 3, False, id="proved by three"),
        pytest.param([1220], Verdict.INCONCLUSIVE, 1, True, id="one evaluation proves no loss"),
        pytest.param([1220, 1225], Verdict.REGRESSION, 2, False, id="proved by two"),
        pytest.param([0, 0], Verdict.REGRESSION, 2, False, id="nothing right"),
        pytest.param([1229, 1230, 1231, 0], Verdict.PASS, 3, False, id="three at most"),
    ],
)
def test_against_a_documented_score(
    right: list[int], verdict: Verdict, used: int, more: bool
) -> None:
    judged = judge_unpaired(NAME, DOCUMENT, scores(*right), margin=0.02)
    assert (judged.verdict, judged.runs_used, judged.needs_more_runs) == (verdict, used, more)
    assert judged.band == pytest.approx(3.5 * ERROR)
    assert judged.measured == pytest.approx(sum(right[:used]) / used / 1319)


def test_by_hand() -> None:
    judged = judge_unpaired(NAME, DOCUMENT, scores(1230, 1240), margin=0.02)
    drop = 0.95 - 1235 / 1319
    error = math.sqrt(0.006**2 + 0.95 * 0.05 / 2638)
    assert judged.interval == pytest.approx((-drop - 1.645 * error, -drop + 2.576 * error))
    assert judged.baseline == 0.95
    assert judged.reason == (
        "-1.4 points (interval -2.6…+0.5 points), no worse than the baseline by the -3.0 points "
        "band; 1319 questions "
        "whose answers cannot be paired, in 2 evaluations"
    )


def test_a_margin_that_could_not_be_found_is_raised_and_told() -> None:
    judged = judge_unpaired(NAME, DOCUMENT, scores(1253), margin=0.02)
    assert judged.notes == (
        "margin raised from 2.0 to 3.0 points, 3.5 standard errors of one evaluation: a smaller "
        "drop would not be found",
    )
    assert least_margin(DOCUMENT, 1319) == pytest.approx(3.5 * ERROR)
    wide = judge_unpaired(NAME, DOCUMENT, scores(1253), margin=0.05)
    assert (wide.band, wide.notes) == (0.05, ())


def test_a_document_without_a_standard_error_is_taken_as_exact() -> None:
    judged = judge_unpaired(NAME, documented_score(0.95), scores(1240), margin=0.05)
    error = math.sqrt(0.95 * 0.05 / 1319)
    drop = 0.95 - 1240 / 1319
    assert judged.interval == pytest.approx((-drop - 1.645 * error, -drop + 2.576 * error))
    assert judged.notes == ("against a documented number without a standard error, taken as exact",)


def test_a_baseline_without_answers_errs_by_its_own_questions() -> None:
    one, three = scores(1253), scores(1253, 1250, 1256)
    assert pooled_score(one) == one[0]
    assert pooled_score(three).value == pytest.approx(1253 / 1319)
    assert pooled_score(three).questions == 3 * 1319
    assert standard_error(pooled_score(three), 1319, 3) == pytest.approx(
        math.sqrt(2 * (1253 / 1319) * (66 / 1319) / 3957)
    )
    with pytest.raises(InputError, match="number of questions"):
        pooled_score([documented_score(0.95)])


# 0.95 ± 0.0063 on 1319 questions, binomial scatter: m is raised to 3.05 points. True drop →
# REGRESSION %, PASS %.
@pytest.mark.parametrize(
    ("drop", "lost", "passed"),
    [(0.0, 0.6, 99.4), (0.02, 51, 49), (0.03, 89, 11), (0.04, 99, 1)],
)
def test_error_rates_against_a_documented_score(drop: float, lost: float, passed: float) -> None:
    found = odds.documented_score(documented_score(0.95, 0.0063), 1319, 0.03, drop, trials=40_000)
    assert 100 * found.share(REGRESSION) == pytest.approx(lost, abs=1)
    assert 100 * found.share(PASS) == pytest.approx(passed, abs=1)


@pytest.mark.parametrize(("right", "questions"), [(-1, 10), (11, 10), (0, 0)])
def test_counts_that_do_not_fit(right: int, questions: int) -> None:
    with pytest.raises(InputError, match="right answers"):
        counted_score(right, questions)


@each(
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
        judge_unpaired(NAME, good, [documented_score(0.9)], margin=0.02)
    with pytest.raises(InputError, match="no score"):
        judge_unpaired(NAME, good, [], margin=0.02)
    with pytest.raises(InputError, match="not an accuracy"):
        judge_unpaired("output_throughput", good, [good], margin=0.02)
    with pytest.raises(InputError, match="two points"):
        judge_unpaired(NAME, good, [good], margin=2.0)


def test_a_share_of_all_still_has_a_spread() -> None:
    """One wrong answer of 200 does not refute a documented 1."""
    judged = judge_unpaired(
        NAME, documented_score(1.0), scores(199, 199, questions=200), margin=0.02
    )
    assert judged.verdict == Verdict.PASS
    assert standard_error(Score(1.0, None), 200, 1) == pytest.approx(
        math.sqrt(199) / 200 / 200**0.5
    )
