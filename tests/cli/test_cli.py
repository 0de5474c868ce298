"""The command `perfgate` as a whole: helps, completion, wrong usage, unusable input, warnings."""

import argparse
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import pytest
from command_line import Perfgate
from tables import each

from perfgate import __doc__ as purpose
from perfgate import __file__ as package
from perfgate.cli.command_parser import SHELLS, parsers_of
from perfgate.cli.main import COMMANDS, main, parser

PARSERS = [one for one in parsers_of(parser((), whole=True)) if one.prog != "perfgate"]
COMPLETE = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
function=$(complete -p perfgate | sed 's/.*-F \\([^ ]*\\).*/\\1/')
"$function" perfgate "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""
SCENARIO = "b200-r1-fp4-fp16kv-max-throughput"
RENDERED = ("scenarios command", "scenarios command --launcher slurm", "plan")
# Made for programs: JSON always, reports in formats of their own, a pipeline.
OWN_FORMATS = ("parse", "report", "release", "ci matrix", "ci gitlab")
Capture = pytest.CaptureFixture[str]


def ended(words: str | Sequence[str], capsys: Capture, status: int = 0) -> str:
    """What a call prints that argparse ends; where it is wrong, on standard error alone."""
    with pytest.raises(SystemExit, match=str(status)):
        main(words.split() if isinstance(words, str) else [*words])
    out, err = capsys.readouterr()
    assert not (err if status == 0 else out)
    return out or err


@each("words", [one.prog.split()[1:] for one in PARSERS])
def test_every_command_explains_itself(words: list[str], capsys: Capture) -> None:
    out = ended([*words, "--help"], capsys)
    assert out.startswith(f"usage: {' '.join(['perfgate', *words])} ")
    assert "-h, --help" in out


def test_help_of_the_whole_names_every_command_and_the_statuses(capsys: Capture) -> None:
    out = ended("--help", capsys)
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
    heavy = {"numpy", "scipy", "pytest", "jsonschema_rs", "yaml", "rich", "psutil"}
    assert not heavy & modules_of_help()
    for words in ((), ("parse",)):
        found = modules_of_help(*words)
        assert [one for one in COMMANDS if f"perfgate.cli.{one}" in found] == [*words]


def test_the_version_is_one_line(capsys: Capture) -> None:
    folder = Path(package).parent
    assert ended("--version", capsys) == (
        f"perfgate {version('perfgate')} "
        f"(Python {platform.python_version()}, installed in {folder})\n"
    )


@each("shell", SHELLS)
def test_each_shell_gets_a_script_of_all_commands(shell: str, capsys: Capture) -> None:
    script = ended(f"--print-completion {shell}", capsys)
    assert all(name in script for name in COMMANDS)
    assert "engine-repo" in script, "an option of a command that was not chosen"


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@each(
    "words, offered",
    [
        ("sce", "scenarios"),
        ("scenarios l", "list"),
        ("scenarios list --mark", "--marker --markers"),
        ("judge --format j", "json"),
        ("parse numb", "numbers.json"),
    ],
)
def test_bash_completes(words: str, offered: str, tmp_path: Path, capsys: Capture) -> None:
    script = tmp_path / "completion.bash"
    script.write_text(ended("--print-completion bash", capsys))
    (tmp_path / "numbers.json").touch()
    done = subprocess.run(
        ["bash", "--norc", "-c", COMPLETE, "bash", script, "perfgate", *words.split()],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert sorted(done.stdout.split()) == offered.split(), done.stderr


@each("words", RENDERED)
def test_a_release_that_no_table_covers_is_told(words: str, capsys: Capture) -> None:
    assert main([*words.split(), SCENARIO, "--engine-version", "99"]) == 0
    err = capsys.readouterr().err
    assert err.startswith("perfgate: warning: no table of releases covers TensorRT-LLM 99: ")
    assert main([*words.split(), SCENARIO, "--engine-version", "1.3.0"]) == 0
    assert capsys.readouterr().err == ""


def test_commands_as_shell_are_the_calls_of_their_json(perfgate: Perfgate) -> None:
    steps = perfgate.plain(["scenarios", "command", SCENARIO])["steps"]
    text = perfgate.printed(["scenarios", "command", SCENARIO])
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)
    flat = shlex.split(text.replace("\\\n", " "), comments=True)
    for step in steps:
        # The checkout's program is found where the person has it.
        words = [word for word in step["argv"] if not word.startswith("benchmarks/")]
        assert set(words) <= set(flat)
        for content in step["files"].values():
            assert content in text
