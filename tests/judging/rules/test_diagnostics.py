"""What is reported beside verdicts: changed questions, faulty answers, chance, a slow host."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from plain_values import judge_probe
from refusals import refused
from rule_cases import SCORE
from scipy.stats import false_discovery_control
from tables import each

from perfgate.core.verdict import Rule
from perfgate.judging.rules import diagnostics
from perfgate.judging.rules.accuracy import MOST_NAMED as MOST
from perfgate.judging.rules.accuracy import AccuracyTest
from perfgate.judging.rules.diagnostics import faults_of, moved_together

FLEXIBLE = SCORE.replace("strict-match", "flexible-extract")


def answers(right: str) -> dict[str, bool]:
    return {f"q{place}": letter == "r" for place, letter in enumerate(right)}


@each(
    "before, new, lost, gained",
    [
        (["rrww"], ["rwrw"], ["q1"], ["q2"]),
        (["rrrr"] * 2, ["wwrr", "wrrr", "wrwr"], ["q0"], []),  # half of the evaluations moved
        (["rrrr"] * 2, ["wrrr", "rrrr"], ["q0"], []),
        (["r" * MOST], ["w" * MOST], sorted(f"q{n}" for n in range(MOST)), []),
        # Other questions or none.
        *((before, new, None, None)
          for before, new in ((["rr"], ["rrr"]), ([], ["r"]), (["r"], []), ([""], [""]))),
    ],
)  # fmt: skip
def test_lost_and_gained_questions_are_named(before, new, lost, gained) -> None:
    sides = list(map(answers, before)), list(map(answers, new))
    found = AccuracyTest(SCORE, None, sides, None, ({}, {})).changed(len(new), "baseline")
    if lost is None:
        assert found is None
        return
    assert ([*found.lost_keys], [*found.gained_keys]) == (lost, gained)
    assert (found.asked, found.lost, found.gained) == (len(before[0]), len(lost), len(gained))


def test_a_probe_tells_them_of_the_evaluations_that_its_verdict_rests_on() -> None:
    before, new = answers("r" * 600), answers("r" * 597 + "www")
    test = AccuracyTest(SCORE, 0.02, ([before], [new, answers("w" * 600)]), None, ({}, {}))
    judged = judge_probe([test], Rule(max_runs=1), [test])
    assert judged.judgements[0].runs_used == 1
    assert [(one.against, one.lost) for one in judged.changed] == [("baseline", 3), ("anchor", 3)]
    assert test.changed(0, "baseline") is None
    # A broken build names some and counts all.
    test = AccuracyTest(SCORE, 0.02, ([answers("r" * 1319)], [answers("w" * 1319)]), None, ({}, {}))
    found = test.changed(1, "baseline")
    assert (found.lost, len(found.lost_keys)) == (1319, MOST)


@each(
    "strict, flexible, reference, faults",
    [
        (0.95, 0.96, 0.95, ()),
        (0.569, 0.970, 0.96, (diagnostics.OUTPUT_FORMAT,)),  # the known case
        (0.569, 0.970, 0.58, ()),  # never kept the form
        (0.90, 0.96, 0.95, ()),  # a regression, no fault
        (0.02, 0.03, 0.95, (diagnostics.BROKEN_OUTPUT,)),
        (0.45, 0.48, 0.95, (diagnostics.BROKEN_OUTPUT,)),  # below one half
        (0.45, 0.48, 0.79, ()),  # a weaker model may fall to 0.48
        (0.30, 0.30, 0.67, (diagnostics.BROKEN_OUTPUT,)),  # less than half of a weak model
        (0.34, 0.34, 0.67, ()),
        (0.30, 0.30, None, ()),  # no reference, no floor
        (0.20, 0.90, 0.95, (diagnostics.OUTPUT_FORMAT,)),
        (0.05, 0.40, 0.95, (diagnostics.OUTPUT_FORMAT, diagnostics.BROKEN_OUTPUT)),
        (0.30, None, 0.95, (diagnostics.BROKEN_OUTPUT,)),  # one filter only
    ],
)
def test_faults(strict, flexible, reference, faults) -> None:
    known = {} if reference is None else {SCORE: reference}
    lenient = {} if flexible is None else {FLEXIBLE: flexible}
    assert faults_of(SCORE, known, {SCORE: strict, **lenient}) == faults
    assert faults_of(SCORE, known, lenient) == ()


@each("bad", [math.nan, -0.1, 1.1, math.inf])
def test_shares_that_are_none(bad) -> None:
    for known, measured in (({}, {SCORE: bad}), ({SCORE: bad}, {SCORE: 0.9})):
        refused(faults_of, SCORE, known, measured, match="not a share")


probabilities = st.one_of(st.floats(0, 1), st.floats(0, 0.06), st.sampled_from([0.0, 0.05, 1.0]))


@given(st.lists(probabilities, min_size=1, max_size=8), st.floats(0.01, 0.5))
def test_false_discoveries_are_those_of_scipy(p_values, q) -> None:
    expected = false_discovery_control(np.array(p_values)) <= q
    assert diagnostics.false_discoveries(p_values, q) == tuple(expected.tolist())
    assert diagnostics.false_discoveries([], q) == ()


@each("bad", [-0.1, 1.1, math.nan, "0.5", True, None])
def test_p_values_that_are_none(bad) -> None:
    refused(diagnostics.false_discoveries, [0.5, bad], match="p-value")
    refused(diagnostics.false_discoveries, [0.5], bad if bad else 0.0, match="share of false")


def moves(lost: int, stayed: int) -> list[tuple[str, float, bool]]:
    down = [(f"s{number}", -0.04 - number / 1000, True) for number in range(lost)]
    return down + [(f"t{number}", -0.001, False) for number in range(stayed)]


# Four at least, and four fifths of all.
@each(
    "lost, stayed, suspected",
    [(4, 0, 1), (3, 0, 0), (3, 1, 0), (4, 1, 1), (7, 2, 0), (16, 4, 1), (0, 9, 0), (0, 0, 0)],
)
def test_nearly_all_of_at_least_four(lost, stayed, suspected) -> None:
    assert bool(moved_together(moves(lost, stayed))) == suspected


def test_the_sentence_counts_a_scenario_once_with_its_worst_metric() -> None:
    assert moved_together(moves(5, 1)) == (
        "5 of 6 scenarios got worse at once, by 4.0 % to 4.4 % (median 4.2 %, the worst metric of "
        "each): this may be the host and not the build; look at its clocks and its neighbours, "
        "and measure the baseline's commit on it; the verdicts stand"
    )
    told = ((-0.05, True), (0.08, True), (0.5, False))
    both = [(f"s{number}", *one) for number in range(4) for one in told]
    assert "4 of 4 scenarios got worse at once, by 8.0 % to 8.0 %" in moved_together(both)
    assert moved_together([("s", -0.1, True)] * 9) == ""
