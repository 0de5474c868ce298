"""A small made-up TensorRT-LLM 1.3 that serves as an installed build, by click and pydantic.

Made up: it holds what the scenarios need and nothing else, in words of our own.
"""

from collections.abc import Mapping
from pathlib import Path

_HEAD = "from pathlib import Path\nimport click\n"
_LEVELS = 'severity_map = {"error": [1], "info": [1], "debug": [1]}\n'
_UTILS = """
from pydantic import BaseModel, ConfigDict

class StrictBaseModel(BaseModel):
    model_config = ConfigDict(extra="forbid")
"""
_GENERATOR = """
@click.command()
@click.option("--num-requests", required=True, type=int)
@click.option('--input-mean', required=True, type=int)
@click.option('--input-stdev', required=True, type=int)
@click.option('--output-mean', required=True, type=int)
@click.option('--output-stdev', required=True, type=int)
@click.pass_obj
def token_norm_dist(root_args, **kwargs):
    raise SystemExit("never run")
"""
_BENCH_OPTIONS = """
@click.option("--extra_llm_api_options", "--config", type=str, default=None)
@click.option("--max_batch_size", type=int)
@click.option("--max_num_tokens", type=int)
@click.option("--max_seq_len", type=int, default=None)
@click.option("--kv_cache_free_gpu_mem_fraction", type=float, default=.90)
@click.option("--dataset", type=click.Path(path_type=Path), default=None, required=False)
@click.option("--num_requests", type=int, default=0)
@click.option("--warmup", type=int, default=2, help="How many.")
@click.option("--tp", type=int, default=1)
@click.option("--pp", type=int, default=1)
@click.option("--ep", type=int, default=None)
@click.option("--concurrency", type=int, default=-1)
@click.option("--streaming", is_flag=True, default=False)
@click.option("--report_json", type=click.Path(dir_okay=False), required=False)
"""
_TOP = """
@click.group(name="trtllm-bench", context_settings={"show_default": True})
@click.option("--model", "-m", required=True, type=str)
@click.option("--model_path", required=False, default=None, type=click.Path(path_type=Path))
@click.option('--log_level', type=click.Choice(severity_map.keys()), default='info')
@click.pass_context
def main(ctx, **kwargs):
    pass
"""
_MODELS = """
from enum import Enum
from typing import Annotated, Any, ClassVar, Dict, List, Literal, Optional, TypeAlias, Union

from pydantic import BaseModel
from pydantic import Field as PydanticField
from pydantic import NonNegativeInt, PositiveInt, PrivateAttr

from .utils import StrictBaseModel

def Field(default=..., *, status=None, **kwargs):
    if status is not None:
        kwargs["json_schema_extra"] = {"status": status}
    return PydanticField(default, **kwargs)

class LoadFormat(Enum):
    AUTO = "auto"
    DUMMY = "dummy"

class KvCacheConfig(StrictBaseModel):
    enable_block_reuse: bool = Field(default=True, description="Reuse.")
    free_gpu_memory_fraction: Optional[float] = Field(default=0.9)
    dtype: str = Field(default="auto")
    max_attention_window: Optional[List[int]] = None

class CudaGraphConfig(StrictBaseModel):
    batch_sizes: Optional[List[int]] = Field(default=None)
    max_batch_size: NonNegativeInt = Field(default=0)
    enable_padding: bool = Field(default=False)

class MoeLoadBalancerConfig(StrictBaseModel):
    num_slots: Optional[int] = None
    layer_updates_per_iter: int = 0

class MoeConfig(StrictBaseModel):
    backend: Literal["AUTO", "CUTLASS", "TRTLLM", "DEEPGEMM", "WIDEEP"] = Field(default="AUTO")
    max_num_tokens: Optional[int] = None
    load_balancer: Optional[Union[MoeLoadBalancerConfig, Dict[str, Any], str]] = None

class TorchCompileConfig(StrictBaseModel):
    enable_fullgraph: bool = True

class DecodingBaseConfig(StrictBaseModel):
    max_draft_len: Optional[int] = None

class EagleDecodingConfig(DecodingBaseConfig):
    decoding_type: Literal["Eagle"] = "Eagle"
    eagle3_one_model: bool = True

class MTPDecodingConfig(DecodingBaseConfig):
    decoding_type: Literal["MTP"] = "MTP"
    num_nextn_predict_layers: PositiveInt = Field(default=1)
    relaxed_topk: int = 1

SpeculativeConfig: TypeAlias = Annotated[
    Union[
        EagleDecodingConfig,
        MTPDecodingConfig,
    ],
    PydanticField(discriminator="decoding_type"),
]

class BaseLlmArgs(StrictBaseModel):
    model_config = {"arbitrary_types_allowed": True, "extra": "forbid"}

    model: str = Field(default="")
    tokenizer_mode: Literal['auto', 'slow'] = Field(
        default='auto', json_schema_extra={"type": "Literal['auto', 'slow']"})
    trust_remote_code: bool = Field(default=False)
    tensor_parallel_size: int = 1
    enable_attention_dp: bool = Field(default=False)
    kv_cache_config: KvCacheConfig = Field(default_factory=KvCacheConfig)
    speculative_config: Optional[SpeculativeConfig] = Field(default=None)
    enable_chunked_prefill: bool = Field(default=False)
    num_postprocess_workers: int = 0
    mpi_session: Optional[str] = Field(default=None, alias="_mpi_session")
    _parallel_config: Optional[object] = PrivateAttr(default=None)

class TorchLlmArgs(BaseLlmArgs):
    cuda_graph_config: Optional[CudaGraphConfig] = Field(default_factory=CudaGraphConfig)
    moe_config: MoeConfig = Field(default_factory=MoeConfig)
    torch_compile_config: Optional[TorchCompileConfig] = None
    attn_backend: str = "TRTLLM"
    disable_overlap_scheduler: bool = Field(default=False)
    print_iter_log: bool = False
    sampler_type: Union[str, LoadFormat] = Field(default="auto")
    load_format: Union[str, LoadFormat] = Field(default=LoadFormat.AUTO)
    stream_interval: int = Field(default=1, status="beta")
"""
_SOURCES = {
    "tensorrt_llm/logger.py": _LEVELS,
    "tensorrt_llm/llmapi/utils.py": _UTILS,
    "tensorrt_llm/llmapi/llm_args.py": _MODELS,
    "tensorrt_llm/commands/bench.py": _HEAD
    + "from tensorrt_llm.logger import severity_map\n"
    + "from tensorrt_llm.bench.benchmark.throughput import throughput_command\n"
    + "from tensorrt_llm.bench.dataset.prepare_dataset import prepare_dataset\n"
    + _TOP
    + "\nmain.add_command(throughput_command)\nmain.add_command(prepare_dataset)\n\n"
    + 'if __name__ == "__main__":\n    main()\n',
    "tensorrt_llm/bench/utils.py": 'BACKENDS = ["pytorch", "_autodeploy"] + ["tensorrt"]\n',
    "tensorrt_llm/bench/benchmark/throughput.py": _HEAD
    + "from tensorrt_llm.bench.utils import BACKENDS\n\n"
    + '@click.command(name="throughput")\n'
    + '@click.option("--backend", type=click.Choice(BACKENDS), default="pytorch")\n'
    + '@click.option("--enable_chunked_context/--disable_chunked_context", default=True)'
    + _BENCH_OPTIONS
    + "def throughput_command(**params):\n    pass\n",
    "tensorrt_llm/bench/dataset/prepare_dataset.py": "import click\n"
    + _GENERATOR
    + '\n@click.group(name="prepare-dataset")\n'
    + '@click.option("--output", type=str, default="out.json")\n'
    + '@click.option("--random-seed", type=int, default=420)\n'
    + "@click.pass_context\ndef prepare_dataset(ctx, **kwargs):\n"
    + '    raise SystemExit("it would load a tokenizer")\n\n'
    + "prepare_dataset.add_command(token_norm_dist)\n",
}


def write(folder: Path, changes: Mapping[str, tuple[str, str]]) -> None:
    """Write the package below `folder`.

    Args:
        folder: where.
        changes: file → what is replaced in it, and by what: a planted drift.
    """
    for name, text in _SOURCES.items():
        before, after = changes.get(name, ("", ""))
        assert before in text, f"{name} has no {before}"
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace(before, after) if before else text)
        for parent in path.relative_to(folder).parents[:-1]:
            (folder / parent / "__init__.py").touch()
