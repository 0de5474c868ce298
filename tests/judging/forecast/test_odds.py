"""Margins of accuracy: what the rule for paired answers finds, before anything is measured."""

import math

import numpy as np
import pytest
from tables import each

from perfgate.core.errors import InputError
from perfgate.judging.forecast.simulation import (
    changed_share,
    documented_score,
    documented_speed,
    paired_answers,
    smallest_margin,
)
from perfgate.judging.rules import accuracy
from perfgate.judging.rules.sequential import PASS, REGRESSION

# Questions, share of answers that change, baseline's evaluations → smallest margin in points.
TABLE = [
    (1319, 0.02, 1, 2.0),
    (1319, 0.04, 1, 2.5),
    (1319, 0.08, 1, 3.25),
    (1319, 0.02, 3, 1.5),
    (1319, 0.04, 3, 2.0),
    (1319, 0.08, 3, 2.5),
    (198, 0.06, 1, 9.5),
    (198, 0.12, 1, 12.0),
    (198, 0.20, 1, 14.5),
    (198, 0.06, 3, 8.0),
    (198, 0.12, 3, 9.5),
    (198, 0.20, 3, 11.5),
]


@each(("questions", "changed", "base_runs", "points"), TABLE)
def test_the_smallest_margins(
    questions: int, changed: float, base_runs: int, points: float
) -> None:
    """Of GSM8K and GPQA; a step of the grid is what two simulations may differ by."""
    step = 0.25 if questions > 500 else 0.5
    found = smallest_margin(questions, changed, base_runs)
    assert found is not None
    assert 100 * found == pytest.approx(points, abs=step + 1e-9)


def slow_margin(questions: int, changed: float, base_runs: int, margin: float) -> float:
    """The share found, question by question and not by counts, with questions drawn beforehand."""
    draw = np.random.default_rng(5)
    trials, varying = 3000, round(changed / 0.42 * questions)
    chance = draw.choice([0.3, 0.7], (1, varying))
    base = draw.binomial(base_runs, np.broadcast_to(chance, (trials, varying))) / base_runs
    runs = [draw.random((trials, varying)) < chance for _ in range(3)]
    always, total = round(margin * questions), np.zeros((trials, varying))
    alone = [((base - one).sum(axis=1) + always) / questions for one in runs]
    lost, open_ = np.zeros(trials, bool), np.ones(trials, bool)
    for r in (1, 2, 3):
        total += runs[r - 1]
        each = base - total / r
        d = (each.sum(axis=1) + always) / questions
        spread = np.maximum((each**2).sum(axis=1) + always - questions * d * d, 0)
        error = np.sqrt(spread + 1 / min(r, base_runs)) / questions
        passed = open_ & (d + 1.645 * error < margin)
        agree = sum((one > margin / 2).astype(int) for one in alone[:r]) >= 2
        lost |= open_ & ~passed & agree & (d - 2.88 * error > 0)
        open_ &= ~passed & ~lost
    return float(lost.mean())


@pytest.mark.parametrize(
    ("questions", "changed", "base_runs", "margin"),
    [(1319, 0.08, 1, 0.02), (1319, 0.04, 3, 0.015), (200, 0.04, 2, 0.06), (198, 0.2, 5, 0.09)],
)
def test_counting_patterns_is_drawing_questions(
    questions: int, changed: float, base_runs: int, margin: float
) -> None:
    found = paired_answers(questions, changed, base_runs, margin, margin).share(REGRESSION)
    share = slow_margin(questions, changed, base_runs, margin)
    assert found == pytest.approx(share, abs=4 * math.sqrt(0.25 / 3000))


def test_answers_that_never_vary_need_a_margin_all_the_same() -> None:
    assert smallest_margin(200, 0.0, 1) == pytest.approx(0.045)
    assert smallest_margin(200, 0.0, 3) == pytest.approx(0.045)


