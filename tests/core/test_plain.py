"""Plain values: what is written comes back equal, and what does not fit is told with its field."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy
from refusals import refused
from tables import each

from perfgate.core.plain import from_plain, to_plain


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Part:
    name: str
    size: float
    right: bool = True


@dataclass(frozen=True)
class Whole:
    parts: tuple[Part, ...]
    by_name: Mapping[str, Part] = field(default_factory=dict)
    kind: Literal["one", "two"] = "one"
    colour: Colour | None = None
    day: date | None = None
    file: Path | None = None


def test_fields_keep_their_names_and_lists_are_lists() -> None:
    parts = {"b": Part("b", 2.0)}
    value = Whole((Part("a", 1.5),), parts, colour=Colour.RED, day=date(2026, 11, 5))
    assert to_plain(value) == {
        "parts": [{"name": "a", "size": 1.5, "right": True}],
        "by_name": {"b": {"name": "b", "size": 2.0, "right": True}},
        "kind": "one",
        "colour": "red",
        "day": "2026-11-05",
        "file": None,
    }
    assert to_plain(Whole(()), leave_out_none=True) == {"parts": [], "by_name": {}, "kind": "one"}


def test_what_is_written_as_json_comes_back_equal() -> None:
    parts = (Part("ü\ud800", -0.0), Part("", 1e300, right=False))
    value = Whole(parts, {"": parts[0]}, "two", Colour.RED, date(1, 1, 1), Path("a/b"))
    for one in (value, Whole(())):
        for leave_out in (False, True):
            text = json.dumps(to_plain(one, leave_out_none=leave_out))
            assert from_plain(Whole, json.loads(text)) == one


def test_values_of_other_libraries_have_a_plain_form() -> None:
    plain = to_plain([numpy.float64(0.5), numpy.int64(3), MappingProxyType({"a": (1,)}), Path("x")])
    assert plain == [0.5, 3, {"a": [1]}, "x"]
    assert [type(one) for one in plain] == [float, int, dict, str]
    refused(to_plain, {"a": object()}, error=TypeError)


def test_a_field_left_out_has_its_default_and_a_whole_number_may_be_a_float() -> None:
    (part,) = from_plain(Whole, {"parts": [{"name": "a", "size": 60}]}).parts
    assert vars(part) == vars(Part("a", 60.0))
    assert type(part.size) is float
    # Ones and noughts are truth values only where that is said.
    plain = {"name": "a", "size": 1.0, "right": 0}
    assert from_plain(Part, plain, lax=True) == Part("a", 1.0, right=False)
    refused(from_plain, Part, plain)


@each(
    ("plain", "where", "words"),
    [
        ({}, "parts", "missing required field `parts`"),
        ({"parts": [{"name": "a"}]}, "parts[0].size", "missing required field `size`"),
        ({"parts": [{"name": 5, "size": 1}]}, "parts[0].name", "Expected `str`, got `int`"),
        ({"parts": [], "kind": "three"}, "kind", "Invalid enum value 'three'"),
        ({"parts": [], "file": 5}, "file", "Path"),
        ([], None, "Expected `object`"),
    ],
)
def test_what_does_not_fit_is_told_with_its_field(plain, where, words) -> None:
    caught = refused(from_plain, Whole, plain, match="not the plain form of Whole")
    assert caught.field == where
    assert words in caught.problem
