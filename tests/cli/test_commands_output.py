import json

import pytest

from perfgate.cli.output import print_json, print_table

Capture = pytest.CaptureFixture[str]


def test_columns_are_as_wide_as_their_widest_cell(capsys: Capture) -> None:
    print_table(("id", "state"), [("a-long-one", "yes"), ("b", "no: not here")])
    assert capsys.readouterr().out == (
        "id          state\na-long-one  yes\nb           no: not here\n"
    )


def test_no_rows_leave_the_heading(capsys: Capture) -> None:
    print_table(("id", "state"), [])
    assert capsys.readouterr().out == "id  state\n"


def test_no_line_ends_in_blanks(capsys: Capture) -> None:
    print_table(("id", "state"), [("a", ""), ("b", "long text")])
    assert "a\n" in capsys.readouterr().out


def test_a_row_of_another_length_is_a_bug() -> None:
    with pytest.raises(ValueError, match="zip"):
        print_table(("id", "state"), [("a", "b", "c")])


def test_json_is_one_readable_document(capsys: Capture) -> None:
    value = {"a": ["×", None, 1.5]}
    print_json(value)
    out = capsys.readouterr().out
    assert json.loads(out) == value
    assert "×" in out


def test_json_knows_no_infinity() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        print_json(float("inf"))
