"""Transcripts: what a person types, what perfgate prints, how it ends, word for word.

Each file of tests/data/cli/ is one, with these lines:

    # TEXT               why the next call is here
    given WHAT WORDS…    a state that a function of worlds.py makes; without it nothing is there
    $ WORDS…             a call of perfgate, or of git
    < TEXT               the standard input of that call, or the content of the file that is given
      TEXT               what it prints on standard output
    ! TEXT               and on standard error
    [STATUS]             how it ends, if not with 0

FOLDER is the test's own, ROOT this checkout, NOW the time, TODAY the day, USER who runs the tests,
VERSION that of perfgate.
`RECORD_TRANSCRIPTS=1 pytest tests/cli/test_transcripts.py` writes the answers again; look at the
difference before it is committed.
"""

import io
import os
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from pwd import getpwuid

import pytest
from worlds import GIVEN, World

from perfgate.cli.main import main

Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "data" / "cli"
TIME = re.compile(
    r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d[.\d]*(?:\+00:00|Z)| \d\d:(?:&#8203;)?\d\d UTC)?"
)
LAST_DIGITS = re.compile(r"-?\d+\.\d{12,}(e-\d+)?")
STEP = re.compile(r"^(?:# |\$ (?:perfgate|git)|given ).*\n(?:< .*\n)*", re.MULTILINE)
USAGE = re.compile(r"^usage: .*?\n(?=\S+.*: error: )", re.DOTALL)  # as wide as a terminal


def steady(text: str, folder: Path) -> str:
    """The text without what differs from test to test."""
    now = datetime.now(UTC)

    def named(match: re.Match[str]) -> str:
        if match[1] is None:
            return "TODAY" if match[0] == f"{now:%Y-%m-%d}" else match[0]
        moment = match[0].replace("&#8203;", "").replace(" UTC", "+00:00")
        age = now - datetime.fromisoformat(moment)
        return "NOW" if abs(age) < timedelta(hours=1) else match[0]

    for of_here, name in (
        (str(folder), "FOLDER"),
        (str(ROOT), "ROOT"),
        (f"by perfgate {version('perfgate')}", "by perfgate VERSION"),
        (f"{getpwuid(os.getuid()).pw_name} (uid {os.getuid()})", "USER"),
    ):
        text = text.replace(of_here, name)
    return TIME.sub(named, LAST_DIGITS.sub(lambda match: f"{float(match[0]):.9g}", text))


def called(words: list[str], typed: str, capsys: Capture) -> list[str]:
    """What a call answers, as lines of a transcript."""
    program, *rest = words
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed.encode())))
        try:
            status: object = main(rest) if program == "perfgate" else _git(words)
        except SystemExit as ended:  # argparse
            status = ended.code
    out, err = capsys.readouterr()
    answer = [f"  {line}".rstrip() for line in out.splitlines()]
    answer += [f"! {line}".rstrip() for line in USAGE.sub("", err).splitlines()]
    return [*answer, f"[{status}]"] if status else answer


def _git(words: list[str]) -> int:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    print(done.stdout, end="")
    print(done.stderr, end="", file=sys.stderr)
    return done.returncode


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", sorted(one.stem for one in FOLDER.glob("*.txt")))
def test_as_recorded(
    name: str,
    two_scenarios: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file, folder = FOLDER / f"{name}.txt", two_scenarios.parents[1]
    monkeypatch.chdir(folder)
    for variable in [variable for variable in os.environ if variable.startswith("GIT_")]:
        monkeypatch.delenv(variable)
    recorded = file.read_text("utf-8")
    transcript: list[str] = []
    for step in STEP.findall(recorded):
        line, *typed = step.splitlines()
        text = "".join(f"{one[2:]}\n" for one in typed)
        transcript += [line, *typed]
        if line.startswith("# "):
            continue
        kind, *words = shlex.split(line)
        if kind == "given":
            GIVEN[words[0]](World(folder, monkeypatch, text), *words[1:])
        else:
            transcript += [steady(one, folder) for one in called(words, text, capsys)] + [""]
    found = "\n".join(transcript)
    if "RECORD_TRANSCRIPTS" in os.environ:
        file.write_text(found, "utf-8")
    assert found == recorded
