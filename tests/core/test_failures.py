"""Failure classes: the first cause in a log wins, and healthy lines stay healthy."""

import re
from dataclasses import dataclass
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tables import each

import perfgate
from perfgate.core.failures import (
    FAILURES,
    SIGNATURES,
    Diagnosis,
    class_of_status,
    classify,
    classify_logs,
    diagnose,
)

DATA = Path(__file__).parents[1] / "data"
LOGS = {log.name: log for log in (DATA / "failures").iterdir()}
LOGS |= {f"vllm_cpu/{log.name}": log for log in (DATA / "vllm_cpu").iterdir()}
HEALTHY_LOGS = {name for name in LOGS if "healthy" in name}


@dataclass(frozen=True)
class Log:
    """A log file of `LOGS`, with the class, number and part of its telling line."""

    file: str
    failure: str
    line: int
    says: str


TABLE = [
    Log("cli_drift.log", "cli_drift", 31, "No such option: --request_json"),
    Log("config_error.pydantic.log", "config_error", 28, "2 validation errors for TorchLlmArgs"),
    Log("config_error.shared_memory.log", "config_error", 33, "creating shared memory segment"),
    Log("config_error.sglang.log", "config_error", 35, "greater than the derived context_length"),
    Log("config_error.sglang_client.log", "config_error", 37, "Warmup failed - Please make sure"),
    Log("crash.aborted.log", "crash", 41, "*** Process received signal ***"),
    Log("crash.bare.log", "crash", 39, "Segmentation fault (core dumped)"),
    Log("crash.open_mpi.log", "crash", 40, "Signal: Segmentation fault (11)"),
    Log("crash.python_status.log", "crash", 42, "died with <Signals.SIGSEGV: 11>"),
    Log("crash.segfault.log", "crash", 39, "Caught signal 11"),
    Log("crash.shell.log", "crash", 39, "Segmentation fault      (core dumped)"),
    Log("crash.slurm.log", "crash", 13, "task 5: Segmentation fault"),
    Log("crash.status_139.log", "crash", 13, "Exited with exit code 139"),
    Log("crash.worker.log", "crash", 40, "Fatal Python error: Segmentation fault"),
    Log("cuda_error.log", "cuda_error", 40, "illegal memory access"),
    Log("cuda_error.mpirun.log", "cuda_error", 40, "illegal memory access"),
    Log("disk_full.log", "disk_full", 35, "No space left on device: 'report.json'"),
    Log("hang.log", "hang", 39, "Hang detected on rank 2"),
    Log("incomplete.log", "incomplete", 18, "!FAILED REQUESTS!"),
    Log("incomplete.sglang.log", "incomplete", 10, "All requests failed."),
    Log("killed.log", "killed", 43, "mpirun noticed that process rank 6"),
    Log("killed.slurm.log", "killed", 32, "task 3: Killed"),
    Log("killed.interrupted.log", "killed", 39, "Keyboard interrupt"),
    Log("killed.sglang.log", "killed", 109, "scheduler_0 (pid=16432) crashed with exit code -9"),
    Log("kv_cache_too_small.log", "kv_cache_too_small", 34, "must be large enough to process"),
    Log("model_file.llama_cpp.log", "model_file", 29, "not within the file bounds"),
    Log("model_file.sglang.log", "model_file", 16, "Repo id must be in the form"),
    Log("model_file.sglang_offline.log", "model_file", 25, "LocalEntryNotFoundError"),
    Log("mpi.spawn.log", "mpi", 23, "already filled"),
    Log("mpi.ssh.log", "mpi", 24, "ssh: connect to host b200-08 port 2233"),
    Log("nccl.log", "nccl", 32, "Failed, NCCL error"),
    Log("nccl.one_gpu.log", "nccl", 39, "rank 0 and rank 1 both on CUDA device e3000"),
    Log("nccl.one_gpu_torch.log", "nccl", 39, "NCCL error in:"),
    Log("oom.activation.log", "oom", 39, "Tried to allocate 7.50 GiB"),
    Log("oom.executor.log", "oom", 42, "Tried to allocate 3.12 GiB"),
    Log("oom.foreign_process.log", "oom", 42, "Process 4242 has 70.00 GiB memory in use"),
    Log("oom.model.log", "oom", 42, "Tried to allocate 448.00 MiB"),
    Log("oom.rank_binding.log", "oom", 42, "out of memory"),
    Log("oom.two_ranks.log", "oom", 39, "Process 451 has 88.16 GiB"),
    Log("oom.vllm_startup.log", "oom", 39, "less than desired GPU memory utilization"),
    Log("oom.mpirun_colours.log", "oom", 37, "failed due to insufficient GPU memory"),
    Log("oom.host.log", "oom", 26, "Detected 1 oom-kill event(s)"),
    Log("oom.llama_cpp.log", "oom", 29, "cudaMalloc failed: out of memory"),
    Log("pmi_mismatch.log", "pmi_mismatch", 13, "OPAL ERROR: Unreachable"),
    Log("pmi_mismatch.import.log", "pmi_mismatch", 12, "OPAL ERROR: Unreachable in pmix3x"),
    Log("pmi_mismatch.pmix3x.log", "pmi_mismatch", 13, "OPAL ERROR: Unreachable"),
    Log("pmi_mismatch.pmi2.log", "pmi_mismatch", 23, "PMI2_Init failed"),
    Log("port_in_use.log", "port_in_use", 43, "('0.0.0.0', 8000): address already in use"),
    Log("port_in_use.early.log", "port_in_use", 32, "Address already in use"),
    Log("port_in_use.sglang.log", "port_in_use", 61, "('127.0.0.1', 8724): address already"),
    Log("request_too_long.log", "request_too_long", 50, "prompt length (9351.0)"),
    Log("total_timeout.slurm.log", "total_timeout", 32, "DUE TO TIME LIMIT"),
    Log("truncated_output.log", "truncated_output", 31, "Unterminated string"),
    Log("unknown.log", "unknown", 39, "Error in event loop: list index out of range"),
    # Of vLLM 0.32.0 for the CPU, faults provoked on purpose.
    Log("vllm_cpu/port_taken.log", "port_in_use", 1, "[Errno 98] Address already in use"),
    Log("vllm_cpu/model_missing.log", "model_file", 1, "Repo id must be in the form"),
    Log("vllm_cpu/model_without_config.log", "model_file", 2, "Invalid repository ID or"),
    Log("vllm_cpu/weights_missing.log", "model_file", 13, "Cannot find any model weights with"),
    Log("vllm_cpu/weights_truncated.log", "model_file", 13, "SafetensorError: Error"),
    Log("vllm_cpu/model_len.log", "config_error", 2, "max_model_len (1000000) is greater"),
    Log("vllm_cpu/kv_space_too_big.log", "oom", 2, "less than requested memory for kv (40.0 GiB)"),
    Log("vllm_cpu/kv_cache_too_small.log", "kv_cache_too_small", 2, "the available KV cache"),
    Log("vllm_cpu/engine_core_killed.log", "killed", 32, "engine core exited unexpectedly"),
    Log("vllm_cpu/worker_killed.log", "killed", 10, "VllmWorker-0 died unexpectedly"),
    Log("vllm_cpu/unknown_option.log", "cli_drift", 4, "unrecognized arguments: --nonsense 1"),
]

