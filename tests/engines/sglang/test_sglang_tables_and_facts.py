"""The release tables against what the releases' own parsers take."""

from dataclasses import replace

import pytest
from sglang_scenarios import PAGES, TP, build, page, render, scenario
from tables import each

from perfgate.core.errors import CannotDo
from perfgate.engines.option_check import Call, of_call
from perfgate.engines.sglang.engine import SGLang
from perfgate.engines.sglang.table import SERVE
from perfgate.scenarios.scenario import CudaGraphs, EngineSettings, Hardware, Mtp

EVERY = {
    "pp": EngineSettings(tp=4, pp=2),
    "ep": EngineSettings(tp=8, ep=8),
    "attention dp": EngineSettings(tp=8, attention_dp=True, dp=8),
    "replicas": EngineSettings(tp=4, dp=2),
    "sizes": EngineSettings(
        tp=8, max_batch_size=512, max_num_tokens=4096, max_seq_len=8192, kv_cache_fraction=0.8
    ),
    "no chunks": EngineSettings(tp=8, chunked_context=False, max_num_tokens=8192),
    "kv cache": EngineSettings(tp=8, kv_cache_dtype="fp8_e5m2", kv_cache_reuse=False),
    "graphs off": EngineSettings(tp=8, cuda_graphs=CudaGraphs(enabled=False)),
    "graphs": EngineSettings(tp=8, cuda_graphs=CudaGraphs(padding=False, batch_sizes=(1, 8, 64))),
    "largest graph": EngineSettings(tp=8, cuda_graphs=CudaGraphs(max_batch_size=256)),
    "compiled": EngineSettings(tp=8, torch_compile=True),
    "mtp": EngineSettings(tp=8, mtp=Mtp(3), overlap_scheduler=False),
    "kernels": EngineSettings(tp=8, attention_backend="fa3", quantization="fp8"),
    "experts": EngineSettings(tp=8, moe_backend="triton"),
    "others": EngineSettings(tp=8, stream_interval=5, trust_remote_code=True, seed=42),
}
LACKING = {"0.4.6": {"pp", "experts"}}


@each("version", PAGES)
@each("name", EVERY)
def test_every_setting_is_an_option_of_the_releases_own_parser_or_refused(
    version: str, name: str
) -> None:
    case = scenario(EVERY[name])
    if name in LACKING.get(version, ()):
        with pytest.raises(CannotDo, match=f"SGLang {version} cannot do this"):
            SGLang().check(case, build(version))
        return
    SGLang().check(case, build(version))
    argv = render(case, version).argv
    whole = page(version)
    found = list(of_call(Call(SERVE, (), argv[3:], SERVE), whole))
    assert found == []
    exact = {word for one in whole.programs[SERVE].values() for word in one.options}
    assert {word for word in argv if word.startswith("--")} <= exact  # no abbreviation


@each(
    ("version", "rendered", "absent"),
    [
        ("0.5.3", "--dp-size 8 --", "--attn-dp-size"),
        ("0.5.21", "--enable-dp-attention --dp-size 8", "--attn-dp-size"),
        ("0.5.23", "--attn-dp-size 8", "--dp-size 8 --"),
    ],
)
def test_options_that_moved(version: str, rendered: str, absent: str) -> None:
    settings = replace(TP, attention_dp=True, dp=8, seed=1)
    line = " ".join(render(scenario(settings), version).argv)
    assert rendered in line
    assert absent not in line


def test_words_of_a_scenario_are_those_of_any_release() -> None:
    known = SGLang.words()
    assert {"fp8_e5m2", "bf16"} <= known["kv_cache_dtype"]
    assert "fp8" not in known["kv_cache_dtype"]
    assert {"fa3", "dsa"} <= known["attention_backend"]


def test_a_scenario_on_a_cpu_is_served_there() -> None:
    case = scenario(EngineSettings(), hardware=Hardware("none", 0))
    assert "--device cpu" in " ".join(render(case, "0.5.23").argv)
    assert "--device" not in render(scenario(TP)).argv
