"""The commands that the five documents show, as data.

Of a command the words are kept, in an order of our own; a name in ``${…}`` is the document's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from documented_set import BLOG, EXAMPLE, GB200_RECIPE, LAB, RECIPE, documented_suite

SCENARIOS = {scenario.id: scenario for scenario in documented_suite().scenarios}
IMAGE = "nvcr.io/nvidia/tensorrt-llm/release:1.0.0rc6"


@dataclass(frozen=True)
class Documented:
    """One command of a document.

    Attributes:
        document, place: where it is shown.
        program: what it calls; beyond `command_differences.PROGRAMS` perfgate does not run it.
        scenarios: ids, or patterns of ids, of the scenarios that run it; empty: none does.
        words: its words, variables first; None: the place has only settings.
        yaml: its settings file.
        excerpt: whether the document gives only some options or keys, so that ours may have more.
    """

    document: str
    place: str
    program: str
    scenarios: tuple[str, ...] = ()
    words: str | None = None
    yaml: Mapping[str, Any] | None = None
    excerpt: bool = False

    @property
    def runs_in(self) -> list[str]:
        """Ids of the scenarios; those beside a line of the lab's have settings of our own."""
        return [
            name
            for name in SCENARIOS
            if "-dp8-" not in name and any(fnmatchcase(name, one) for one in self.scenarios)
        ]


_SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 384]
_YAML = "--extra_llm_api_options ./extra-llm-api-config.yml"
_MTP_3 = {"decoding_type": "MTP", "num_nextn_predict_layers": 3}
_R1_YAML: dict[str, Any] = {
    "enable_attention_dp": True,
    "cuda_graph_config": {"enable_padding": True, "max_batch_size": 128},
    "kv_cache_config": {"dtype": "fp8"},
    "stream_interval": 10,
    "speculative_config": {"decoding_type": "MTP", "num_nextn_predict_layers": 1},
}
_V3_YAML: dict[str, Any] = {
    "pytorch_backend_config": {
        "use_cuda_graph": True,
        "cuda_graph_padding_enabled": True,
        "cuda_graph_batch_sizes": _SIZES,
        "print_iter_log": True,
        "enable_overlap_scheduler": True,
    },
    "enable_attention_dp": True,
}
_V3 = "deepseek-ai/DeepSeek-V3"
_LENGTHS = "token-norm-dist --input-mean 1024 --output-mean 2048 --input-stdev 0 --output-stdev 0"
_PREPARE = "python ${YOUR_WORK_PATH}/benchmarks/cpp/prepare_dataset.py --stdout --tokenizer"
_EVALUATED = (
    "lm_eval --model local-completions --tasks gsm8k --num_fewshot 5 --batch_size 256 "
    "--gen_kwargs temperature=0.0,add_special_tokens=False --log_samples --output_path {} "
    "--model_args model={},base_url=http://localhost:8000/v1/completions,num_concurrent=32,"
    "max_retries=20,tokenized_requests=False"
)
_LOADED = (
    "python -m tensorrt_llm.serve.scripts.benchmark_serving --model {} --backend openai "
    "--dataset-name random --random-input-len ${{isl}} --random-output-len ${{osl}} "
    "--random-prefix-len 0 --random-ids --num-prompts ${{num_prompts}} "
    "--max-concurrency ${{concurrency}} --ignore-eos --tokenize-on-client "
    "--percentile-metrics ttft,tpot,itl,e2el --save-result "
    "--result-dir /tmp/deepseek_r1_output --result-filename concurrency_${{concurrency}}.json"
)
_ASKED = "curl http://localhost:8000/v1/completions -H 'Content-Type: application/json' -d " + (
    """'{{"model": "{}", "prompt": "Where is New York?", "max_tokens": 16, "temperature": 0}}'"""
)
_FP8, _FP4 = "deepseek-ai/DeepSeek-R1-0528", "nvidia/DeepSeek-R1-0528-FP4"
_SERVED = (
    f"trtllm-serve {_FP8} --host 0.0.0.0 --port 8000 --backend pytorch --max_batch_size 1024 "
    "--max_num_tokens 3200 --max_seq_len 2048 --kv_cache_free_gpu_memory_fraction 0.8 "
    "--tp_size 8 --ep_size 8 --trust_remote_code --extra_llm_api_options ${EXTRA_LLM_API_FILE}"
)
_TWO_NODES = (
    f"trtllm-llmapi-launch trtllm-bench --model {_V3} throughput --backend pytorch "
    "--max_batch_size 161 --max_num_tokens 1160 --tp 16 --kv_cache_free_gpu_mem_fraction 0.95 "
)
_DEEPGEMM = (
    f"trtllm-bench --model {_V3} --model_path /models/DeepSeek-V3 throughput --backend pytorch "
    "--max_batch_size ${MAX_BATCH_SIZE} --max_num_tokens ${MAX_NUM_TOKENS} --dataset dataset.txt "
    "--extra_llm_api_options /workspace/extra-llm-api-config.yml --concurrency ${CONCURRENCY} "
    "--num_requests ${NUM_REQUESTS} --kv_cache_free_gpu_mem_fraction 0.9 --streaming "
    "--report_json ${OUTPUT_FILENAME}.json "
)
_SGLANG = (
    f"python3 -m sglang.launch_server --model-path {_FP8} --host 0.0.0.0 --port 8000 --tp-size 8 "
)
_LAB = "h200-r1-0528-lab-"
_BENCH = (
    f"vllm bench serve --model {_FP8} --backend openai-chat --endpoint /v1/chat/completions "
    "--dataset-name {} --num-prompts ${{num_prompts}}"
)


