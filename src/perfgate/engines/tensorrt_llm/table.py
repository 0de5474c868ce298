"""What one range of TensorRT-LLM releases knows and how it spells it. Values only, no versions."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from msgspec import Struct

from perfgate.engines.release_tables import ReleaseTable, ReleaseTables
from perfgate.engines.served.description import Description, described

Keys = tuple[str, ...]
"""A place in the YAML file, from the top down."""

BENCH = "trtllm-bench"
THROUGHPUT = "trtllm-bench throughput"
PREPARE = "trtllm-bench prepare-dataset"
PREPARE_SCRIPT = "prepare_dataset.py"
GENERATOR = "token-norm-dist"
SERVE = "trtllm-serve"
EVAL = "trtllm-eval"
BENCHMARK_SERVING = "benchmark_serving"
QUICKSTART = "quickstart_advanced.py"
GPQA = "gpqa_llmapi.py"


class GraphKeys(Struct, frozen=True, forbid_unknown_fields=True):
    """Where CUDA graphs are set in the YAML file.

    Attributes:
        at: the mapping that holds the keys; with `switch` None its presence turns graphs on, and
            null turns them off.
        padding: key that pads batches to the next captured size.
        batch_sizes: key of the list of captured sizes.
        max_batch_size: key of the largest captured size.
        switch: key of a truth value that turns them on; None: see `at`.
    """

    at: Keys
    padding: str
    batch_sizes: str
    max_batch_size: str
    switch: str | None = None


class Spelling(Struct, frozen=True, forbid_unknown_fields=True):
    """The YAML keys of each setting; None: this release has no such key.

    Attributes:
        graphs: CUDA graphs.
        overlap: the overlap scheduler …
        overlap_inverted: … where the key says `disable`.
        kv_cache_dtype: data type of the KV cache.
        kv_cache_fraction: its share of the free GPU memory, where an option says it too.
        kv_cache_reuse: reuse of its blocks.
        moe_backend: kernels of the experts.
        moe_max_num_tokens: most tokens that the experts take at once.
        moe_load_balancer: online balancing of experts.
        attention_backend: kernels of the attention.
        torch_compile: key that turns torch.compile on …
        torch_compile_on: … and the value that does; the value that does not is `torch_compile_off`.
        torch_compile_off: see `torch_compile_on`.
        stream_interval: tokens between two streamed chunks.
        iteration_log: log of every iteration.
        mtp: the mapping of speculative decoding.
        mtp_algorithm: key in `mtp` that says which kind.
        mtp_layers: key in `mtp` that says how many tokens MTP drafts.
        attention_dp: data parallelism of the attention.
        chunked_prefill: prefill in chunks, of the server.
        bench_chunked_prefill: the same of `trtllm-bench`, where it has no option for it.
        trust_remote_code: whether code that comes with the model may run.
    """

    graphs: GraphKeys
    overlap: Keys
    overlap_inverted: bool
    kv_cache_dtype: Keys
    kv_cache_fraction: Keys
    kv_cache_reuse: Keys
    moe_backend: Keys
    iteration_log: Keys
    attention_backend: Keys
    moe_max_num_tokens: Keys | None = None
    moe_load_balancer: Keys | None = None
    torch_compile: Keys | None = None
    torch_compile_on: Any = None
    torch_compile_off: Any = None
    stream_interval: Keys | None = None
    mtp: Keys = ("speculative_config",)
    mtp_algorithm: str = "decoding_type"
    mtp_layers: str = "num_nextn_predict_layers"
    attention_dp: Keys = ("enable_attention_dp",)
    chunked_prefill: Keys = ("enable_chunked_prefill",)
    bench_chunked_prefill: Keys | None = None
    trust_remote_code: Keys = ("trust_remote_code",)


class Defaults(Struct, frozen=True, forbid_unknown_fields=True):
    """What a program does when it is not told.

    Attributes:
        backend: ``pytorch``, or ``tensorrt`` for the C++ engine.
        overlap_scheduler: whether scheduling overlaps with the GPUs' work.
        cuda_graphs: off; on; or padded up to the most requests of a batch, as `trtllm-bench` sets
            them by itself.
        chunked_context: whether long prompts are prefilled in chunks.
        pdl: programmatic dependent launch of kernels.
        moe_backend: kernels of the experts.
        kv_cache_reuse: whether blocks of the KV cache are reused.
    """

    backend: str
    overlap_scheduler: bool = False
    cuda_graphs: Literal["off", "on", "padded"] = "off"
    chunked_context: bool = False
    pdl: bool = False
    moe_backend: str = "CUTLASS"
    kv_cache_reuse: bool = True


class DatasetTool(Struct, frozen=True, forbid_unknown_fields=True):
    """How synthetic prompts are made.

    Attributes:
        program: name of the program in the option tables; its generator's table is the same name
            with ``token-norm-dist`` behind it.
        script: the program's path in a checkout of TensorRT-LLM; None: it is a subcommand of
            `trtllm-bench`.
    """

    program: str
    script: str | None = None


class Release(ReleaseTable, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One range of releases that behave the same for perfgate.

    Attributes:
        spelling: YAML keys of settings.
        yaml_merge: what becomes of the command line's settings of the KV cache when the YAML file
            has a mapping for it: ``shallow``, the file's mapping takes their place as a whole;
            ``deep``, they stay unless the file names them.
        defaults: what each program does when it is not told.
        dataset_tool: how synthetic prompts are made.
        examples: folder of ``quickstart_advanced.py`` in a checkout.
        moe_backends: kernels of the experts that the YAML file may name; None: not established,
            the program itself refuses what it lacks.
        example_prompts: what ``quickstart_advanced.py`` asks when it is not told; None: not
            established.
        mtp_zero: ``quickstart_advanced.py`` takes zero draft layers for "off".
        pdl_variable: environment variable of programmatic dependent launch.
        bench_warmup: warm-up requests of `trtllm-bench throughput` when it is not told.
    """

    title: ClassVar[str] = "TensorRT-LLM"

    spelling: Spelling
    yaml_merge: Literal["shallow", "deep"]
    defaults: Mapping[str, Defaults]
    dataset_tool: DatasetTool
    examples: str
    moe_backends: frozenset[str] | None = None
    example_prompts: tuple[str, ...] | None = None
    mtp_zero: bool = False
    pdl_variable: str | None = "TRTLLM_ENABLE_PDL"
    bench_warmup: int = 2


class Facts(Description, frozen=True, forbid_unknown_fields=True):
    """What TensorRT-LLM is, whatever its release.

    Attributes:
        keys: key of the YAML file → the field that it is, of what the programs have options for.
        words: setting → words that a release takes for it, beside those that the tables name.
    """

    keys: Mapping[str, str] = {}
    words: Mapping[str, frozenset[str]] = {}


FACTS = described(__file__, Facts)
VARIABLE = "PERFGATE_TENSORRT_LLM_TABLES"
TABLES = ReleaseTables(
    Release,
    Path(__file__).with_name("releases"),
    variable=VARIABLE,
    hint="use a newer container; the documents of the scenarios begin with 0.19",
)
release = TABLES.release
