"""Where programs are, here, on paper and of another build, and what those find around them."""

import os
import sys
from pathlib import Path

import pytest

from perfgate.core.errors import InputError, MissingProgram
from perfgate.core.locations import DATASETS, HOSTS, MODELS, Installation, Locations
from perfgate.core.program_query import Answer
from perfgate.core.programs import (
    AIPERF,
    BENCHMARK_SERVING,
    TENSORRT_LLM_PYTHON,
    TRTLLM_BENCH,
    TRTLLM_SERVE,
    Program,
)


def program(folder: Path, name: str, text: str = "echo hello", mode: int = 0o755) -> Path:
    file = folder / "bin" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(mode)
    return file


@pytest.fixture
def tested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The build under test, as the environment names it."""
    serve = program(tmp_path / "tested", "trtllm-serve", "echo tested")
    monkeypatch.setenv(TRTLLM_SERVE.variable, str(serve))
    monkeypatch.setenv("PATH", f"{serve.parent}:{os.environ['PATH']}")
    return serve.parent.parent


class TestHere:
    def test_a_program_is_that_of_the_prefix_and_not_the_environments(
        self, tmp_path: Path, tested: Path
    ) -> None:
        old = program(tmp_path / "old", "trtllm-serve")
        found = Locations(build=Installation(str(tmp_path / "old"))).find(TRTLLM_SERVE)
        assert found == (str(old),)
        assert Locations().find(TRTLLM_SERVE) == (str(tested / "bin" / "trtllm-serve"),)

    def test_one_that_the_prefix_lacks_is_not_taken_from_the_environment(
        self, tmp_path: Path, tested: Path
    ) -> None:
        program(tmp_path / "old", "trtllm-bench")
        with pytest.raises(MissingProgram, match=r"no trtllm-serve in .*/old/bin; .*SERVE=PATH"):
            Locations(build=Installation(str(tmp_path / "old"))).find(TRTLLM_SERVE)

    def test_one_that_is_named_goes_before_the_prefix(self, tmp_path: Path) -> None:
        program(tmp_path / "old", "trtllm-serve")
        wrapper = program(tmp_path / "wrap", "wrapper")
        build = Installation(
            str(tmp_path / "old"), ((TRTLLM_SERVE.variable, f"{wrapper} 'a b' c"),)
        )
        assert build.find(TRTLLM_SERVE) == (str(wrapper), "a b", "c")

    def test_beside_a_named_one_lie_the_others_of_its_build(self, tmp_path, tested) -> None:
        serve, bench = (program(tmp_path / "old", one) for one in ("trtllm-serve", "trtllm-bench"))
        build = Installation(named=((TRTLLM_SERVE.variable, str(serve)),))
        assert build.find(TRTLLM_BENCH) == (str(bench),)

    def test_a_call_of_nothing_is_refused(self) -> None:
        with pytest.raises(InputError, match=TRTLLM_SERVE.variable):
            Installation(named=((TRTLLM_SERVE.variable, "'open"),)).find(TRTLLM_SERVE)

    def test_the_interpreter_is_that_of_its_programs(self, tmp_path: Path) -> None:
        bench = program(tmp_path, "trtllm-bench")
        bench.write_text(f"#!{sys.executable}\n")
        assert Installation(str(tmp_path)).find(TENSORRT_LLM_PYTHON) == (sys.executable,)
        python = program(tmp_path, "python")
        bench.write_text("#!/bin/sh\n")
        assert Installation(str(tmp_path)).find(BENCHMARK_SERVING)[0] == str(python)

    def test_clients_stay_those_of_the_environment(self, tmp_path: Path, monkeypatch) -> None:
        own = program(tmp_path / "own", "aiperf")
        program(tmp_path / "old", "aiperf")
        monkeypatch.setenv(AIPERF.variable, str(own))
        found = Locations(build=Installation(str(tmp_path / "old"))).find(AIPERF)
        assert found == (str(own),)


class Box:
    """A container that is never asked."""

    def ask(self, argv: tuple[str, ...], seconds: float) -> Answer:
        raise AssertionError(argv)


class TestInAContainer:
    def test_programs_are_called_by_name_whatever_the_environment_says(self, tested: Path) -> None:
        assert Locations(inside=Box(), build=Installation()).find(TRTLLM_SERVE) == ("trtllm-serve",)

    def test_or_by_their_path_in_a_folder_of_the_image(self) -> None:
        where = Locations(inside=Box(), build=Installation("/opt/old"))
        assert where.find(TRTLLM_SERVE) == ("/opt/old/bin/trtllm-serve",)

    def test_or_as_they_are_named(self) -> None:
        build = Installation(named=((TRTLLM_SERVE.variable, "nice trtllm-serve"),))
        assert Locations(inside=Box(), build=build).find(TRTLLM_SERVE) == ("nice", "trtllm-serve")

    def test_their_environment_is_the_images(self, tested: Path) -> None:
        assert Locations(inside=Box(), build=Installation("/opt/old")).engine_environment == {}


class TestEnvironment:
    def test_programs_find_those_of_their_own_build_first(self, tmp_path, tested) -> None:
        program(tmp_path / "old", "trtllm-serve", "python-of-it")
        program(tmp_path / "old", "python-of-it", "echo old")
        program(tested, "python-of-it", "echo tested")
        where = Locations(build=Installation(str(tmp_path / "old")))
        answer = where.ask(where.find(TRTLLM_SERVE), 60, of_engine=True)
        assert answer.stdout == "old\n"

    def test_modules_of_the_build_under_test_are_not_imported(self, tmp_path, monkeypatch) -> None:
        monkeypatch.setenv("PYTHONPATH", "/the/new/checkout")
        monkeypatch.setenv("VIRTUAL_ENV", "/the/new")
        monkeypatch.delenv("PYTHONHOME", raising=False)
        found = Installation(str(tmp_path)).environment(os.environ)
        assert (found["PYTHONPATH"], found["VIRTUAL_ENV"]) == ("", str(tmp_path))
        assert "PYTHONHOME" not in found

    def test_the_build_under_test_has_what_the_session_has(self) -> None:
        assert Locations().engine_environment == {}


PROGRAM = Program("no-such", "no-such-program-anywhere", "nothing", ("-m", "module"))


def test_on_paper_a_program_is_called_by_its_bare_name() -> None:
    assert Locations(on_paper=True).find(PROGRAM) == ("no-such-program-anywhere", "-m", "module")


def test_for_real_it_must_be_installed() -> None:
    with pytest.raises(MissingProgram, match="PERFGATE_PROGRAM_NO_SUCH"):
        Locations().find(PROGRAM)


def test_here_reads_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(MODELS, str(tmp_path))
    monkeypatch.setenv(HOSTS, "node1,node2 node3")
    found = Locations.of_environment()
    assert found.models == tmp_path
    assert found.datasets is None
    assert found.hosts == ("node1", "node2", "node3")


def test_a_folder_that_is_not_there_is_told(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv(DATASETS, str(tmp_path / "gone"))
    with pytest.raises(InputError, match=DATASETS):
        Locations.of_environment()
