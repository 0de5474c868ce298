"""The YAML file: each setting under the keys of its release, read back as it was meant."""

from dataclasses import Field, fields, replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from trtllm_scenarios import V3_SETTINGS, scenario

from perfgate.core.errors import InputError
from perfgate.engines.tensorrt_llm import llm_api_yaml
from perfgate.engines.tensorrt_llm.releases import release
from perfgate.engines.tensorrt_llm.releases.table import SERVE, THROUGHPUT
from perfgate.scenarios.scenario import (
    CudaGraphs,
    EngineSettings,
    MoeLoadBalancer,
    Mtp,
)


def document(settings: EngineSettings, version: str, program: str = THROUGHPUT) -> dict[str, Any]:
    tree = llm_api_yaml.document(scenario(), settings, release(version), program)
    assert yaml.safe_load(llm_api_yaml.text(tree)) == tree, "it comes back as it was written"
    return tree


def one(version: str, program: str = THROUGHPUT, **settings: Any) -> dict[str, Any]:
    return document(EngineSettings(**settings), version, program)


GRAPHS = CudaGraphs(padding=True, batch_sizes=(1, 8))


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (
            "0.20.0",
            {
                "pytorch_backend_config": {
                    "use_cuda_graph": True,
                    "cuda_graph_padding_enabled": True,
                    "cuda_graph_batch_sizes": [1, 8],
                }
            },
        ),
        (
            "1.0.0rc1",
            {
                "use_cuda_graph": True,
                "cuda_graph_padding_enabled": True,
                "cuda_graph_batch_sizes": [1, 8],
            },
        ),
        ("1.0.0rc3", {"cuda_graph_config": {"padding_enabled": True, "batch_sizes": [1, 8]}}),
        ("1.0.0", {"cuda_graph_config": {"enable_padding": True, "batch_sizes": [1, 8]}}),
        ("1.3.0", {"cuda_graph_config": {"enable_padding": True, "batch_sizes": [1, 8]}}),
    ],
)
def test_cuda_graphs(version: str, expected: dict[str, Any]) -> None:
    assert one(version, cuda_graphs=GRAPHS) == expected


def test_graphs_are_turned_on_and_off_by_what_the_release_has() -> None:
    nested = one("0.20.0", cuda_graphs=CudaGraphs(enabled=False))
    assert nested == {"pytorch_backend_config": {"use_cuda_graph": False}}
    assert one("0.21.0", cuda_graphs=CudaGraphs()) == {"use_cuda_graph": True}
    assert one("1.0.0", cuda_graphs=CudaGraphs()) == {"cuda_graph_config": {}}
    assert one("1.0.0", cuda_graphs=CudaGraphs(enabled=False)) == {"cuda_graph_config": None}


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.19.0", {"pytorch_backend_config": {"enable_overlap_scheduler": False}}),
        ("0.20.0", {"pytorch_backend_config": {"disable_overlap_scheduler": True}}),
        ("0.21.0", {"disable_overlap_scheduler": True}),
        ("1.3.0", {"disable_overlap_scheduler": True}),
    ],
)
def test_no_overlap(version: str, expected: dict[str, Any]) -> None:
    assert one(version, overlap_scheduler=False) == expected


def test_the_kv_cache_moved_into_its_mapping() -> None:
    assert one("0.20.0", kv_cache_dtype="fp8") == {
        "pytorch_backend_config": {"kv_cache_dtype": "fp8"}
    }
    assert one("1.0.0rc3", kv_cache_dtype="fp8") == {"kv_cache_dtype": "fp8"}
    assert one("1.0.0rc4", kv_cache_dtype="fp8")["kv_cache_config"]["dtype"] == "fp8"


