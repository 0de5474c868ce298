"""Environment variables: every `PERFGATE_…` that perfgate reads, and which ones are none of them.

A variable with a wrong name is set for nothing, and nobody would notice: the run says so.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from perfgate.core.programs import PROGRAM_PREFIX, known_program_variables
from perfgate.core.redaction import mask_environment
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
    set_by: Setter = "you"


VARIABLES: tuple[EnvironmentVariable, ...] = (
    EnvironmentVariable(
        f"{PROGRAM_PREFIX}<NAME>",
        "how a program is called, with its first arguments, e.g. "
        "PERFGATE_PROGRAM_TRTLLM_BENCH=/opt/trtllm/bin/trtllm-bench; unset: the program beside "
        "perfgate's interpreter, else the one on PATH",
    ),
    EnvironmentVariable(
        "PERFGATE_ROOT",
        "the gate repository, which is then believed whoever it belongs to; unset: as above",
    ),
    EnvironmentVariable("PERFGATE_SCENARIOS", "folders of scenario files, with : between"),
    EnvironmentVariable("PERFGATE_BASELINES", "the folder of accepted baselines"),
    EnvironmentVariable("PERFGATE_SITE", "the site file, which must then be there"),
    EnvironmentVariable("PERFGATE_HOME", "the machine's own store of baselines and caches"),
    EnvironmentVariable(
        "PERFGATE_MODELS",
        "a folder with one folder per model; unset: models are called by their public names",
    ),
    EnvironmentVariable(
        "PERFGATE_MODEL_SMOLLM2_135M_INSTRUCT",
        "the GGUF file of the embedded default's model; unset: the file of its package",
    ),
    EnvironmentVariable("PERFGATE_DATASETS", "a folder with datasets of your own"),
    EnvironmentVariable(
        "PERFGATE_TENSORRT_LLM_SOURCE",
        "a checkout of TensorRT-LLM, for the example programs that its wheel lacks",
    ),
    EnvironmentVariable(
        "PERFGATE_TENSORRT_LLM_TABLES",
        "a folder with tables of further releases of TensorRT-LLM; unset: those of the package",
    ),
    EnvironmentVariable("PERFGATE_SGLANG_TABLES", "the same for SGLang"),
    EnvironmentVariable(
        "PERFGATE_HOSTS", "the nodes of a run by mpirun, in order, separated by commas or blanks"
    ),
    EnvironmentVariable(
        "PERFGATE_CONTAINER_IMAGE",
        "the image of the engine's ranks for srun's pyxis plugin; unset: no container",
    ),
    EnvironmentVariable(
        "PERFGATE_CONTAINER_MOUNTS", "further mounts of that container, SOURCE:TARGET,…"
    ),
    EnvironmentVariable(
        "PERFGATE_CONTAINER_WORKDIR",
        "where that container has the working folder; unset: /workspace",
    ),
    EnvironmentVariable(
        "PERFGATE_LEASES",
        "the machine's folder of locks, the same for all of its users; unset: /tmp/perfgate-leases",
    ),
    EnvironmentVariable(
        "PERFGATE_FAKE_GPUS", "how many GPUs are simulated, for tests and demonstrations of leases"
    ),
    EnvironmentVariable(
        "PERFGATE_PYTHON",
        "the Python of an environment that holds perfgate, for a pipeline that installs none; "
        "read by the files of ci/ alone",
    ),
    EnvironmentVariable(
        "PERFGATE_PUSH_TOKEN", "the token that GitLab's baseline job pushes with; read by it alone"
    ),
    EnvironmentVariable(
        "PERFGATE_RELEASE_KEY", "the key that a release job signs with; read by it alone"
    ),
    EnvironmentVariable("PERFGATE_SCENARIO", "the scenario that a program runs for", "perfgate"),
    EnvironmentVariable("PERFGATE_PROBE", "the probe that a program runs for", "perfgate"),
    EnvironmentVariable("PERFGATE_START", "the number of the fresh start", "perfgate"),
    EnvironmentVariable(
        "PERFGATE_ROLE",
        "what that start is of: new, reference, baseline_control, anchor_control, or a or b of an "
        "A/B",
        "perfgate",
    ),
    EnvironmentVariable("PERFGATE_PLACE", "the mark of a start's processes on a node", "perfgate"),
    EnvironmentVariable("PERFGATE_LAUNCH", "the mark of a launch's processes", "perfgate"),
    EnvironmentVariable("PERFGATE_REHEARSAL", "the file that stand-ins read", "perfgate"),
    EnvironmentVariable("PERFGATE_NIGHTLY", "1: soaks and rehearsals at full size", "the tests"),
    EnvironmentVariable("PERFGATE_SOAK", "how many groups to soak", "the tests"),
    EnvironmentVariable("PERFGATE_SOAK_SEED", "which of them are killed", "the tests"),
    EnvironmentVariable(
        "PERFGATE_REQUIRE_BROWSER",
        "1: tests that need a browser fail where it is missing",
        "the tests",
    ),
    EnvironmentVariable(
        "PERFGATE_PICTURES", "folder for pictures of the page in a browser", "the tests"
    ),
    EnvironmentVariable(
        "PERFGATE_REQUIRE_SLURM", "1: tests that need Slurm fail where it is missing", "the tests"
    ),
    EnvironmentVariable(
        "PERFGATE_REQUIRE_PIPELINES",
        "1: tests that execute the pipelines' files fail where node is missing",
        "the tests",
    ),
    EnvironmentVariable(
        "PERFGATE_REQUIRE_SGLANG",
        "1: tests that need an SGLang on the CPU fail where it is missing",
        "the tests",
    ),
    EnvironmentVariable(
        "PERFGATE_REQUIRE_VLLM",
        "1: tests that need a vLLM for the CPU fail where it is missing",
        "the tests",
    ),
    EnvironmentVariable(f"{_STANDINS}<NAME>", "what a stand-in of the tests does", "the tests"),
)


def variables_set(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of perfgate in `environment`, by name, with the values of secrets masked."""
    named = {name: environment[name] for name in sorted(environment) if name.startswith(PREFIX)}
    return mask_environment(named)


def unknown_variables(environment: Iterable[str]) -> tuple[str, ...]:
    """A sentence for each name in `environment` that looks like perfgate's and is not."""
    known = {one.name for one in VARIABLES if "<" not in one.name} | known_program_variables()
    named = (name for name in environment if name.startswith(PREFIX))
    wrong = sorted(name for name in named if name not in known and not name.startswith(_STANDINS))
    return tuple(f"{name}: perfgate has no such variable{_meant(name, known)}" for name in wrong)


def _meant(name: str, known: Iterable[str]) -> str:
    """What may have been meant: of what is the same in all names nothing can be told."""
    beginning = PROGRAM_PREFIX if name.startswith(PROGRAM_PREFIX) else PREFIX
    ends = [one.removeprefix(beginning) for one in known if one.startswith(beginning)]
    close = nearest(name.removeprefix(beginning), ends)
    return "" if close is None else f"; did you mean {beginning}{close}?"