def _not_run(document: str, place: str, *programs: str) -> list[Documented]:
    return [Documented(document, place, program) for program in programs]


def _blog() -> Iterator[Documented]:
    def bench(
        place: str, scenario: str, words: str, settings: Mapping[str, Any], variable: str = ""
    ) -> Documented:
        words = f"{variable} trtllm-bench {words} throughput {_YAML}"
        return Documented(BLOG, place, "trtllm-bench", (scenario,), words, settings)

    yield from _not_run(BLOG, "1. Download TensorRT LLM", "apt-get", "git clone")
    yield from _not_run(BLOG, "3. Build and run TensorRT LLM container", "docker/Makefile")
    yield from _not_run(
        BLOG, "4. Compile and Install TensorRT LLM", "build_wheel.py", "pip (wheel)"
    )
    yield from _not_run(BLOG, "5. Optional: Tune GPU clocks", "nvidia-smi")
    yield bench(
        "B200 min-latency",
        "b200-r1-fp4-min-latency",
        "--model nvidia/DeepSeek-R1-FP4 --dataset ${YOUR_DATA_PATH} --num_requests 10 "
        "--concurrency 1 --max_batch_size 1 --tp 8 --ep 2",
        {"moe_config": {"backend": "TRTLLM"}, "speculative_config": _MTP_3},
        "TRTLLM_ENABLE_PDL=1",
    )
    yield bench(
        "B200 max-throughput for R1-0528 with FP8 KV cache",
        "b200-r1-0528-fp4-fp8kv-max-throughput",
        f"--model {_FP4} --dataset ${{YOUR_DATA_PATH}} --tp 8 --ep 8 --max_batch_size 896 "
        "--max_num_tokens 2048 --kv_cache_free_gpu_mem_fraction 0.93 --concurrency 7168 "
        "--num_requests 114688",
        {
            "cuda_graph_config": {
                "enable_padding": True,
                "batch_sizes": [896, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1],
            },
            "print_iter_log": True,
            "kv_cache_dtype": "fp8",
            "enable_attention_dp": True,
        },
    )
    for model, scenario, place, requests, words, settings, variable in (
        (
            *("nvidia/DeepSeek-R1-FP4", "b200-r1-fp4-fp16kv-max-throughput"),
            *("B200 max-throughput for R1 with FP16 KV cache", 49152),
            "--max_batch_size 384 --max_num_tokens 1536 --concurrency 3072 "
            "--kv_cache_free_gpu_mem_fraction 0.85",
            {
                "cuda_graph_config": {"enable_padding": True, "batch_sizes": _SIZES},
                "print_iter_log": "${PRINT_ITER_LOG}",
                "enable_attention_dp": True,
            },
            "",
        ),
        (
            *("deepseek-ai/DeepSeek-R1", "h200-r1-fp8-max-throughput"),
            *("H200 max-throughput", 5120),
            "--max_batch_size 128 --max_num_tokens 1151 --concurrency 1024 "
            "--kv_cache_free_gpu_mem_fraction 0.8",
            {"cuda_graph_config": {"batch_sizes": [128]}, "enable_attention_dp": True},
            "TRTLLM_DG_JIT_USE_NVCC=1",
        ),
    ):
        made = f"{_PREPARE} {model} {_LENGTHS} --num-requests {requests} > dataset.txt"
        yield Documented(BLOG, place, "prepare_dataset.py", (scenario,), made)
        words += f" -m {model} --num_requests {requests} --tp 8 --ep 8 --warmup 0"
        words += " --dataset ./dataset.txt"
        yield bench(place, scenario, words, settings, variable)
    yield bench(
        "H200 min-latency",
        "h200-r1-fp8-min-latency",
        "--model deepseek-ai/DeepSeek-R1 --dataset ${YOUR_DATA_PATH} --num_requests 10 "
        "--concurrency 1 --max_batch_size 1 --tp 8 --ep 4",
        {"speculative_config": _MTP_3},
    )


