"""Recorded environment: which variables a run writes down. No other is.

A variable is on it because it shapes numbers (devices, libraries, caches), belongs to perfgate, or
says which job of which scheduler or CI system the run was. Values are masked all the same: an
address of a hub or a program's call may have a password in it.
"""

from collections.abc import Mapping

from perfgate.core.environment_variables import PREFIX
from perfgate.core.redaction import mask_environment
from perfgate.core.script_variables import FAMILIES
from perfgate.core.secrets import is_secret

_SHAPE_NUMBERS = """
    HF_HOME HF_HUB_CACHE HF_HUB_OFFLINE HF_ENDPOINT TRANSFORMERS_OFFLINE TOKENIZERS_PARALLELISM
    LD_PRELOAD PYTHONHASHSEED
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
        {name: environment[name] for name in sorted(environment) if _is_recorded(name)}
    )


def _is_recorded(name: str) -> bool:
    of_engines = name.startswith(FAMILIES) and not is_secret(name)
    return name in _NAMES or name.startswith(PREFIX) or of_engines
