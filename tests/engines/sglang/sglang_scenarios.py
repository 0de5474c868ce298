"""Scenarios of SGLang as tests need them, among them those of the documented lines."""

from dataclasses import replace
from typing import Any

from engine_scenarios import made

from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.engines.base import Endpoint, EngineBuild, engine
from perfgate.engines.definitions import Definitions
from perfgate.engines.sglang.table import SERVE
from perfgate.rehearsal.recorded_pages import read
from perfgate.scenarios.scenario import EngineSettings, Mtp, Scenario, Workload

ENGINE = engine["sglang"]()
ON_PAPER = Locations(on_paper=True)
SERVED = Endpoint("0.0.0.0", 8000, "deepseek-ai/DeepSeek-R1-0528")  # noqa: S104
DOCUMENTS = "0.5.3"  # the release that the GPUStack performance lab measured
PAGES = ("0.4.6", "0.5.3", "0.5.23")
LOAD = Workload(
    client="vllm-bench",
    dataset="sharegpt",
    isl=None,
    osl=None,
    concurrency=(1000,),
    requests=1000,
    capped=False,
    api="chat",
)

TP = EngineSettings(tp=8)
DP = replace(TP, attention_dp=True)
COMPILED = replace(DP, torch_compile=True)
EAGLE = replace(COMPILED, mtp=Mtp(1))
# Of the lines in "Optimizing DeepSeek-R1 Throughput on NVIDIA H200 GPUs".
DOCUMENTED = {"tp": TP, "dp": DP, "compiled": COMPILED, "eagle": EAGLE}


def scenario(
    settings: EngineSettings = TP, release: str | None = DOCUMENTS, **more: Any
) -> Scenario:
    """A valid scenario with what a test is about."""
    return made("sglang", settings, release, **{"workload": LOAD, **more})


def build(version: str = DOCUMENTS) -> EngineBuild:
    return EngineBuild("sglang", version, version)


def render(case: Scenario, version: str = DOCUMENTS, locations: Locations = ON_PAPER) -> Command:
    return ENGINE.serve(case, build(version), SERVED, locations)


def page(version: str) -> Definitions:
    """What the release's own parser takes, of the server."""
    return Definitions(
        engine="sglang",
        version=version,
        source="recorded",
        whole=True,
        programs={SERVE: read(f"sglang_{version}").programs[SERVE]},
        abbreviates=True,
    )