# One line for each signature that no log of `TABLE` shows.
CAUSES = {
    "port_in_use": [
        "main: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8080",
        "RuntimeError: Failed to bind socket to 0.0.0.0:8000: [Errno 13] Permission denied",
        "ValueError: Port is already in use. dist_init_port=30233 port_base=30234",
    ],
    "disk_full": ["OSError: [Errno 122] Disk quota exceeded"],
    "kv_cache_too_small": [
        "29000 is larger than the maximum number of tokens that can be stored in KV cache",
        "ValueError: No available memory for the cache blocks. Try increasing",
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
    ],
    "oom": [
        "torch.OutOfMemoryError: CUDA out of memory.",
        "RuntimeError: CUDA out of memory",
        "torch.AcceleratorError: CUDA error: out of memory",
        "node7:2343:2381 [7] transport/nvls.cc:157 NCCL WARN Cuda failure 2 'out of memory'",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "[TRT] [E] 2: [virtualMemoryBuffer.cpp::resizePhysical::140] Error Code 2: OutOfMemory",
        "llama_model_load: error loading model: unable to allocate CUDA0 buffer",
        "RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other",
        "[2026-11-23 06:45:25 TP0] Prefill out of memory. Try to lower your batch size.",
        "RuntimeError: alloc_req_slots runs out of memory. Please set a smaller number for",
        "llama_init_from_model: failed to allocate buffer for kv cache",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "MemoryError",
        "[123.4] Out of memory: Killed process 812 (trtllm-serve)",
        "slurmstepd: error: StepId=45.0 exceeded memory limit (433 > 314), being killed",
        "slurmstepd-n1: error: Detected 1 oom_kill event in StepId=3.0.",
        "srun: error: n1: task 0: Out Of Memory",
    ],
    "model_file": [
        "error: failed to load model: no file /models/x.gguf",
        "tensor 'output.weight' data is not within the file bounds",
        "gguf_init_from_file_impl: invalid magic characters: 'abcd', expected 'GGUF'",
        "OSError: /models/x is not a local folder and is not a valid model identifier",
        "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't",
        "OSError: Cannot access gated repo for url https://hub/meta-llama/Llama-3.1-8B",
        "OSError: Can't load tokenizer for '/models/x'. If you were trying to load it from",
    ],
    "request_too_long": [
        "ValueError: The sum of prompt length (1) and max_tokens (9) should not exceed max_seq_len",
        "Encountered an error: Prompt length (200) exceeds maximum input length (1)",
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",
        "send_error: request (9000 tokens) exceeds the available context size (4096 tokens)",
        "ValueError: Requested token count exceeds the model's maximum context length of 2048",
        "message: The input (3001 tokens) is longer than the model's context length (2048 tokens).",
        "Input length (9000 tokens) exceeds the maximum allowed length (8186 tokens). Use a",
    ],
    "nccl": [
        "[rank0]: RuntimeError: NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO)",
        "Executor creation failed with an error which might indicate insufficient GPU memory.",
        "node7:2343:2381 [7] transport/nvls.cc:157 NCCL WARN Cuda failure 1 'invalid argument'",
        "torch.distributed.DistBackendError: ncclSystemError: System call failed.",
        "[rank3]:[E] ProcessGroupNCCL.cpp:616] Watchdog caught collective operation timeout",
    ],
    "cuda_error": [
        "an illegal memory access was encountered",
        "Assertion `index < size` failed: device-side assert triggered",
        "unspecified launch failure",
        "uncorrectable ECC error encountered",
        "RuntimeError: cuBLAS: CUBLAS_STATUS_EXECUTION_FAILED",
        "CUDA driver version is insufficient for CUDA runtime version",
    ],
    "pmi_mismatch": [
        "[n1:21202] OPAL ERROR: Not initialized in file pmix2x_client.c at line 112",
        "OPAL ERROR: Unreachable in file ../../../../../opal/mca/pmix/pmix3x/pmix3x_client.c",
        'The application appears to have been direct launched using "srun",',
        "but OMPI was not built with SLURM's PMI support and therefore cannot",
        "slurmstepd-n1: error:  mpi/pmix_v4: init: (null) [0]: can not load PMIx library",
        "It looks like pmix_init failed for some reason; your parallel process is",
        "srun: error: Invalid MPI type 'pmix', --mpi=list for acceptable types",
    ],
    "mpi": [
        "[worker:15806] PRTE ERROR: Bad parameter in file base/odls_base_default_fns.c at line",
        "[n1:3] OPAL ERROR: Error in file util/net.c at line 3",
        "[n1:1] [[1,0],0] ORTE_ERROR_LOG: Not found in file ess_hnp_module.c at line 320",
        "ORTE has lost communication with a remote daemon.",
        "It looks like opal_init failed for some reason; your parallel process is",
        "It looks like MPI runtime init failed for some reason; your parallel process is",
        "mpi4py.MPI.Exception: MPI_ERR_SPAWN: could not spawn processes",
        "Exception in thread Thread-3 (_manager_spawn):",
        'File "/usr/lib/python3/mpi4py/futures/_lib.py", line 350, in _manager_spawn',
        "There are not enough slots available in the system to satisfy the 16",
        "mpirun has detected an attempt to run as root.",
        "RuntimeError: [TensorRT-LLM][ERROR] Assertion failed: mpiSize == tp * pp (world.cpp:99)",
        "ssh: Could not resolve hostname b200-09: Name or service not known",
        "Host key verification failed.",
        "root@b200-08: Permission denied (publickey,password).",
        "srun: error: Node failure on n2",
        "sbatch: error: Unable to contact slurm controller (connect failure)",
        "srun: error: task 3 launch failed: Unspecified error",
    ],
    "hang": [
        "[2025-10-01 10:00:00 TP0] Watchdog timeout (self.watchdog_timeout=300)",
        "TimeoutError: RPC call to execute_model timed out.",
        "TimeoutError: Timed out waiting for engines to send initial message on input socket.",
    ],
    "total_timeout": ["The user-provided time limit for job execution has been reached:"],
    "cli_drift": [
        "Error: Invalid value for '--backend': 'tensorrt' is not one of 'pytorch', '_autodeploy'.",
        "Error: Got unexpected extra argument (8)",
        "benchmark_serving.py: error: argument --backend: invalid choice: 'dynamo'",
        "srun: unrecognized option '--container-image=foo'",
        "error: invalid argument: --no-context-shift",
    ],
    "config_error": [
        "mpirun was unable to launch the specified application as it could not access",
        "ValueError: Model architectures ['Nope'] are not supported for now. Supported: dict_keys",
        "ValueError: NopeForCausalLM has no vLLM implementation and the Transformers one",
        "  Extra inputs are not permitted [type=extra_forbidden, input_value=True]",
        "jsonschema.exceptions.ValidationError: 3 is not a string",
        "TypeError: PyTorchConfig.__init__() got an unexpected keyword argument 'use_graphs'",
        "yaml.scanner.ScannerError: mapping values are not allowed here",
        "Error: Missing option '-m' / '--model'.",
        "benchmark_serving.py: error: the following arguments are required: --model",
        "bash: line 1: trtllm-bench: command not found",
        "slurmstepd: error: execve(): trtllm-bench: No such file or directory",
        "srun: error: Unable to allocate resources: Requested node configuration is not available",
        "sbatch: error: Batch job submission failed: Invalid partition name specified",
        "slurmstepd-n1: error: pyxis: failed to import docker image",
        "AssertionError: Please set a dp-size > 1. You can use 1 < dp-size <= tp-size",
    ],
    "truncated_output": ["SyntaxError: Unexpected end of JSON input"],
    "crash": ["!!!!!!! Segfault encountered !!!!!!!"],
    "incomplete": [
        "Total failed requests: 17",
        "Failed requests:                         17        ",
    ],
}
SYMPTOMS = {
    "oom": ["Exception: Capture cuda graph failed: out of resources"],
    "hang": [
        "Health check failed. Server couldn't get a response from detokenizer for last 20",
    ],
    "config_error": [
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
    ],
    "crash": [
        "mpirun noticed that process rank 3 with PID 0 on node n1 exited on signal 11",
        "srun: error: gb200-02: tasks 4-7: Segmentation fault",
        "gb200-02: task 3: Aborted (core dumped)",
        "Aborted (core dumped)",
        "torch.distributed.elastic: Signal 11 (SIGSEGV) received by PID 812",
        "worker 3 ended, exitcode: -11",
        "exit status 134",
        "exited with code -6",
    ],
    "killed": [
        "run.sh: line 3: 12117 Killed                  trtllm-bench",
        "slurmstepd: error: *** STEP 17.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***",
        "Child process unexpectedly failed with an exit code -9. pid=812",
    ],
    "nccl": [
        "torch.distributed.DistBackendError: ncclRemoteError: A call failed possibly due to",
        "a remote process exited or there was a network error",
    ],
    "mpi": [
        "MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD",
        "[n1:101829] PMIX ERROR: UNREACHABLE in file server/pmix_server.c at line 2198",
        "*** An error occurred in MPI_Init_thread",
    ],
    "unknown": [
        "Executor worker returned error",
        "RuntimeError: Engine core initialization failed. See root cause above.",
        "ValueError: Initial test run failed - Please make sure arguments are right",
        "KeyError: 'output_tokens'",
    ],
}
BANNERS = {
    "hang": ["No available shared memory broadcast block found in 60 seconds."],
    "mpi": [
        "Primary job  terminated normally, but 1 process returned",
        "mpirun detected that one or more processes exited with non-zero status, thus causing",
    ],
    "unknown": [
        "srun: error: n2: task 1: Exited with exit code 3",
        "[2026-11-23 06:45:25] Subprocess scheduler_0 (pid=7) crashed with exit code 1.",
        "Child process unexpectedly failed with an exit code 1. pid=812",
        "[2026-11-23 06:45:25] SIGQUIT received. It usually means one child failed.",
        "[2025-10-01 10:00:00] Received sigquit from a child process. It usually means the child",
        "[2025-10-01 10:00:00 TP3] Scheduler hit an exception: Traceback (most recent call last):",
    ],
}

