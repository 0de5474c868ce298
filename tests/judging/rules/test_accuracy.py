"""Accuracy from the answers of both builds to the same questions."""

import math
from collections.abc import Mapping, Sequence

import pytest
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.verdict import Verdict
from perfgate.judging.rules.accuracy import changed_share, judge_paired

NAME = "accuracy:gsm8k:exact_match:strict-match"


def answers(right: int, lost: int = 0, gained: int = 0, total: int = 1319) -> Mapping[str, bool]:
    """The first `right` questions are right, but for the first `lost`; `gained` more are."""
    given_right = set(range(lost, right)) | set(range(right, right + gained))
    return {f"q{number}": number in given_right for number in range(total)}


BASE = answers(1253)  # 95.0 % of GSM8K


def test_by_hand() -> None:
    judged = judge_paired(NAME, [BASE], [answers(1253, lost=20, gained=10)], margin=0.02)
    # d = 10/1319 = 0.0075815; SE = sqrt(30 - 100/1319 + 1)/1319 = 0.0042160
    assert judged.verdict == Verdict.PASS
    assert judged.baseline == pytest.approx(1253 / 1319)
    assert judged.measured == pytest.approx(1243 / 1319)
    assert judged.change == pytest.approx(-0.0075815, abs=1e-7)
    assert judged.interval == pytest.approx(
        (-0.0075815 - 1.645 * 0.0042160, -0.0075815 + 2.88 * 0.0042160), abs=1e-6
    )
    assert judged.band == 0.02
    assert judged.runs_used == 1
    assert judged.reason == (
        "-0.8 points (interval -1.5…+0.5 points), no worse than the baseline by the -2.0 points "
        "band, nor better: equal within it; of 1319 questions 20 answers lost and 10 "
        "gained; 1 evaluation against 1 of the baseline"
    )


def test_three_evaluations_of_the_baseline_by_hand() -> None:
    base = [answers(1253), answers(1253, lost=30), answers(1253, gained=15)]
    judged = judge_paired(NAME, base, [answers(1253, lost=40)], margin=0.02)
    # D: 2/3 of 30 questions, 1 of 10, 1/3 of 15: sum 35, squares 30·4/9 + 10 + 15/9 = 25
    drop = 35 / 1319
    error = math.sqrt(25 - 1319 * drop**2 + 1) / 1319
    assert judged.baseline == pytest.approx((3 * 1253 - 30 + 15) / 3 / 1319)
    assert judged.change == pytest.approx(-drop)
    assert judged.interval == pytest.approx((-drop - 1.645 * error, -drop + 2.88 * error))
    assert "35 answers lost and 0 gained on average; 1 evaluation against 3" in judged.reason


@each(
    ("new", "reason"),
    [
        (
            [(35, 20)],
            "-1.1 points (interval -2.1…+0.5 points): no loss is proved, and the -2.0 points band "
            "is not excluded; of 1319 questions 35 answers lost and 20 gained; 1 evaluation "
            "against 1 of the baseline, up to 2 more may decide",
        ),
        (
            [(54, 26)] * 2,
            "-2.1 points (interval -3.2…-0.2 points), beyond the -2.0 points "
            "band; two evaluations or more agree; of 1319 questions 54 answers lost and 26 gained "
            "on average; 2 evaluations against 1 of the baseline",
        ),
        (
            [(0, 40), (0, 40)],
            "+3.0 points (interval +2.2…+4.4 points), beyond the +1.0 points that count as a gain; "
            "each of the first two evaluations agrees; of 1319 questions 0 answers lost and 40 "
            "gained on average; 2 evaluations against 1 of the baseline",
        ),
    ],
)
def test_each_verdict_explains_itself(new: list[tuple[int, int]], reason: str) -> None:
    runs = [answers(1253, lost, gained) for lost, gained in new]
    assert judge_paired(NAME, [BASE], runs, margin=0.02).reason == reason


@each(
    ("lost", "gained", "verdict", "more"),
    [
        pytest.param(0, 0, Verdict.PASS, False, id="same answers"),
        pytest.param(26, 26, Verdict.PASS, False, id="4 % change sides evenly"),
        pytest.param(53, 53, Verdict.PASS, False, id="8 % evenly"),
        # d 0.0106 + 1.645·0.00559 = 0.0198
        pytest.param(34, 20, Verdict.PASS, False, id="small drop"),
        pytest.param(35, 20, Verdict.INCONCLUSIVE, True, id="neither excluded nor proved"),
        pytest.param(900, 0, Verdict.INCONCLUSIVE, True, id="broken, and not yet confirmed"),
    ],
)
def test_one_evaluation(lost: int, gained: int, verdict: Verdict, more: bool) -> None:
    judged = judge_paired(NAME, [BASE], [answers(1253, lost, gained)], margin=0.02)
    assert (judged.verdict, judged.needs_more_runs) == (verdict, more)


