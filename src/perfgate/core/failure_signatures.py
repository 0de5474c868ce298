"""Failure signatures: what the lines of a log look like that show a class of failure, or show none.

Where the lines come from: TensorRT-LLM 0.19 to 1.3 (`py_executor_creator.py`, `llm.py`, the hang
detector, issues #85, #2476, #5950, #7818, #8961, #9277), PyTorch, NCCL, Open MPI 4 and 5, Slurm 22,
click, argparse, pydantic, uvicorn, vLLM, llama.cpp. Messages without a version have not changed.
"""

import re
from dataclasses import dataclass
from typing import Literal

Rank = Literal["cause", "symptom", "banner"]


@dataclass(frozen=True)
class Signature:
    """A pattern that shows a class of failure.

    Attributes:
        failure: the class; "unknown": something went wrong, and the line does not say what.
        pattern: searched in a line without colours and log prefixes.
        rank: a "symptom" tells that something ended badly and perhaps how, a "banner" only that it
            did; a symptom counts where no cause is, a banner where nothing else is.
    """

    failure: str
    pattern: re.Pattern[str]
    rank: Rank = "cause"


def _signatures(failure: str, rank: Rank, *patterns: str) -> list[Signature]:
    return [Signature(failure, re.compile(one, re.IGNORECASE), rank) for one in patterns]


# On one line the first signature wins, so the special stands before the general.
SIGNATURES: tuple[Signature, ...] = (
    *_signatures(
        "port_in_use",
        "cause",
        r"address already in use",
        r"couldn't bind HTTP server socket",
        r"Failed to bind socket",
    ),
    *_signatures(
        "config_error",
        "cause",
        # /dev/shm of the container, not the disk of the run.
        r"shared memory segment.*No space left on device",
    ),
    *_signatures(
        "config_error",
        "cause",
        r"mpirun was unable to launch the specified application",
    ),
    *_signatures("disk_full", "cause", r"No space left on device", r"Disk quota exceeded"),
    *_signatures(
        "kv_cache_too_small",
        "cause",
        r"maxTokensInPagedKvCache.*must be large enough",
        r"larger than the (maximum number of tokens that can be stored in|available) KV cache",
        r"No available memory for the cache blocks",
    ),
    *_signatures(
        "oom",
        "cause",
        r"(CUDA|HIP) out of memory\. Tried to allocate",
        r"^torch\.(cuda\.)?OutOfMemoryError\b",
        r"^(RuntimeError|torch\.AcceleratorError): CUDA out of memory",
        r"CUDA (driver |runtime )?error( in .{1,200})?: out of memory",
        r"Cuda failure.*out of memory",
        r"cudaMalloc failed: out of memory",
        r"CUBLAS_STATUS_ALLOC_FAILED",
        r"Executor creation failed due to insufficient GPU memory",
        r"Error Code \d+: OutOfMemory",
        r"Free memory on device .* is less than desired GPU memory utilization",
        r"unable to allocate \S+ buffer",
        r"failed to allocate (\S+ )?buffer",
        r"\bstd::bad_alloc\b(?!::)",
        r"^MemoryError\b",
        # Host memory: the kernel or Slurm.
        r"Out of memory: Killed process",
        r"Detected \d+ oom[-_]kill event",
        r"exceeded (job |step )?memory limit",
        r"tasks? \S+: Out Of Memory",
    ),
    *_signatures(
        "model_file",
        "cause",
        r"failed to load model",
        r"error loading model",
        r"tensor .* data is not within the file bounds",
        r"invalid magic",
        r"SafetensorError",
        r"is not a local folder and is not a valid model identifier",
    ),
    *_signatures(
        "request_too_long",
        "cause",
        r"sum of prompt length .* should not exceed max_(num_tokens|seq_len)",
        r"Prompt length \(\d+\) exceeds maximum input length",
        r"maximum context length is \d+ tokens\. However",
        r"exceeds the available context size",
    ),
    *_signatures(
        "nccl",
        "cause",
        r"Failed, NCCL error",
        r"\bNCCL (error|failure)\b( in)?:",
        r"Executor creation failed with an error which might indicate insufficient GPU memory",
        r"NCCL WARN Cuda failure",
        r"nccl(UnhandledCuda|System|Internal)Error",
        r"Watchdog caught collective operation timeout",
    ),
    *_signatures(
        "cuda_error",
        "cause",
        r"CUDA (driver |runtime )?error( in .{1,200})?: (?!no error)",
        r"Cuda Runtime \((?!no error)",
        r"an illegal memory access was encountered",
        r"device-side assert triggered",
        r"unspecified launch failure",
        r"uncorrectable ECC error",
        r"CU(BLAS|DNN)_STATUS_(?!SUCCESS)[A-Z_]+",
        r"CUDA driver version is insufficient",
    ),
    *_signatures(
        "pmi_mismatch",
        "cause",
        r"PMI2_Init failed to ini?tialize",
        r"OPAL ERROR: .* in file \S*(pmix|ext3x)\S*",
        r"not built with SLURM'?s? (PMI )?support",
        r"can ?not load PMIx library",
        r"\bpmix_init failed\b",
        r"Invalid MPI type",
    ),
    *_signatures(
        "mpi",
        "cause",
        r"\bPRTE ERROR:",
        r"\bOPAL ERROR:",
        r"\bORTE_ERROR_LOG:",
        r"ORTE (was unable|has lost communication|does not know how)",
        r"(opal|orte)_init failed",
        r"MPI runtime init failed",
        r"MPI_ERR_[A-Z]+",
        r"\(_manager_spawn\)",
        r"\b_manager_spawn\b.*mpi4py|mpi4py.*\b_manager_spawn\b",
        r"There are not enough slots available",
        r"nodes which are allocated for this job are already filled",
        r"mpirun has detected an attempt to run as root",
        r"Assertion failed: (Failed: MPI error|mpiSize ==)",
        r"^ssh: (connect to host|Could not resolve hostname)",
        r"Host key verification failed",
        r"Permission denied \(publickey",
        r"^srun: error: Node failure on",
        r"Unable to contact slurm controller",
        r"task \S+ launch failed",
    ),
    *_signatures("hang", "cause", r"\bHang detected on rank \d+"),
    *_signatures(
        "total_timeout",
        "cause",
        r"DUE TO TIME LIMIT",
        r"time limit for job execution has been reached",
    ),
    *_signatures(
        "cli_drift",
        "cause",
        r"Error: No such (option|command)",
        r"Error: Invalid value for .* is not one of",
        r"Error: Got unexpected extra argument",
        r"error: unrecognized arguments",
        r"error: argument \S+: invalid choice",
        r"\bunrecognized option '--",
        r"error: invalid argument: --",
    ),
    *_signatures(
        "config_error",
        "cause",
        r"Extra inputs are not permitted",
        r"\d+ validation errors? for \w+",
        r"\bValidationError:",
        r"(Llm|PyTorch|Torch)\w*(Args|Config)\b.*unexpected keyword argument",
        r"^yaml\.\w+\.\w+Error\b",
        r"Error: (Invalid value|Missing option|Missing argument)",
        r"error: the following arguments are required",
        r"\bcommand not found$",
        r"execve\(\): .*No such file or directory",
        r"Requested node configuration is not available",
        r"Invalid (partition name|account|qos) specified",
        r"failed to import (docker )?image",
    ),
    *_signatures(
        "truncated_output",
        "cause",
        r"JSONDecodeError: Unterminated string",
        r"Unexpected end of (JSON|file)",
    ),
    *_signatures(
        "incomplete",
        "cause",
        r"!FAILED REQUESTS!",
        r"Total failed requests: *[1-9]",
        r"^Failed requests: +[1-9]",
        r"All requests failed\.",
    ),
    # What ends a log after the cause, or instead of it.
    *_signatures(
        "killed",
        "symptom",
        r"exited on signal \d+",
        r"^(srun: error: )?\S+: tasks? \S+: (Killed|Terminated|Segmentation fault|Aborted)",
        r"^\S+: line \d+: +\d+ (Killed|Segmentation fault|Aborted|Bus error)",
        r"Keyboard interrupt, exiting benchmark",
        r"\*\*\* (JOB|STEP) \S+ ON \S+ CANCELLED AT",
    ),
    *_signatures(
        "nccl",
        "symptom",
        r"ncclRemoteError",
        r"remote process exited or there was a network error",
    ),
    *_signatures(
        "mpi",
        "symptom",
        r"MPI_ABORT was invoked on rank",
        r"\bPMIX ERROR:",
        r"An error occurred in MPI_",
    ),
    *_signatures(
        "unknown",
        "symptom",
        r"\bError in event loop: ",
        r"Executor worker returned error",
        r"Engine core initialization failed",
        r"Initial test run failed",
        r"^(?-i:([a-z_]\w*\.)*[A-Z]\w*(Error|Exception): \S)",
    ),
    *_signatures(
        "mpi",
        "banner",
        r"Primary job +terminated normally, but \d+ process",
        r"(mpirun|prterun) detected that one or more processes exited with non-zero",
    ),
    *_signatures(
        "unknown", "banner", r"^srun: error: \S+: tasks? \S+: Exited with exit code [1-9]"
    ),
)

