"""Exploration: scenarios marked `explore`, with lengths of a person's choice."""

from dataclasses import replace
from typing import Any

import pytest
from building import SCENARIO
from documented_set import documented_suite
from hypothesis import given
from hypothesis import strategies as st
from tables import each

from perfgate.core.errors import InputError
from perfgate.engines.tensorrt_llm.engine import TensorRTLLM
from perfgate.scenarios.exploration import explored, parse_shape
from perfgate.scenarios.rules.scenario_rules import broken_rules
from perfgate.scenarios.scenario import (
    EngineChoice,
    EngineSettings,
    Floor,
    Hardware,
    Model,
    Scenario,
    Workload,
)


def template(**settings: Any) -> Scenario:
    return replace(
        SCENARIO,
        id="h200-explore",
        hardware=Hardware("H200", 8),
        model=Model("deepseek-ai/DeepSeek-R1", "fp8"),
        engine=EngineChoice("tensorrt-llm", EngineSettings(tp=8, **settings)),
        workload=Workload("trtllm-bench", "synthetic", 1024, 1024, (1024,), requests=5120),
        accuracy=(),
        gate=replace(SCENARIO.gate, metrics=("output_throughput",)),
        floors=(Floor("output_throughput", 1.0),),
        markers=("explore",),
    )


def test_without_shapes_nothing_changes() -> None:
    assert explored([SCENARIO, template()], []) == (SCENARIO, template())


def test_each_marked_scenario_becomes_one_per_shape_in_its_place() -> None:
    made = explored([template(), SCENARIO], [(4096, 512), (128, 128), (4096, 512)])
    assert [scenario.id for scenario in made] == [
        "h200-explore-4096-512",
        "h200-explore-128-128",
        "small-serve",
    ]
    first = made[0].workload
    assert first is not None
    assert (first.isl, first.osl, first.concurrency) == (4096, 512, (1024,))
    assert made[0].title == "A small model, served, 4096/512"
    assert made[0].floors == (), "they were said of other lengths"
    assert made[0].content_hash() != made[1].content_hash()


STEP = {"max_num_tokens": 1151, "max_batch_size": 128}


@each(
    ("settings", "isl", "tokens"),
    [
        (STEP, 1151, 1151),  # enough
        (STEP, 4096, 4223),  # a prompt and the batch
        ({"max_num_tokens": 1151}, 4096, 4096),  # a prompt
        ({}, 4096, None),  # the engine's own
        ({"max_num_tokens": 512, "chunked_context": True}, 4096, 512),
    ],
)
def test_a_step_takes_the_longest_prompt(
    settings: dict[str, Any], isl: int, tokens: int | None
) -> None:
    (made,) = explored([template(**settings)], [(isl, 512)])
    assert made.engine.settings.max_num_tokens == tokens


@each(
    ("longest", "shape", "found"),
    [(2048, (1024, 2048), 3072), (2100, (1024, 2048), 3124), (9216, (128, 128), 9216)],
)
def test_a_sequence_takes_the_longest_request(
    longest: int, shape: tuple[int, int], found: int
) -> None:
    (made,) = explored([template(max_seq_len=longest)], [shape])
    assert made.engine.settings.max_seq_len == found


@given(
    isl=st.integers(1, 10**6),
    osl=st.integers(1, 10**6),
    tokens=st.none() | st.integers(1024, 10**5),
    batch=st.none() | st.integers(1, 4096),
    longest=st.none() | st.integers(2048, 10**5),
)
def test_whatever_the_shape_the_scenario_keeps_its_rules(
    isl: int, osl: int, tokens: int | None, batch: int | None, longest: int | None
) -> None:
    scenario = template(max_num_tokens=tokens, max_batch_size=batch, max_seq_len=longest)
    (made,) = explored([scenario], [(isl, osl)])
    assert broken_rules(made, TensorRTLLM.rules) == []
    settings = made.engine.settings
    assert (settings.max_num_tokens or isl) >= max(isl, tokens or 0)
    assert (settings.max_seq_len or isl + osl) >= max(isl + osl, longest or 0)


def test_only_synthetic_prompts_have_other_lengths() -> None:
    marked = template()
    real = marked.workload and replace(marked.workload, dataset="real")
    for load in (None, real):
        with pytest.raises(InputError, match="h200-explore cannot be explored: only synthetic"):
            explored([replace(marked, workload=load)], [(1, 1)])


def test_the_suites_templates_can_be_explored() -> None:
    marked = [s for s in documented_suite().scenarios if "explore" in s.markers]
    assert [s.id for s in marked] == ["b200-r1-fp4-explore", "h200-r1-fp8-explore"]
    for scenario in explored(marked, [(128, 128), (8192, 1024), (32000, 100)]):
        assert broken_rules(scenario, TensorRTLLM.rules) == []
        assert (scenario.engine.settings.max_num_tokens or 0) >= (scenario.workload.isl or 0)  # type: ignore[union-attr]


@each("text", ["", "4096", "4096/0", "4096,512", "4k/1k", "-1/5", "1/2/3", " 1/2"])
def test_anything_but_two_lengths_is_no_shape(text: str) -> None:
    assert parse_shape("4096/512") == (4096, 512)
    with pytest.raises(InputError, match=r"e\.g\. 4096/512"):
        parse_shape(text)
