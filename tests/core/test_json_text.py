"""JSON that others wrote: limits, and what is said beyond them."""

import json
from pathlib import Path

import pytest
from refusals import refused
from tables import each

from perfgate.core import json_text
from perfgate.core.json_text import DEEPEST, LONGEST_WHOLE_NUMBER, JsonError, parse, parse_object


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
    with pytest.raises(JsonError) as caught:
        parse('{\n"a": 1,\n}')
    error = caught.value.input_error("baseline", file=Path("a.json"), hint="restore it")
    assert str(error).startswith("a.json:2: baseline is not JSON\n  found: ") or error.line == 3
    assert error.hint == "restore it"
    with pytest.raises(JsonError, match="is not a JSON object: \\[0, 0") as caught:
        parse_object("[" + "0, " * 1000 + "0]")
    assert len(str(caught.value)) < 200
    with pytest.raises(JsonError) as caught:
        parse(nested(100))
    told = str(caught.value.input_error("line", file=Path("a.jsonl"), line=7))
    assert told.splitlines() == [
        "a.jsonl:7: line is nested too deep",
        "  found: more than 64 levels of brackets",
        "  expected: at most 64 levels (docs/reference/settings.md)",
    ]
