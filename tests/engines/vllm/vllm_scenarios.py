"""Scenarios of vLLM as tests need them, and recorded pages as installed programs show them."""

from pathlib import Path
from typing import Any

import msgspec
from engine_scenarios import made
from msgspec.structs import replace

import perfgate.rehearsal
from perfgate.core.programs.locations import Locations
from perfgate.engines.base import Endpoint, EngineBuild
from perfgate.engines.definitions import Definitions
from perfgate.engines.vllm.engine import Vllm
from perfgate.scenarios.scenario import EngineSettings, Hardware, Scenario

ON_PAPER = Locations(on_paper=True)
SERVED = Endpoint("127.0.0.1", 8123, "deepseek-ai/DeepSeek-R1-0528")
RECORDED = Path(perfgate.rehearsal.__file__).parent / "recorded"
HERE = Path(__file__).parent / "recorded"
RELEASES = ("0.6.6.post1", "0.8.5", "0.11.0", "0.32.0", "0.33.0")


def build(version: str) -> EngineBuild:
    return EngineBuild("vllm", version, version)


def scenario(release: str | None = None, *, gpus: int = 8, nodes: int = 1, **more: Any) -> Scenario:
    """A valid scenario with what a test is about: its settings by name, and fields."""
    known = [name for name in more if name in vars(EngineSettings())]
    settings = EngineSettings(**{name: more.pop(name) for name in known})
    hardware = Hardware("H200" if gpus else "none", gpus, nodes)
    return made("vllm", settings, release, hardware=hardware, **more)


def rendered(case: Scenario, version: str) -> str:
    """The call, without where it listens."""
    argv = Vllm().serve(case, build(version), SERVED, ON_PAPER).argv
    line = " ".join(argv)
    where = " --host 127.0.0.1 --port 8123"
    assert where in line
    return line.replace(where, "")


def page(version: str, *, shown: bool = False) -> Definitions:
    """The recorded page of a release; `shown`: without what its help hides."""
    path = RECORDED / f"vllm_{version}.json"
    definitions = msgspec.json.decode(path.read_bytes(), type=Definitions)
    if not shown:
        return definitions
    programs = {
        name: {
            key: replace(one, off=tuple(word for word in one.off if word not in one.hidden))
            for key, one in options.items()
        }
        for name, options in definitions.programs.items()
    }
    return replace(definitions, programs=programs)
