"""Recorded environment: which variables a run writes down. No other is.

A variable is on it because it shapes numbers (devices, libraries, caches), belongs to perfgate, or
says which job of which scheduler or CI system the run was. Values are masked all the same: an
address of a hub or a program's call may have a password in it.
"""

from collections.abc import Mapping

from perfgate.core.environment_variables import PREFIX
from perfgate.core.redaction import mask_environment

# All of a family: settings of libraries, none of which identifies anybody.
_FAMILIES = (PREFIX, "NCCL_", "OMP_", "UCX_")

_SHAPE_NUMBERS = """
    CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER CUDA_DEVICE_MAX_CONNECTIONS CUDA_LAUNCH_BLOCKING
    CUDA_MODULE_LOADING CUDA_HOME CUDA_MPS_ACTIVE_THREAD_PERCENTAGE CUDA_VERSION
    NVIDIA_VISIBLE_DEVICES NVIDIA_TF32_OVERRIDE NVIDIA_DRIVER_CAPABILITIES NVIDIA_PYTORCH_VERSION
    PYTORCH_CUDA_ALLOC_CONF PYTORCH_ALLOC_CONF TRTLLM_ENABLE_PDL TRTLLM_LOG_LEVEL TLLM_LOG_LEVEL
    TRTLLM_DG_ENABLED TRTLLM_SERVER_DISABLE_GC TRTLLM_WORKER_DISABLE_GC
    HF_HOME HF_HUB_CACHE HF_HUB_OFFLINE HF_ENDPOINT TRANSFORMERS_OFFLINE TOKENIZERS_PARALLELISM
    MKL_NUM_THREADS OPENBLAS_NUM_THREADS KMP_AFFINITY LD_PRELOAD MALLOC_ARENA_MAX PYTHONHASHSEED
"""
_SCHEDULER = """
    SLURM_JOB_ID SLURM_JOB_NAME SLURM_JOB_NODELIST SLURM_JOB_NUM_NODES SLURM_JOB_PARTITION
    SLURM_JOB_QOS SLURM_ARRAY_JOB_ID SLURM_ARRAY_TASK_ID SLURM_CLUSTER_NAME SLURM_NTASKS
    SLURM_CPUS_PER_TASK SLURM_CPUS_ON_NODE SLURM_GPUS_ON_NODE SLURM_STEP_ID
"""
_CI = """
    CI
    GITHUB_ACTIONS GITHUB_REPOSITORY GITHUB_WORKFLOW GITHUB_JOB GITHUB_RUN_ID GITHUB_RUN_NUMBER
    GITHUB_RUN_ATTEMPT GITHUB_SHA GITHUB_REF GITHUB_EVENT_NAME
    GITLAB_CI CI_PROJECT_PATH CI_PIPELINE_ID CI_PIPELINE_SOURCE CI_JOB_ID CI_JOB_NAME CI_COMMIT_SHA
    CI_COMMIT_REF_NAME CI_MERGE_REQUEST_IID CI_RUNNER_ID
    JOB_NAME BUILD_NUMBER BUILD_TAG
    BUILDKITE BUILDKITE_BUILD_NUMBER BUILDKITE_JOB_ID BUILDKITE_COMMIT BUILDKITE_BRANCH
"""
_NAMES = frozenset(f"{_SHAPE_NUMBERS} {_SCHEDULER} {_CI}".split())


def recorded(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that a run writes down, by name, with secrets masked."""
    return mask_environment(
        {
            name: environment[name]
            for name in sorted(environment)
            if name in _NAMES or name.startswith(_FAMILIES)
        }
    )
