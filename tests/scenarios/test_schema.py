"""The rules that all schemas share: the end of a text, and texts of one line."""

import pytest

from perfgate.scenarios.schema import Schema

WORD = {"type": "string", "pattern": "^[a-z]+$"}
NAMED = {"type": "object", "propertyNames": {"pattern": "^[a-z]+$", "$comment": "small letters"}}


@pytest.mark.parametrize("text", ["a\n", "a\n\n", "\na", "a b", ""])
def test_the_end_of_a_pattern_is_the_end_of_the_text(text: str) -> None:
    """Python's own ``$`` is also the place before a last newline."""
    assert Schema(WORD).problems(text)
    assert Schema(NAMED).problems({text: 1})
    assert not Schema(WORD).problems("a")
    assert not Schema(NAMED).problems({"a": 1})


def test_control_characters_are_told_with_their_place() -> None:
    schema = Schema({"type": ["object", "array", "string"]}, one_line=True)
    value = {"a": ["x", "y\u202e"], "b\x1b": 1, "c": "é"}
    told = {problem.path: problem.found for problem in schema.problems(value)}
    assert told == {("a", 1): r"\u202e", (r"b\x1b",): r"\x1b"}
    assert not Schema({}).problems(value)