class TestTheMappingOfTheKvCache:
    """A mapping in the file takes the place of the command line's own before 1.3."""

    SETTINGS = EngineSettings(kv_cache_dtype="fp8", kv_cache_fraction=0.8)

    def of(self, documented: str | None, version: str, program: str = THROUGHPUT) -> Any:
        case = scenario(release=documented)
        return llm_api_yaml.document(case, self.SETTINGS, release(version), program)[
            "kv_cache_config"
        ]

    def test_at_the_documents_own_release_the_file_is_the_documents(self) -> None:
        assert self.of("1.0.0", "1.0.0") == self.of("1.0.0", "1.0.0+local") == {"dtype": "fp8"}

    def test_the_share_of_a_document_that_measured_a_commit_is_kept(
        self,
    ) -> None:
        """Its key of that time, at the top of the file, took nothing away."""
        case = scenario(release="1.0.0")
        case = replace(case, source=replace(case.source, engine_commit="b626186"))
        tree = llm_api_yaml.document(case, self.SETTINGS, release("1.0.0"), THROUGHPUT)
        kept = {"dtype": "fp8", "free_gpu_memory_fraction": 0.8, "enable_block_reuse": False}
        assert tree["kv_cache_config"] == kept

    @pytest.mark.parametrize("version", ["1.0.0rc4", "1.1.0", "1.2.0", "1.3.0rc3", "1.3.0"])
    def test_at_any_other_it_says_what_the_command_line_says(self, version: str) -> None:
        kept = {"dtype": "fp8", "free_gpu_memory_fraction": 0.8}
        assert self.of("1.0.0", version) == {**kept, "enable_block_reuse": False}
        assert self.of("1.0.0", version, SERVE) == {**kept, "enable_block_reuse": True}

    def test_a_scenario_of_no_release_keeps_its_share_where_it_would_be_lost(self) -> None:
        assert self.of(None, "1.1.0")["free_gpu_memory_fraction"] == 0.8
        assert self.of(None, "1.3.0") == {"dtype": "fp8"}, "merged there"

    def test_a_share_that_nobody_asked_for_is_the_programs_own(self) -> None:
        assert one("1.1.0", kv_cache_dtype="fp8")["kv_cache_config"] == {
            "dtype": "fp8",
            "enable_block_reuse": False,
        }

    def test_no_mapping_is_made_for_it(self) -> None:
        assert one("1.1.0", kv_cache_fraction=0.8) == {}
        assert self.SETTINGS.kv_cache_dtype == "fp8"
        older = llm_api_yaml.document(scenario(), self.SETTINGS, release("1.0.0rc3"), SERVE)
        assert older == {"kv_cache_dtype": "fp8"}, "no mapping there"


def test_experts_moved_into_their_mapping() -> None:
    settings: dict[str, Any] = {
        "moe_backend": "TRTLLM",
        "moe_max_num_tokens": 9216,
        "moe_load_balancer": MoeLoadBalancer(288, 1),
    }
    balancer = {"num_slots": 288, "layer_updates_per_iter": 1}
    assert one("0.21.0", **settings) == {
        "moe_backend": "TRTLLM",
        "moe_max_num_tokens": 9216,
        "moe_load_balancer": balancer,
    }
    assert one("1.0.0", **settings) == {
        "moe_config": {"backend": "TRTLLM", "max_num_tokens": 9216, "load_balancer": balancer}
    }


def test_mtp_counts_by_another_name_since_1_3() -> None:
    old = {"speculative_config": {"decoding_type": "MTP", "num_nextn_predict_layers": 3}}
    assert one("0.19.0", mtp=Mtp(3)) == one("1.3.0rc10", mtp=Mtp(3)) == old
    assert one("1.3.0rc11", mtp=Mtp(3)) == {
        "speculative_config": {"decoding_type": "MTP", "max_draft_len": 3}
    }


def test_no_draft_layers_is_no_speculation() -> None:
    assert one("1.0.0", mtp=Mtp(0)) == {}


def test_torch_compile() -> None:
    nested = {"pytorch_backend_config": {"torch_compile_enabled": True}}
    assert one("0.20.0", torch_compile=True) == nested
    on = {"torch_compile_config": {"enable_fullgraph": True}}
    assert one("1.0.0", torch_compile=True) == on
    assert one("1.0.0", torch_compile=False) == {"torch_compile_config": None}
    flat = {"torch_compile_config": {"torch_compile_fullgraph": True}}
    assert one("0.21.0", torch_compile=True) == flat
    assert one("0.21.0", torch_compile=False) == {"torch_compile_config": None}


