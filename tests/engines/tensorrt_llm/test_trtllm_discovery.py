"""Which TensorRT-LLM is installed: its version and commit, found among log lines."""

import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tables import each

from perfgate.core.errors import MissingProgram
from perfgate.core.programs.locations import Installation, Locations
from perfgate.core.programs.program_query import Answer
from perfgate.engines import installed_programs
from perfgate.engines.base import EngineBuild
from perfgate.engines.tensorrt_llm.installed_options import installed, version_in

COMMIT = "b6261862419c33d6ce2313aff1e7116067d6037d"


@each(
    ("text", "version"),
    [
        ("[TensorRT-LLM] TensorRT-LLM version: 1.0.0rc6\nUsage: trtllm-bench …", "1.0.0rc6"),
        ("[TensorRT LLM] TensorRT LLM version: 1.2.0\n", "1.2.0"),
        (
            "2025-06-13 15:20:14,791 - INFO - flashinfer.jit: Prebuilt kernels not found\n"
            "[TensorRT-LLM] TensorRT-LLM version: 0.21.0rc1\nError: No such option: --version\n",
            "0.21.0rc1",
        ),
        ("trtllm-bench, version 1.3.0rc5.post1\n", "1.3.0rc5.post1"),
        ("Multiple distributions found for package optimum.\n1.1.0\n", "1.1.0"),
        ("1.0.0+cu129\n", "1.0.0+cu129"),
    ],
)
def test_the_version_stands_somewhere_in_the_output(text: str, version: str) -> None:
    assert version_in(text) == version


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Usage: trtllm-bench [OPTIONS] COMMAND [ARGS]...\nError: No such option: --version\n",
        "UserWarning: torch 2.8.0 was built for CUDA 12.9, found 13.0\n",
        "ModuleNotFoundError: No module named 'tensorrt_llm'\n",
        "[11/07/2025-10:01:02] [TRT-LLM] [I] Preparing\n",
    ],
)
def test_other_numbers_are_no_version(text: str) -> None:
    assert version_in(text) is None


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine where neither program reports a version, and nothing is set."""
    installed_programs.answer.cache_clear()
    for name in ("TRTLLM_BENCH", "TENSORRT_LLM"):
        monkeypatch.setenv(f"PERFGATE_PROGRAM_{name}", "false")
    for name in ("TRT_LLM_VERSION", "TRT_LLM_GIT_COMMIT", "PERFGATE_TENSORRT_LLM_SOURCE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def program(folder: Path, text: str, status: int = 0) -> str:
    """A program that prints `text`, whatever it is asked."""
    file = folder / "program.sh"
    file.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {status}\n")
    file.chmod(0o755)
    return str(file)


def test_the_benchmark_is_asked_then_the_metadata_then_the_variable(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRT_LLM_VERSION", "1.2.0rc6")
    assert installed(Locations.of_environment()).version == "1.2.0rc6"
    monkeypatch.setenv("PERFGATE_PROGRAM_TENSORRT_LLM", program(machine, "warning: x\n1.1.0"))
    assert installed(Locations.of_environment()).version == "1.1.0"
    # It has no --version and ends with status 2; its banner is told all the same.
    (machine / "bench").mkdir()
    said = program(machine / "bench", "[TensorRT-LLM] TensorRT-LLM version: 1.0.0", status=2)
    monkeypatch.setenv("PERFGATE_PROGRAM_TRTLLM_BENCH", said)
    found = installed(Locations.of_environment())
    assert found == EngineBuild("tensorrt-llm", "1.0.0", "1.0.0")


def test_nothing_tells(machine: Path) -> None:
    with pytest.raises(MissingProgram) as caught:
        installed(Locations.of_environment())
    for word in ("trtllm-bench", "PERFGATE_PROGRAM_TRTLLM_BENCH", "--engine-version"):
        assert word in str(caught.value)


class TestCommit:
    @pytest.fixture(autouse=True)
    def version(self, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TRT_LLM_VERSION", "1.0.0")

    @pytest.mark.parametrize(
        ("told", "commit"), [(COMMIT, COMMIT), ("unknown", "1.0.0"), ("main", "1.0.0")]
    )
    def test_is_the_containers_if_it_is_one(
        self, told: str, commit: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TRT_LLM_GIT_COMMIT", told)
        assert installed(Locations.of_environment()).commit == commit

    def test_is_else_that_of_the_checkout(
        self, machine: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def git(*words: str) -> str:
            who = ("-c", "user.name=a", "-c", "user.email=a@b")
            done = subprocess.run(
                ["git", "-C", str(machine), *who, *words],
                capture_output=True,
                text=True,
                check=True,
            )
            return done.stdout.strip()

        git("init", "-q")
        git("commit", "-q", "--allow-empty", "-m", "first")
        monkeypatch.setenv("PERFGATE_TENSORRT_LLM_SOURCE", str(machine))
        assert installed(Locations.of_environment()).commit == git("rev-parse", "HEAD")


@dataclass(frozen=True)
class Image:
    """A container whose programs say what a test wants; equal ones give equal answers."""

    says: tuple[tuple[str, str], ...]

    def ask(self, argv: tuple[str, ...], seconds: float) -> Answer:
        text = dict(self.says).get(argv[-1])
        return Answer(1) if text is None else Answer(0, text)


class TestInAContainer:
    """The machine has no TensorRT-LLM, or another one."""

    def build(self, **says: str) -> EngineBuild:
        source = Path("/nowhere/that/is/asked")
        inside = Image(tuple((name.replace("__", "--"), text) for name, text in says.items()))
        return installed(Locations(source=source, inside=inside))

    def test_version_and_commit_are_those_of_the_image(
        self, machine: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TRT_LLM_VERSION", "9.9.9")
        monkeypatch.setenv("TRT_LLM_GIT_COMMIT", "f" * 40)
        found = self.build(__version="1.0.0\n", TRT_LLM_GIT_COMMIT=f"{COMMIT}\n")
        assert found == EngineBuild("tensorrt-llm", "1.0.0", COMMIT)
        assert self.build(__version="1.0.0\n").commit == "1.0.0"
        assert self.build(TRT_LLM_VERSION="1.2.0\n").version == "1.2.0", "no program tells it"
        with pytest.raises(MissingProgram):
            self.build()


def test_of_another_build_nothing_is_told_by_what_is_said_of_the_one_under_test(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = machine / "old/bin/trtllm-bench"
    bench.parent.mkdir(parents=True)
    bench.write_text("#!/bin/sh\necho 1.1.0\n")
    bench.chmod(0o755)
    monkeypatch.setenv("TRT_LLM_GIT_COMMIT", COMMIT)
    monkeypatch.setenv("TRT_LLM_VERSION", "9.9.9")
    other = replace(Locations.of_environment(), build=Installation(str(machine / "old")))
    assert installed(other) == EngineBuild("tensorrt-llm", "1.1.0", "1.1.0")
    assert installed(Locations.of_environment()).commit == COMMIT
    bench.unlink()
    installed_programs.answer.cache_clear()
    with pytest.raises(MissingProgram, match="TensorRT-LLM is not installed"):
        installed(other)
