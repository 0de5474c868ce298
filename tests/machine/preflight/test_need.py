"""Need: what a scenario wants of the machine that it is started on."""

from dataclasses import replace

from building import SCENARIO

from perfgate.machine.preflight.check import Need, need_of
from perfgate.scenarios.scenario import (
    AccuracyTask,
    EngineChoice,
    EngineSettings,
    Hardware,
    Launch,
    Weights,
)

GIB = 2**30
TP8 = EngineChoice("tensorrt-llm", EngineSettings(tp=8))
EIGHT = replace(SCENARIO, hardware=Hardware("B200", 8), engine=TP8)


def test_a_cpu() -> None:
    assert need_of(SCENARIO, {"bytes": 9}) == Need(weights_bytes=9, connections=4)


def test_gpus_of_this_machine() -> None:
    assert need_of(EIGHT) == Need(gpus=8, gpu="B200", gpus_in_all=8, connections=4)
    two = replace(EIGHT, hardware=Hardware("B200", 16, nodes=2), launch=Launch("mpirun"))
    assert (need_of(two).gpus, need_of(two).nodes, need_of(two).gpus_in_all) == (8, 2, 16)


def test_documented_weights_go_before_found_ones() -> None:
    model = replace(SCENARIO.model, weights=Weights(80, 395))
    assert need_of(replace(EIGHT, model=model), {"bytes": 7}).weights_bytes == 395 * GIB
    assert need_of(EIGHT, {"bytes": 7}).weights_bytes == 7
    assert need_of(EIGHT, {"source": "hub"}).weights_bytes is None


def test_the_most_requests_at_once() -> None:
    load = SCENARIO.workload
    assert load is not None
    uncapped = replace(load, concurrency=(1,), requests=5000, capped=False)
    assert need_of(replace(SCENARIO, workload=uncapped)).connections == 5000
    asking = AccuracyTask("lm_eval", "sums", 5, concurrency=64)
    assert need_of(replace(SCENARIO, accuracy=(asking,))).connections == 64
    assert need_of(replace(SCENARIO, workload=None, accuracy=())).connections == 1
