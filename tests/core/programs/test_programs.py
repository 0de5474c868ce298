"""Where programs are, here, on paper, in a container and of another build, and what those find
around them.
"""

import os
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
from refusals import refused
from tables import each

from perfgate.core.errors import InputError, MissingProgram
from perfgate.core.programs import programs
from perfgate.core.programs.locations import DATASETS, HOSTS, MODELS, Installation, Locations
from perfgate.core.programs.programs import LM_EVAL, TRTLLM_BENCH, TRTLLM_SERVE, Program

TOOL = Program("some.tool-x", "sometool", "the package some-tool")
SERVER = Program("some.server", "someserver", "the engine")
ITS_PYTHON = Program("some.python", "python", "the engine", ("-m", "mine"), runs=SERVER)
OF_PACKAGE = Program("some.module", "python3", "it", ("-m", "mine"), runs=SERVER, package="mine")


def executable(path: Path, first: str = "#!/bin/sh", rest: str = "echo hello") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{first}\n{rest}\n")
    path.chmod(0o755)
    return path


class TestHere:
    @pytest.fixture(autouse=True)
    def nothing_installed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", str(tmp_path / "path"))
        monkeypatch.setattr(sys, "executable", str(tmp_path / "env" / "python"))
        for program in (TOOL, SERVER, ITS_PYTHON):
            monkeypatch.delenv(program.variable, raising=False)

    def test_variable_beside_the_interpreter_path_in_this_order(self, tmp_path, monkeypatch):
        on_path = executable(tmp_path / "path" / "sometool")
        assert TOOL.find() == (str(on_path),)
        beside = executable(tmp_path / "env" / "sometool")
        assert TOOL.find() == (str(beside),)
        docker, own = (executable(tmp_path / one) for one in ("path/docker", "own/tool"))
        link = tmp_path / "python"
        link.symlink_to(own)
        monkeypatch.chdir(tmp_path)
        for call, found in (
            (f"{own} --in 'two words'", (str(own), "--in", "two words")),
            ("docker run image sometool", (str(docker), "run", "image", "sometool")),
            ("own/tool", (str(own),)),
            (str(link), (str(link),)),
        ):
            monkeypatch.setenv(TOOL.variable, call)
            assert TOOL.find() == found

    @each("entry", ["", ".", "own"])
    def test_a_relative_entry_of_path_counts_unless_others_write_there(
        self, tmp_path, monkeypatch, entry
    ):
        monkeypatch.chdir(tmp_path)
        found = executable(tmp_path / entry / "sometool")
        monkeypatch.setenv("PATH", f"{entry}:{tmp_path / 'path'}")
        assert TOOL.find() == (str(found),)
        found.parent.chmod(0o777)
        monkeypatch.setenv(SERVER.variable, "sometool")
        for program in (TOOL, SERVER):
            refused(program.find, error=(MissingProgram, InputError))
        on_path = executable(tmp_path / "path" / "sometool")
        assert TOOL.find() == SERVER.find() == (str(on_path),)

    @each("setting", ["", "  ", "/nowhere/tool", "no-such-tool --x", "'open"])
    def test_a_variable_that_names_no_executable_is_an_error(self, monkeypatch, setting) -> None:
        executable(Path(os.environ["PATH"]) / "sometool")
        monkeypatch.setenv(TOOL.variable, setting)
        caught = refused(TOOL.find, match=f"{TOOL.variable}: no executable")
        assert caught.found == repr(setting)

    def test_missing_says_where_it_comes_from_and_how_to_point_at_it(self, tmp_path: Path) -> None:
        executable(tmp_path / "env" / "sometool").chmod(0o644)
        caught = refused(Locations().find, TOOL, error=MissingProgram)
        message = str(caught)
        assert "some.tool-x is not installed: no sometool beside" in message
        assert "it comes with the package some-tool" in message
        assert message.endswith("PERFGATE_PROGRAM_SOME_TOOL_X")
        assert Locations(on_paper=True).find(ITS_PYTHON) == ("python", "-m", "mine")

    def test_an_engines_interpreter_is_the_one_that_runs_its_programs(self, tmp_path, monkeypatch):
        ours = executable(tmp_path / "env" / "python")
        assert ITS_PYTHON.find() == (str(ours), "-m", "mine")
        executable(tmp_path / "path" / "someserver", "#!/opt/engine/bin/python3")
        assert ITS_PYTHON.find() == ("/opt/engine/bin/python3", "-m", "mine")
        elsewhere = executable(tmp_path / "elsewhere", "#!/srv/python3.12")
        monkeypatch.setenv(SERVER.variable, str(elsewhere))
        assert ITS_PYTHON.find() == ("/srv/python3.12", "-m", "mine")
        monkeypatch.setenv(SERVER.variable, "/nowhere")  # told by the server itself
        assert ITS_PYTHON.find()[0] == str(ours)
        monkeypatch.setenv(ITS_PYTHON.variable, f"{ours} -m other")
        assert ITS_PYTHON.find() == (str(ours), "-m", "other")

    def test_the_first_line_names_the_interpreter(self, tmp_path: Path) -> None:
        on_path = executable(tmp_path / "path" / "python3")
        for first, found in (
            ("#!/opt/engine/bin/python3 -s", "/opt/engine/bin/python3"),
            ("#!/bin/sh", None),
            ("", None),
            ("#!/usr/bin/env bash", None),
            ("#!/usr/bin/env python-that-is-nowhere", None),
            ("#!/usr/bin/env -S python3 -u", str(on_path)),  # looked up as env does
        ):
            assert programs.interpreter_of(str(executable(tmp_path / "tool", first))) == found
        assert programs.interpreter_of(str(on_path)) == str(on_path)
        assert programs.interpreter_of(str(tmp_path / "nothing")) is None

    def test_our_own_python_is_passed_over_where_it_lacks_the_package(self, tmp_path, monkeypatch):
        own = executable(tmp_path / "env" / "python3")
        monkeypatch.setenv("PATH", f"{own.parent}:{tmp_path / 'path'}")  # an activated environment
        refused(OF_PACKAGE.find, match="with the package mine or on PATH", error=MissingProgram)
        other = executable(tmp_path / "path" / "python3")
        assert OF_PACKAGE.find() == (str(other), "-m", "mine")
        its_own = replace(OF_PACKAGE, name="some.pytest", package="pytest")
        assert its_own.find() == (str(own), "-m", "mine")
        executable(tmp_path / "path" / "someserver", f"#!{tmp_path}/engine/bin/python3")
        assert OF_PACKAGE.find() == (f"{tmp_path}/engine/bin/python3", "-m", "mine")