@pytest.mark.parametrize("version", ["0.20.0", "0.21.0", "1.0.0rc3"])
def test_chunks_have_a_key_where_the_benchmark_has_no_option(version: str) -> None:
    assert one(version, THROUGHPUT, chunked_context=True) == {"enable_chunked_prefill": True}
    assert one(version, THROUGHPUT, chunked_context=False) == {}, "off by itself"


def test_what_has_an_option_needs_no_key() -> None:
    assert one("1.1.0", THROUGHPUT, chunked_context=True, trust_remote_code=True) == {}
    assert one("1.1.0", SERVE, chunked_context=False, trust_remote_code=True) == {
        "enable_chunked_prefill": False
    }
    untrusted = one("1.1.0", THROUGHPUT, trust_remote_code=False)
    assert untrusted == {"trust_remote_code": False}, "trtllm-bench trusts unless told"


@pytest.mark.parametrize(
    ("version", "setting"),
    [
        ("0.19.0", {"stream_interval": 10}),
        ("0.20.0", {"stream_interval": 10}),
        ("0.19.0", {"moe_max_num_tokens": 9216}),
        ("0.19.0", {"moe_load_balancer": MoeLoadBalancer(288, 1)}),
        ("0.20.0", {"moe_load_balancer": MoeLoadBalancer(288, 1)}),
    ],
)
def test_what_an_old_release_lacks_is_refused(version: str, setting: dict[str, Any]) -> None:
    name = next(iter(setting))
    with pytest.raises(InputError, match=rf"settings\.{name}: TensorRT-LLM {version} cannot"):
        one(version, **setting)


def test_experts_kernels_that_a_release_lacks_are_refused() -> None:
    with pytest.raises(InputError, match=r"(?s)found: DEEPGEMM.*expected: one of CUTLASS, TRTLLM"):
        one("0.20.0", moe_backend="DEEPGEMM")
    assert one("1.0.0", moe_backend="DEEPGEMM") == {"moe_config": {"backend": "DEEPGEMM"}}


def test_keys_stand_in_a_fixed_order() -> None:
    text = llm_api_yaml.text(document(V3_SETTINGS, "1.0.0"))
    assert text.index("enable_attention_dp") < text.index("cuda_graph_config")


def settings_of_yaml() -> st.SearchStrategy[EngineSettings]:
    """Settings that have a key in the YAML file of 1.0, in any combination."""
    graphs = st.builds(
        CudaGraphs,
        padding=st.sampled_from([None, True, False]),
        batch_sizes=st.lists(st.integers(1, 512), max_size=3).map(tuple),
    )
    flag = st.sampled_from([None, True, False])
    return st.builds(
        EngineSettings,
        attention_dp=flag,
        cuda_graphs=st.none() | graphs | st.just(CudaGraphs(enabled=False)),
        kv_cache_dtype=st.sampled_from([None, "fp8", "auto"]),
        iteration_log=flag,
        stream_interval=st.none() | st.integers(1, 100),
        moe_backend=st.sampled_from([None, "CUTLASS", "TRTLLM"]),
        moe_max_num_tokens=st.none() | st.integers(1, 10_000),
        moe_load_balancer=st.none() | st.builds(MoeLoadBalancer, st.just(288), st.just(1)),
        attention_backend=st.sampled_from([None, "TRTLLM"]),
        mtp=st.none() | st.builds(Mtp, st.integers(0, 5)),
        overlap_scheduler=flag,
        torch_compile=flag,
        chunked_context=flag,
        trust_remote_code=flag,
    )


@given(settings=settings_of_yaml(), field=st.sampled_from(fields(EngineSettings)))
def test_a_setting_that_is_taken_away_is_missing_from_the_file(
    settings: EngineSettings, field: Field[Any]
) -> None:
    value = getattr(settings, field.name)
    without = replace(settings, **{field.name: field.default})
    says_nothing = value == field.default or value == Mtp(0) or field.name == "trust_remote_code"
    same = document(settings, "1.0.0", SERVE) == document(without, "1.0.0", SERVE)
    assert same == says_nothing
