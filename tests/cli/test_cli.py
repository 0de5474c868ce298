import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from building import baseline

from perfgate import __doc__ as purpose
from perfgate.baselines import suite_store
from perfgate.cli.main import COMMANDS, main, parser

HELPS = [
    [],
    *([name] for name in COMMANDS if name not in ("scenarios", "baseline", "doctor")),
    ["scenarios"],
    ["scenarios", "list"],
    ["scenarios", "show"],
    ["scenarios", "validate"],
    ["baseline"],
    ["baseline", "list"],
    ["baseline", "show"],
    ["baseline", "record"],
    ["baseline", "promote"],
    ["doctor"],
]
# Made for programs: JSON always, reports in formats of their own, a pipeline.
OWN_FORMATS = (["matrix"], ["report"], ["gitlab"], ["release"])
CLI = [sys.executable, "-m", "perfgate.cli.main"]


@pytest.mark.parametrize("words", HELPS, ids=" ".join)
def test_every_command_explains_itself(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*words, "--help"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: {' '.join(['perfgate', *words])} ")
    assert "-h, --help" in out


def test_help_of_the_whole_names_every_command_and_the_statuses(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    assert purpose
    assert " ".join(purpose.split()) in " ".join(out.split())
    for name in COMMANDS:
        assert f"\n    {name}" in out
    assert "2 wrong usage or unusable input" in out


def test_every_verb_gives_json_too() -> None:
    for words in HELPS:
        arguments = {"show": ["x"], "record": ["x"], "promote": ["x", "--by", "a", "--reason", "b"]}
        arguments |= {"compare": ["x", "y"], "init": ["x"]}
        arguments |= {"decision": ["--event", "nightly", "0"]}
        if words and words not in (["scenarios"], ["baseline"], ["parse"], *OWN_FORMATS):
            more = arguments.get(words[-1], [])
            parsed = parser(words).parse_args([*words, *more, "--format", "json"])
            assert parsed.format == "json"
            assert parser(words).parse_args([*words, *more]).format == "text"
    assert parser(["report"]).parse_args(["report", "x", "--format", "json"]).format == "json"


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


def test_help_needs_nothing_heavy_and_no_command() -> None:
    found = modules_of_help()
    heavy = {"numpy", "scipy", "pytest", "jsonschema", "yaml", "rich", "psutil"}
    assert "argparse" in found
    assert not heavy & found
    assert not {f"perfgate.cli.{name}" for name in COMMANDS} & found


def test_help_of_a_command_loads_that_one_alone() -> None:
    found = modules_of_help("parse")
    assert [name for name in COMMANDS if f"perfgate.cli.{name}" in found] == ["parse"]


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["scenario"],
        ["scenarios"],
        ["baseline", "promote", "file"],
        ["baseline", "promote", "file", "--by", "Ada"],
        ["doctor", "--format", "xml"],
    ],
)
def test_wrong_usage_is_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "usage: perfgate" in captured.err


def test_a_wrong_command_is_told_the_right_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["scenario", "list"])
    assert caught.value.code == 2
    err = capsys.readouterr().err
    assert "invalid choice: 'scenario'" in err
    assert all(name in err for name in COMMANDS)


def test_unusable_input_is_2_with_file_and_line_and_no_traceback(suite_root: Path) -> None:
    path = suite_store().save(baseline())
    path.write_text('{"schema_version": 1,\n oops}')
    answer = subprocess.run(
        [*CLI, "baseline", "show", str(path)], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert answer.stderr.startswith(f"perfgate: {path}:2: baseline is not JSON\n  found: ")
    assert "Traceback" not in answer.stderr


def test_a_wrong_root_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PERFGATE_ROOT", str(tmp_path / "gone"))
    assert main(["scenarios", "list"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("perfgate: PERFGATE_ROOT: no such folder\n")
    assert f"found: {tmp_path}/gone" in err


@pytest.mark.parametrize("many", [1, 300])
def test_a_reader_that_has_seen_enough_is_no_error(
    suite_root: Path, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    for number in range(many):
        suite_store().save(baseline(scenario=f"scenario-{number}", reason="x" * 100))
    reading, writing = os.pipe()
    os.close(reading)
    try:
        answer = subprocess.run(
            [*CLI, "baseline", "list", "--format", "json"],
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writing)
    assert (answer.returncode, answer.stderr) == (0, b"")


def test_the_installed_command_is_the_module(suite_root: Path) -> None:
    program = Path(sys.executable).with_name("perfgate")
    if not program.exists():
        pytest.skip("perfgate is not installed as a command here")
    answers = [
        subprocess.run(
            [*words, "baseline", "list", "--format", "json"], capture_output=True, check=True
        )
        for words in ([str(program)], CLI)
    ]
    assert json.loads(answers[0].stdout) == json.loads(answers[1].stdout) == []
