"""Which verdict a group of verdicts gets."""

from dataclasses import replace
from itertools import permutations

import pytest

from perfgate.gate.performance import judge_performance
from perfgate.gate.verdict import Verdict, verdict_of, worst

FROM_WORST = [
    Verdict.REGRESSION,
    Verdict.ERROR,
    Verdict.NOT_COMPARABLE,
    Verdict.NO_BASELINE,
    Verdict.INCONCLUSIVE,
    Verdict.IMPROVEMENT,
    Verdict.PASS,
]


def test_values_are_the_names() -> None:
    assert {verdict.name: verdict.value for verdict in Verdict} == {
        verdict.name: verdict.name for verdict in FROM_WORST
    }


@pytest.mark.parametrize("position", range(len(FROM_WORST)))
def test_worst_is_the_first_in_precedence_whatever_the_order(position: int) -> None:
    group = FROM_WORST[position : position + 3]
    for order in permutations(group):
        assert worst(order) == FROM_WORST[position]


def test_improvement_needs_all_others_to_pass() -> None:
    assert worst([Verdict.PASS, Verdict.IMPROVEMENT, Verdict.PASS]) == Verdict.IMPROVEMENT
    assert worst([Verdict.IMPROVEMENT, Verdict.INCONCLUSIVE]) == Verdict.INCONCLUSIVE
    assert worst([Verdict.PASS, Verdict.PASS]) == Verdict.PASS


def test_takes_any_iterable_once() -> None:
    assert worst(verdict for verdict in [Verdict.PASS, Verdict.ERROR]) == Verdict.ERROR


def test_an_empty_group_has_not_passed() -> None:
    with pytest.raises(ValueError, match="no verdict"):
        worst([])


def test_a_waived_regression_counts_as_passed_and_hides_no_other() -> None:
    lost = judge_performance("output_throughput", [1000] * 5, [900, 900])
    waived = replace(lost, waiver="known, until 2026-12-31")
    assert verdict_of([lost]) == Verdict.REGRESSION
    assert verdict_of([waived]) == Verdict.PASS
    assert verdict_of([waived, lost]) == Verdict.REGRESSION
    with pytest.raises(ValueError, match="no verdict"):
        verdict_of([])
