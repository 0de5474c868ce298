"""What a server says that it runs with, read from what a real one of 0.32.0 wrote and answered.

`recorded/` holds its log and its answer, of a CPU, with folders renamed. The line of 0.11.0 has the
form that this release writes on a GPU.
"""

import json
from dataclasses import replace
from typing import Any

import pytest
from tables import each
from vllm_scenarios import HERE, scenario

from perfgate.core.errors import RunError
from perfgate.core.measurement import Json
from perfgate.engines.effective_settings import EffectiveSettings, require_effective_settings
from perfgate.engines.vllm.engine import Vllm
from perfgate.engines.vllm.resolved_settings import of_text
from perfgate.scenarios.scenario import CudaGraphs, Mtp, Scenario, Workload

REAL_LOG = (HERE / "serve_0.32.0_cpu.log").read_text().splitlines()
REAL_ANSWER: dict[str, Json] = json.loads((HERE / "server_info_0.32.0_cpu.json").read_text())
AS_SERVED: dict[str, Any] = {
    "max_seq_len": 2048,
    "cuda_graphs": CudaGraphs(enabled=False),
    "kv_cache_reuse": False,
    "max_batch_size": 4,
}
SIZES = [512, 256, 128, 64, 32, 16, 8, 4, 2, 1]
OLD_LINE = (
    "(EngineCore_DP0 pid=164) INFO 01-23 15:48:36 [core.py:77] Initializing a V1 LLM engine "
    "(v0.11.0) with config: model='/models/a, b=(c', speculative_config=SpeculativeConfig(method="
    "'deepseek_mtp', model='/models/m', num_spec_tokens=1), trust_remote_code=False, "
    "max_seq_len=163840, tensor_parallel_size=8, pipeline_parallel_size=1, data_parallel_size=1, "
    "quantization=fp8, enforce_eager=False, kv_cache_dtype=auto, seed=None, "
    "enable_prefix_caching=True, chunked_prefill_enabled=True, pooler_config=None, "
    'compilation_config={"level":3,"splitting_ops":["vllm.unified_attention"],"cudagraph_mode":'
    f'[2,1],"use_cudagraph":true,"cudagraph_capture_sizes":{json.dumps(SIZES)},'
    '"max_capture_size":512,"local_cache_dir":null}'
)
BESIDE = (
    "INFO 01-23 15:48:33 [scheduler.py:205] Chunked prefill is enabled with "
    "max_num_batched_tokens=8192.",
    "INFO 01-23 15:50:06 [kv_cache_utils.py:1087] GPU KV cache size: 840,160 tokens",
    "INFO 01-23 15:50:06 [kv_cache_utils.py:1087] GPU KV cache size: 840,160 tokens",
)


def load(requests: int) -> Workload:
    many = (requests,)
    return Workload("any", "synthetic", 1024, 1024, many, requests=requests, capped=False)


def told(
    case: Scenario, answer: dict[str, Json] | None = None, log: tuple[str, ...] = ()
) -> EffectiveSettings:
    found = Vllm().effective_settings(case, answer or {}, log)
    assert found is not None
    return found


def test_the_real_log_tells_what_a_real_server_runs_with() -> None:
    found = told(scenario(gpus=0, **AS_SERVED), log=tuple(REAL_LOG))
    assert found.source == "its log"
    assert found.settings == {
        "tp": 1,
        "pp": 1,
        "dp": 1,
        "attention_dp": False,
        "max_seq_len": 2048,
        "seed": 0,
        "quantization": None,
        "kv_cache_reuse": False,
        "chunked_context": True,
        "trust_remote_code": False,
        "iteration_log": False,
        "mtp": {"layers": 0},
        "torch_compile": False,
        "cuda_graphs": {"enabled": False},
    }
    assert found.told["kv_cache_size_tokens"] == 46592
    assert "non-default" not in str(found.told)
    facts = require_effective_settings(scenario(gpus=0, **AS_SERVED), found)
    assert facts["settings_told_by"] == "its log"


def test_a_text_under_the_same_path_is_read_as_the_line_is() -> None:
    line = next(line for line in REAL_LOG if "with config: " in line)
    text: Json = line.partition("with config: ")[2]
    found = told(scenario(gpus=0), {"vllm_config": text, "path": "/server_info"})
    assert found.settings == {
        name: value for name, value in told(scenario(gpus=0), log=(line,)).settings.items()
    }


@each(
    ("asked", "words"),
    [
        ({"kv_cache_reuse": True}, "kv_cache_reuse: asked True, in force False"),
        ({"max_seq_len": 4096}, "max_seq_len: asked 4096, in force 2048"),
        ({"mtp": Mtp(1)}, "mtp: asked {'layers': 1}, in force {'layers': 0}"),
        ({"cuda_graphs": CudaGraphs()}, "in force {'enabled': False}"),
        ({"torch_compile": True}, "torch_compile: asked True, in force False"),
        ({"max_batch_size": 8}, "max_batch_size: asked 8, in force 4"),
        ({"overlap_scheduler": True}, "overlap_scheduler: asked True, in force False"),
        ({"kv_cache_fraction": 0.9}, "kv_cache_fraction: asked 0.9, in force 0.92"),
    ],
)
def test_a_setting_that_the_real_server_does_not_run_with_is_an_error(
    asked: dict[str, Any], words: str
) -> None:
    case = scenario(gpus=0, **asked)
    with pytest.raises(RunError) as caught:
        require_effective_settings(case, told(case, REAL_ANSWER, tuple(REAL_LOG)))
    assert caught.value.failure == "not_in_force"
    assert words in caught.value.message


