from pathlib import Path

import pytest
from tables import each

from perfgate.core.errors import InputError, MissingProgram, RunError, SeveralInputErrors
from perfgate.core.failures import FAILURES

WHOLE = InputError(
    "wrong", file=Path("a"), line=7, field="b[0].c", found="'8'", expected="0 or more", hint="mend"
)


@each(
    ("error", "text"),
    [
        (WHOLE, "a:7: b[0].c: wrong\n  found: '8'\n  expected: 0 or more\n  fix: mend"),
        (InputError("wrong", file=Path("a")), "a: wrong"),
        (InputError("wrong", field="--by"), "--by: wrong"),
        (InputError("wrong", found=0), "wrong\n  found: 0"),
        (InputError("wrong", found=""), "wrong\n  found: "),
    ],
)
def test_an_input_error_names_place_found_expected_and_fix_where_they_apply(error, text) -> None:
    assert str(error) == text


def test_several_errors_are_told_at_once() -> None:
    error = SeveralInputErrors([InputError("one", found=1), InputError("two")])
    assert str(error) == "one\n  found: 1\ntwo"
    assert [one.problem for one in error.errors] == ["one", "two"]


def test_a_run_error_shows_evidence_and_the_next_step_of_its_class() -> None:
    error = RunError("oom", "the server ended", evidence=("CUDA out of memory",))
    assert str(error) == (
        f"oom: the server ended\n  | CUDA out of memory\n  next step: {FAILURES['oom'].next_step}"
    )
    assert str(RunError("oom", "it ended", hint="use 8 GPUs")).endswith("next step: use 8 GPUs")
    with pytest.raises(KeyError):  # a class that does not exist is a bug
        RunError("no_such_class", "it ended")


def test_what_was_found_is_redacted_and_the_sentence_is_not() -> None:
    field, expected = "environment.HF_TOKEN", "password: text\x1b"
    error = InputError("HF_TOKEN: must be text", field=field, found="opaque", expected=expected)
    told = "environment.HF_TOKEN: HF_TOKEN: must be text\n  found: ***\n  expected: password: text"
    assert str(error) == f"{told}\\x1b"
    assert "https://***@hub" in str(InputError("no answer", found="https://a:b@hub"))


def test_message_and_evidence_of_a_run_error_are_redacted() -> None:
    error = RunError("hang", "no answer of https://a:b@hub", evidence=("password=c\x07", "d"))
    assert error.message == "no answer of https://***@hub"
    assert error.evidence == ("password=***", "d")
    assert "password=***" in str(error)
    assert "abc" not in str(MissingProgram("not found on PATH (/bin:TOKEN=abc)"))


def test_an_error_that_keeps_more_can_be_raised_again_for_another_place() -> None:
    class Kept(InputError):
        def __init__(self) -> None:
            self.status = 2
            super().__init__("no such build", found="this", hint="name another")

    again = InputError(**{**Kept().arguments, "field": "--ab"})
    assert str(again) == "--ab: no such build\n  found: this\n  fix: name another"