def _recipe() -> Iterator[Documented]:
    fp8, fp4 = ("?200-r1-0528-fp8-serve",), ("b200-r1-0528-fp4-serve",)
    docker = "docker run --rm -it --ipc=host --gpus all -p 8000:8000 -v ~/.cache:/root/.cache:rw"
    docker += f" --name tensorrt_llm {IMAGE} /bin/bash"
    yield Documented(RECIPE, "Run Docker Container", "docker run", fp8, docker)
    wide = {
        "backend": "WIDEEP",
        "max_num_tokens": 9216,
        "load_balancer": {"num_slots": 288, "layer_updates_per_iter": 1},
    }
    for place, scenario, moe in (
        ("Launch the TRT-LLM Server", fp4, {}),
        (
            "Launch the TRT-LLM Server",
            ("b200-r1-0528-fp8-serve",),
            {"backend": "DEEPGEMM", "max_num_tokens": 3200},
        ),
        ("Launch the TRT-LLM Server", ("h200-r1-0528-fp8-serve",), {}),
        ("Wide Expert Parallelism", ("gb200-r1-0528-fp4-wide-ep-serve",), wide),
    ):
        settings = {**_R1_YAML, "moe_config": moe}
        yield Documented(RECIPE, place, "trtllm-serve", scenario, _SERVED, settings)
    status = r"curl -s -o /dev/null -w 'Status: %{http_code}\n' http://localhost:8000/health"
    yield Documented(RECIPE, "Basic Test", "/health", fp8, status)
    yield Documented(RECIPE, "Basic Test", "/v1/completions", fp8, _ASKED.format(_FP8))
    place = "Running Evaluations to Verify Accuracy (Optional)"
    yield from _not_run(RECIPE, place, "docker exec", "pip (lm_eval)")
    for model, file, scenario in (
        (_FP8, "trtllm.fp8.gsm8k", fp8),
        (_FP4, "trtllm.fp4.gsm8k", fp4),
    ):
        yield Documented(RECIPE, place, "lm_eval", scenario, _EVALUATED.format(file, model))
        loaded = _LOADED.format(model)
        yield Documented(RECIPE, "Benchmarking Performance", "benchmark_serving", scenario, loaded)


