"""Which questions a new build answers otherwise than the baseline."""

from perfgate.core.rule import Rule
from perfgate.judging.rules.diagnostics import MOST, changed_questions
from perfgate.judging.rules.probe import AccuracyTest, ProbeTests, judge_probe

METRIC = "accuracy:gsm8k:exact_match:strict-match"


def answers(right: str) -> dict[str, bool]:
    return {f"q{place}": letter == "r" for place, letter in enumerate(right)}


def test_lost_and_gained_questions_are_named() -> None:
    found = changed_questions(METRIC, [answers("rrww")], [answers("rwrw")])
    assert found is not None
    assert (found.asked, found.lost, found.gained) == (4, 1, 1)
    assert (found.lost_keys, found.gained_keys) == (("q1",), ("q2",))


def test_a_question_counts_where_half_of_its_evaluations_moved() -> None:
    before = [answers("rrrr"), answers("rrrr")]
    new = [answers("wwrr"), answers("wrrr"), answers("wrwr")]  # three, one, one and none of three
    found = changed_questions(METRIC, before, new)
    assert found is not None
    assert found.lost_keys == ("q0",)
    half = changed_questions(METRIC, before, [answers("wrrr"), answers("rrrr")])
    assert half is not None
    assert half.lost_keys == ("q0",)


def test_a_broken_build_names_some_and_counts_all() -> None:
    found = changed_questions(METRIC, [answers("r" * 1319)], [answers("w" * 1319)])
    assert found is not None
    assert (found.lost, len(found.lost_keys)) == (1319, MOST)


def test_other_questions_or_none_say_nothing() -> None:
    assert changed_questions(METRIC, [answers("rr")], [answers("rrr")]) is None
    assert changed_questions(METRIC, [], [answers("r")]) is None
    assert changed_questions(METRIC, [answers("r")], []) is None
    assert changed_questions(METRIC, [{}], [{}]) is None


def test_a_probe_tells_them_of_the_evaluations_that_its_verdict_rests_on() -> None:
    before, new = answers("r" * 600), answers("r" * 597 + "www")
    test = AccuracyTest(METRIC, 0.02, ([before], [new, answers("w" * 600)]), None, ({}, {}))
    judged = judge_probe(ProbeTests([test], [test]), Rule(max_runs=1))
    assert judged.judgements[0].runs_used == 1
    assert [(one.against, one.lost) for one in judged.changed] == [("baseline", 3), ("anchor", 3)]


def test_scores_without_answers_tell_none() -> None:
    test = AccuracyTest(METRIC, 0.02, ([answers("r")], [answers("w")]), None, ({}, {}))
    assert test.changed(0, "baseline") is None
