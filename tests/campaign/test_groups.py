"""Groups: which tests a scenario's measurements are for, and when the last of them has ended."""

from perfgate.campaign.campaigns import Groups
from perfgate.campaign.resume import KeptResults

NEEDS = {"a-c1": {"a"}, "a-c2": {"a"}, "b-c1": {"b"}, "claim": {"a", "b"}}


def test_a_group_ends_with_the_last_test_that_needs_it() -> None:
    groups = Groups(NEEDS)
    ended = [groups.ended(test, measured=True) for test in ("a-c1", "b-c1", "a-c2", "claim")]
    assert ended == [[], [], [], ["a", "b"]]
    assert groups.counted("a") == ["a-c1", "a-c2", "claim"]
    assert groups.counted("b") == ["b-c1", "claim"]


def test_it_ends_once() -> None:
    groups = Groups({"a-c1": {"a"}})
    assert groups.ended("a-c1", measured=True) == ["a"]
    assert groups.ended("a-c1", measured=True) == []
    assert Groups({"a-c1": {"a"}}).ended("a-c1", measured=False) == []


def test_a_skipped_test_ends_but_is_not_counted() -> None:
    groups = Groups(NEEDS)
    assert groups.ended("claim", measured=False) == []
    assert groups.ended("b-c1", measured=True) == ["b"]
    assert groups.counted("b") == ["b-c1"]


def test_what_a_resumed_run_keeps_is_neither_waited_for_nor_forgotten() -> None:
    kept = KeptResults({"a": {}}, {"a-c1": {}, "a-c2": {}, "claim": {}})
    groups = Groups(NEEDS, kept)
    assert groups.ended("a-c1", measured=True) == []
    assert groups.ended("b-c1", measured=True) == ["b"]
    assert groups.counted("b") == ["b-c1", "claim"]
