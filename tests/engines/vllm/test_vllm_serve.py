"""`vllm serve` by release: how each setting is spelled, and what is refused with the next step."""

from pathlib import Path
from typing import Any

import pytest
from tables import each
from vllm_scenarios import build, rendered, scenario

from perfgate.core.errors import InputError
from perfgate.core.programs.locations import Locations
from perfgate.engines.base import Endpoint
from perfgate.engines.vllm.engine import Vllm
from perfgate.scenarios.scenario import CudaGraphs

START = "vllm serve deepseek-ai/DeepSeek-R1-0528"
OFF = CudaGraphs(enabled=False)


@each(
    ("version", "settings", "words"),
    [
        ("0.11.0", {"tp": 1, "dp": 8, "attention_dp": True}, "-dp 8"),
        ("0.11.0", {"tp": 1, "dp": 8, "ep": 8}, "-dp 8 --enable-expert-parallel"),
        ("0.11.0", {"cuda_graphs": OFF, "torch_compile": False}, "--enforce-eager"),
        (
            "0.12.0",
            {"cuda_graphs": OFF, "torch_compile": True},
            '--compilation-config {"mode":3,"cudagraph_mode":"NONE"}',
        ),
        ("0.11.0", {"max_batch_size": 4, "max_seq_len": 9}, "--max-num-seqs 4 --max-model-len 9"),
    ],
)
def test_each_setting_in_the_spelling_of_its_release(
    version: str, settings: dict[str, Any], words: str
) -> None:
    gpus = settings.get("tp", 1) * settings.get("dp", 1)
    case = scenario(gpus=gpus, **settings)
    Vllm().check(case, build(version))
    assert rendered(case, version) == f"{START} {words}".strip()


@each(
    ("version", "more", "field", "expected"),
    [
        ("0.11.0", {"attention_dp": True, "dp": 8, "tp": 8}, "settings.dp", "GPUs"),
        ("0.11.0", {"kv_cache_dtype": "fp9"}, "kv_cache_dtype", "one of auto"),
        ("0.8.5", {"cuda_graphs": OFF, "torch_compile": True}, "cuda_graphs", "one alone"),
        ("0.11.0", {"nodes": 2}, "hardware.nodes", "one machine"),
        ("0.6.5", {}, "engine version", "0.6.6 or later"),
    ],
)
def test_what_a_release_cannot_do_is_refused_and_never_dropped(
    version: str, more: dict[str, Any], field: str, expected: str
) -> None:
    case = scenario(**{"tp": 1 if "dp" in more else 8, **more})
    with pytest.raises(InputError) as caught:
        Vllm().check(case, build(version))
    told = str(caught.value)
    assert field in told
    assert expected in told


def test_a_variable_that_the_release_ignores_is_refused() -> None:
    case = scenario(tp=8, environment={"VLLM_ATTENTION_BACKEND": "FLASHMLA"})
    Vllm().check(case, build("0.13.0"))
    with pytest.raises(InputError, match="attention_backend instead"):
        Vllm().check(case, build("0.17.1"))


def test_a_variable_that_says_otherwise_than_the_setting_is_refused() -> None:
    environment = {"VLLM_ATTENTION_BACKEND": "TRITON_MLA"}
    case = scenario(tp=8, environment=environment, attention_backend="FLASHMLA")
    with pytest.raises(InputError, match="TRITON_MLA"):
        Vllm().check(case, build("0.11.0"))


def test_a_local_folder_is_served_under_the_models_public_name(tmp_path: Path) -> None:
    (tmp_path / "DeepSeek-R1-0528").mkdir()
    here, known = Locations(models=tmp_path, on_paper=True), Vllm()
    case = scenario(tp=8)
    name = known.served_model(case, here)
    argv = known.serve(case, build("0.11.0"), Endpoint("127.0.0.1", 8123, name), here).argv
    assert argv[2] == str(tmp_path / "DeepSeek-R1-0528")
    assert argv[argv.index("--served-model-name") + 1] == "deepseek-ai/DeepSeek-R1-0528"
    assert known.tokenizer(case, tmp_path, here) == argv[2]
