"""Options of `perfgate release pack`: sizes as people write them, and a question before writing."""

import argparse
import io
from pathlib import Path

import pytest
from tables import each

from perfgate.cli.release.pack import _require_consent, size
from perfgate.core.errors import InputError


@each("text, number", [("1", 1), ("10KiB", 10240), ("500 MiB", 500 * 2**20), ("2GiB", 2**31)])
def test_sizes_as_people_write_them(text: str, number: int) -> None:
    assert size(text) == number


@each("text", ["", "0", "-1", "2GB", "1.5GiB", "1e9", "17GiB", "9" * 13])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="not a size"):
        size(text)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("answer", "written"), [("y\n", True), ("YES\n", True), ("\n", False), ("no\n", False)]
)
def test_a_person_is_asked(
    answer: str,
    written: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "a.tar"
    file.touch()
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    if written:
        _require_consent(file, yes=False)
    else:
        with pytest.raises(InputError, match="nothing was written"):
            _require_consent(file, yes=False)
    assert capsys.readouterr().out == f"write {file}, which is there already? [y/N] "


def test_a_script_must_say_yes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(InputError, match="give --yes"):
        _require_consent(tmp_path / "a.tar", yes=False)
    _require_consent(tmp_path / "a.tar", yes=True)
