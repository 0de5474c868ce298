"""The YAML file: each setting under the keys of its release, read back as it was meant."""

from dataclasses import replace
from typing import Any

import pytest
import yaml
from tables import each
from trtllm_scenarios import V3_SETTINGS, scenario

from perfgate.core.errors import InputError
from perfgate.engines.tensorrt_llm import llm_api_yaml
from perfgate.engines.tensorrt_llm.table import SERVE, THROUGHPUT, release
from perfgate.scenarios.scenario import CudaGraphs, EngineSettings, MoeLoadBalancer, Mtp

GRAPHS = {"cuda_graphs": CudaGraphs(padding=True, batch_sizes=(1, 8))}
GRAPHS_ON = {"cuda_graphs": CudaGraphs()}
GRAPHS_OFF = {"cuda_graphs": CudaGraphs(enabled=False)}
SIZES = {"cuda_graph_padding_enabled": True, "cuda_graph_batch_sizes": [1, 8]}
NO_OVERLAP = {"overlap_scheduler": False}
BALANCER = {"num_slots": 288, "layer_updates_per_iter": 1}
EXPERTS: dict[str, Any] = {
    "moe_backend": "TRTLLM",
    "moe_max_num_tokens": 9216,
    "moe_load_balancer": MoeLoadBalancer(288, 1),
}
FP8 = {"kv_cache_dtype": "fp8"}
OLD_MTP = {"decoding_type": "MTP", "num_nextn_predict_layers": 3}
COMPILED = {"torch_compile": True}
NOT_COMPILED = {"torch_compile": False}


def nested(**keys: Any) -> dict[str, Any]:
    return {"pytorch_backend_config": keys}


def one(version: str, program: str = THROUGHPUT, **settings: Any) -> dict[str, Any]:
    asked = EngineSettings(**settings)
    tree = llm_api_yaml.document(scenario(), asked, release(version), program)
    assert yaml.safe_load(llm_api_yaml.text(tree)) == tree, "it comes back as it was written"
    return tree


