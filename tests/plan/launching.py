"""A scenario that is launched on two nodes, and the engine's command that is wrapped."""

from dataclasses import replace
from typing import Any

from building import SCENARIO

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.scenarios.scenario import Hardware, Launch, Scenario

BENCH = Command(("trtllm-bench", "throughput"), files={"config.yml": "a: 1\n"})
PAPER = Locations(on_paper=True)


def launched(by: Any, **fields: Any) -> Scenario:
    """Two nodes of eight H200."""
    return replace(SCENARIO, hardware=Hardware("H200", 16, 2), launch=Launch(by, **fields))
