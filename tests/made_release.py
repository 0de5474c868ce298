"""Small made-up source trees of TensorRT-LLM, in the shapes that releases declared things in.

Made up: they hold what the scenarios need and nothing else, in words of our own. 1.3's can also be
imported, with the click and pydantic of the tests, so that it serves as an installed build.
"""

from collections.abc import Mapping
from pathlib import Path

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
@{opt}("--extra_llm_api_options", {config}type=str, default=None)
@{opt}("--max_batch_size", type=int)
@{opt}("--max_num_tokens", type=int)
@{opt}("--max_seq_len", type=int, default=None)
@{opt}("--kv_cache_free_gpu_mem_fraction", type=float, default=.90)
@{opt}("--dataset", type=click.Path(path_type=Path), default=None, required=False)
@{opt}("--num_requests", type=int, default=0)
@{opt}("--warmup", type=int, default=2, help="How many.")
@{opt}("--tp", type=int, default=1)
@{opt}("--pp", type=int, default=1)
@{opt}("--ep", type=int, default=None)
@{opt}("--concurrency", type=int, default=-1)
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
_SERVE_OPTIONS = """
@click.option("--host", type=str, default="localhost", help=tagged("Where it listens."))
@click.option("--port", type=int, default=8000)
@click.option("--max_batch_size", type=int, default=LIMITS["batch"])
@click.option("--max_num_tokens", type=int, default=8 * 1024)
@click.option("--max_seq_len", type=int, default=None)
@click.option("{tensor}--tp_size", type=int, default=1)
@click.option("{pipeline}--pp_size", type=int, default=1)
@click.option("{expert}--ep_size", type=int, default=None)
@click.option("{fraction}--kv_cache_free_gpu_memory_fraction", type=float, default=0.9)
@click.option("--num_postprocess_workers", type=int, default=0)
@click.option("--trust_remote_code", is_flag=True, default=False)
"""
_CLIENT = """
import argparse

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", type=str, default="openai", choices=["openai", "openai-chat"])
    parser.add_argument("--host", type=str, default="localhost")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--dataset-name", type=str, choices=["sharegpt", "random"])
    parser.add_argument("--dataset-path", type=str)
    parser.add_argument("--model", type=str, required=True)
    parser.add_argument("--tokenizer", type=str)
    parser.add_argument("--max-concurrency", type=int, default=None)
    parser.add_argument("--num-prompts", type=int, default=1000)
    parser.add_argument("--percentile-metrics", type=str)
    parser.add_argument("--metric-percentiles", type=str)
    parser.add_argument("--result-dir", type=str)
    parser.add_argument("--result-filename", type=str)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--goodput", nargs="+")
    parser.add_argument("--ignore-eos", action="store_true")
    parser.add_argument("--save-result", action="store_true")
    parser.add_argument("--non-streaming", action="store_true")
    parser.add_argument("--no-test-input", action="store_true")
    random_group = parser.add_argument_group("random")
    random_group.add_argument("--random-input-len", type=int, default=1024)
    random_group.add_argument("--random-output-len", type=int, default=128)
    random_group.add_argument("--random-prefix-len", type=int, default=0)
    random_group.add_argument("--random-range-ratio", type=float, default=0.0)
    random_group.add_argument("--random-ids", action="store_true")
    random_group.add_argument("--tokenize-on-client", action="store_true")
"""
_QUICKSTART = """
import argparse

def add_llm_args(parser):
    parser.add_argument('--model_dir', type=str, required=True)
    parser.add_argument('--prompt', type=str, nargs="+")
    parser.add_argument('--tp_size', type=int, default=1)
    parser.add_argument('--pp_size', type=int, default=1)
    parser.add_argument('--moe_ep_size', type=int, default=-1)
    parser.add_argument('--kv_cache_dtype', type=str, default='auto')
    parser.add_argument('--attention_backend', type=str, choices=['VANILLA', 'TRTLLM'])
    parser.add_argument('--moe_backend', type=str, choices=['AUTO', 'CUTLASS', 'TRTLLM'])
    parser.add_argument('--max_tokens', type=int, default=64)
    parser.add_argument('--spec_decode_algo', type=str, default=None)
    parser.add_argument('--spec_decode_max_draft_len', '--spec_decode_nextn', type=int, default=1)
    parser.add_argument('--use_one_model', default=True, action=argparse.BooleanOptionalAction)
    parser.add_argument('--use_cuda_graph', default=False, action='store_true')
    parser.add_argument('--disable_overlap_scheduler', default=False, action='store_true')
    parser.add_argument('--disable_kv_cache_reuse', default=False, action='store_true')
    return parser

def main():
    add_llm_args(argparse.ArgumentParser()).parse_args()
"""
_EVAL = """
import click
from tensorrt_llm.evaluate import GPQADiamond
from tensorrt_llm.logger import severity_map

@click.group()
@click.option("--model", required=True, type=str)
@click.option("--backend", type=click.Choice(["pytorch", "tensorrt"]), default="pytorch")
@click.option('--log_level', type=click.Choice(severity_map.keys()), default='info')
@click.option("--max_batch_size", type=int, default=2048)
@click.option("--max_num_tokens", type=int, default=8192)
@click.option("--max_seq_len", type=int, default=None)
@click.option("--tp_size", type=int, default=1)
@click.option("--ep_size", type=int, default=None)
@click.option("--pp_size", type=int, default=1)
@click.option("--kv_cache_free_gpu_memory_fraction", type=float, default=0.9)
@click.option("--trust_remote_code", is_flag=True, default=False)
@click.option("--extra_llm_api_options", type=str, default=None)
@click.pass_context
def main(ctx, **kwargs):
    pass

main.add_command(GPQADiamond.command)
"""
_EVALUATE = """
import click

class GPQADiamond:

    @click.command("gpqa_diamond")
    @click.option("--dataset_path", type=str, default=None)
    @click.option("--num_samples", type=int, default=None)
    @click.option("--log_samples", is_flag=True, default=False)
    @click.option("--output_path", type=str, default=None)
    @click.pass_context
    @staticmethod
    def command(ctx, **kwargs):
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
    {eagle}
    eagle3_one_model: bool = True

class MTPDecodingConfig(DecodingBaseConfig):
    {mtp}
    num_nextn_predict_layers: PositiveInt = Field(default=1)
    relaxed_topk: int = 1

{union}

class BaseLlmArgs(StrictBaseModel):
    model_config = {{"arbitrary_types_allowed": True, "extra": "forbid"}}

    model: str = Field(default="")
    tokenizer_mode: Literal['auto', 'slow'] = Field(
        default='auto', json_schema_extra={{"type": "Literal['auto', 'slow']"}})
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
_OLD_MODELS = """
from typing import ClassVar, Optional, Union
from pydantic import BaseModel, Field

