"""Release coverage: asked once of each engine that is under test."""

from dataclasses import replace

import pytest
from building import SCENARIO

from perfgate.core.errors import InputError
from perfgate.plan.release_coverage import uncovered
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
