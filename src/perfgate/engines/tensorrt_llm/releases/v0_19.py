"""TensorRT-LLM 0.19: the PyTorch backend is set below ``pytorch_backend_config``.

Sources: DeepSeek-V3 example README (its commands and YAML); `tensorrt_llm/commands/bench.py`,
`tensorrt_llm/commands/serve.py`, `tensorrt_llm/bench/benchmark/utils/general.py`,
`benchmarks/cpp/prepare_dataset.py`, `examples/pytorch/quickstart_advanced.py` and
`examples/gpqa_llmapi.py` of that time.
"""

from perfgate.engines.tensorrt_llm.releases.table import (
    BENCH,
    BENCHMARK_SERVING,
    BUILD,
    GPQA,
    LATENCY,
    PREPARE_SCRIPT,
    PREPARE_SCRIPT_NORMAL,
    QUICKSTART,
    SERVE,
    THROUGHPUT,
    DatasetTool,
    Defaults,
    GraphKeys,
    Option,
    Release,
    Spelling,
    flag,
    options,
)

_NESTED = "pytorch_backend_config"

BENCH_OPTIONS = options(
    Option("--model", ("-m",)), "--model_path", Option("--workspace", ("-w",)), "--log_level"
)

THROUGHPUT_OPTIONS = options(
    "--engine_dir",
    "--backend",
    "--extra_llm_api_options",
    "--max_batch_size",
    "--max_num_tokens",
    "--max_seq_len",
    "--beam_width",
    "--kv_cache_free_gpu_mem_fraction",
    "--dataset",
    "--modality",
    "--max_input_len",
    "--num_requests",
    "--warmup",
    "--target_input_len",
    "--target_output_len",
    "--tp",
    "--pp",
    "--ep",
    "--concurrency",
    flag("--streaming"),
    "--report_json",
    "--iteration_log",
    "--output_json",
)

LATENCY_OPTIONS = options(
    "--engine_dir",
    "--kv_cache_free_gpu_mem_fraction",
    "--dataset",
    "--num_requests",
    "--warmup",
    "--concurrency",
    "--beam_width",
    "--medusa_choices",
    "--report_json",
    "--iteration_log",
)

BUILD_OPTIONS = options(
    Option("--tp_size", ("-tp",)),
    Option("--pp_size", ("-pp",)),
    Option("--quantization", ("-q",)),
    "--max_seq_len",
    "--max_batch_size",
    "--max_num_tokens",
    "--dataset",
    "--target_input_len",
    "--target_output_len",
)

SERVE_OPTIONS = options(
    "--tokenizer",
    "--host",
    "--port",
    "--backend",
    "--log_level",
    "--max_beam_width",
    "--max_batch_size",
    "--max_num_tokens",
    "--max_seq_len",
    "--tp_size",
    "--pp_size",
    "--ep_size",
    "--cluster_size",
    "--gpus_per_node",
    "--kv_cache_free_gpu_memory_fraction",
    "--num_postprocess_workers",
    flag("--trust_remote_code"),
    "--extra_llm_api_options",
)

# The client is documented since 1.0 and was there in June 2025 (#4901); which release brought it is
# not established: `installed_options` finds out before anything is started.
BENCHMARK_SERVING_OPTIONS = options(
    "--backend",
    "--host",
    "--port",
    "--base-url",
    "--endpoint",
    "--dataset-name",
    "--dataset-path",
    "--download-path",
    "--model",
    "--tokenizer",
    "--custom-tokenizer",
    flag("--trust-remote-code"),
    "--num-prompts",
    "--max-concurrency",
    "--request-rate",
    "--burstiness",
    "--seed",
    "--random-input-len",
    "--random-output-len",
    "--random-range-ratio",
    "--random-prefix-len",
    flag("--random-ids"),
    flag("--tokenize-on-client"),
    flag("--ignore-eos"),
    flag("--non-streaming"),
    flag("--no-test-input"),
    "--percentile-metrics",
    "--metric-percentiles",
    "--goodput",
    flag("--save-result"),
    flag("--save-detailed"),
    "--result-dir",
    "--result-filename",
    "--metadata",
)

PREPARE_SCRIPT_OPTIONS = options(
    "--tokenizer",
    "--output",
    flag("--stdout"),
    "--random-seed",
    "--task-id",
    "--rand-task-id",
    "--lora-dir",
    "--log-level",
)

NORMAL_OPTIONS = options(
    "--num-requests", "--input-mean", "--input-stdev", "--output-mean", "--output-stdev"
)

