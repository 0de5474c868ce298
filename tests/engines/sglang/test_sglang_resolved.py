"""What a running SGLang says that it runs with: what is not in force, and what bounds it.

The server's side is the stand-in's, which resolves as `ServerArgs.__post_init__` of each release
did when it was run (H200, DeepSeek-V3's configuration); and a recorded answer of a real 0.5.23.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sglang_scenarios import COMPILED, DP, EAGLE, ENGINE, LOAD, TP, page, render, scenario
from tables import each

from perfgate.core.errors import RunError
from perfgate.engines.effective_settings import (
    EffectiveSettings,
    differences,
    require_effective_settings,
)
from perfgate.engines.sglang.table import SERVE
from perfgate.rehearsal.options import read_as_argparse
from perfgate.rehearsal.programs.sglang_settings import resolved
from perfgate.scenarios.scenario import CudaGraphs, EngineSettings, Hardware, Mtp, Scenario

RECORDED = Path(__file__).parent / "recorded" / "server_info_0.5.23_cpu.json"
DP_8 = replace(TP, attention_dp=True, dp=8)
GRAPHS = "cuda_graph_max_bs 512, 1000 requests in flight: larger batches run without CUDA graphs"
COMPILE = "torch_compile_max_bs 32, 1000 requests in flight: larger batches are not compiled"
CAPPED = (
    "max_running_requests 48, 1000 requests in flight: the server's own limit under speculative "
    "decoding"
)


def answered(case: Scenario, version: str = "0.5.3") -> dict[str, Any]:
    """What the server says that is started with the scenario's own command."""
    options = page("0.5.23" if version >= "0.5.2" and len(version) > 5 else "0.5.3").programs[SERVE]
    words = read_as_argparse(SERVE, options, render(case, version).argv[3:])
    return {**resolved(words, version, "H200"), "path": "/get_server_info"}


def asked(case: Scenario, told: dict[str, Any], *log: str) -> EffectiveSettings:
    found = ENGINE.effective_settings(case, told, log)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("settings", "fraction", "chunk", "not_in_force", "limits"),
    [
        (TP, 0.897, 8192, [], (GRAPHS,)),
        (DP, 0.881, 8192, ["attention_dp: asked True, in force False"], (GRAPHS,)),
        (DP_8, 0.769, 1024, [], ()),
        (COMPILED, 0.881, 8192, ["attention_dp: asked True, in force False"], (COMPILE, GRAPHS)),
        (EAGLE, 0.866, 8192, ["attention_dp: asked True, in force False"], (CAPPED, COMPILE)),
    ],
    ids=["tp", "dp alone", "dp 8", "compiled", "eagle"],
)
def test_each_documented_line_as_the_documents_release_resolves_it(
    settings: EngineSettings,
    fraction: float,
    chunk: int,
    not_in_force: list[str],
    limits: tuple[str, ...],
) -> None:
    case = scenario(settings)
    told = answered(case)
    found = asked(case, told)
    assert [str(one) for one in differences(case, found)] == not_in_force
    assert found.limits == limits
    assert (told["mem_fraction_static"], told["chunked_prefill_size"]) == (fraction, chunk)
    assert found.told["mem_fraction_static"] == fraction


def test_attention_dp_that_the_server_switched_off_is_an_error_with_both_values() -> None:
    case = scenario(DP)
    with pytest.raises(RunError) as caught:
        require_effective_settings(case, asked(case, answered(case)))
    assert caught.value.failure == "not_in_force"
    told = "/get_server_info: attention_dp: asked True, in force False"
    assert caught.value.evidence == (told,)


@pytest.mark.parametrize(
    ("version", "parts"), [("0.4.2", 8), ("0.5.2", 1), ("0.5.3", 1), ("0.5.18", 1), ("0.5.23", 1)]
)
def test_what_becomes_of_attention_dp_alone_release_by_release(version: str, parts: int) -> None:
    case = scenario(DP, workload=replace(LOAD, requests=8, concurrency=(8,)))
    found = asked(case, answered(case, version))
    assert found.settings["attention_dp"] is (parts > 1)
    assert found.settings["dp"] == parts


