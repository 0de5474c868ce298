"""Which verdict a group of verdicts gets."""

import re
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from tables import each

from perfgate.gate.accuracy import judge_paired
from perfgate.gate.performance import judge_performance
from perfgate.gate.scores import counted_score, judge_unpaired
from perfgate.gate.verdict import (
    HOST_SHIFT_MEANING,
    MEANINGS,
    Verdict,
    no_worse,
    verdict_of,
    worst,
)

ROOT = Path(__file__).parents[2]

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


@each("position", range(len(FROM_WORST)))
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


def test_the_words_of_every_verdict_are_those_of_the_docs() -> None:
    page = (ROOT / "docs" / "reference" / "verdicts.md").read_text(encoding="utf-8")
    table = dict(re.findall(r"^\| ([A-Z_]+) \| (.+?) \| [a-z ]+ \|$", page, re.MULTILINE))
    assert table == {verdict.value: MEANINGS[verdict] for verdict in Verdict}
    assert HOST_SHIFT_MEANING in " ".join(page.split())


def test_what_passes_is_told_in_the_same_words_everywhere() -> None:
    words = MEANINGS[Verdict.PASS].removesuffix(" by the band")
    answers = {f"q{number}": number % 4 > 0 for number in range(400)}
    score, metric = counted_score(300, 400), "accuracy:sums:exact_match:none"
    told = [
        judge_performance("output_throughput", [100.0] * 5, [100.0]),
        judge_paired(metric, [answers], [answers], margin=0.1),
        judge_unpaired(metric, score, [score], margin=0.2),
    ]
    for judged in told:
        assert judged.verdict == Verdict.PASS
        assert f"{words} by the -" in judged.reason
        assert "within the" not in judged.reason
    assert no_worse("-2.0 %").startswith(words)


# Ten baseline runs, sigma 0.5 %: t(0.975, 19) SE(1) is 1.3 %: a gain of over 0.7 % may reach 2 %.
@pytest.mark.parametrize(("value", "equal"), [(100.0, True), (99.5, True), (101.9, False)])
def test_equal_within_the_band_is_said_only_where_a_gain_of_it_is_excluded(
    value: float, equal: bool
) -> None:
    judged = judge_performance("output_throughput", [100.0] * 10, [value])
    assert judged.verdict == Verdict.PASS
    assert ("equal within it" in judged.reason) == equal
