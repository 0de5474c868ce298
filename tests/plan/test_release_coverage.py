"""Release coverage: asked once of each engine that is under test."""

from dataclasses import replace

import pytest
from building import SCENARIO
from tables import each

from perfgate.core.errors import InputError
from perfgate.engines.base import said_of
from perfgate.plan.release_coverage import uncovered
from perfgate.plan.toolchain import BuildOverride
from perfgate.scenarios.scenario import Scenario


def of(engine: str) -> Scenario:
    return replace(SCENARIO, engine=replace(SCENARIO.engine, name=engine))


def test_each_engine_is_asked_once() -> None:
    scenarios = [of("tensorrt-llm"), of("llama.cpp"), of("tensorrt-llm")]
    (told,) = uncovered(scenarios, "99")
    assert "TensorRT-LLM 99" in told
    assert uncovered(scenarios, None) == uncovered(scenarios, "1.0.0") == ()


def test_an_engine_without_tables_takes_any_name() -> None:
    assert uncovered([of("llama.cpp")], "zzz") == ()
    with pytest.raises(InputError, match="not a version"):
        uncovered([of("llama.cpp"), of("tensorrt-llm")], "zzz")


@each(
    ("said", "name", "release"),
    [
        ("1.3.0", "tensorrt-llm", "1.3.0"),
        ("1.3.0", "vllm", None),
        ("1.3.0", "sglang", None),
        ("vllm=0.33.0", "vllm", "0.33.0"),
        ("vllm=0.33.0", "sglang", None),
        ("vllm=0.33.0", "tensorrt-llm", None),
        (None, "tensorrt-llm", None),
    ],
)
def test_a_bare_release_is_tensorrt_llms(said: str | None, name: str, release: str | None) -> None:
    assert said_of(name, said) == release
    assert BuildOverride(said, said).of(name) == BuildOverride(release, release)


def test_a_bare_release_of_nothing_that_is_measured_is_refused() -> None:
    with pytest.raises(InputError, match="vllm=RELEASE"):
        uncovered([of("vllm")], "0.33.0")
    assert uncovered([of("vllm")], "vllm=0.33.0") == ()
    assert uncovered([of("vllm"), of("tensorrt-llm")], "1.3.0") == ()


def test_one_scenario_can_mean_no_other_engine() -> None:
    assert said_of("vllm", "0.33.0", alone=True) == "0.33.0"