@each("version", ["0.5.3", "0.5.23"])
@each(
    ("settings", "key", "value", "told"),
    [
        (EngineSettings(kv_cache_reuse=False), "disable_radix_cache", False, "kv_cache_reuse"),
        (EngineSettings(overlap_scheduler=True), "disable_overlap_schedule", True, "overlap_sch"),
        (EngineSettings(max_batch_size=64), "max_running_requests", 48, "max_batch_size"),
        (EngineSettings(max_num_tokens=4096), "chunked_prefill_size", 2048, "max_num_tokens"),
        (EngineSettings(chunked_context=True), "chunked_prefill_size", -1, "chunked_context"),
        (EngineSettings(kv_cache_dtype="fp8_e4m3"), "kv_cache_dtype", "auto", "kv_cache_dtype"),
        (EngineSettings(mtp=Mtp(1)), "speculative_algorithm", None, "mtp"),
        (EngineSettings(mtp=Mtp(1)), "speculative_num_steps", 3, "mtp"),
        (EngineSettings(quantization="fp8"), "quantization", None, ""),  # None: it says nothing
        (EngineSettings(quantization="fp8"), "quantization", "awq", "quantization"),
        (EngineSettings(moe_backend="triton"), "moe_runner_backend", "auto", "moe_backend"),
        (EngineSettings(moe_backend="auto"), "moe_runner_backend", "triton", ""),
        (EngineSettings(tp=1), "tp_size", 2, "tp"),
        (EngineSettings(cuda_graphs=CudaGraphs(enabled=True)), "disable_cuda_graph", True, "cuda"),
        (EngineSettings(cuda_graphs=CudaGraphs(enabled=False)), "disable_cuda_graph", True, ""),
    ],
)
def test_a_setting_that_the_server_changed_is_found(
    version: str, settings: EngineSettings, key: str, value: object, told: str
) -> None:
    case = scenario(settings, hardware=Hardware("H200", 1))
    answer = answered(case, version)
    assert list(differences(case, asked(case, answer))) == []
    found = [one.setting for one in differences(case, asked(case, {**answer, key: value}))]
    assert len(found) == bool(told)
    assert all(one.startswith(told) for one in found)


@pytest.mark.parametrize("version", ["0.5.3", "0.5.23"])
def test_sizes_of_cuda_graphs_are_read_under_the_releases_own_names(version: str) -> None:
    for graphs in (CudaGraphs(max_batch_size=64), CudaGraphs(batch_sizes=(1, 2, 64))):
        case = scenario(replace(TP, cuda_graphs=graphs))
        answer = answered(case, version)
        found = asked(case, answer)
        assert list(differences(case, found)) == []
        assert found.limits[-1].startswith("cuda_graph_max_bs 64, 1000 requests in flight")
        other = replace(case.engine.settings, cuda_graphs=CudaGraphs(max_batch_size=32))
        changed = scenario(other)
        assert [one.setting for one in differences(changed, asked(changed, answer))] == [
            "cuda_graphs"
        ]


def test_what_the_scheduler_admits_is_told_by_its_log_or_by_its_state() -> None:
    case = scenario(TP)
    line = (
        "[2025-11-23 06:44:28 TP0] max_total_num_tokens=170000, chunked_prefill_size=8192, "
        "max_prefill_tokens=16384, max_running_requests=500, context_len=163840"
    )
    told = asked(case, answered(case), line).limits
    assert told == ("effective_max_running_requests_per_dp 500, 1000 requests in flight",)
    state = {"internal_states": [{"effective_max_running_requests_per_dp": 100}]}
    divided = scenario(DP_8)
    assert asked(divided, {**answered(divided), **state}).limits == (
        "effective_max_running_requests_per_dp 100, 1000 requests in flight on 8 parts",
    )


def test_a_real_answer_is_read_and_no_secret_is_kept() -> None:
    answer = json.loads(RECORDED.read_text()) | {
        "path": "/get_server_info",
        "api_key": "made-up-key",  # pragma: allowlist secret
        "admin_api_key": "made-up-key",  # pragma: allowlist secret
        "watermark_key": "made-up-key",  # pragma: allowlist secret
    }
    settings = EngineSettings(
        attention_backend="torch_native",
        kv_cache_fraction=0.2,
        max_seq_len=2048,
        overlap_scheduler=False,
    )
    case = scenario(settings, None, hardware=Hardware("none", 0))
    found = asked(case, answer)
    assert list(differences(case, found)) == []
    assert found.limits == ()  # it admits 2048; its graphs are off on a CPU
    assert found.told["version"] == "0.5.23"
    assert found.told["effective_max_running_requests_per_dp"] == 2048
    assert "made-up-key" not in json.dumps([found.settings, found.told, found.limits])
    wrong = scenario(replace(settings, kv_cache_fraction=0.4), None, hardware=Hardware("none", 0))
    assert [str(one) for one in differences(wrong, asked(wrong, answer))] == [
        "kv_cache_fraction: asked 0.4, in force 0.2"
    ]


def test_a_server_that_tells_nothing_is_not_believed_to_have_all_in_force() -> None:
    assert ENGINE.effective_settings(scenario(DP), {}, []) is None
    assert ENGINE.effective_settings(scenario(DP), {"detail": "Not Found"}, []) is None
