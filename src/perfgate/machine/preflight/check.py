"""Check: one question about a machine, and its answer; Need: what a scenario wants of the machine.

A table has the rules of each part of the machine; checks.toml has the texts of their questions.
Whatever could not be asked is unknown.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from perfgate.core.files.remembered import toml_beside
from perfgate.core.measurement import Json
from perfgate.machine.leases.devices import Device
from perfgate.machine.nvml import NotReadable
from perfgate.plan.container import Runtime
from perfgate.scenarios.scenario import Scenario

Outcome = Literal["ok", "warning", "failed", "unknown"]

# What all GPUs together amount to is the worst of them; not knowing is worse than being well.
WORST_FIRST: tuple[Outcome, ...] = ("failed", "warning", "unknown", "ok")
_GIB = 2**30
_QUESTIONS: Mapping[str, Mapping[str, str]] = toml_beside(__file__, "checks")
# Oldest driver by document: "Drivers: CUDA Driver 575 or Later" (section "Prerequisites").
DRIVERS: Mapping[str, int] = {"quick-start-recipe-for-deepseek-r1-on-trtllm.md": 575}


@dataclass(frozen=True)
class Check:
    """One question and its answer.

    Attributes:
        name: what was looked at.
        outcome: "failed": nothing may be started; "warning": numbers may suffer; "unknown": it
            could not be looked at.
        found: what was found; of an unknown one, why not.
        expected: what would have been well.
        hint: how to fix it; empty where nothing is known to be wrong.
    """

    name: str
    outcome: Outcome
    found: str
    expected: str = ""
    hint: str = ""

    def __post_init__(self) -> None:
        if self.outcome not in ("failed", "warning"):
            object.__setattr__(self, "hint", "")


class Finding(NamedTuple):
    """What was found, as `Check` has it; `expected`, `hint` where checks.toml cannot say them."""

    outcome: Outcome
    text: str
    expected: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Need:
    """What a scenario wants of the machine that it is started on.

    Attributes:
        gpus: GPUs of this machine; 0: none, or Slurm finds them on others.
        gpu: their model.
        nodes: machines in all.
        by_slurm: whether Slurm finds the machines.
        weights_bytes: all weights of the model; None: not known.
        gpus_in_all: GPUs that the weights spread over, at most.
        connections: most requests that are in flight at once.
        driver: oldest driver that the scenario's document allows; None: it names none.
    """

    gpus: int = 0
    gpu: str = "none"
    nodes: int = 1
    by_slurm: bool = False
    weights_bytes: int | None = None
    gpus_in_all: int = 0
    connections: int = 1
    driver: int | None = None


@dataclass(frozen=True)
class PreflightTarget:
    """Where and how the scenario would be started.

    Attributes:
        run_folder: where the run's files go; None: `runs` in the working folder.
        leased: the GPUs that it would use; None: the first that CUDA_VISIBLE_DEVICES shows.
        by_slurm: the launcher finds other machines whatever the scenario says.
        runtime: what runs its containers here; without one, Slurm's pyxis does where Slurm is
            given an image.
        reach: whether other machines may be touched.
        on_node: this is one of the machines that the launcher found.
        contained: the engine's programs are in a container, and are not looked for.
        starts: the engine is started next: what only accuracy tests need is not asked for.
    """

    run_folder: Path | None = None
    leased: Sequence[Device] | None = None
    by_slurm: bool = False
    runtime: Runtime = "none"
    reach: bool = False
    on_node: bool = False
    contained: bool = False
    starts: bool = False


HERE = PreflightTarget()

Judge = Callable[[], Finding]
Rule = tuple[str, bool, Judge]
"""A question of checks.toml, whether it applies to what is needed, and who answers it."""


def finding_of(judge: Judge) -> Finding:
    """What the judge finds; a fact that it needs and cannot be read is unknown."""
    try:
        return judge()
    except NotReadable as error:
        return Finding("unknown", str(error))


def judged(rules: Sequence[Rule], **facts: object) -> tuple[Check, ...]:
    """The answers to all questions that apply; `facts` as of `checked`."""
    return tuple(
        checked(question, finding_of(judge), **facts)
        for question, applies, judge in rules
        if applies
    )


def checked(question: str, finding: Finding, **facts: object) -> Check:
    """The answer to a question of checks.toml.

    Args:
        question: its name there.
        finding: the answer, whose `expected` and `hint` override those there.
        facts: what those there are filled in with.
    """
    texts = _QUESTIONS[question]
    return Check(
        texts.get("name", question),
        finding.outcome,
        finding.text,
        finding.expected or texts.get("expected", "").format(**facts),
        finding.hint or texts.get("fix", ""),
    )


def need_of(
    scenario: Scenario, where: PreflightTarget = HERE, model_facts: Mapping[str, Json] | None = None
) -> Need:
    """What the scenario needs where it would be started.

    Args:
        scenario: what would be started.
        where: where, and how.
        model_facts: what the engine found of its weights (`Engine.model_facts`).
    """
    hardware, launch = scenario.hardware, scenario.launch
    by_slurm = where.by_slurm or (launch is not None and launch.by_slurm)
    elsewhere = by_slurm and not where.on_node
    settings, weights = scenario.engine.settings, scenario.model.weights
    size = weights.gib * _GIB if weights is not None else (model_facts or {}).get("bytes")
    is_cpu = hardware.gpu == "none"
    in_flight = [
        *(point.concurrency if point.capped else point.requests for point in scenario.points()),
        *(task.concurrency for task in scenario.accuracy),
    ]
    return Need(
        gpus=0 if is_cpu or elsewhere else hardware.gpus // hardware.nodes,
        gpu=hardware.gpu,
        nodes=hardware.nodes,
        by_slurm=elsewhere,
        weights_bytes=size if isinstance(size, int) else None,
        gpus_in_all=0 if is_cpu else max(hardware.gpus, settings.tp * settings.stages),
        connections=max([1, *in_flight]),
        driver=DRIVERS.get(scenario.source.document),
    )


def gib(size: float) -> str:
    """A size in bytes, for people."""
    return f"{size / _GIB:.1f} GiB" if size >= 2**29 else f"{size / 2**20:.0f} MiB"
