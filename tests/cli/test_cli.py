"""The command `perfgate` as a whole: its helps, what they import, wrong usage, unusable input."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import pytest
from building import baseline
from command_line import Perfgate
from tables import each

from perfgate import __doc__ as purpose
from perfgate.baselines import suite_store
from perfgate.cli.command_parser import parsers_of
from perfgate.cli.main import COMMANDS, main, parser

PARSERS = [one for one in parsers_of(parser((), whole=True)) if one.prog != "perfgate"]
# Made for programs: JSON always, reports in formats of their own, a pipeline.
OWN_FORMATS = ("parse", "report", "release", "ci matrix", "ci gitlab")
Capture = pytest.CaptureFixture[str]


@each("words", [one.prog.split()[1:] for one in PARSERS])
def test_every_command_explains_itself(words: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([*words, "--help"])
    out = capsys.readouterr().out
    assert out.startswith(f"usage: {' '.join(['perfgate', *words])} ")
    assert "-h, --help" in out


def test_help_of_the_whole_names_every_command_and_the_statuses(capsys: Capture) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    out = capsys.readouterr().out
    assert purpose
    assert " ".join(purpose.split()) in " ".join(out.split())
    assert all(f"\n    {name}" in out for name in COMMANDS)
    assert "2 wrong usage or unusable input" in out


def test_every_verb_gives_json_too() -> None:
    for one in PARSERS:
        is_group = any(isinstance(action, argparse._SubParsersAction) for action in one._actions)
        if not is_group and not one.prog.removeprefix("perfgate ").startswith(OWN_FORMATS):
            (formats,) = [action for action in one._actions if action.dest == "format"]
            assert "json" in (formats.choices or ()), one.prog
            assert formats.default in ("text", "shell"), one.prog


@each(
    "words",
    [
        "--format json scenarios list {}",
        "scenarios --format=json list {}",
        "--scenarios packaged --format json scenarios list {}",
        "scenarios --scenarios=packaged list {} --format json",
        "--import json --format json scenarios list -- {}",
    ],
)
def test_shared_options_stand_before_the_verb_or_after_it(words: str, perfgate: Perfgate) -> None:
    name = "b200-r1-fp4-min-latency"
    assert [one["id"] for one in json.loads(perfgate.printed(words.format(name)))] == [name]


@each(
    "words, error", [("--format", "COMMAND"), ("--format json judge --scenarios x", "--scenarios")]
)
def test_a_shared_option_that_a_verb_lacks_is_wrong_usage(
    words: str, error: str, capsys: Capture
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words.split())
    assert error in capsys.readouterr().err


def modules_of_help(*words: str) -> set[str]:
    """What is imported to print a help."""
    code = (
        "import sys; from perfgate.cli.main import main\n"
        f"try: main([*{words!r}, '--help'])\n"
        "except SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(answer.stderr.split())


def test_help_needs_nothing_heavy_and_of_a_command_that_one_alone() -> None:
    heavy = {"numpy", "scipy", "pytest", "jsonschema", "yaml", "rich", "psutil"}
    assert not heavy & modules_of_help()
    for words in ((), ("parse",)):
        found = modules_of_help(*words)
        assert [one for one in COMMANDS if f"perfgate.cli.{one}" in found] == [*words]


@each(
    "words",
    [
        [],
        ["scenarios"],
        ["baseline", "promote", "file"],
        ["baseline", "promote", "file", "--by", "Ada"],
        ["doctor", "--format", "xml"],
    ],
)
def test_wrong_usage_is_2(words: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "usage: perfgate" in captured.err


def test_unusable_input_is_2_with_file_and_line_and_no_traceback(
    suite_root: Path, perfgate: Perfgate
) -> None:
    path = suite_store().save(baseline())
    path.write_text('{"schema_version": 1,\n oops}')
    told = perfgate.refused(f"baseline show {path}")
    assert told.startswith(f"perfgate: {path}:2: baseline is not JSON\n  found: ")
    assert "Traceback" not in told
