import sys
from dataclasses import replace
from pathlib import Path

import pytest

from perfgate.core.errors import InputError, MissingProgram
from perfgate.core.programs import Program, interpreter_of

PROGRAM = Program("some.tool-x", "sometool", "the package some-tool")


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "env" / "python"))
    monkeypatch.delenv("PERFGATE_PROGRAM_SOME_TOOL_X", raising=False)


def test_variable_beside_the_interpreter_path_in_this_order(tmp_path: Path, monkeypatch) -> None:
    on_path = executable(tmp_path / "path" / "sometool")
    assert PROGRAM.find() == (str(on_path),)
    beside = executable(tmp_path / "env" / "sometool")
    assert PROGRAM.find() == (str(beside),)
    own = executable(tmp_path / "own" / "tool")
    monkeypatch.setenv("PERFGATE_PROGRAM_SOME_TOOL_X", f"{own} --in 'two words'")
    assert PROGRAM.find() == (str(own), "--in", "two words")


def test_a_variable_may_name_a_program_on_path_a_relative_path_or_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    docker, own = (executable(tmp_path / one) for one in ("path/docker", "own/tool"))
    (tmp_path / "python").symlink_to(own)
    for call, found in (
        ("docker run image sometool", (str(docker), "run", "image", "sometool")),
        ("own/tool", (str(own),)),
        (str(tmp_path / "python"), (str(tmp_path / "python"),)),
    ):
        monkeypatch.setenv("PERFGATE_PROGRAM_SOME_TOOL_X", call)
        assert PROGRAM.find() == found


@pytest.mark.parametrize("setting", ["", "  ", "/nowhere/tool", "no-such-tool --x", "'open"])
def test_a_variable_that_names_no_executable_is_an_error_even_if_path_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    executable(tmp_path / "path" / "sometool")
    monkeypatch.setenv("PERFGATE_PROGRAM_SOME_TOOL_X", setting)
    with pytest.raises(InputError, match="PERFGATE_PROGRAM_SOME_TOOL_X: no executable") as caught:
        PROGRAM.find()
    assert caught.value.found == repr(setting)


def test_missing_says_where_it_comes_from_and_how_to_point_at_it(tmp_path: Path) -> None:
    executable(tmp_path / "env" / "sometool").chmod(0o644)
    with pytest.raises(MissingProgram) as caught:
        PROGRAM.find()
    message = str(caught.value)
    assert "some.tool-x is not installed: no sometool beside" in message
    assert "it comes with the package some-tool" in message
    assert message.endswith("PERFGATE_PROGRAM_SOME_TOOL_X")


SERVER = Program("some.server", "someserver", "the engine")
ITS_PYTHON = Program("some.python", "python", "the engine", ("-m", "mine"), runs=SERVER)


def script(path: Path, first: str) -> Path:
    executable(path).write_text(f"{first}\nimport mine\n")
    return path


def test_an_engines_interpreter_is_the_one_that_runs_its_programs(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("PERFGATE_PROGRAM_SOME_PYTHON", raising=False)
    ours = executable(tmp_path / "env" / "python")
    assert ITS_PYTHON.find() == (str(ours), "-m", "mine")
    script(tmp_path / "path" / "someserver", "#!/opt/engine/bin/python3")
    assert ITS_PYTHON.find() == ("/opt/engine/bin/python3", "-m", "mine")
    elsewhere = script(tmp_path / "elsewhere", "#!/srv/python3.12")
    monkeypatch.setenv("PERFGATE_PROGRAM_SOME_SERVER", str(elsewhere))
    assert ITS_PYTHON.find() == ("/srv/python3.12", "-m", "mine")
    monkeypatch.setenv("PERFGATE_PROGRAM_SOME_SERVER", "/nowhere")  # told by the server itself
    assert ITS_PYTHON.find()[0] == str(ours)
    monkeypatch.setenv("PERFGATE_PROGRAM_SOME_PYTHON", f"{ours} -m other")
    assert ITS_PYTHON.find() == (str(ours), "-m", "other")


@pytest.mark.parametrize(
    ("first", "found"),
    [
        ("#!/opt/engine/bin/python3 -s", "/opt/engine/bin/python3"),
        ("#!/bin/sh", None),
        ("", None),
        ("#!/usr/bin/env bash", None),
        ("#!/usr/bin/env python-that-is-nowhere", None),
        ("#!/usr/bin/env -S python3 -u", "path/python3"),  # looked up as env does
    ],
)
def test_the_first_line_names_the_interpreter(tmp_path, first: str, found: str | None) -> None:
    on_path = executable(tmp_path / "path" / "python3")
    expected = found and str(tmp_path / found)
    assert interpreter_of(str(script(tmp_path / "tool", first))) == expected
    assert interpreter_of(str(on_path)) == str(on_path)
    assert interpreter_of(str(tmp_path / "nothing")) is None


OF_PACKAGE = Program("some.module", "python3", "it", ("-m", "mine"), runs=SERVER, package="mine")


def test_perfgates_own_python_is_passed_over_where_it_lacks_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = executable(tmp_path / "env" / "python3")
    monkeypatch.setenv("PATH", f"{own.parent}:{tmp_path / 'path'}")  # an activated environment
    with pytest.raises(MissingProgram, match="with the package mine or on PATH"):
        OF_PACKAGE.find()
    other = executable(tmp_path / "path" / "python3")
    assert OF_PACKAGE.find() == (str(other), "-m", "mine")
    its_own = replace(OF_PACKAGE, name="some.pytest", package="pytest")
    assert its_own.find() == (str(own), "-m", "mine")
    script(tmp_path / "path" / "someserver", f"#!{tmp_path}/engine/bin/python3")
    assert OF_PACKAGE.find() == (f"{tmp_path}/engine/bin/python3", "-m", "mine")