class DecodingBaseConfig(BaseModel):
    max_draft_len: Optional[int] = None

class MTPDecodingConfig(DecodingBaseConfig):
    num_nextn_predict_layers: Optional[int] = 1
    decoding_type: ClassVar[str] = "MTP"

class MedusaDecodingConfig(DecodingBaseConfig):
    num_medusa_heads: Optional[int] = None
    decoding_type: ClassVar[str] = "Medusa"

class KvCacheConfig(BaseModel):
    enable_block_reuse: bool = Field(default=True)
    free_gpu_memory_fraction: Optional[float] = None

class LlmArgs(BaseModel):
    model: str
    enable_attention_dp: bool = False
    enable_chunked_prefill: bool = False
    trust_remote_code: bool = False
    kv_cache_config: Optional[KvCacheConfig] = None
    speculative_config: Optional[Union[MedusaDecodingConfig, MTPDecodingConfig]] = None
"""
_OLD_CONFIG = """
from dataclasses import dataclass
from typing import List, Optional

@dataclass
class PyTorchConfig:
    use_cuda_graph: bool = False
    cuda_graph_batch_sizes: Optional[List[int]] = None
    cuda_graph_max_batch_size: int = 0
    cuda_graph_padding_enabled: bool = False
    disable_overlap_scheduler: bool = False
    moe_max_num_tokens: Optional[int] = None
    moe_backend: str = 'CUTLASS'
    attn_backend: str = 'TRTLLM'
    kv_cache_dtype: str = "auto"
    torch_compile_enabled: bool = False
    print_iter_log: bool = False