@pytest.fixture
def tested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the programs of the build under test, as the environment names it."""
    serve = executable(tmp_path / "tested" / "bin" / "trtllm-serve")
    monkeypatch.setenv(TRTLLM_SERVE.variable, str(serve))
    monkeypatch.setenv("PATH", f"{serve.parent}:{os.environ['PATH']}")
    return serve.parent


# Of another build


def test_a_program_is_that_of_the_prefix_and_not_the_environments(tmp_path, tested):
    build = Installation(str(tmp_path / "old"))
    executable(tmp_path / "old" / "bin" / "trtllm-bench")
    with pytest.raises(MissingProgram, match=r"no trtllm-serve in .*/old/bin; .*SERVE=PATH"):
        Locations(build=build).find(TRTLLM_SERVE)
    old = executable(tmp_path / "old" / "bin" / "trtllm-serve")
    assert Locations(build=build).find(TRTLLM_SERVE) == (str(old),)
    assert Locations().find(TRTLLM_SERVE) == (str(tested / "trtllm-serve"),)


def test_one_that_is_named_goes_before_the_prefix_and_others_lie_beside_it(tmp_path):
    serve, bench = (executable(tmp_path / f"bin/trtllm-{one}") for one in ("serve", "bench"))
    wrapper = executable(tmp_path / "wrap" / "wrapper")
    build = Installation(str(tmp_path), ((TRTLLM_SERVE.variable, f"{wrapper} 'a b' c"),))
    assert build.find(TRTLLM_SERVE) == (str(wrapper), "a b", "c")
    beside = Installation(named=((TRTLLM_SERVE.variable, str(serve)),))
    assert beside.find(TRTLLM_BENCH) == (str(bench),)
    with pytest.raises(InputError, match=TRTLLM_SERVE.variable):
        Installation(named=((TRTLLM_SERVE.variable, "'open"),)).find(TRTLLM_SERVE)


def test_the_interpreter_is_that_of_its_programs(tmp_path: Path) -> None:
    executable(tmp_path / "bin" / "trtllm-bench", f"#!{sys.executable}")
    assert Installation(str(tmp_path)).find(programs.TENSORRT_LLM_PYTHON) == (sys.executable,)
    python = executable(tmp_path / "bin" / "python")
    executable(tmp_path / "bin" / "trtllm-bench")
    assert Installation(str(tmp_path)).find(programs.BENCHMARK_SERVING)[0] == str(python)


def test_clients_stay_those_of_the_environment(tmp_path: Path, monkeypatch) -> None:
    own = executable(tmp_path / "own" / "aiperf")
    executable(tmp_path / "old" / "bin" / "aiperf")
    monkeypatch.setenv(programs.AIPERF.variable, str(own))
    found = Locations(build=Installation(str(tmp_path / "old"))).find(programs.AIPERF)
    assert found == (str(own),)


def test_programs_find_those_of_their_own_build_first(tmp_path, tested) -> None:
    executable(tmp_path / "old" / "bin" / "trtllm-serve", rest="python-of-it")
    executable(tmp_path / "old" / "bin" / "python-of-it", rest="echo old")
    executable(tested / "python-of-it", rest="echo tested")
    where = Locations(build=Installation(str(tmp_path / "old")))
    answer = where.ask(where.find(TRTLLM_SERVE), 60, of_engine=True)
    assert answer.stdout == "old\n"


def test_modules_of_the_build_under_test_are_not_imported(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/the/new/checkout")
    monkeypatch.setenv("VIRTUAL_ENV", "/the/new")
    monkeypatch.delenv("PYTHONHOME", raising=False)
    found = Installation(str(tmp_path)).environment(os.environ)
    assert (found["PYTHONPATH"], found["VIRTUAL_ENV"]) == ("", str(tmp_path))
    assert "PYTHONHOME" not in found
    assert Locations().engine_environment == {}


INSIDE = Locations(inside=Mock())


# In a container


def test_programs_of_another_build(tested: Path) -> None:
    named = Installation(named=((TRTLLM_SERVE.variable, "nice trtllm-serve"),))
    for build, call in (
        (Installation(), ("trtllm-serve",)),  # whatever the environment says
        (Installation("/opt/old"), ("/opt/old/bin/trtllm-serve",)),
        (named, ("nice", "trtllm-serve")),
    ):
        where = replace(INSIDE, build=build)
        assert where.find(TRTLLM_SERVE) == call
        assert where.engine_environment == {}  # that of the image


def test_engines_programs_are_called_by_their_names_or_as_the_person_says(monkeypatch):
    assert INSIDE.find(TRTLLM_BENCH) == ("trtllm-bench",)
    monkeypatch.setenv(TRTLLM_BENCH.variable, "/opt/x/trtllm-bench --log_level info")
    assert INSIDE.find(TRTLLM_BENCH) == ("/opt/x/trtllm-bench", "--log_level", "info")
    monkeypatch.setenv(TRTLLM_BENCH.variable, " ")
    refused(INSIDE.find, TRTLLM_BENCH, match=TRTLLM_BENCH.variable)
    monkeypatch.setenv(LM_EVAL.variable, sys.executable)
    assert INSIDE.find(LM_EVAL) == (sys.executable,)


def test_folders_and_hosts_are_those_of_the_environment(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv(MODELS, str(tmp_path))
    monkeypatch.setenv(HOSTS, "node1,node2 node3")
    found = Locations.of_environment()
    assert (found.models, found.datasets) == (tmp_path, None)
    assert found.hosts == ("node1", "node2", "node3")
    monkeypatch.setenv(DATASETS, str(tmp_path / "gone"))
    refused(Locations.of_environment, match=DATASETS)