@each(
    ("version", "settings", "expected"),
    [
        ("0.20.0", GRAPHS, nested(use_cuda_graph=True, **SIZES)),
        ("1.0.0rc1", GRAPHS, {"use_cuda_graph": True, **SIZES}),
        (
            "1.0.0rc3",
            GRAPHS,
            {"cuda_graph_config": {"padding_enabled": True, "batch_sizes": [1, 8]}},
        ),
        ("1.0.0", GRAPHS, {"cuda_graph_config": {"enable_padding": True, "batch_sizes": [1, 8]}}),
        ("1.3.0", GRAPHS, {"cuda_graph_config": {"enable_padding": True, "batch_sizes": [1, 8]}}),
        ("0.20.0", GRAPHS_OFF, nested(use_cuda_graph=False)),
        ("0.21.0", GRAPHS_ON, {"use_cuda_graph": True}),
        ("1.0.0", GRAPHS_ON, {"cuda_graph_config": {}}),
        ("1.0.0", GRAPHS_OFF, {"cuda_graph_config": None}),
        ("0.19.0", NO_OVERLAP, nested(enable_overlap_scheduler=False)),
        ("0.20.0", NO_OVERLAP, nested(disable_overlap_scheduler=True)),
        ("0.21.0", NO_OVERLAP, {"disable_overlap_scheduler": True}),
        ("1.3.0", NO_OVERLAP, {"disable_overlap_scheduler": True}),
        ("0.20.0", FP8, nested(kv_cache_dtype="fp8")),
        ("1.0.0rc3", FP8, FP8),
        ("1.0.0rc3", {**FP8, "kv_cache_fraction": 0.8}, FP8),  # no mapping there
        ("1.1.0", FP8, {"kv_cache_config": {"dtype": "fp8", "enable_block_reuse": False}}),
        ("1.1.0", {"kv_cache_fraction": 0.8}, {}),  # no mapping is made for it
        ("0.21.0", EXPERTS, {**EXPERTS, "moe_load_balancer": BALANCER}),
        (
            "1.0.0",
            EXPERTS,
            {"moe_config": dict(backend="TRTLLM", max_num_tokens=9216, load_balancer=BALANCER)},
        ),
        ("1.0.0", {"moe_backend": "DEEPGEMM"}, {"moe_config": {"backend": "DEEPGEMM"}}),
        ("0.19.0", {"mtp": Mtp(3)}, {"speculative_config": OLD_MTP}),
        ("1.3.0rc10", {"mtp": Mtp(3)}, {"speculative_config": OLD_MTP}),
        (
            "1.3.0rc11",
            {"mtp": Mtp(3)},
            {"speculative_config": {"decoding_type": "MTP", "max_draft_len": 3}},
        ),
        ("1.0.0", {"mtp": Mtp(0)}, {}),
        ("0.20.0", COMPILED, nested(torch_compile_enabled=True)),
        ("0.21.0", COMPILED, {"torch_compile_config": {"torch_compile_fullgraph": True}}),
        ("0.21.0", NOT_COMPILED, {"torch_compile_config": None}),
        ("1.0.0", COMPILED, {"torch_compile_config": {"enable_fullgraph": True}}),
        ("1.0.0", NOT_COMPILED, {"torch_compile_config": None}),
        # Where the benchmark has no option for it.
        ("0.20.0", {"chunked_context": True}, {"enable_chunked_prefill": True}),
        ("1.0.0rc3", {"chunked_context": True}, {"enable_chunked_prefill": True}),
        ("1.0.0rc3", {"chunked_context": False}, {}),  # off by itself
        ("1.1.0", {"chunked_context": True, "trust_remote_code": True}, {}),
        ("1.1.0", {"trust_remote_code": False}, {"trust_remote_code": False}),
    ],
)
def test_a_setting_under_the_keys_of_the_release(
    version: str, settings: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert one(version, **settings) == expected


def test_what_has_an_option_of_the_server_needs_no_key() -> None:
    assert one("1.1.0", SERVE, chunked_context=False, trust_remote_code=True) == {
        "enable_chunked_prefill": False
    }


class TestTheMappingOfTheKvCache:
    """A mapping in the file takes the place of the command line's own before 1.3."""

    def of(
        self, documented: str | None, version: str, program: str = THROUGHPUT, **source: str
    ) -> Any:
        case = scenario(release=documented)
        case = replace(case, source=replace(case.source, **source))
        asked = EngineSettings(kv_cache_dtype="fp8", kv_cache_fraction=0.8)
        return llm_api_yaml.document(case, asked, release(version), program)["kv_cache_config"]

    def test_at_the_documents_own_release_the_file_is_the_documents(self) -> None:
        assert self.of("1.0.0", "1.0.0") == self.of("1.0.0", "1.0.0+local") == {"dtype": "fp8"}

    def test_the_share_of_a_document_that_measured_a_commit_is_kept(self) -> None:
        """Its key of that time, at the top of the file, took nothing away."""
        kept = {"dtype": "fp8", "free_gpu_memory_fraction": 0.8, "enable_block_reuse": False}
        assert self.of("1.0.0", "1.0.0", engine_commit="b626186") == kept

    @each("version", ["1.0.0rc4", "1.1.0", "1.2.0", "1.3.0rc3", "1.3.0"])
    def test_at_any_other_it_says_what_the_command_line_says(self, version: str) -> None:
        kept = {"dtype": "fp8", "free_gpu_memory_fraction": 0.8}
        assert self.of("1.0.0", version) == {**kept, "enable_block_reuse": False}
        assert self.of("1.0.0", version, SERVE) == {**kept, "enable_block_reuse": True}

    def test_a_scenario_of_no_release_keeps_its_share_where_it_would_be_lost(self) -> None:
        assert self.of(None, "1.1.0")["free_gpu_memory_fraction"] == 0.8
        assert self.of(None, "1.3.0") == {"dtype": "fp8"}, "merged there"


@each(
    ("version", "setting"),
    [
        ("0.19.0", {"stream_interval": 10}),
        ("0.20.0", {"stream_interval": 10}),
        ("0.19.0", {"moe_max_num_tokens": 9216}),
        ("0.20.0", {"moe_load_balancer": MoeLoadBalancer(288, 1)}),
        ("0.20.0", {"moe_backend": "DEEPGEMM"}),
    ],
)
def test_what_an_old_release_lacks_is_refused(version: str, setting: dict[str, Any]) -> None:
    name = next(iter(setting))
    with pytest.raises(InputError, match=rf"settings\.{name}: TensorRT-LLM {version} cannot"):
        one(version, **setting)


def test_keys_stand_in_a_fixed_order() -> None:
    tree = llm_api_yaml.document(scenario(), V3_SETTINGS, release("1.0.0"), THROUGHPUT)
    text = llm_api_yaml.text(tree)
    assert text.index("enable_attention_dp") < text.index("cuda_graph_config")