"""

_HEAD = "from pathlib import Path\nimport click\n"
_LOGGER = "from tensorrt_llm.logger import severity_map\n"


def sources(version: str) -> dict[str, str]:
    """File → text of a made-up tree; the release decides the shape: 0.20, 1.1, else 1.3."""
    if version.startswith("0.20"):
        return {**_common(version), **_first(version)}
    return {**_common(version), **(_second() if version.startswith("1.1") else _third())}


def write(folder: Path, version: str, changes: Mapping[str, tuple[str, str]] | None = None) -> Path:
    """Write a tree below `folder`.

    Args:
        folder: where.
        version: the release.
        changes: file → what is replaced in it, and by what: a planted drift.
    """
    for name, text in sources(version).items():
        before, after = (changes or {}).get(name, ("", ""))
        assert before in text, f"{name} has no {before}"
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace(before, after) if before else text)
        if name.startswith("tensorrt_llm/"):
            for parent in path.relative_to(folder).parents[:-1]:
                (folder / parent / "__init__.py").touch()
    return folder


def _common(version: str) -> dict[str, str]:
    return {
        "tensorrt_llm/version.py": f'__version__ = "{version}"\n',
        "tensorrt_llm/logger.py": _LEVELS,
        "tensorrt_llm/llmapi/utils.py": _UTILS,
        "tensorrt_llm/serve/scripts/benchmark_serving.py": _CLIENT,
        "tensorrt_llm/commands/eval.py": _EVAL,
        "tensorrt_llm/evaluate.py": _EVALUATE,
    }


def _serve(backend: str, config: str, tail: str, *, long: bool) -> str:
    names = ("tensor", "pipeline", "expert", "fraction")
    spelled = ("tensor_parallel_size", "pipeline_parallel_size", "moe_expert_parallel_size")
    aliases = (*spelled, "free_gpu_memory_fraction")
    first = {
        name: f'--{alias}", "' if long else "" for name, alias in zip(names, aliases, strict=True)
    }
    return (
        f'{_HEAD}{_LOGGER}LIMITS = {{"batch": 2048}}\n\n'
        + 'def tagged(text):\n    return f":x: {text}"\n\n'
        + "class ChoiceWithAlias(click.Choice):\n    def __init__(self, choices, aliases):\n"
        + "        super().__init__(choices)\n\n"
        + '@click.command("serve")\n@click.argument("model", type=str)\n'
        + _SERVE_OPTIONS.format(**first).strip()
        + f'\n@click.option("--backend", {backend})\n'
        + f'@click.option("--extra_llm_api_options", {config}type=str, default=None)\n'
        + "def serve(**kwargs):\n    pass\n\n"
        + tail
    )


_DEFAULT_GROUP = """
class DefaultGroup(click.Group):
    pass

