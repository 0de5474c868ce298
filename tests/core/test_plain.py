"""Plain values come back equal, and of JSON that others wrote what is beyond a limit is refused."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy
import pytest
from refusals import refused
from tables import each

from perfgate.core.files import json_text
from perfgate.core.files.json_text import (
    DEEPEST,
    LONGEST_WHOLE_NUMBER,
    JsonError,
    parse,
    parse_object,
)
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


# JSON that others wrote


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


@each("own", [False, True])
def test_what_programs_write_is_read(own: bool) -> None:
    value = {"a": [1, -2.5e3, True, None, "ü😀"], "b": {"a": {}}, "": 10**299}
    assert parse(json.dumps(value), own=own) == value
    assert parse(json.dumps(value, ensure_ascii=False).encode(), own=own) == value
    assert parse(b'\xef\xbb\xbf{"a": 1}', own=own) == {"a": 1}
    assert parse(nested(DEEPEST), own=own) == json.loads(nested(DEEPEST))


@each(
    ("text", "told"),
    [
        (nested(DEEPEST + 1), "is nested too deep"),
        (nested(200_000), "is nested too deep"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "is nested too deep"),
        ("[" * 200_000, "is nested too deep"),
        ("1" * (LONGEST_WHOLE_NUMBER + 1), "too many digits: 1111"),
        ('{"a": ' + "1" * 6000 + "}", "6000 digits"),  # where Python itself raises ValueError
        ("[" + "1," * 100, "is not JSON: Expecting value"),
        ("", "is not JSON"),
        (b"\xff", "is not UTF-8 text: byte 0xff"),
        ("1" * 1001, "is too large: 1001 bytes"),
    ],
)
def test_what_is_beyond_a_limit_is_refused(text: str | bytes, told: str) -> None:
    with pytest.raises(JsonError, match=told) as caught:
        parse(text, limit=1000 if "too large" in told else json_text.LARGEST_DOCUMENT)
    assert len(str(caught.value)) < 200


def test_not_a_number_and_a_field_twice_are_refused_in_an_own_file() -> None:
    assert parse('{"a": NaN, "b": 1e999}')["b"] == float("inf")
    for word in ("NaN", "-Infinity", "1e999", "1" * 250 + "e99"):
        refused(parse, f'{{"a": {word}}}', own=True, match="not a finite number", error=JsonError)
    text = '{"accepted": {"by": "a"}, "x": [{"b": 1, "b": 2}]}'
    assert parse(text)["x"] == [{"b": 2}]
    refused(parse, text, own=True, match="has a field twice: 'b'", error=JsonError)


def test_an_error_for_a_person_has_file_line_and_what_is_expected() -> None:
    caught = refused(parse, '{\n"a": 1,\n}', error=JsonError)
    error = caught.input_error("baseline", file=Path("a.json"), hint="restore it")
    assert str(error).startswith("a.json:2: baseline is not JSON\n  found: ") or error.line == 3
    assert error.hint == "restore it"
    long = f"[{'0, ' * 1000}0]"
    caught = refused(parse_object, long, match="is not a JSON object: \\[0, 0", error=JsonError)
    assert len(str(caught)) < 200
    caught = refused(parse, nested(100), error=JsonError)
    told = str(caught.input_error("line", file=Path("a.jsonl"), line=7))
    assert told.splitlines() == [
        "a.jsonl:7: line is nested too deep",
        "  found: more than 64 levels of brackets",
        "  expected: at most 64 levels (docs/reference/settings.md)",
    ]
