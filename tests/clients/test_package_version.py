"""The release of a client that does not tell it: asked of the interpreter that runs it."""

import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from perfgate.clients.base import package_version
from perfgate.clients.sglang_bench import SglangBench
from perfgate.clients.vllm_bench import VllmBenchmarkServing
from perfgate.core.errors import MissingProgram
from perfgate.core.locations import Locations
from perfgate.core.programs import SGLANG_BENCH, VLLM_SCRIPT
from perfgate.engines.base import EngineBuild

BUILD = EngineBuild("tensorrt-llm", "1.0.0", "a")
INSTALLED = version("msgspec")


@pytest.fixture
def env(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    return monkeypatch


def test_of_the_python_that_runs_a_module(env: pytest.MonkeyPatch) -> None:
    env.setenv(SGLANG_BENCH.variable, f"{sys.executable} -m sglang.bench_serving")
    assert package_version(SGLANG_BENCH, "msgspec", Locations()) == INSTALLED


@pytest.mark.parametrize(
    ("first", "found"), [(f"#!{sys.executable}", INSTALLED), ("#!/bin/sh", "0.8.5"), ("#!/x", None)]
)
def test_of_the_python_that_a_script_names_or_that_is_beside_it(
    tmp_path: Path, env: pytest.MonkeyPatch, first: str, found: str | None
) -> None:
    script = tmp_path / "benchmark_serving.py"
    script.write_text(f"{first}\n")
    script.chmod(0o755)
    env.setenv(VLLM_SCRIPT.variable, str(script))
    if found is None:
        with pytest.raises(MissingProgram, match="neither a Python nor a script of one"):
            VllmBenchmarkServing().version(BUILD, Locations())
        return
    (tmp_path / "python").write_text("#!/bin/sh\necho 0.8.5\n")
    (tmp_path / "python").chmod(0o755)
    assert package_version(VLLM_SCRIPT, "msgspec", Locations()) == found


def test_a_python_without_the_package(env: pytest.MonkeyPatch) -> None:
    env.setenv(SGLANG_BENCH.variable, f"{sys.executable} -m sglang.bench_serving")
    with pytest.raises(MissingProgram, match="has no package sglang") as caught:
        SglangBench().version(BUILD, Locations())
    assert "followed by -m sglang.bench_serving" in caught.value.hint
