"""TensorRT-LLM's documented scenarios by short names, and small ones of one setting.

What the documents' commands are is held by `documented_commands`.
"""

from dataclasses import replace
from typing import Any

from documented_set import documented_suite
from engine_scenarios import made

from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.engines.base import Endpoint, EngineBuild
from perfgate.engines.tensorrt_llm import checkout, programs
from perfgate.engines.tensorrt_llm.engine import TensorRTLLM
from perfgate.scenarios.scenario import (
    EngineSettings,
    Hardware,
    Model,
    Scenario,
    Workload,
)

ON_PAPER = Locations(on_paper=True)
SERVED = Endpoint("0.0.0.0", 8000, "model")  # noqa: S104
DATASET = "dataset.txt"
SUBCOMMANDS = ("throughput", "prepare-dataset", "token-norm-dist")
UNSET = EngineSettings()

check = TensorRTLLM().check


def build(version: str) -> EngineBuild:
    return EngineBuild("tensorrt-llm", version, version)


def scenario(
    name: str = "case",
    release: str | None = "1.0.0",
    model: str = "deepseek-ai/DeepSeek-R1",
    *,
    settings: EngineSettings = UNSET,
    workload: Workload | None = None,
    environment: dict[str, str] | None = None,
    **more: Any,
) -> Scenario:
    """A valid scenario with what a test is about."""
    return made(
        "tensorrt-llm",
        settings,
        release,
        id=name,
        title=name,
        hardware=Hardware("B200", 8),
        model=Model(model, "fp8"),
        workload=workload,
        environment=environment or {},
        **more,
    )


def offline(concurrency: int = 1024, requests: int = 1024, **more: Any) -> Workload:
    """A load of trtllm-bench; its own number of warm-up requests unless told."""
    values: dict[str, Any] = {
        "dataset": "synthetic",
        "isl": 1024,
        "osl": 2048,
        "warmup_requests": 2,
        "streaming": False,
        **more,
    }
    return Workload(client="trtllm-bench", concurrency=(concurrency,), requests=requests, **values)


def served(**more: Any) -> Workload:
    values: dict[str, Any] = {"isl": 1024, "osl": 1024, **more}
    return Workload(
        client="benchmark_serving",
        dataset="synthetic",
        concurrency=(32,),
        requests_per_concurrency=5,
        **values,
    )


def options(words: tuple[str, ...]) -> dict[str, str | None]:
    """Option → value of a command line; None for a flag. Positions and order do not matter."""
    found: dict[str, str | None] = {}
    last = None
    for word in (word for word in words if word not in SUBCOMMANDS):
        if word.startswith("--"):
            found[last := word] = None
        elif last is not None:
            found[last] = word if found[last] is None else f"{found[last]} {word}"
    return found


def render(case: Scenario, version: str, locations: Locations = ON_PAPER) -> Command:
    """The measuring or serving command of the case at a release."""
    if case.smoke is not None:
        return checkout.quickstart(case, build(version), case.smoke, locations)
    if case.accuracy and case.workload is None:
        return checkout.gpqa(case, build(version), case.accuracy[0], "gpqa_diamond.csv", locations)
    if case.workload is not None and case.workload.client == "trtllm-bench":
        return programs.throughput(case, build(version), case.points()[0], DATASET, locations)
    return programs.serve(case, build(version), SERVED, locations)


SUITE = {one.id: one for one in documented_suite().scenarios}


def of(name: str) -> Scenario:
    """The suite's scenario; one with a load without its first answer and evaluations."""
    one = SUITE[name]
    return one if one.workload is None else replace(one, smoke=None, accuracy=())


CASES = {
    "b200-min-latency": of("b200-r1-fp4-min-latency"),
    "b200-fp8-kv": of("b200-r1-0528-fp4-fp8kv-max-throughput"),
    "b200-fp16-kv": of("b200-r1-fp4-fp16kv-max-throughput"),
    "h200-min-latency": of("h200-r1-fp8-min-latency"),
    "h200-max-throughput": of("h200-r1-fp8-max-throughput"),
    "r1-0528-fp4-serve": of("b200-r1-0528-fp4-serve"),
    "r1-0528-fp8-serve": of("b200-r1-0528-fp8-serve"),
    "r1-0528-wide-ep": of("gb200-r1-0528-fp4-wide-ep-serve"),
    "quickstart": of("h200-v3-fp8-quickstart"),
    "mtp-0": of("h200-v3-fp8-mtp-0"),
    "mtp-3": of("h200-v3-fp8-mtp-3"),
    "gpqa": of("h200-v3-fp8-gpqa"),
    "v3-serve": of("h200-v3-fp8-serve"),
    "2node-mpirun": of("h200-v3-fp8-2node-mpirun"),
    "2node-slurm": of("h200-v3-fp8-2node-slurm"),
    "gb200-2node": of("gb200-r1-fp4-2node-slurm"),
    "deepgemm": of("h200-v3-fp8-deepgemm-on"),
    "fp8-kv": of("h200-v3-fp8-kv-fp8"),
    "reasoning": of("gb200-r1-fp4-reasoning-streaming"),
    "chat": of("gb200-r1-fp4-chat-streaming"),
    "summarization": of("gb200-r1-fp4-summarization-streaming"),
    "generation": of("gb200-r1-fp4-generation-streaming"),
    "sharegpt": of("h200-r1-0528-fp8-sharegpt"),
}
V3_SETTINGS = CASES["deepgemm"].engine.settings
