"""The GPUStack lab's two bench lines, at its release of the client: rendered, plus what is needed.

Each addition says where a result goes or what is in it, or is what that release does anyway: a run
at the document's own releases measures what the document measured.
"""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perfgate.clients.base import Target
from perfgate.clients.vllm_bench import VllmBench
from perfgate.core.locations import Locations
from perfgate.engines.base import Endpoint
from perfgate.engines.definitions import Definitions
from perfgate.rehearsal.recorded_pages import FOLDER
from perfgate.scenarios.scenario import LoadPoint, Workload

RELEASE = "0.11.0"
MODEL = "deepseek-ai/DeepSeek-R1-0528"
SHAREGPT_LINE = (
    "vllm bench serve --model deepseek-ai/DeepSeek-R1-0528 --backend openai-chat "
    "--endpoint /v1/chat/completions --dataset-name sharegpt "
    "--dataset-path ShareGPT_V3_unfiltered_cleaned_split.json --num-prompts 1000"
)
RANDOM_LINE = (
    "vllm bench serve --model deepseek-ai/DeepSeek-R1-0528 --backend openai-chat "
    "--endpoint /v1/chat/completions --dataset-name random --random-input-len 4000 "
    "--random-output-len 200 --num-prompts 500 --seed 42"
)
SHAREGPT = Workload(
    "vllm-bench", "sharegpt", None, None, (1000,), requests=1000, ignore_eos=False, api="chat"
)
RANDOM = replace(SHAREGPT, dataset="synthetic", isl=4000, osl=200, requests=500)
# Where the result goes, and what is in it: nothing that is asked of the server.
REPORTING = {
    "--percentile-metrics": "ttft,tpot,itl,e2el",
    "--metric-percentiles": "90,95,99",
    "--save-result": "",
    "--result-dir": ".",
    "--result-filename": "concurrency_1000.json",
}
# Asked of the server: each is what the release does without it.
DEFAULTS = {"--host": "127.0.0.1", "--port": "8000", "--seed": "0", "--random-range-ratio": "0.0"}
# Without the option the release sends 0.0 (vllm/benchmarks/serve.py, "Default to greedy decoding").
GREEDY = {"--temperature": "0"}


def rendered(workload: Workload, seed: int) -> dict[str, str]:
    target = Target(Endpoint("127.0.0.1", 8000, MODEL), MODEL, Locations(on_paper=True), RELEASE)
    point = LoadPoint(1000, workload.requests or 0, 0, seed, capped=False)
    return options(shlex.join(VllmBench().command(target, workload, point, Path()).argv))


def options(line: str) -> dict[str, str]:
    """Option → value of a line that begins with ``vllm bench serve``."""
    words = shlex.split(line)
    assert words[:3] == ["vllm", "bench", "serve"]
    found: dict[str, str] = {}
    rest = words[3:]
    while rest:
        option = rest.pop(0)
        found[option] = "" if not rest or rest[0].startswith("--") else rest.pop(0)
    return found


@pytest.mark.parametrize(
    ("workload", "seed", "line"),
    [(SHAREGPT, 0, SHAREGPT_LINE), (RANDOM, 42, RANDOM_LINE)],
    ids=["sharegpt", "random"],
)
def test_the_documented_line_is_rendered_and_little_else(
    workload: Workload, seed: int, line: str
) -> None:
    documented, found = options(line), rendered(workload, seed)
    assert {name: found.get(name) for name in documented} == documented
    added = {name: value for name, value in found.items() if name not in documented}
    known = {**REPORTING, **DEFAULTS, **GREEDY}
    assert added == {name: known[name] for name in added}
    assert {*REPORTING, *GREEDY} <= set(added)


@pytest.mark.parametrize("option", DEFAULTS)
def test_what_is_added_is_the_release_s_own_default(option: str) -> None:
    page = FOLDER / f"vllm_{RELEASE}.json"
    told = msgspec.json.decode(page.read_bytes(), type=Definitions)
    declared = told.option("vllm bench serve", option)
    assert declared is not None
    default: Any = declared.default
    assert str(default) == DEFAULTS[option]


def test_the_release_ends_answers_at_eos_unless_told() -> None:
    """Which the lab did not: its 32K case generated 9,952 tokens of 10,000 on SGLang."""
    assert "--ignore-eos" not in rendered(RANDOM, 42)
    assert "--extra-body" not in rendered(RANDOM, 42)
