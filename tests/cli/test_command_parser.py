"""A mistyped command, choice or option of the command line is answered with the nearest one."""

import pytest
from tables import each

from perfgate.cli.main import main


@each(
    "words, hint",
    [
        (["scenario", "list"], "did you mean scenarios?"),
        (["scenarios", "lst"], "did you mean list?"),
        (["plan", "--format", "jsn"], "did you mean json?"),
        (["plan", "--gaet"], "did you mean --gate?"),
        (["scenarios", "list", "--maker=b200"], "did you mean --marker?"),
        (["--versoin", "plan"], "did you mean --version?"),
    ],
)
def test_what_was_meant_is_asked(
    words: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert capsys.readouterr().err.endswith(f"; {hint}\n")


@each("words", [["zzzzzz"], ["plan", "--zzzzzz"], ["baseline", "show"], ["-"]])
def test_what_is_like_nothing_gets_no_hint(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert "did you mean" not in capsys.readouterr().err