def _example() -> Iterator[Documented]:
    model_dir = "--model_dir <YOUR_MODEL_DIR>"
    example = f"python quickstart_advanced.py {model_dir}"
    yield from _not_run(EXAMPLE, "Downloading the Model Weights", "git lfs", "git clone")
    yield Documented(
        EXAMPLE,
        "Run a single inference",
        "quickstart_advanced.py",
        ("h200-v3-fp8-quickstart",),
        f"{example} --tp_size 8",
    )
    yield Documented(
        EXAMPLE,
        "Multi-Token Prediction (MTP)",
        "quickstart_advanced.py",
        ("h200-v3-fp8-mtp-?",),
        f"{example} --spec_decode_algo MTP --spec_decode_nextn ${{N}}",
    )
    yield Documented(
        EXAMPLE,
        "Run evaluation on GPQA dataset",
        "gpqa_llmapi.py",
        ("h200-v3-fp8-gpqa",),
        "python examples/gpqa_llmapi.py --hf_model_dir <YOUR_MODEL_DIR> --data_dir <DATASET_PATH> "
        "--tp_size 8 --use_cuda_graph --enable_overlap_scheduler --concurrency 32 --batch_size 32 "
        "--max_num_tokens 4096",
    )
    serve = ("h200-v3-fp8-serve",)
    yield Documented(
        EXAMPLE,
        "Serving",
        "trtllm-serve",
        serve,
        f"trtllm-serve {_V3} --host localhost --port 8000 --backend pytorch --max_batch_size 161 "
        "--max_num_tokens 1160 --tp_size 8 --ep_size 8 --pp_size 1 "
        f"--kv_cache_free_gpu_memory_fraction 0.95 {_YAML}",
        _V3_YAML,
    )
    yield Documented(EXAMPLE, "Serving", "/v1/completions", serve, _ASKED.format(_V3))
    yield from _not_run(EXAMPLE, "mpirun", "docker run (two hosts)", "ssh-keygen")
    yield from _not_run(EXAMPLE, "mpirun", "mpi_hello_world")
    mpirun = ("h200-v3-fp8-2node-mpirun",)
    yield Documented(
        EXAMPLE,
        "mpirun",
        "mpirun",
        mpirun,
        "mpirun --output-filename bench_log_2node_ep8_tp16_attndp_on_sl1000 -n 16 "
        "-H <HOST1>:8,<HOST2>:8 -mca plm_rsh_args '-p 2233' --allow-run-as-root",
    )
    yield Documented(
        EXAMPLE,
        "mpirun",
        "trtllm-bench",
        mpirun,
        f"{_TWO_NODES} --ep 8 --model_path /models/DeepSeek-V3 --concurrency 4096 --streaming "
        "--dataset /workspace/tensorrt_llm/dataset_isl1000.txt "
        "--extra_llm_api_options /workspace/tensorrt_llm/extra-llm-api-config.yml",
        _V3_YAML,
    )
    srun = ("h200-v3-fp8-2node-slurm",)
    yield Documented(
        EXAMPLE,
        "Slurm",
        "srun",
        srun,
        "srun -N 2 -w [NODES] --output=benchmark_2node.log --ntasks 16 --ntasks-per-node=8 "
        "--mpi=pmix --gres=gpu:8 --container-image=<CONTAINER_IMG> "
        "--container-mounts=/workspace:/workspace --container-workdir /workspace bash -c",
    )
    yield Documented(
        EXAMPLE,
        "Slurm",
        "trtllm-bench",
        srun,
        f"{_TWO_NODES} --ep 4 --model_path <YOUR_MODEL_DIR> --dataset /workspace/dataset.txt "
        f"{_YAML}",
        _V3_YAML,
    )
    yield from _gb200_cluster()
    for scenario, words in (
        ("h200-v3-fp8-deepgemm-on", f"{_DEEPGEMM} --tp 8 --ep 8"),
        ("h200-v3-fp8-2node-deepgemm-on", f"trtllm-llmapi-launch {_DEEPGEMM} --tp 16 --ep 16"),
    ):
        yield Documented(EXAMPLE, "DeepGEMM", "trtllm-bench", (scenario,), words, _V3_YAML)
    yield Documented(
        EXAMPLE,
        "DeepGEMM",
        "mpirun",
        ("h200-v3-fp8-2node-deepgemm-on",),
        "mpirun -H <HOST1>:8,<HOST2>:8 -n 16 -x TRTLLM_DG_ENABLED=1 -x CUDA_HOME=/usr/local/cuda",
    )
    yield Documented(
        EXAMPLE,
        "FP8 KV Cache and MLA",
        "trtllm-serve",
        ("h200-v3-fp8-kv-fp8",),
        yaml={"pytorch_backend_config": {"kv_cache_dtype": "fp8"}},
        excerpt=True,
    )


def _gb200_cluster() -> Iterator[Documented]:
    place = "Example: Multi-node benchmark on GB200 Slurm cluster"
    job = ("gb200-r1-fp4-2node-slurm",)
    sizes = "--nodes=2 --ntasks=8 --ntasks-per-node=4"
    for program, words in (
        (
            "prepare_dataset.py",
            "python3 /path/to/TensorRT-LLM/benchmarks/cpp/prepare_dataset.py --stdout "
            f"--tokenizer=/path/to/DeepSeek-R1 {_LENGTHS} --num-requests=49152 > /tmp/dataset.txt",
        ),
        ("sbatch", f"sbatch {sizes} benchmark.slurm"),
        (
            "#SBATCH",
            f"{sizes} --partition=<partition> --account=<account> --time=02:00:00 "
            "--job-name=<job_name>",
        ),
        (
            "srun",
            "srun --container-image=${container_image} --mpi=pmix "
            "--container-mounts=${mount_dir}:${mount_dir} "
            "--output ${logdir}/bench_%j_%t.srun.out bash benchmark.sh",
        ),
    ):
        yield Documented(EXAMPLE, place, program, job, words)
    yield Documented(
        EXAMPLE,
        place,
        "trtllm-bench",
        job,
        "PATH=${HOME}/.local/bin:${PATH} PYTHONPATH=/path/to/TensorRT-LLM trtllm-llmapi-launch "
        "trtllm-bench --model deepseek-ai/DeepSeek-R1 --model_path ${DS_R1_NVFP4_MODEL_PATH} "
        "throughput --backend pytorch --num_requests 49152 --max_batch_size 384 "
        "--max_num_tokens 1536 --concurrency 3072 --dataset /path/to/dataset.txt --tp 8 --pp 1 "
        f"--ep 8 --kv_cache_free_gpu_mem_fraction 0.85 --warmup 0 {_YAML}",
        _V3_YAML,
    )
    lines = "'cd /path/to/TensorRT-LLM' 'pip install build/tensorrt_llm*.whl' 'sleep 60'"
    yield Documented(EXAMPLE, place, "benchmark.sh", job, lines)