def test_too_few_questions_can_hold_no_margin() -> None:
    assert smallest_margin(2, 0.0, 1) is None
    assert smallest_margin(1, 0.2, 1) is None


@pytest.mark.parametrize(
    ("questions", "changed", "base_runs"),
    [(0, 0.04, 1), (100, -0.1, 1), (100, 0.5, 1), (100, math.nan, 1), (100, 0.04, 0)],
)
def test_answers_that_cannot_be_simulated(questions: int, changed: float, base_runs: int) -> None:
    with pytest.raises(InputError, match="cannot be simulated"):
        smallest_margin(questions, changed, base_runs)


@pytest.mark.parametrize(
    ("margin", "changed", "base_runs", "share"),
    [(0.02, 0.08, 1, 0.43), (0.02, 0.08, 3, 0.74), (0.02, 0.02, 1, 0.95), (0.03, 0.08, 3, 0.99)],
)
def test_what_a_margin_below_the_table_finds(
    margin: float, changed: float, base_runs: int, share: float
) -> None:
    found = paired_answers(1319, changed, base_runs, margin, margin).share(REGRESSION)
    assert found == pytest.approx(share, abs=0.02)


def test_a_build_that_lost_nothing_passes() -> None:
    for changed, base_runs in ((0.04, 1), (0.08, 1), (0.08, 3)):
        margin = smallest_margin(1319, changed, base_runs)
        assert margin is not None
        found = paired_answers(1319, changed, base_runs, margin, 0.0)
        assert found.share(REGRESSION) <= 0.002
        assert found.share(PASS) >= 0.997
        assert found.new.mean() < 1.02


def right(number: int, questions: int) -> dict[str, bool]:
    return {f"q{place}": place < number for place in range(questions)}


SAME = right(38, 40)


@each(
    ("evaluations", "share"),
    [
        ([], None),
        ([SAME], None),
        ([SAME, right(39, 39)], None),
        ([SAME] * 3, 0.0),
        ([SAME, right(28, 40)], 10 / 40),
        # of three evaluations two of three pairs differ in each of ten questions
        ([SAME, SAME, right(28, 40)], 10 * 2 / 3 / 40),
    ],
)
def test_the_share_of_answers_that_change(
    evaluations: list[dict[str, bool]], share: float | None
) -> None:
    found = changed_share(evaluations)
    assert found == (None if share is None else pytest.approx(share))


# 0.95 ± 0.0063 on 1319 questions, binomial scatter: m is raised to 3.05 points. True drop →
# REGRESSION %, PASS %.
@pytest.mark.parametrize(
    ("drop", "lost", "passed"),
    [(0.0, 0.6, 99.4), (0.02, 51, 49), (0.03, 89, 11), (0.04, 99, 1)],
)
def test_error_rates_against_a_documented_score(drop: float, lost: float, passed: float) -> None:
    reference = accuracy.documented_score(0.95, 0.0063)
    found = documented_score(reference, 1319, 0.03, drop, trials=40_000)
    assert 100 * found.share(REGRESSION) == pytest.approx(lost, abs=1)
    assert 100 * found.share(PASS) == pytest.approx(passed, abs=1)


# sigma 0.5 %, 3 % between the machines, tolerance 10 %: true loss → REGRESSION %, PASS %.
@pytest.mark.parametrize(
    ("loss", "below", "passed"),
    [(0.0, 0.004, 99.9), (0.05, 1.4, 92), (0.08, 13, 65), (0.10, 33, 37), (0.15, 92, 1.5)],
)
def test_error_rates_against_a_document(loss: float, below: float, passed: float) -> None:
    odds = documented_speed(-math.log(0.9), 0.005, 3, -math.log(1 - loss), trials=40_000)
    assert 100 * odds.share(REGRESSION) == pytest.approx(below, abs=1.5)
    assert 100 * odds.share(PASS) == pytest.approx(passed, abs=1.5)