# Lines that are no sign of failure whatever words they hold.
HEALTHY = re.compile(
    "|".join(
        (
            # Tactics that do not fit are skipped by design (TensorRT-LLM #493, FlashInfer #2442).
            r"\[Auto-?Tunn?er\]",
            r"skipping tactic",
            r"Device memory is insufficient to use tactic",
            r"\bNCCL INFO\b",
            r"^\s*-{1,2}[a-z][\w-]*\b",  # the help text of an option
            r"^\s*(#|\"\"\"|raise |except )",  # source code, as tracebacks show it
        )
    ),
    re.IGNORECASE,
)

# Every signature needs one of these, so most lines of a long log are done with after a few
# comparisons instead of all patterns (100,000 lines: one second instead of ten).
TELLING_WORDS = (
    "error",
    "exception",
    "fail",
    "memory",
    "alloc",
    "kill",
    "exceed",
    "exited",
    "process returned",
    "abort",
    "terminated",
    "segmentation",
    "cancelled",
    "interrupt",
    "in use",
    "bind",
    "space left",
    "quota",
    "kvcache",
    "kv cache",
    "magic",
    "file bounds",
    "identifier",
    "sum of prompt",
    "context length",
    "input length",
    "nccl warn",
    "watchdog caught",
    "assert",
    "cublas_status",
    "cudnn_status",
    "is insufficient",
    "pmi",
    "slurm",
    "orte was",
    "orte has",
    "orte does",
    "spawn",
    "slots available",
    "mpirun was unable",
    "already filled",
    "as root",
    "ssh:",
    "host key",
    "permission denied",
    "hang detected",
    "time limit",
    "invalid",
    "unrecognized",
    "not permitted",
    "not found",
    "no such file",
    "requested node",
    "unexpected end",
)
