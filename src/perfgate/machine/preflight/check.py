"""Check: one question about a machine, and its answer; Need: what a scenario wants of the machine.

Whatever could not be asked is unknown.
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, NamedTuple, TypeVar

from perfgate.core.measurement import Json
from perfgate.machine.nvml import NotReadable
from perfgate.scenarios.scenario import Scenario

Outcome = Literal["ok", "warning", "failed", "unknown"]
Subject = TypeVar("Subject")

# What all GPUs together amount to is the worst of them; not knowing is worse than being well.
WORST_FIRST: tuple[Outcome, ...] = ("failed", "warning", "unknown", "ok")
_GIB = 2**30
_QUESTIONS: Mapping[str, Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_name("checks.toml").read_text(encoding="utf-8")
)
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


class Case(NamedTuple, Generic[Subject]):
    """What a rule is asked about: a part of this machine, and what is needed of it."""

    subject: Subject
    need: Need


Judge = Callable[[Case[Subject]], Finding | None]
"""What is found; None where the question does not apply."""


def finding_of(judge: Judge[Subject], case: Case[Subject]) -> Finding | None:
    """What the judge finds; a fact that it needs and cannot be read is unknown."""
    try:
        return judge(case)
    except NotReadable as error:
        return Finding("unknown", str(error))


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
    scenario: Scenario,
    model_facts: Mapping[str, Json] | None = None,
    *,
    by_slurm: bool = False,
    on_node: bool = False,
) -> Need:
    """What the scenario needs.

    Args:
        scenario: what would be started.
        model_facts: what the engine found of its weights (`Engine.model_facts`).
        by_slurm: the launcher finds other machines whatever the scenario says.
        on_node: this is one of the machines that the launcher found.
    """
    hardware, launch = scenario.hardware, scenario.launch
    elsewhere = not on_node and (by_slurm or (launch is not None and launch.by_slurm))
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
