"""Accuracy from the answers of both builds to the same questions."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from perfgate.core.errors import InputError
from perfgate.gate.accuracy import judge_paired
from perfgate.gate.verdict import Verdict

NAME = "accuracy:gsm8k:exact_match:strict-match"


def answers(right: int, lost: int = 0, gained: int = 0, total: int = 1319) -> Mapping[str, bool]:
    """The first `right` questions are right, but for the first `lost`; `gained` more are."""
    given_right = set(range(lost, right)) | set(range(right, right + gained))
    return {f"q{number}": number in given_right for number in range(total)}


BASE = answers(1253)  # 95.0 % of GSM8K


def test_by_hand() -> None:
    judged = judge_paired(NAME, BASE, [answers(1253, lost=20, gained=10)], margin=0.02)
    # drop = 10/1319 = 0.0075815; SE = sqrt(31 - 100/1319)/1319 = 0.0042160
    assert judged.verdict == Verdict.PASS
    assert judged.baseline == pytest.approx(1253 / 1319)
    assert judged.measured == pytest.approx(1243 / 1319)
    assert judged.change == pytest.approx(-0.0075815, abs=1e-7)
    assert judged.interval == pytest.approx(
        (-0.0075815 - 1.644854 * 0.0042160, -0.0075815 + 2.326348 * 0.0042160), abs=1e-6
    )
    assert judged.band == 0.02
    assert judged.runs_used == 1
    assert judged.reason == (
        "-0.8 points (interval -1.5…+0.2 points), within the -2.0 points band; of 1319 questions "
        "20 answers lost and 10 gained (p = 0.049) in 1 evaluation"
    )


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        (
            [(35, 20)],
            "-1.1 points (interval -2.1…+0.2 points): no loss is proved at p < 0.01, and the -2.0 "
            "points band is not excluded; of 1319 questions 35 answers lost and 20 gained "
            "(p = 0.029) in 1 evaluation, up to 1 more may decide",
        ),
        (
            [(35, 20), (35, 20)],
            "-1.1 points (interval -2.1…+0.2 points): no loss is proved at p < 0.01, and the -2.0 "
            "points band is not excluded; of 1319 questions 70 answers lost and 40 gained "
            "(p = 0.029) in 2 evaluations, no more are allowed",
        ),
        (
            [(52, 26)],
            "-2.0 points (interval -3.1…-0.4 points), a real loss that may reach the -2.0 points "
            "band; a loss is real at p < 0.01; of 1319 questions 52 answers lost and 26 gained "
            "(p = 0.0022) in 1 evaluation",
        ),
        (
            [(60, 26)],
            "-2.6 points (interval -3.7…-0.9 points), beyond the -2.0 points band; a loss is real "
            "at p < 0.01; of 1319 questions 60 answers lost and 26 gained (p = 0.00016) in 1 "
            "evaluation",
        ),
        (
            [(0, 40), (0, 40)],
            "+3.0 points (interval +2.2…+4.1 points), beyond the +1.0 points that count as a gain; "
            "each of the first two evaluations agrees; of 1319 questions 0 answers lost and 80 "
            "gained (p = 1) in 2 evaluations",
        ),
    ],
)
def test_each_verdict_explains_itself(new: list[tuple[int, int]], reason: str) -> None:
    runs = [answers(1253, lost, gained) for lost, gained in new]
    assert judge_paired(NAME, BASE, runs, margin=0.02).reason == reason


@pytest.mark.parametrize(
    ("lost", "gained", "verdict", "more"),
    [
        pytest.param(0, 0, Verdict.PASS, False, id="same answers"),
        pytest.param(26, 26, Verdict.PASS, False, id="4 % change sides evenly"),
        pytest.param(53, 53, Verdict.PASS, False, id="8 % evenly"),
        # drop 0.0106 + 1.645·0.00555 = 0.0197
        pytest.param(34, 20, Verdict.PASS, False, id="small drop"),
        # drop 0.0114, U = 0.0205; p = 0.0331
        pytest.param(35, 20, Verdict.INCONCLUSIVE, True, id="neither excluded nor proved"),
        # p = 0.0049 (binomial tail of 40 of 58)
        pytest.param(40, 18, Verdict.REGRESSION, False, id="drop of 1.7 points"),
        pytest.param(52, 26, Verdict.REGRESSION, False, id="drop of the margin"),
        pytest.param(900, 0, Verdict.REGRESSION, False, id="broken"),
    ],
)
def test_one_evaluation(lost: int, gained: int, verdict: Verdict, more: bool) -> None:
    judged = judge_paired(NAME, BASE, [answers(1253, lost, gained)], margin=0.02)
    assert (judged.verdict, judged.needs_more_runs) == (verdict, more)


def test_a_real_but_small_drop_passes_with_a_note() -> None:
    judged = judge_paired(NAME, BASE, [answers(1253, lost=9)], margin=0.02)
    assert judged.verdict == Verdict.PASS
    assert judged.notes == ("small drop within the band",)


def test_a_repeat_that_repeats_itself_is_no_evidence() -> None:
    once = answers(1253, lost=35, gained=20)
    first = judge_paired(NAME, BASE, [once], margin=0.02)
    second = judge_paired(NAME, BASE, [once, once], margin=0.02)
    assert second.verdict == first.verdict == Verdict.INCONCLUSIVE
    assert second.interval == pytest.approx(first.interval)
    assert (first.needs_more_runs, second.needs_more_runs) == (True, False)


def other_questions(lost: int, gained: int) -> Mapping[str, bool]:
    """Like `answers(1253, lost, gained)`, other questions having changed sides."""
    given_right = set(range(1253 - lost)) | set(range(1319 - gained, 1319))
    return {f"q{number}": number in given_right for number in range(1319)}


def test_a_repeat_with_other_changes_narrows_the_bounds() -> None:
    once = answers(1253, lost=35, gained=20)
    judged = judge_paired(NAME, BASE, [once, other_questions(30, 20)], margin=0.02)
    # drop = 25/2638 = 0.0094769; SE = sqrt(105 + 4 - 625/1319)/2638 = 0.0039491; U = 0.01597
    assert judged.verdict == Verdict.PASS
    assert judged.runs_used == 2
    assert judged.interval is not None
    assert judged.interval[0] == pytest.approx(-0.01597, abs=1e-5)
    assert judged.measured == pytest.approx((1253 + 1253 - 25) / 2638)


def test_a_repeat_proves_a_drop() -> None:
    once = answers(1253, lost=35, gained=20)
    judged = judge_paired(NAME, BASE, [once, other_questions(45, 20)], margin=0.02)
    assert judged.verdict == Verdict.REGRESSION
    assert judged.runs_used == 2
    assert f"p = {binomtest(80, 120, 0.5, alternative='greater').pvalue:.2g}" in judged.reason


def test_evaluations_after_the_decision_are_not_used() -> None:
    judged = judge_paired(NAME, BASE, [BASE, answers(1253, lost=900)], margin=0.02)
    assert (judged.verdict, judged.runs_used) == (Verdict.PASS, 1)
    undecided = answers(1253, lost=35, gained=20)
    judged = judge_paired(NAME, BASE, [undecided, undecided, BASE], margin=0.02)
    assert (judged.verdict, judged.runs_used) == (Verdict.INCONCLUSIVE, 2)


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
    judged = judge_paired(NAME, BASE, new, margin=0.02)
    assert judged.verdict == verdict
    assert judged.notes == ((note,) if note else ())


def test_twice_as_many_wrong_answers_are_a_regression() -> None:
    wrong = 66
    judged = judge_paired(NAME, BASE, [answers(1253, lost=wrong)] * 2, margin=0.02)
    assert judged.verdict == Verdict.REGRESSION


def test_other_questions_are_not_comparable() -> None:
    new = dict(BASE)
    del new["q3"], new["q4"]
    new["other"] = True
    judged = judge_paired(NAME, BASE, [BASE, new], margin=0.02)
    assert judged.verdict == Verdict.NOT_COMPARABLE
    assert not judged.needs_more_runs
    assert judged.reason == (
        "not the same questions: 2 of the baseline's 1319 were not asked now, 1 of 1318 asked now "
        "are not in the baseline"
    )


@pytest.mark.parametrize(
    ("metric", "base", "new", "margin", "says"),
    [
        ("output_throughput", BASE, [BASE], 0.02, "not an accuracy metric"),
        (NAME, {}, [{}], 0.02, "no answers"),
        (NAME, BASE, [], 0.02, "no answers"),
        (NAME, BASE, [BASE], 0.0, "two points"),
        (NAME, BASE, [BASE], 1.0, "two points"),
        (NAME, BASE, [BASE], float("nan"), "two points"),
        (NAME, BASE, [BASE], "0.02", "two points"),
    ],
)
def test_bad_input(
    metric: str,
    base: Mapping[str, bool],
    new: list[Mapping[str, bool]],
    margin: float,
    says: str,
) -> None:
    with pytest.raises(InputError, match=says):
        judge_paired(metric, base, new, margin=margin)


RANK = [Verdict.IMPROVEMENT, Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.REGRESSION]


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=80))
def test_one_table_is_judged_by_the_exact_test(pairs: list[tuple[bool, bool]]) -> None:
    base = {str(key): pair[0] for key, pair in enumerate(pairs)}
    new = {str(key): pair[1] for key, pair in enumerate(pairs)}
    lost = sum(was and not now for was, now in pairs)
    gained = sum(now and not was for was, now in pairs)
    p = 1.0
    if lost + gained:
        p = float(binomtest(lost, lost + gained, 0.5, alternative="greater").pvalue)
    judged = judge_paired(NAME, base, [new], margin=0.1)
    assert f"(p = {p:.2g})" in judged.reason
    if judged.verdict not in (Verdict.PASS, Verdict.IMPROVEMENT):
        assert (judged.verdict == Verdict.REGRESSION) == (p < 0.01)


@settings(deadline=None)
@given(st.integers(0, 60), st.integers(0, 40), st.integers(0, 20))
def test_more_answers_lost_never_better_the_verdict(lost: int, gained: int, more: int) -> None:
    def rank(lost: int) -> int:
        new = answers(200, lost, gained, total=300)
        return RANK.index(judge_paired(NAME, answers(200, total=300), [new], margin=0.05).verdict)

    assert rank(lost + more) >= rank(lost)


@settings(deadline=None)
@given(st.permutations(list(range(40))), st.integers(0, 20), st.integers(0, 20))
def test_the_order_of_the_questions_does_not_matter(
    order: list[int], lost: int, gained: int
) -> None:
    base, new = answers(20, total=40), answers(20, lost, gained, total=40)
    shuffled = {f"q{number}": new[f"q{number}"] for number in order}
    assert judge_paired(NAME, base, [shuffled], margin=0.05) == judge_paired(
        NAME, base, [new], margin=0.05
    )