main = DefaultGroup(commands={"serve": serve})
"""


def _first(version: str) -> dict[str, str]:
    """0.20: options in groups, dataclass of the PyTorch backend, script for datasets."""
    bench = _BENCH_OPTIONS.format(opt="optgroup.option", config="")
    return {
        "tensorrt_llm/commands/bench.py": _HEAD
        + _LOGGER
        + "from tensorrt_llm.bench.benchmark.throughput import throughput_command\n"
        + _TOP
        + "\nmain.add_command(throughput_command)\n",
        "tensorrt_llm/bench/benchmark/throughput.py": _HEAD
        + "from click_option_group import optgroup\n"
        + '@click.command(name="throughput")\n'
        + '@optgroup.group("Engine run configuration.")\n'
        + '@optgroup.option("--backend", type=click.Choice(["pytorch", "_autodeploy"]))'
        + bench
        + "def throughput_command(**params):\n    pass\n",
        "tensorrt_llm/commands/serve.py": _serve(
            'type=click.Choice(["pytorch"]), default=None', "", _DEFAULT_GROUP, long=False
        ),
        "tensorrt_llm/llmapi/llm_args.py": _OLD_MODELS,
        "tensorrt_llm/_torch/pyexecutor/config.py": _OLD_CONFIG,
        "examples/pytorch/quickstart_advanced.py": _QUICKSTART,
        **_dataset_script(),
    }


def _dataset_script() -> dict[str, str]:
    return {
        "benchmarks/cpp/prepare_dataset.py": "import click\n"
        + "from utils.prepare_synthetic_data import token_norm_dist\n\n"
        + '@click.group()\n@click.option("--tokenizer", required=True, type=str)\n'
        + '@click.option("--stdout", is_flag=True, default=False)\n'
        + '@click.option("--output", type=str, default="out.json")\n'
        + '@click.option("--random-seed", type=int, default=420)\n'
        + "@click.pass_context\ndef cli(ctx, **kwargs):\n    pass\n\n"
        + "cli.add_command(token_norm_dist)\n",
        "benchmarks/cpp/utils/prepare_synthetic_data.py": f"import click\n{_GENERATOR}",
    }


def _second() -> dict[str, str]:
    """1.1: strict models told apart by a class variable; a list of backends elsewhere."""
    bench = _BENCH_OPTIONS.format(opt="optgroup.option", config="")
    return {
        "tensorrt_llm/commands/bench.py": _first("")["tensorrt_llm/commands/bench.py"],
        "tensorrt_llm/bench/utils.py": 'BACKENDS = ["pytorch", "_autodeploy", "tensorrt"]\n',
        "tensorrt_llm/bench/benchmark/throughput.py": _HEAD
        + "from click_option_group import optgroup\nfrom tensorrt_llm.bench.utils import BACKENDS\n"
        + '@click.command(name="throughput")\n'
        + '@optgroup.option("--backend", type=click.Choice(BACKENDS), default="pytorch")\n'
        + '@optgroup.option("--enable_chunked_context/--disable_chunked_context", default=True)'
        + bench
        + "def throughput_command(**params):\n    pass\n",
        "tensorrt_llm/commands/serve.py": _serve(
            'type=click.Choice(["pytorch", "tensorrt"]), default="pytorch"',
            "",
            _DEFAULT_GROUP,
            long=False,
        ),
        "tensorrt_llm/llmapi/llm_args.py": _MODELS.format(
            eagle='decoding_type: ClassVar[str] = "Eagle"',
            mtp='decoding_type: ClassVar[str] = "MTP"',
            union="SpeculativeConfig: TypeAlias = Optional[Union[\n"
            "    EagleDecodingConfig,\n    MTPDecodingConfig,\n]]",
        ),
        "examples/llm-api/quickstart_advanced.py": _QUICKSTART,
        **_dataset_script(),
    }


def _third() -> dict[str, str]:
    """1.3: a discriminated union, aliases of choices, reused decorators, datasets as subcommand."""
    bench = _BENCH_OPTIONS.format(opt="click.option", config='"--config", ')
    return {
        "tensorrt_llm/commands/bench.py": _HEAD
        + _LOGGER
        + "from tensorrt_llm.bench.benchmark.throughput import throughput_command\n"
        + "from tensorrt_llm.bench.dataset.prepare_dataset import prepare_dataset\n"
        + _TOP
        + "\nmain.add_command(throughput_command)\nmain.add_command(prepare_dataset)\n\n"
        + 'if __name__ == "__main__":\n    main()\n',
        "tensorrt_llm/bench/utils.py": 'BACKENDS = ["pytorch", "_autodeploy"] + ["tensorrt"]\n',
        "tensorrt_llm/bench/benchmark/throughput.py": _HEAD
        + "from tensorrt_llm.bench.utils import BACKENDS\n\n"
        + "def chunking(function):\n    function = click.option(\n"
        + '        "--enable_chunked_context/--disable_chunked_context", default=True)(function)\n'
        + "    return function\n\n"
        + '@click.command(name="throughput")\n'
        + '@click.option("--backend", type=click.Choice(BACKENDS), default="pytorch")\n@chunking'
        + bench
        + "def throughput_command(**params):\n    pass\n",
        "tensorrt_llm/bench/dataset/prepare_dataset.py": "import click\n"
        + _GENERATOR
        + '\n@click.group(name="prepare-dataset")\n'
        + '@click.option("--output", type=str, default="out.json")\n'
        + '@click.option("--random-seed", type=int, default=420)\n'
        + "@click.pass_context\ndef prepare_dataset(ctx, **kwargs):\n"
        + '    raise SystemExit("it would load a tokenizer")\n\n'
        + "prepare_dataset.add_command(token_norm_dist)\n",
        "tensorrt_llm/commands/serve.py": _serve(
            'type=ChoiceWithAlias(["pytorch", "tensorrt"], {"trt": "tensorrt"}), default="pytorch"',
            '"--config", ',
            _DEFAULT_GROUP + '\nif __name__ == "__main__":\n    main()\n',
            long=True,
        ),
        "tensorrt_llm/llmapi/llm_args.py": _MODELS.format(
            eagle='decoding_type: Literal["Eagle"] = "Eagle"',
            mtp='decoding_type: Literal["MTP"] = "MTP"',
            union="SpeculativeConfig: TypeAlias = Annotated[\n    Union[\n"
            "        EagleDecodingConfig,\n        MTPDecodingConfig,\n    ],\n"
            '    PydanticField(discriminator="decoding_type"),\n]',
        ),
        "examples/llm-api/quickstart_advanced.py": _QUICKSTART,
    }