HEALTHY = [
    "[2026-11-23 06:45:25] Scheduler watchdog timeout (self.watchdog_timeout=60, self.soft=True)",
    "The input (3001 tokens) is longer than the model's context length (2048 tokens). Truncating",
    # The consequence of a failed start: that worker ended as it was told.
    "ERROR Worker proc VllmWorker-0 died unexpectedly (exit code: 0), shutting down executor.",
    "WARNING Address already in use. Retrying with a new port.",
    "[09/17/2025-21:24:40] [TRT-LLM] [I] Estimated max memory in KV cache : 47.55 GiB",
    "[TRT-LLM] [W] Both free_gpu_memory_fraction and max_tokens are set (to 0.9 and 8256 with free",
    "  --retry-on-oom  Try again after OutOfMemoryError: CUDA out of memory. Tried to allocate",
    '    """Raise OutOfMemoryError when the cache does not fit."""',
    "    torch.OutOfMemoryError: when the cache does not fit",
    '    raise RuntimeError("Executor creation failed due to insufficient GPU memory.")',
    "    except torch.OutOfMemoryError as error:",
    "max_retries=3, retry_on_error=True, exit_on_error=False",
    "Error Rate: 0",
    "Failed requests:                         0         ",
    "installed a handler for the signals SIGSEGV, SIGABRT",
    "exited with code 0",
    "step ended, exit code: 11",
    "cudaGetLastError: no error",
    "CUDA error: no error",
    "[TRT-LLM] [W] [Autotuner] Failed: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "flashinfer.jit: [Autotuner]: OOM detected, falling back to default tactic",
    "[TRT] [W] skipping tactic 0 due to insufficient memory detected for tactic 0x000.",
    "[TensorRT-LLM][WARNING] Attention workspace size is not enough, increase from 0 bytes",
    "node7:2338:2379 [2] NCCL INFO NET/Plugin: dlerror: cannot open shared object file",
    "[1,3]<stderr>:[TRT-LLM] [I] CUDA error: the handler was removed",
    "INFO:     127.0.0.1:41818 - \"POST /v1/completions HTTP/1.1\" 500 Internal Server Error",
    "srun: error: spank: x11.so: Plugin file not found",
    "MPI size: 8, MPI local size: 8, rank: 0",
    "  Corrected key:    PMIX_ENVAR",
    "Traceback (most recent call last):",
    "NCCL_ASYNC_ERROR_HANDLING=1",
    "TLLM_LOG_LEVEL=ERROR",
    "",
]  # fmt: skip


