"""What is reported beside verdicts: changed questions, faulty answers, chance, a slow host."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_values import judge_probe
from scipy.stats import false_discovery_control
from tables import each

from perfgate.core.errors import InputError
from perfgate.core.rule import Rule
from perfgate.judging.rules.accuracy import AccuracyTest
from perfgate.judging.rules.diagnostics import (
    BROKEN_OUTPUT,
    MOST,
    OUTPUT_FORMAT,
    Moved,
    changed_questions,
    false_discoveries,
    faults_of,
    moved_together,
)

METRIC = "accuracy:gsm8k:exact_match:strict-match"
FLEXIBLE = "accuracy:gsm8k:exact_match:flexible-extract"


def answers(right: str) -> dict[str, bool]:
    return {f"q{place}": letter == "r" for place, letter in enumerate(right)}


@each(
    ("before", "new", "lost", "gained"),
    [
        (["rrww"], ["rwrw"], ("q1",), ("q2",)),
        (["rrrr"] * 2, ["wwrr", "wrrr", "wrwr"], ("q0",), ()),  # half of the evaluations moved
        (["rrrr"] * 2, ["wrrr", "rrrr"], ("q0",), ()),
        (["r" * MOST], ["w" * MOST], tuple(sorted(f"q{n}" for n in range(MOST))), ()),
    ],
)
def test_lost_and_gained_questions_are_named(
    before: list[str], new: list[str], lost: tuple[str, ...], gained: tuple[str, ...]
) -> None:
    found = changed_questions(METRIC, list(map(answers, before)), list(map(answers, new)))
    assert found is not None
    assert (found.lost_keys, found.gained_keys) == (lost, gained)
    assert (found.asked, found.lost, found.gained) == (len(before[0]), len(lost), len(gained))


def test_a_broken_build_names_some_and_counts_all() -> None:
    found = changed_questions(METRIC, [answers("r" * 1319)], [answers("w" * 1319)])
    assert found is not None
    assert (found.lost, len(found.lost_keys)) == (1319, MOST)


@each(("before", "new"), [(["rr"], ["rrr"]), ([], ["r"]), (["r"], []), ([""], [""])])
def test_other_questions_or_none_say_nothing(before: list[str], new: list[str]) -> None:
    assert changed_questions(METRIC, list(map(answers, before)), list(map(answers, new))) is None


def test_a_probe_tells_them_of_the_evaluations_that_its_verdict_rests_on() -> None:
    before, new = answers("r" * 600), answers("r" * 597 + "www")
    test = AccuracyTest(METRIC, 0.02, ([before], [new, answers("w" * 600)]), None, ({}, {}))
    judged = judge_probe([test], Rule(max_runs=1), [test])
    assert judged.judgements[0].runs_used == 1
    assert [(one.against, one.lost) for one in judged.changed] == [("baseline", 3), ("anchor", 3)]
    assert test.changed(0, "baseline") is None


@each(
    ("strict", "flexible", "reference", "faults"),
    [
        pytest.param(0.95, 0.96, 0.95, (), id="healthy"),
        pytest.param(0.569, 0.970, 0.96, (OUTPUT_FORMAT,), id="the known case"),
        pytest.param(0.569, 0.970, 0.58, (), id="never kept the form"),
        pytest.param(0.90, 0.96, 0.95, (), id="a regression, no fault"),
        pytest.param(0.02, 0.03, 0.95, (BROKEN_OUTPUT,), id="gibberish"),
        pytest.param(0.45, 0.48, 0.95, (BROKEN_OUTPUT,), id="below one half"),
        pytest.param(0.45, 0.48, 0.79, (), id="a weaker model may fall to 0.48"),
        pytest.param(0.30, 0.30, 0.67, (BROKEN_OUTPUT,), id="less than half of a weak model"),
        pytest.param(0.34, 0.34, 0.67, (), id="half of a weak model"),
        pytest.param(0.30, 0.30, None, (), id="no reference, no floor"),
        pytest.param(0.20, 0.90, 0.95, (OUTPUT_FORMAT,), id="only strict is low"),
        pytest.param(0.05, 0.40, 0.95, (OUTPUT_FORMAT, BROKEN_OUTPUT), id="both faults at once"),
        pytest.param(0.30, None, 0.95, (BROKEN_OUTPUT,), id="one filter only"),
    ],
)
def test_faults(
    strict: float,
    flexible: float | None,
    reference: float | None,
    faults: tuple[str, ...],
) -> None:
    known = {} if reference is None else {METRIC: reference}
    lenient = {} if flexible is None else {FLEXIBLE: flexible}
    assert faults_of(METRIC, known, {METRIC: strict, **lenient}) == faults
    assert faults_of(METRIC, known, lenient) == ()


@pytest.mark.parametrize("bad", [math.nan, -0.1, 1.1, math.inf])
def test_shares_that_are_none(bad: float) -> None:
    for known, measured in (({}, {METRIC: bad}), ({METRIC: bad}, {METRIC: 0.9})):
        with pytest.raises(InputError, match="not a share"):
            faults_of(METRIC, known, measured)


probabilities = st.lists(
    st.one_of(st.floats(0, 1), st.floats(0, 0.06), st.sampled_from([0.0, 0.01, 0.05, 1.0])),
    max_size=8,
)


@pytest.mark.parametrize(
    ("p_values", "found"),
    [
        # Benjamini and Hochberg (1995), the example of section 3.2, at q = 0.05: the first four
        (
            [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240,
             0.4262, 0.5719, 0.6528, 0.7590, 1.0],
            4,
        ),
        ([0.04, 0.05], 2),
        ([0.06], 0),
        ([0.05, 0.03, 0.04], 3),  # a later rank carries the earlier ones
        ([], 0),
    ],
)  # fmt: skip
def test_false_discoveries_by_hand(p_values: list[float], found: int) -> None:
    assert false_discoveries(p_values, 0.05) == tuple(n < found for n in range(len(p_values)))


@settings(deadline=None)
@given(probabilities.filter(bool), st.floats(0.01, 0.5))
def test_false_discoveries_are_those_of_scipy(p_values: list[float], q: float) -> None:
    expected = false_discovery_control(np.array(p_values)) <= q
    assert false_discoveries(p_values, q) == tuple(expected.tolist())


@each("bad", [-0.1, 1.1, math.nan, "0.5", True, None])
def test_p_values_that_are_none(bad: float) -> None:
    with pytest.raises(InputError, match="p-value"):
        false_discoveries([0.5, bad])
    with pytest.raises(InputError, match="share of false"):
        false_discoveries([0.5], bad if bad else 0.0)


SPEED = "output_throughput"


def moves(lost: int, stayed: int) -> list[Moved]:
    down = [Moved(f"s{number}", SPEED, -0.04 - number / 1000, True) for number in range(lost)]
    return down + [Moved(f"t{number}", SPEED, -0.001, False) for number in range(stayed)]


@each(
    ("lost", "stayed", "suspected"),
    [
        pytest.param(4, 0, True, id="all of four"),
        pytest.param(3, 0, False, id="too few to say"),
        pytest.param(3, 1, False, id="three of four"),
        pytest.param(4, 1, True, id="four of five are four fifths"),
        pytest.param(7, 2, False, id="less than four fifths"),
        pytest.param(16, 4, True, id="many"),
        pytest.param(0, 9, False, id="nothing moved"),
        pytest.param(0, 0, False, id="nothing judged"),
    ],
)
def test_nearly_all_of_at_least_four(lost: int, stayed: int, suspected: bool) -> None:
    assert bool(moved_together(moves(lost, stayed))) == suspected


def test_the_sentence_has_counts_range_median_and_the_next_step() -> None:
    assert moved_together(moves(5, 1)) == (
        "5 of 6 scenarios got worse at once, by 4.0 % to 4.4 % (median 4.2 %, the worst metric of "
        "each): this may be the host and not the build; look at its clocks and its neighbours, "
        "and measure the baseline's commit on it; the verdicts stand"
    )


def test_a_scenario_counts_once_with_its_worst_metric() -> None:
    both = [
        Moved(f"s{number}", metric, change, lost)
        for number in range(4)
        for metric, change, lost in (
            (SPEED, -0.05, True),
            ("tpot_median_ms", 0.08, True),
            ("ttft_median_ms", 0.5, False),
        )
    ]
    assert "4 of 4 scenarios got worse at once, by 8.0 % to 8.0 %" in moved_together(both)
    assert moved_together([Moved("s", f"m {n}", -0.1, True) for n in range(9)]) == ""
