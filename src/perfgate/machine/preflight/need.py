"""Need: what a scenario wants of the machine that it is started on, as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass

from perfgate.core.measurement import Json
from perfgate.scenarios.scenario import Scenario

_GIB = 2**30


@dataclass(frozen=True)
class Need:
    """What is wanted here.

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


# Oldest driver by document: "Drivers: CUDA Driver 575 or Later" (section "Prerequisites").
DRIVERS: Mapping[str, int] = {"quick-start-recipe-for-deepseek-r1-on-trtllm.md": 575}


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
    settings = scenario.engine.settings
    spread = max(hardware.gpus, settings.tp * settings.stages)
    found = (model_facts or {}).get("bytes")
    weights = scenario.model.weights
    if weights is not None:
        size: int | None = weights.gib * _GIB
    else:
        size = found if isinstance(found, int) else None
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
        weights_bytes=size,
        gpus_in_all=0 if is_cpu else spread,
        connections=max([1, *in_flight]),
        driver=DRIVERS.get(scenario.source.document),
    )