def test_the_line_of_an_older_release() -> None:
    found = told(scenario(tp=8, mtp=Mtp(1), cuda_graphs=CudaGraphs()), log=(*BESIDE, OLD_LINE))
    assert found.settings == {
        "tp": 8,
        "pp": 1,
        "dp": 1,
        "attention_dp": False,
        "max_num_tokens": 8192,
        "max_seq_len": 163840,
        "seed": None,
        "quantization": "fp8",
        "kv_cache_reuse": True,
        "chunked_context": True,
        "trust_remote_code": False,
        "mtp": {"layers": 1},
        "torch_compile": True,
        "cuda_graphs": {"enabled": True},
    }
    assert found.told["kv_cache_size_tokens"] == 840160


@pytest.mark.parametrize(
    ("mode", "graphs", "settings"),
    [
        ("CompilationMode.NONE: 0", "CUDAGraphMode.NONE: 0", (False, False)),
        ("CompilationMode.NONE: 0", "CUDAGraphMode.FULL: 2", (False, True)),
        ("CompilationMode.VLLM_COMPILE: 3", "CUDAGraphMode.NONE: 0", (True, False)),
        (
            "CompilationMode.VLLM_COMPILE: 3",
            "CUDAGraphMode.FULL_AND_PIECEWISE: (2, 1)",
            (True, True),
        ),
    ],
)
def test_what_is_compiled_and_captured_as_newer_releases_tell_it(
    mode: str, graphs: str, settings: tuple[bool, bool]
) -> None:
    config = f"{{'mode': <{mode}>, 'cudagraph_mode': <{graphs}>, 'cudagraph_capture_sizes': [1]}}"
    line = next(line for line in REAL_LOG if "with config: " in line)
    line = line.replace("enforce_eager=True", "enforce_eager=False")
    before, _, behind = line.partition("compilation_config=")
    line = f"{before}compilation_config={config}, kernel{behind.partition(', kernel')[2]}"
    found = told(scenario(gpus=0), log=(line,)).settings
    assert (found["torch_compile"], found["cuda_graphs"]) == (
        settings[0],
        {"enabled": settings[1]},
    )


def test_sizes_of_graphs_are_told_where_they_are_asked() -> None:
    graphs = CudaGraphs(batch_sizes=tuple(reversed(SIZES)))
    case = scenario(tp=8, cuda_graphs=graphs)
    require_effective_settings(case, told(case, log=(OLD_LINE,)))
    fewer = scenario(tp=8, cuda_graphs=replace(graphs, batch_sizes=(1, 2)))
    with pytest.raises(RunError, match="in force"):
        require_effective_settings(fewer, told(fewer, log=(OLD_LINE,)))
    largest = scenario(tp=8, cuda_graphs=CudaGraphs(max_batch_size=512))
    require_effective_settings(largest, told(largest, log=(OLD_LINE,)))


@pytest.mark.parametrize(
    ("count", "has_experts", "settings"),
    [
        (8, True, {"dp": 8, "attention_dp": True}),
        (8, False, {"dp": 8, "attention_dp": False}),
        (1, False, {"attention_dp": False}),  # a replica, which says that it is alone
    ],
)
def test_data_parallelism_of_a_model_without_experts_is_none_of_the_attention(
    count: int, has_experts: bool, settings: dict[str, Json]
) -> None:
    answer: dict[str, Any] = json.loads(json.dumps(REAL_ANSWER))
    answer["vllm_config"]["parallel_config"]["data_parallel_size"] = count
    answer["vllm_config"]["parallel_config"]["is_moe_model"] = has_experts
    found = told(scenario(tp=1, dp=8, attention_dp=True), answer).settings
    assert {name: found[name] for name in ("dp", "attention_dp") if name in found} == settings


def test_the_log_does_not_tell_whether_the_attention_is_divided() -> None:
    line = OLD_LINE.replace("data_parallel_size=1", "data_parallel_size=8")
    found = told(scenario(tp=1, dp=8, attention_dp=True), log=(line,)).settings
    assert found["dp"] == 8
    assert "attention_dp" not in found


def test_what_bounds_the_load_is_told() -> None:
    case = scenario(tp=8, max_batch_size=256, workload=load(1000))
    found = told(case, log=(*BESIDE, OLD_LINE.replace("512,", "")))
    assert list(found.limits) == [
        "max_num_seqs 256, 1000 requests in flight",
        "KV cache of 840160 tokens, 1000 requests of 2048 tokens in flight: 2048000",
        "prefix cache on by default: a prompt that comes again is not computed again",
    ]
    more = scenario(tp=8, max_batch_size=1024, kv_cache_reuse=True, workload=load(1000))
    assert list(told(more, log=(OLD_LINE,)).limits) == [
        "CUDA graphs for batches of up to 512, batches of up to 1000"
    ]
    case = scenario(tp=8, max_batch_size=256, kv_cache_reuse=True, workload=load(100))
    assert told(case, log=(*BESIDE, OLD_LINE)).limits == ()


@pytest.mark.parametrize("log", [(), ("INFO: nothing of a config",), BESIDE])
def test_a_server_that_says_nothing_tells_nothing(log: tuple[str, ...]) -> None:
    assert Vllm().effective_settings(scenario(tp=8), {}, log) is None


def test_a_key_among_the_arguments_is_not_kept() -> None:
    given = "non-default args: {'api_key': ['made-up'], 'max_num_seqs': 4}"
    found = told(scenario(tp=8), log=(given, OLD_LINE))
    assert "made-up" not in str(found)
    assert "max_batch_size" not in found.settings  # given is not in force


@each(
    "text",
    ["", "=,=", "max_seq_len=(2048", "max_seq_len='a", "compilation_config={" * 3000, "seed=0x"],
)
def test_any_text_is_read_without_an_error(text: str) -> None:
    assert isinstance(of_text(text), dict)