def shown(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(name, line) for name, lines in table.items() for line in lines]


def read(file: str) -> list[str]:
    return LOGS[file].read_text(encoding="utf-8").splitlines()


def plain(text: str) -> str:
    return re.sub(r"\x1b\[\d+m", "", text)


def diagnosed(lines: list[str]) -> Diagnosis:
    found = diagnose(lines)
    assert found is not None
    return found


@each("log", TABLE, ids=lambda log: log.file)
def test_a_whole_log_shows_its_class_and_telling_line(log: Log) -> None:
    lines = read(log.file)
    found = diagnosed(lines)
    assert (found.failure, found.line) == (log.failure, log.line)
    assert log.says in found.text
    assert found.text.strip() in plain(lines[log.line - 1])
    assert found.next_step


@each("file", HEALTHY_LOGS)
def test_a_healthy_log_with_scary_words_shows_nothing(file: str) -> None:
    assert diagnose(read(file)) is None
    assert classify(read(file), otherwise="no_metrics") == ("no_metrics", ())


def test_every_log_is_in_the_table() -> None:
    assert {log.file for log in TABLE} | HEALTHY_LOGS == set(LOGS)


@each(("name", "line"), shown(CAUSES))
def test_a_telling_line_gives_class_and_evidence(name: str, line: str) -> None:
    assert classify(["starting", f"{line}  \n", "bye"]) == (name, (line.strip(),))