def test_evaluations_after_the_decision_are_not_used() -> None:
    judged = judge_paired(NAME, [BASE], [BASE, answers(1253, lost=900)], margin=0.02)
    assert (judged.verdict, judged.runs_used) == (Verdict.PASS, 1)
    undecided = answers(1253, lost=35, gained=20)
    judged = judge_paired(NAME, [BASE], [undecided] * 3 + [BASE], margin=0.02)
    assert (judged.verdict, judged.runs_used) == (Verdict.INCONCLUSIVE, 3)
    judged = judge_paired(NAME, [BASE], [undecided, BASE], margin=0.02, max_runs=1)
    assert (judged.verdict, judged.runs_used) == (Verdict.INCONCLUSIVE, 1)
    assert not judged.needs_more_runs


@pytest.mark.parametrize(
    ("second", "verdict", "note"),
    [
        (None, Verdict.PASS, "improved; a second evaluation would have to agree"),
        (answers(1253, gained=40), Verdict.IMPROVEMENT, None),
        (BASE, Verdict.PASS, "improved, but not in each of the first two evaluations"),
    ],
)
def test_an_improvement_needs_two_evaluations(
    second: Mapping[str, bool] | None, verdict: Verdict, note: str | None
) -> None:
    new = [answers(1253, gained=40)] + ([second] if second else [])
    judged = judge_paired(NAME, [BASE], new, margin=0.02)
    assert judged.verdict == verdict
    assert judged.notes == ((note,) if note else ())


def test_other_questions_are_not_comparable() -> None:
    new = dict(BASE)
    del new["q3"], new["q4"]
    new["other"] = True
    judged = judge_paired(NAME, [BASE], [BASE, new], margin=0.02)
    assert judged.verdict == Verdict.NOT_COMPARABLE
    assert not judged.needs_more_runs
    assert judged.reason == (
        "not the same questions: 2 of the baseline's 1319 were not asked now, 1 of 1318 asked now "
        "are not in the baseline"
    )
    judged = judge_paired(NAME, [BASE, new], [BASE], margin=0.02)
    assert judged.verdict == Verdict.NOT_COMPARABLE
    assert judged.reason == (
        "the baseline's evaluations did not ask the same questions: 2 of 1319 are missing from "
        "one, which has 1 others"
    )


@each(
    ("metric", "base", "new", "margin", "says"),
    [
        ("output_throughput", [BASE], [BASE], 0.02, "not an accuracy metric"),
        (NAME, [], [BASE], 0.02, "no answers"),
        (NAME, [BASE, {}], [BASE], 0.02, "no answers"),
        (NAME, [{}], [{}], 0.02, "no answers"),
        (NAME, [BASE], [], 0.02, "no answers"),
        (NAME, [BASE], [BASE], 0.0, "two points"),
        (NAME, [BASE], [BASE], 1.0, "two points"),
        (NAME, [BASE], [BASE], float("nan"), "two points"),
        (NAME, [BASE], [BASE], "0.02", "two points"),
    ],
)
def test_bad_input(
    metric: str,
    base: Sequence[Mapping[str, bool]],
    new: Sequence[Mapping[str, bool]],
    margin: float,
    says: str,
) -> None:
    with pytest.raises(InputError, match=says):
        judge_paired(metric, base, new, margin=margin)


@each(
    ("evaluations", "share"),
    [
        ([], None),
        ([BASE], None),
        ([BASE, answers(1252, total=1318)], None),
        ([BASE] * 3, 0.0),
        ([BASE, answers(1253, lost=10, gained=3)], 13 / 1319),
        # of three evaluations two of three pairs differ in each of ten questions
        ([BASE, BASE, answers(1253, lost=10)], 10 * 2 / 3 / 1319),
    ],
)
def test_the_share_of_answers_that_change(
    evaluations: list[Mapping[str, bool]], share: float | None
) -> None:
    found = changed_share(evaluations)
    assert found == (None if share is None else pytest.approx(share))
