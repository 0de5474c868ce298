"""Environment variables: every `PERFGATE_…` that perfgate reads, and which variables a run records.

The table itself is environment_variables.toml. A variable with a wrong name is set for nothing, and
nobody would notice: the run says so. A variable is recorded because it shapes numbers (devices,
libraries, caches), belongs to perfgate, or says which job of which scheduler or CI system the run
was; no other is. Values are masked all the same: an address of a hub or a program's call may have a
password in it.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from perfgate.core.programs import PROGRAM_PREFIX, known_program_variables
from perfgate.core.redaction import mask_environment
from perfgate.core.script_variables import FAMILIES
from perfgate.core.secrets import is_secret
from perfgate.core.suggestion import nearest

PREFIX = "PERFGATE_"
_STANDINS = "PERFGATE_STANDIN_"

Setter = Literal["you", "perfgate", "the tests"]


@dataclass(frozen=True)
class EnvironmentVariable:
    """One variable.

    Attributes:
        name: its name; that of a family ends with ``<NAME>``.
        meaning: what it says, and what holds without it.
        set_by: who sets it: a person; perfgate, for the processes that it starts; or the tests of
            perfgate itself.
    """

    name: str
    meaning: str
    set_by: Setter


@cache
def known_variables() -> tuple[EnvironmentVariable, ...]:
    """The whole table."""
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return tuple(
        EnvironmentVariable(name, meaning, set_by)
        for set_by in get_args(Setter)
        for name, meaning in table[set_by].items()
    )


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
_RECORDED = frozenset(f"{_SHAPE_NUMBERS} {_SCHEDULER} {_CI}".split())


def variables_set(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of perfgate in `environment`, by name, with the values of secrets masked."""
    named = {name: environment[name] for name in sorted(environment) if name.startswith(PREFIX)}
    return mask_environment(named)


def unknown_variables(environment: Iterable[str]) -> tuple[str, ...]:
    """A sentence for each name in `environment` that looks like perfgate's and is not."""
    known = {one.name for one in known_variables() if "<" not in one.name}
    known |= known_program_variables()
    named = (name for name in environment if name.startswith(PREFIX))
    wrong = sorted(name for name in named if name not in known and not name.startswith(_STANDINS))
    return tuple(f"{name}: perfgate has no such variable{_meant(name, known)}" for name in wrong)


def _meant(name: str, known: Iterable[str]) -> str:
    """What may have been meant: of what is the same in all names nothing can be told."""
    beginning = PROGRAM_PREFIX if name.startswith(PROGRAM_PREFIX) else PREFIX
    ends = [one.removeprefix(beginning) for one in known if one.startswith(beginning)]
    close = nearest(name.removeprefix(beginning), ends)
    return "" if close is None else f"; did you mean {beginning}{close}?"


def recorded(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that a run writes down, by name, with secrets masked."""
    return mask_environment(
        {name: environment[name] for name in sorted(environment) if _is_recorded(name)}
    )


def _is_recorded(name: str) -> bool:
    of_engines = name.startswith(FAMILIES) and not is_secret(name)
    return name in _RECORDED or name.startswith(PREFIX) or of_engines
