"""What goes wrong around a command is never a verdict's status: output, input, bugs."""

import json
import os
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

import pytest
from tables import each

from perfgate.cli import doctor
from perfgate.cli.main import main
from perfgate.core.errors import RunError

PERFGATE = f"{sys.executable} -m perfgate"
REGRESSION = "judge --metric output_throughput --baseline 101,99.7,100.4 --new 60,61"
PASS = "judge --metric output_throughput --baseline 101,99.7,100.4 --new 101,100"


def shell(line: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line of bash, in which `perfgate` is the command; its status is the last one's."""
    return subprocess.run(
        ["bash", "-c", line.replace("perfgate ", f"{PERFGATE} ")],
        env={**os.environ, **variables},
        capture_output=True,
        check=False,
    )


UNWRITTEN = b"perfgate: standard output cannot be written: "
PIPED = "| true; exit ${PIPESTATUS[0]}"


class TestStreams:
    @each(
        "line, status, told",
        [
            # A reader that has seen enough changes no status.
            (f"{REGRESSION} {PIPED}", 1, b""),
            (f"scenarios list --format json {PIPED}", 0, b""),
            # A full or closed target is told, if there is somebody to tell.
            (f"{PASS} > /dev/full", 16, UNWRITTEN + b"No space left on device\n"),
            ("--help > /dev/full", 16, UNWRITTEN + b"No space left on device\n"),
            (f"{REGRESSION} >&-", 16, UNWRITTEN + b"it is closed\n"),
            ("--version > /dev/full 2> /dev/full", 16, b""),
            ("--version <&- >&- 2>&-", 16, b""),
            # An error that cannot be told keeps its status.
            ("parse no-such-file 2> /dev/full", 2, b""),
            ("judje 2>&-", 2, b""),
            # Standard input that is closed, or cannot be read.
            ("judge <&-", 2, b"perfgate: <standard input>: it is closed\n"),
            ("judge 0> /dev/null", 2, b"perfgate: <standard input>: it cannot be read\n"),
        ],
    )
    def test_that_fail_are_told_and_are_no_verdict(
        self, line: str, status: int, told: bytes
    ) -> None:
        for unbuffered in ("", "1") if line.startswith(f"{REGRESSION} |") else ("",):
            done = shell(f"perfgate {line}", PYTHONUNBUFFERED=unbuffered)
            assert done.returncode == status
            assert done.stderr.startswith(told)
            assert bool(done.stderr) is bool(told)

    def test_an_encoding_that_lacks_characters_loses_nothing(self) -> None:
        done = shell(f"perfgate {REGRESSION}", PYTHONIOENCODING="ascii:strict")
        assert (done.returncode, done.stderr) == (1, b"")
        assert rb"-40.4 \u2026 -38.8 %" in done.stdout

    def test_json_stays_the_same_value_in_ascii(self, tmp_path: Path) -> None:
        (tmp_path / "é.log").write_text("nothing … known\n")
        line = f"perfgate parse '{tmp_path}/é.log' '{tmp_path}/é.log'"
        plain, ascii_only = shell(line), shell(line, PYTHONIOENCODING="ascii")
        assert json.loads(ascii_only.stdout) == json.loads(plain.stdout)
        assert "é.log" in plain.stdout.decode()
        assert ascii_only.stdout.isascii()

    def test_what_is_no_text_is_told_as_an_escape(self, tmp_path: Path) -> None:
        name = os.fsencode(tmp_path) + b"/\xff.log"
        line = b"%s parse $'%s' $'%s'" % (PERFGATE.encode(), name, name)
        Path(os.fsdecode(name)).write_text("nothing known\n")
        done = subprocess.run(["bash", "-c", line], capture_output=True, check=False)
        assert done.returncode == 1
        assert json.loads(done.stdout)[0]["file"] == os.fsdecode(name)
        assert done.stderr == b""


class TestBugs:
    def test_a_bug_in_a_verb_claims_nothing(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.end_in(TypeError("of two\nlines"), monkeypatch)
        assert main(["doctor"]) == 15
        first, second, *_ = capsys.readouterr().err.splitlines()
        assert first.startswith("perfgate: internal error: TypeError: of two lines; this is a bug")
        assert second.startswith("Traceback")

    @each(
        "error, status, told",
        [
            (KeyboardInterrupt(), 130, "\nperfgate: interrupted\n"),
            (PermissionError(13, "Permission denied", "x"), 2, "perfgate: x: Permission denied\n"),
            (RunError("unwritable", "cannot write"), 16, "perfgate: unwritable: cannot write\n"),
            (OSError(28, "No space"), 16, "perfgate: disk_full: cannot write a file: No space"),
            (OSError(30, "Read-only", "x"), 16, "perfgate: unwritable: cannot write x: Read-only"),
        ],
    )
    def test_what_is_no_bug_is_told_without_a_traceback(
        self,
        error: BaseException,
        status: int,
        told: str,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        self.end_in(error, monkeypatch)
        assert main(["doctor"]) == status
        err = capsys.readouterr().err
        assert err.startswith(told)
        assert "Traceback" not in err

    @staticmethod
    def end_in(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(arguments: Namespace) -> int:
            raise error

        def add_options(command: ArgumentParser) -> None:
            command.set_defaults(execute=fail)

        monkeypatch.setattr(doctor, "add_options", add_options)
