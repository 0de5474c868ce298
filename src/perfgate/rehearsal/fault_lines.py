"""What the engine prints when a fault hits it: the true wording, release by release.

Wording of the executor's report on memory: `py_executor_creator.py` of TensorRT-LLM 1.0 and newer;
of the others: public issue reports of TensorRT-LLM, Open MPI's and PMIx's own messages.
"""

_RULE = "-" * 74

_EXECUTOR_OOM = """\
RuntimeError: Executor creation failed due to insufficient GPU memory.

The following component could not be created: KV cache
Total GPU memory (GiB): 178.35
Free GPU memory before component creation attempt (GiB): 11.42

Previously created components and free GPU memory before/after creation (GiB):
model_engine_main: 176.83 / 88.10
init_kv_cache: 88.10 / 81.66
sampler: 81.66 / 11.42

Please refer to the TensorRT LLM documentation for information on how to control the memory usage \
through TensorRT LLM configuration options. Possible options include:
  model_engine_main: reduce max_num_tokens and/or shard the model weights across GPUs by enabling \
pipeline and/or tensor parallelism
  kv_cache: reduce free_gpu_memory_fraction
"""
_TORCH_OOM = """\
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 14.00 GiB. GPU 0 has a total \
capacity of 139.81 GiB of which 2.31 GiB is free. Process 4711 has 137.49 GiB memory in use.
"""
_KV_CACHE = """\
[TensorRT-LLM][ERROR] Assertion failed: maxTokensInPagedKvCache (96) must be large enough to \
process at least 1 sequence to completion (i.e. must be larger than beam_width * tokensPerBlock * \
maxBlocksPerSeq) (/src/tensorrt_llm/cpp/tensorrt_llm/batch_manager/capacityScheduler.cpp:52)
RuntimeError: Executor worker returned error
"""
TOO_LONG = (
    "The sum of prompt length (9351.0), query length (0) should not exceed max_num_tokens (8192)"
)
_CONFIG = """\
pydantic_core._pydantic_core.ValidationError: 1 validation error for TorchLlmArgs
made_up_key
  Extra inputs are not permitted [type=extra_forbidden, input_value=True, input_type=bool]
    For further information visit https://errors.pydantic.dev/2.11/v/extra_forbidden
"""
_NCCL = """\
RuntimeError: Executor creation failed with NCCL error: Failed, NCCL error \
/src/tensorrt_llm/cpp/tensorrt_llm/common/opUtils.cpp:86 'unhandled cuda error (run with \
NCCL_DEBUG=INFO for details)'
"""
_CUDA = """\
[TRT-LLM] [E] Error in event loop: CUDA error: an illegal memory access was encountered
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace \
below might be incorrect.
RuntimeError: CUDA error: an illegal memory access was encountered
"""
_MPI = f"""\
{_RULE}
MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD
with errorcode 1.

NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.
{_RULE}
"""
_PMI = f"""\
{_RULE}
PMI2_Init failed to initialize.  Return code: 14
{_RULE}
*** An error occurred in MPI_Init_thread
*** on a NULL communicator
"""
_PORT = """\
RuntimeError: Failed to bind socket to {host}:{port}: [Errno 98] Address already in use
"""
_OLD_PORT = """\
ERROR:    [Errno 98] error while attempting to bind on address ('{host}', {port}): address \
already in use
"""
_ZMQ_PORT = """\
zmq.error.ZMQError: Address already in use (addr='tcp://127.0.0.1:40001')
"""
_TRACE = "Traceback (most recent call last):\n"


def engine_lines(name: str, release: tuple[int, int], host: str = "", port: str = "") -> str:
    """What the engine writes to standard error when fault `name` ends it.

    Args:
        name: a fault of place ``engine``, or ``request_too_long``.
        release: major and minor version of TensorRT-LLM.
        host: where the server listens; empty: it is no server.
        port: likewise.
    """
    if name == "oom":
        return _TRACE + (_EXECUTOR_OOM if release >= (1, 0) else _TORCH_OOM)
    if name == "port_in_use":
        if not port:
            return _TRACE + _ZMQ_PORT
        # Bound before the model is loaded since #9646 (December 2025).
        return (_PORT if release >= (1, 2) else _OLD_PORT).format(host=host, port=port)
    if name == "request_too_long":
        return f"{_TRACE}tensorrt_llm.executor.utils.RequestError: {TOO_LONG}\n"
    return {
        "kv_cache_too_small": _TRACE + _KV_CACHE,
        "config_error": _TRACE + _CONFIG,
        "nccl": _TRACE + _NCCL,
        "cuda_error": _CUDA,
        "mpi": _MPI,
        "pmi_mismatch": _PMI,
    }[name]
