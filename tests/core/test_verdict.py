"""Which verdict a group of verdicts gets."""

import re
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from building import applied
from plain_values import judge_performance
from tables import each

from perfgate.core.verdict import MEANINGS, Verdict, verdict_of, worst
from perfgate.judging.rules.reasons import HOST_SHIFT_MEANING

ROOT = Path(__file__).parents[2]

NAMES = "REGRESSION ERROR NOT_COMPARABLE NO_BASELINE INCONCLUSIVE IMPROVEMENT PASS"
FROM_WORST = [Verdict(name) for name in NAMES.split()]


@each("position", range(len(FROM_WORST)))
def test_worst_is_the_first_in_precedence_whatever_the_order(position: int) -> None:
    group = FROM_WORST[position : position + 3]
    for order in permutations(group):
        assert worst(order) == FROM_WORST[position]


def test_a_waived_regression_counts_as_passed_and_hides_no_other() -> None:
    lost = judge_performance("output_throughput", [1000] * 5, [900, 900])
    waived = replace(lost, waiver=applied("known, until 2026-12-31"))
    assert verdict_of([lost]) == Verdict.REGRESSION
    assert verdict_of([waived]) == Verdict.PASS
    assert verdict_of([waived, lost]) == Verdict.REGRESSION
    for of_a_group in (verdict_of, worst):
        with pytest.raises(ValueError, match="empty"):  # which has not passed
            of_a_group([])


def test_the_words_of_every_verdict_are_those_of_the_docs() -> None:
    page = (ROOT / "docs" / "reference" / "verdicts.md").read_text(encoding="utf-8")
    table = dict(re.findall(r"^\| ([A-Z_]+) \| (.+?) \| [a-z ]+ \|$", page, re.MULTILINE))
    assert table == {verdict.value: MEANINGS[verdict] for verdict in Verdict}
    assert HOST_SHIFT_MEANING in " ".join(page.split())
