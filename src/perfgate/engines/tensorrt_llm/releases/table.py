"""What one range of TensorRT-LLM releases knows and how it spells it. Values only, no versions."""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

Keys = tuple[str, ...]
"""A place in the YAML file, from the top down."""

YamlKeys = Mapping[str, Any]
"""The keys that a release knows, each with those below it; none: what is below is not listed."""

BENCH = "trtllm-bench"
THROUGHPUT = "trtllm-bench throughput"
LATENCY = "trtllm-bench latency"
PREPARE = "trtllm-bench prepare-dataset"
PREPARE_NORMAL = "trtllm-bench prepare-dataset token-norm-dist"
PREPARE_SCRIPT = "prepare_dataset.py"
PREPARE_SCRIPT_NORMAL = "prepare_dataset.py token-norm-dist"
SERVE = "trtllm-serve"
EVAL = "trtllm-eval"
BENCHMARK_SERVING = "benchmark_serving"
QUICKSTART = "quickstart_advanced.py"
GPQA = "gpqa_llmapi.py"


class Option(Struct, frozen=True, forbid_unknown_fields=True):
    """One command-line option.

    Attributes:
        name: as it is spelled in the documents.
        aliases: other spellings of the same.
        flag: it takes no value.
        negation: the flag that says the opposite.
    """

    name: str
    aliases: tuple[str, ...] = ()
    flag: bool = False
    negation: str | None = None

    @property
    def spellings(self) -> tuple[str, ...]:
        """Every word that the program takes for it."""
        return (self.name, *self.aliases, *((self.negation,) if self.negation else ()))


Options = Mapping[str, Option]


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
        moe_backend: kernels of the experts.
        moe_max_num_tokens: most tokens that the experts take at once.
        moe_load_balancer: online balancing of experts.
        attention_backend: kernels of the attention.
        torch_compile: key that turns torch.compile on …
        torch_compile_on: … and the value that does; the value that does not is `torch_compile_off`.
        torch_compile_off: see `torch_compile_on`.
        stream_interval: tokens between two streamed chunks.
        iteration_log: log of every iteration.
        mtp_layers: key below ``speculative_config`` that says how many tokens MTP drafts.
        attention_dp: data parallelism of the attention.
        chunked_prefill: prefill in chunks.
        trust_remote_code: whether code that comes with the model may run.
    """

    graphs: GraphKeys
    overlap: Keys
    overlap_inverted: bool
    kv_cache_dtype: Keys
    moe_backend: Keys
    iteration_log: Keys
    attention_backend: Keys
    moe_max_num_tokens: Keys | None = None
    moe_load_balancer: Keys | None = None
    torch_compile: Keys | None = None
    torch_compile_on: Any = None
    torch_compile_off: Any = None
    stream_interval: Keys | None = None
    mtp_layers: str = "num_nextn_predict_layers"
    attention_dp: Keys = ("enable_attention_dp",)
    chunked_prefill: Keys = ("enable_chunked_prefill",)
    trust_remote_code: Keys = ("trust_remote_code",)


class Defaults(Struct, frozen=True, forbid_unknown_fields=True):
    """What a program does when it is not told; each of these moved between releases.

    Attributes:
        backend: ``pytorch``, or ``tensorrt`` for the C++ engine.
        overlap_scheduler: whether scheduling overlaps with the GPUs' work.
        cuda_graphs: off; on; or padded up to the most requests of a batch, as `trtllm-bench` sets
            them by itself.
        chunked_context: whether long prompts are prefilled in chunks.
        pdl: programmatic dependent launch of kernels.
        sampler: ``torch`` or ``trtllm``; told here for people, no scenario sets it.
    """

    backend: str
    overlap_scheduler: bool
    cuda_graphs: Literal["off", "on", "padded"]
    chunked_context: bool
    pdl: bool
    sampler: Literal["torch", "trtllm"] = "torch"


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


class Release(Struct, frozen=True, forbid_unknown_fields=True):
    """One range of releases that behave the same for perfgate.

    Attributes:
        since: the first release (or candidate) of the range.
        programs: option table of each program that the range has.
        spelling: YAML keys of settings.
        yaml_keys: every YAML key that perfgate knows the range to know.
        unknown_yaml: what the range does with a key that it does not know.
        defaults: what each program does when it is not told.
        dataset_tool: how synthetic prompts are made.
        bench_backends: choices of `--backend` of `trtllm-bench`.
        serve_backends: choices of `--backend` of `trtllm-serve`.
        examples: folder of ``quickstart_advanced.py`` in a checkout.
        moe_backends: kernels of the experts that the range has; None: not established, the
            program itself refuses what it lacks.
        example_prompts: what ``quickstart_advanced.py`` asks when it is not told; None: not
            established.
        mtp_zero: ``quickstart_advanced.py`` takes zero draft layers for "off".
        yaml_option: option that names the YAML file.
        pdl_variable: environment variable of programmatic dependent launch.
        bench_warmup: warm-up requests of `trtllm-bench throughput` when it is not told.
        version: the release that was asked for; empty: the range as such.
    """

    since: str
    programs: Mapping[str, Options]
    spelling: Spelling
    yaml_keys: YamlKeys
    unknown_yaml: Literal["ignored", "refused"]
    defaults: Mapping[str, Defaults]
    dataset_tool: DatasetTool
    bench_backends: frozenset[str]
    serve_backends: frozenset[str]
    examples: str
    moe_backends: frozenset[str] | None = None
    example_prompts: tuple[str, ...] | None = None
    mtp_zero: bool = False
    yaml_option: str = "--extra_llm_api_options"
    pdl_variable: str | None = "TRTLLM_ENABLE_PDL"
    bench_warmup: int = 2
    version: str = ""

    def options(self, program: str) -> Options:
        """The options of one program; empty when the range has no such program."""
        return self.programs.get(program, {})

    def option(self, program: str, spelling: str) -> Option | None:
        """The option of `program` that `spelling` is a spelling of; None: there is none."""
        for option in self.options(program).values():
            if spelling in option.spellings:
                return option
        return None