QUICKSTART_OPTIONS = options(
    "--model_dir",
    "--prompt",
    "--max_seq_len",
    "--max_batch_size",
    "--max_num_tokens",
    "--attention_backend",
    "--moe_backend",
    flag("--enable_attention_dp"),
    "--tp_size",
    "--pp_size",
    "--moe_ep_size",
    "--moe_tp_size",
    "--kv_cache_dtype",
    flag("--disable_kv_cache_reuse"),
    "--kv_cache_fraction",
    flag("--enable_overlap_scheduler"),
    flag("--enable_chunked_prefill"),
    flag("--use_cuda_graph"),
    flag("--print_iter_log"),
    flag("--use_torch_compile"),
    "--max_tokens",
    "--temperature",
    "--top_k",
    "--top_p",
    "--load_format",
    "--spec_decode_algo",
    "--spec_decode_nextn",
    "--eagle_model_dir",
)

GPQA_OPTIONS = options(
    "--hf_model_dir",
    "--tokenizer_dir",
    "--load_format",
    "--top_p",
    "--temperature",
    "--backend",
    "--attn_backend",
    "--max_generation_tokens",
    "--concurrency",
    "--batch_size",
    "--max_num_tokens",
    "--tp_size",
    "--ep_size",
    "--kv_cache_dtype",
    flag("--kv_cache_enable_block_reuse"),
    "--kv_cache_fraction",
    flag("--use_cuda_graph"),
    flag("--torch_compile"),
    flag("--enable_attention_dp"),
    flag("--print_iter_log"),
    flag("--enable_overlap_scheduler"),
    "--mtp_nextn",
    "--data_dir",
    "--limit",
    flag("--check_accuracy"),
    "--accuracy_threshold",
)

COMMON_YAML = {
    "enable_attention_dp": None,
    "enable_chunked_prefill": None,
    "trust_remote_code": None,
    "kv_cache_config": {"enable_block_reuse": None, "free_gpu_memory_fraction": None},
    "speculative_config": {
        "decoding_type": None,
        "num_nextn_predict_layers": None,
        "use_relaxed_acceptance_for_thinking": None,
        "relaxed_topk": None,
        "relaxed_delta": None,
    },
}

_EXAMPLE = Defaults(
    backend="pytorch",
    overlap_scheduler=False,
    cuda_graphs="off",
    chunked_context=False,
    pdl=False,
)

V0_19 = Release(
    since="0.19.0rc0",
    programs={
        BENCH: BENCH_OPTIONS,
        THROUGHPUT: THROUGHPUT_OPTIONS,
        LATENCY: LATENCY_OPTIONS,
        BUILD: BUILD_OPTIONS,
        SERVE: SERVE_OPTIONS,
        BENCHMARK_SERVING: BENCHMARK_SERVING_OPTIONS,
        PREPARE_SCRIPT: PREPARE_SCRIPT_OPTIONS,
        PREPARE_SCRIPT_NORMAL: NORMAL_OPTIONS,
        QUICKSTART: QUICKSTART_OPTIONS,
        GPQA: GPQA_OPTIONS,
    },
    spelling=Spelling(
        graphs=GraphKeys(
            at=(_NESTED,),
            switch="use_cuda_graph",
            padding="cuda_graph_padding_enabled",
            batch_sizes="cuda_graph_batch_sizes",
            max_batch_size="cuda_graph_max_batch_size",
        ),
        overlap=(_NESTED, "enable_overlap_scheduler"),
        overlap_inverted=False,
        kv_cache_dtype=(_NESTED, "kv_cache_dtype"),
        moe_backend=(_NESTED, "moe_backend"),
        iteration_log=(_NESTED, "print_iter_log"),
        attention_backend=(_NESTED, "attn_backend"),
        torch_compile=(_NESTED, "torch_compile_enabled"),
    ),
    yaml_keys={
        **COMMON_YAML,
        _NESTED: {
            "use_cuda_graph": None,
            "cuda_graph_padding_enabled": None,
            "cuda_graph_batch_sizes": None,
            "cuda_graph_max_batch_size": None,
            "print_iter_log": None,
            "enable_overlap_scheduler": None,
            "kv_cache_dtype": None,
            "moe_backend": None,
            "attn_backend": None,
            "torch_compile_enabled": None,
            "enable_iter_perf_stats": None,
        },
    },
    unknown_yaml="ignored",
    defaults={
        # trtllm-bench turns graphs and overlap on by itself (`pyt_options` of its general.py).
        THROUGHPUT: Defaults("tensorrt", True, "on", False, False),
        SERVE: Defaults("tensorrt", False, "off", False, False),
        QUICKSTART: _EXAMPLE,
        GPQA: _EXAMPLE,
    },
    dataset_tool=DatasetTool(PREPARE_SCRIPT, "benchmarks/cpp/prepare_dataset.py"),
    bench_backends=frozenset({"pytorch", "autodeploy"}),
    serve_backends=frozenset({"pytorch"}),
    moe_backends=frozenset({"CUTLASS", "TRTLLM"}),
    examples="examples/pytorch",
    # The four prompts that the example's documented output answers.
    example_prompts=(
        "Hello, my name is",
        "The president of the United States is",
        "The capital of France is",
        "The future of AI is",
    ),
    mtp_zero=True,
)