@each(("name", "line"), [*shown(SYMPTOMS), *shown(BANNERS)])
def test_a_symptom_tells_where_nothing_else_does(name: str, line: str) -> None:
    otherwise = "server_died" if name == "unknown" else name
    assert classify(["starting", line], "server_died") == (otherwise, (line.strip(),))


@each("line", HEALTHY)
def test_a_healthy_line_shows_nothing(line: str) -> None:
    assert diagnose([line]) is None


@each(
    "prefix",
    [
        "[1,3]<stderr>:",
        "[prterun-b200-07-812@1,3]<stderr>:",
        "3: ",
        "(EngineCore_DP0 pid=65064) ",
        "ERROR 08-15 03:15:55 async_llm_engine.py:56] ",
        "(RayWorkerWrapper pid=812, ip=10.0.0.2) ",
        "[rank3]: ",
        "model_server-1  | ",
        "2026-07-06 23:18:23,723 - ",
        "[09/17/2025-21:24:19] [TRT-LLM] [RANK 2] [E] ",
        "[TensorRT-LLM][ERROR] ",
        "[2026-11-23 06:45:25 DP0 TP3] ",
        "\x1b[31m[1,3]<stderr>:\x1b[0m[09/17/2025-21:24:19] [TRT-LLM] [E] \x1b[1m",
    ],
)
@each("words", ["MemoryError", "torch.OutOfMemoryError", "srun: error: Node failure on n2"])
def test_lines_are_read_through_their_prefixes(prefix: str, words: str) -> None:
    expected = "mpi" if words.startswith("srun") else "oom"
    failure, (evidence,) = classify([prefix + words])
    assert failure == expected
    assert words in evidence
    assert "\x1b" not in evidence


