"""The lab's own lines for vLLM: what perfgate renders, and what the release's parser takes.

Typed off the GPUStack performance lab's page on DeepSeek-R1 and H200 by hand (vLLM 0.11.0).
"""

import shlex

from tables import each
from vllm_scenarios import page, rendered, scenario

from perfgate.engines.option_check import Call, of_call

SERVE_LINE = "vllm serve deepseek-ai/DeepSeek-R1-0528 -tp 8"
LINES = (
    SERVE_LINE,
    "vllm bench serve --model deepseek-ai/DeepSeek-R1-0528 --backend openai-chat"
    " --endpoint /v1/chat/completions --dataset-name sharegpt"
    " --dataset-path ShareGPT_V3_unfiltered_cleaned_split.json --num-prompts 1000",
    "vllm bench serve --model deepseek-ai/DeepSeek-R1-0528 --backend openai-chat"
    " --endpoint /v1/chat/completions --dataset-name random --random-input-len 4000"
    " --random-output-len 200 --num-prompts 500 --seed 42",
)


@each("release", ["0.11.0", "0.33.0"])
@each("line", LINES)
def test_each_documented_line_is_taken_by_the_releases_own_parser(line: str, release: str) -> None:
    words = shlex.split(line)
    program = " ".join(words[: 3 if words[1] == "bench" else 2])
    call = Call(program, (), tuple(words[len(program.split()) :]), program)
    assert list(of_call(call, page(release))) == []


def test_the_documented_server_is_rendered_as_documented() -> None:
    assert rendered(scenario("0.11.0", tp=8), "0.11.0") == SERVE_LINE


def test_another_release_is_told_what_the_documented_one_did_by_itself() -> None:
    assert rendered(scenario("0.11.0", tp=8), "0.33.0") == (
        f"{SERVE_LINE} --gpu-memory-utilization 0.9 --enable-prefix-caching"
        " --enable-chunked-prefill --no-async-scheduling"
    )
