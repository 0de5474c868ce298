"""Shards: every scenario on exactly one, linked ones together, the same wherever it is divided."""

from dataclasses import replace

import building
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from played import CLAIM
from refusals import refused
from sizes import sized
from tables import each

from perfgate.campaign import shards
from perfgate.campaign.shards import ShardNumber, divide, divided
from perfgate.judging.assembly.claims import ClaimProbe
from perfgate.scenarios.probe import load_probes

NAMES = tuple(f"s{number:02d}" for number in range(12))
PROBES = {name: load_probes(replace(building.SCENARIO, id=name)) for name in NAMES}


def claim(one: str, other: str) -> ClaimProbe:
    told = replace(CLAIM, id=f"{one}-over-{other}", scenario=one, versus=other)
    return ClaimProbe(told, (PROBES[one][0], PROBES[other][0]))


def selection(names: list[str], pairs: list[tuple[str, str]]):
    probes = {f"test_serving[{probe.id}]": probe for name in names for probe in PROBES[name]}
    return {**probes, **{f"test_claim[{a}-over-{b}]": claim(a, b) for a, b in pairs}}


names = st.lists(st.sampled_from(NAMES), min_size=1, unique=True)
both = st.lists(st.sampled_from(NAMES), min_size=2, max_size=2, unique=True).map(tuple)
pairs = st.lists(both, max_size=5, unique=True)
seconds = st.fixed_dictionaries({name: st.floats(0, 1e6) for name in NAMES})


@pytest.mark.nightly
@settings(max_examples=sized(30, 200))
@given(names, pairs, seconds, st.integers(1, 15), st.randoms())
def test_each_test_is_on_one_shard_and_links_hold(chosen, linked, lasts, of, chance) -> None:
    tests = selection(chosen, linked)
    division = divide(tests, lasts, of)
    assert len(division.parts) == of
    every = [name for part in division.parts for name in part]
    assert sorted(every) == sorted(set(every))
    assert set(chosen) <= set(every)

    parts = [division.tests_of(number, tests) for number in range(1, of + 1)]
    assert sorted(test for part in parts for test in part) == sorted(tests)
    for one, other in linked:
        if {one, other} <= set(chosen) or not {one, other} & set(chosen):
            assert division.part_of(one) == division.part_of(other)
    for number, part in enumerate(division.parts, 1):
        assert bool(part) == bool(parts[number - 1])

    shuffled = [*tests.items()]
    chance.shuffle(shuffled)
    assert divide(dict(shuffled), lasts, of) == division


def test_the_longest_come_first_each_to_the_least_loaded_and_ties_go_by_id() -> None:
    lasts = {"a": 10.0, "b": 40.0, "c": 30.0, "d": 30.0, "e": 1.0}
    parts = divided([(name,) for name in "edcba"], lasts, 2)
    assert parts == (("a", "b", "e"), ("c", "d"))
    assert divided([("b",), ("a",)], {"a": 5.0, "b": 5.0}, 2) == (("a",), ("b",))


def test_linked_scenarios_count_with_the_sum_of_their_seconds() -> None:
    parts = divided([("a", "b"), ("c",)], {"a": 1.0, "b": 1.0, "c": 1.5}, 2)
    assert parts == (("a", "b"), ("c",))


def test_a_claim_of_which_one_side_is_selected_links_nothing() -> None:
    tests = selection(["s00", "s01"], [("s00", "s05")])
    assert shards.groups_of(tests.values()) == [("s00",), ("s01",)]


def test_another_selection_content_or_division_has_another_fingerprint() -> None:
    tests, lasts = selection(["s00", "s01"], []), dict.fromkeys(NAMES, 1.0)
    first = divide(tests, lasts, 2)
    less = dict([*tests.items()][:-1])
    changed = {
        test: load_probes(replace(building.SCENARIO, id=one.scenario.id, environment={"A": "1"}))[0]
        for test, one in tests.items()
    }
    others = [divide(less, lasts, 2), divide(changed, lasts, 2), divide(tests, lasts, 1)]
    assert len({first.fingerprint, *(one.fingerprint for one in others)}) == 4


@each("text", ["0/3", "4/3", "x", "", "1", "1/", "1/0", "-1/2", "1/2/3", "１/２"])
def test_what_is_no_shard_is_refused(text) -> None:
    refused(shards.parse_shard, text, match="no shard")
    assert shards.parse_shard("2/5") == ShardNumber(2, 5)


def test_an_empty_shard_is_told_with_how_many_there_can_be() -> None:
    tests = selection(["s00", "s01"], [])
    division = divide(tests, dict.fromkeys(NAMES, 1.0), 3)
    shards.require_not_empty(division, ShardNumber(2, 3))
    refused(shards.require_not_empty, division, ShardNumber(3, 3), match="empty[^§]*2 groups")
