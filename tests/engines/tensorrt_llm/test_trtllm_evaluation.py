"""The call of trtllm-eval, from the release on that has its tasks."""

from dataclasses import replace
from typing import Any

import pytest
from tables import each
from trtllm_scenarios import check, scenario

from perfgate.core.errors import CannotDo
from perfgate.core.programs.locations import Locations
from perfgate.engines.base import EngineBuild
from perfgate.engines.tensorrt_llm.engine import is_served
from perfgate.engines.tensorrt_llm.programs import evaluate
from perfgate.scenarios.scenario import AccuracyTask, EngineSettings, Scenario

PAPER = Locations(on_paper=True)
V3 = scenario(
    release="0.19.0",
    model="deepseek-ai/DeepSeek-V3",
    settings=EngineSettings(tp=8, max_batch_size=32, kv_cache_fraction=0.95, backend="pytorch"),
)
GPQA = AccuracyTask("trtllm-eval", "gpqa_diamond", 0)


def argv(version: str, task: AccuracyTask = GPQA, case: Scenario = V3) -> str:
    build = EngineBuild("tensorrt-llm", version, "a")
    return " ".join(evaluate(case, build, task, None, PAPER).argv)


def refused(task: AccuracyTask, version: str = "1.3.0rc3", case: Scenario = V3) -> str:
    with pytest.raises(CannotDo) as caught:
        argv(version, task, case)
    return str(caught.value)


def test_mmlu_alone_leaves_no_samples() -> None:
    assert "--log_samples" in argv("1.3.0rc3")
    assert "--log_samples" not in argv("1.3.0rc3", AccuracyTask("trtllm-eval", "mmlu", 5))


@each(
    ("changes", "expected"),
    [
        ({"task": "humaneval"}, "one of gpqa_diamond, gsm8k, mmlu"),
        ({"fewshot": 5}, "0: the examples of trtllm-eval gpqa_diamond"),
        ({"temperature": 0.6}, "greedy"),
        ({"add_special_tokens": False}, "no option for it"),
        ({"extra_body": {"top_p": 0.9}}, "no option for it"),
        ({"concurrency": 32}, "max_batch_size holds them back"),
        ({"batch_size": 32}, "max_batch_size holds them back"),
    ],
)
def test_what_it_cannot_be_told_is_refused(changes: dict[str, Any], expected: str) -> None:
    assert expected in refused(replace(GPQA, **changes))


def test_the_limit_of_mmlu_counts_for_each_subject() -> None:
    task = AccuracyTask("trtllm-eval", "mmlu", 5, limit=100)
    assert "a multiple of 57" in refused(task)
    assert "--num_samples 114" in argv("1.3.0rc3", replace(task, limit=114))


def test_a_scenario_of_it_needs_no_server_and_is_checked() -> None:
    scenario = replace(V3, accuracy=(GPQA,))
    assert not is_served(scenario)
    check(scenario, EngineBuild("tensorrt-llm", "1.3.0rc3", "a"))
    with pytest.raises(CannotDo):
        check(scenario, EngineBuild("tensorrt-llm", "0.19.0", "a"))
