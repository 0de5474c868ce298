"""Toolchain whose engine and client say what a test wants them to."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

from building import SCENARIO

from perfgate.core.programs.locations import Locations
from perfgate.engines.base import Engine, EngineBuild
from perfgate.plan.toolchain import BuildOverride, Toolchain

WELL = {
    "build": EngineBuild("made", "1.2", "0123456789abcdef"),
    "check": None,
    "model_facts": {"name": "Small-1B", "bytes": 3 * 2**30, "shards": 4},
}


def saying(answer: Any) -> Mock:
    """A function that answers so, or raises it."""
    is_raised = isinstance(answer, Exception)
    return Mock(side_effect=answer) if is_raised else Mock(return_value=answer)


class Made(Engine):
    """An engine of which everything can be said beforehand: method → its answer, or its error."""

    name = "made"
    build = check = model_facts = served_model = serve = tokenizer = Mock()

    def __init__(self, **says: Any) -> None:
        vars(self).update({name: saying(answer) for name, answer in {**WELL, **says}.items()})


def tools(engine: Engine, version: Any = "0.13.0", **changes: Any) -> Toolchain:
    """The toolchain, whose client tells its version or why it cannot."""
    scenario = replace(SCENARIO, **changes)
    clients = {"aiperf": SimpleNamespace(name="aiperf", of_engine=False, version=saying(version))}
    return Toolchain(scenario, engine, clients, {}, Locations(), BuildOverride())