def _gb200_recipe() -> Iterator[Documented]:
    """The table of use cases, in the command of launch.sh with the file of setup.sh."""
    settings = {
        "kv_cache_dtype": "fp8",
        "cuda_graph_padding_enabled": True,
        "print_iter_log": True,
        "stream_interval": 4,
        "enable_attention_dp": True,
        "use_cuda_graph": True,
        "cuda_graph_batch_sizes": [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 816, 1024, 2048, 3600],
    }
    for use, tokens, fraction in (
        ("reasoning", 6000, 0.85),
        ("chat", 7000, 0.8),
        ("summarization", 9000, 0.85),
        ("generation", 3000, 0.85),
    ):
        yield Documented(
            GB200_RECIPE,
            "Inference Use case configs",
            "trtllm-bench",
            (f"gb200-r1-fp4-{use}-streaming",),
            "--model nvidia/DeepSeek-R1-FP4 --num_requests 7680 --concurrency -1 --warmup 0 "
            "--backend pytorch --streaming --max_batch_size 384 "
            f"--max_num_tokens {tokens} --tp 4 --ep 4 --pp 1 "
            f"--kv_cache_free_gpu_mem_fraction {fraction}",
            settings,
            excerpt=True,
        )


def _lab() -> Iterator[Documented]:
    engines, file = "1. Choosing the Inference Engine", "ShareGPT_V3_unfiltered_cleaned_split.json"
    vllm = f"vllm serve {_FP8} -tp 8"
    yield Documented(LAB, engines, "vllm serve", (f"{_LAB}vllm-*",), vllm)
    trtllm = "trtllm-serve /workspace/DeepSeek-R1-0528 --tp_size 8 --ep_size 8"
    yield Documented(LAB, engines, "trtllm-serve", ("h200-r1-0528-fp8-sharegpt",), trtllm)
    dp, compiled = "--enable-dp-attention", "--enable-dp-attention --enable-torch-compile"
    eagle = "--speculative-algorithm EAGLE --speculative-num-steps 1 --speculative-eagle-topk 1"
    for place, name, words in (
        (engines, "sglang-sharegpt", _SGLANG),
        ("2. Parallelism in SGLang", "sglang-dp-sharegpt", _SGLANG + dp),
        ("3. Torch.compile in SGLang", "sglang-dp-compile-sharegpt", _SGLANG + compiled),
        (
            "4. MTP in SGLang",
            "sglang-dp-compile-mtp-sharegpt",
            f"{_SGLANG} {compiled} {eagle} --speculative-num-draft-tokens 2",
        ),
        (
            "Other Benchmark Cases",
            "sglang-dp-random-*",
            f"python3 -m sglang.launch_server --model {_FP8} --tp 8 {dp}",
        ),
    ):
        yield Documented(LAB, place, "sglang.launch_server", (f"{_LAB}{name}",), words)
    yield from _not_run(LAB, "Benchmark Script", "wget")
    shared = f"{_BENCH.format('sharegpt')} --dataset-path {file}"
    lengths = "--random-input-len ${isl} --random-output-len ${osl} --seed 42"
    for names, words in (
        ("h200-r1-0528-*sharegpt*", shared),
        (f"{_LAB}*-random-*", f"{_BENCH.format('random')} {lengths}"),
    ):
        yield Documented(LAB, "Benchmark Script", "vllm bench serve", (names,), words)


COMMANDS = (*_blog(), *_recipe(), *_example(), *_gb200_recipe(), *_lab())