def test_every_signature_is_shown_above() -> None:
    lines = [line for table in (CAUSES, SYMPTOMS, BANNERS) for _, line in shown(table)]
    lines += [plain(read(log.file)[log.line - 1]) for log in TABLE]
    patterns = [signature.pattern for signature in SIGNATURES]
    assert [one for one in patterns if not any(map(one.search, lines))] == []


OOM = "RuntimeError: CUDA out of memory"


def test_the_first_cause_wins() -> None:
    port = CAUSES["port_in_use"][0]
    assert classify([OOM, port, OOM]) == ("oom", (OOM,))
    assert classify([port, OOM])[0] == "port_in_use"


def test_nccl_wraps_a_lack_of_memory_unless_that_was_told_before() -> None:
    wrapped = "Executor creation failed with an error which might indicate insufficient GPU memory"
    assert classify([wrapped])[0] == "nccl"
    assert classify([OOM, wrapped])[0] == "oom"


def test_nothing_known() -> None:
    assert classify(["all is well", "a MemoryError in the middle of a line"]) == ("unknown", ())
    assert classify([], otherwise="server_died") == ("server_died", ())
    assert diagnose([]) is None


def test_evidence_is_short_and_shows_the_telling_part() -> None:
    _, (line,) = classify(["MemoryError " + "x" * 10_000])
    assert len(line) == 300
    bar = "Requesting API: 3%|###       |\r" * 400
    _, (line,) = classify([bar + "RuntimeError: CUDA error: device not ready"])
    assert len(line) <= 300
    assert line.endswith("device not ready")


