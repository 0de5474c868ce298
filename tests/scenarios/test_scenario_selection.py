"""Scenarios are chosen by id, id pattern and marker expression."""

from dataclasses import replace

import pytest
from building import SCENARIO

from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.scenarios.scenario import Hardware
from perfgate.scenarios.selection import pick, select, select_marked

LOCAL = replace(SCENARIO, id="local-small", markers=("serving",))
B200 = replace(
    SCENARIO, id="b200-r1", hardware=Hardware("B200", 8), accuracy=(), markers=("latency",)
)
GB200 = replace(SCENARIO, id="gb200-r1", hardware=Hardware("GB200", 4), markers=())
SCENARIOS = (LOCAL, B200, GB200)


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [
        ([], SCENARIOS),
        (["b200-r1"], (B200,)),
        (["*b200-*"], (B200, GB200)),
        (["gb200-*", "local-*"], (LOCAL, GB200)),
    ],
)
def test_patterns_choose_in_the_scenarios_order(patterns: list[str], chosen: object) -> None:
    assert select(SCENARIOS, patterns) == chosen


def test_each_pattern_that_matches_nothing_is_an_error() -> None:
    with pytest.raises(SeveralInputErrors) as caught:
        select(SCENARIOS, ["b200-r2", "*", "zzz"])
    first, second = caught.value.errors
    assert (first.found, first.hint) == ("b200-r2", "did you mean b200-r1?")
    assert second.found == "zzz"


def test_one_scenario_is_picked_by_its_whole_id() -> None:
    assert pick(SCENARIOS, "b200-r1") is B200
    with pytest.raises(InputError, match="did you mean b200-r1"):
        pick(SCENARIOS, "b200-r*")


DECLARED = dict.fromkeys(("accuracy", "b200", "gb200", "local", "latency", "serving"), "")


@pytest.mark.parametrize(
    ("expression", "chosen"),
    [
        ("b200", (B200,)),
        ("b200 or serving", (LOCAL, B200)),
        ("not (local or latency)", (GB200,)),
        ("latency and accuracy", ()),  # no test of any scenario has both
        ("b200 and serving", ()),
        ("", SCENARIOS),
    ],
)
def test_a_marker_expression_selects(expression: str, chosen: object) -> None:
    assert select_marked(SCENARIOS, expression, DECLARED) == chosen


def test_every_unknown_marker_of_an_expression_is_an_error() -> None:
    with pytest.raises(SeveralInputErrors) as caught:
        select_marked(SCENARIOS, "b20 and not (zzzzz or latency)", DECLARED)
    first, second = caught.value.errors
    assert (first.field, first.problem, first.found) == ("-m", "unknown marker", "b20")
    assert first.hint == "did you mean b200?"
    assert first.expected == "one of accuracy, b200, gb200, latency, local, serving"
    assert second.hint == "`perfgate scenarios list --markers` explains them"