def test_what_did_not_fit_is_told_with_the_lack_of_memory() -> None:
    found = diagnosed(read("oom.executor.log"))
    assert [number for number, _ in found.details] == [53, 54, 55]
    assert found.evidence[1:] == (
        "The following component could not be created: KV cache",
        "Total GPU memory (GiB): 178.35",
        "Free GPU memory before component creation attempt (GiB): 1.63",
    )
    assert found.next_step.startswith(
        "KV cache did not fit: lower the KV cache fraction; in general"
    )


def test_the_documented_advice_for_a_lack_of_memory() -> None:
    step = FAILURES["oom"].next_step
    for said in ("0.85 to 0.8", "0.7", "max_batch_size", "max_seq_len", "8K/1K on H200"):
        assert said in step
    assert "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:8192" in step
    assert "Run time OOM issues" in step


causes = st.sampled_from(shown(CAUSES))
lesser = st.sampled_from([line for _, line in [*shown(SYMPTOMS), *shown(BANNERS)]])
healthy = st.sampled_from(HEALTHY)


@settings(max_examples=20)
@given(st.sampled_from(TABLE), st.data())
def test_healthy_lines_anywhere_change_no_class(log: Log, data: st.DataObject) -> None:
    lines = read(log.file)
    before = diagnosed(lines)
    for line in data.draw(st.lists(healthy, max_size=8)):
        lines.insert(data.draw(st.integers(0, len(lines))), line)
    after = diagnosed(lines)
    assert (after.failure, after.evidence) == (before.failure, before.evidence)
    assert after.text in plain(lines[after.line - 1])


@settings(max_examples=30)
@given(causes, st.lists(lesser), st.lists(lesser))
def test_a_symptom_never_wins_over_a_cause(
    cause: tuple[str, str], before: list[str], after: list[str]
) -> None:
    name, line = cause
    assert classify([*before, line, *after]) == (name, (line.strip(),))


@settings(max_examples=30)
@given(st.lists(st.text()))
def test_any_text_can_be_read(lines: list[str]) -> None:
    found = diagnose(lines)
    assert found is None or found.failure in FAILURES


def test_the_signatures_are_of_classes_that_exist() -> None:
    assert {one.failure for one in SIGNATURES} <= set(FAILURES)


def test_every_class_that_is_raised_exists() -> None:
    files = Path(perfgate.__file__).parent.rglob("*.py")
    calls = re.compile(r'\bRunError\(\s*"(\w+)"')
    raised = {name for file in files for name in calls.findall(file.read_text())}
    assert "disk_full" in raised
    assert raised <= set(FAILURES)


def test_two_ranks_on_one_gpu_are_told_whether_nccl_says_so_first_or_last() -> None:
    for file in ("nccl.one_gpu.log", "nccl.one_gpu_torch.log"):
        found = diagnosed(read(file))
        assert "both on CUDA device" in " ".join(found.evidence)
        assert "a GPU of its own" in found.next_step


def test_the_advice_reaches_those_who_read_a_log_as_a_file() -> None:
    shown = classify_logs([LOGS["oom.two_ranks.log"]])
    assert (shown.failure, len(shown.evidence)) == ("oom", 4)
    assert shown.hint is not None
    assert "KV cache fraction" not in shown.hint
    assert classify_logs([LOGS["healthy.shutdown.log"]], "no_metrics").hint is None


@each(
    ("status", "failure"),
    [(-11, "crash"), (-6, "crash"), (139, "crash"), (134, "crash"), (-9, "killed"), (137, None)]
    + [(-15, "killed"), (0, None), (1, None), (3, None), (None, None)],
)
def test_the_class_of_a_status(status: int | None, failure: str | None) -> None:
    assert class_of_status(status) == failure
