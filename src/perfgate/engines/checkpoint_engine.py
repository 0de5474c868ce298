"""Checkpoint engine: what engines share that serve a folder of weights, or a model of the hub."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from perfgate.core.locations import Locations
from perfgate.core.measurement import Json
from perfgate.engines import weights
from perfgate.engines.base import Engine
from perfgate.engines.model_reference import reference
from perfgate.scenarios.scenario import Scenario


class CheckpointEngine(Engine):
    """An engine whose model is its checkpoint, tokenizer included, as it was published.

    Attributes:
        quantized_by_file: see `weights.model_facts`.
    """

    quantized_by_file: ClassVar[bool] = False

    def tokenizer(self, scenario: Scenario, cache: Path, locations: Locations) -> str:  # noqa: ARG002
        """See `Engine.tokenizer`."""
        return reference(scenario, locations).where

    def model_facts(self, scenario: Scenario, locations: Locations) -> Mapping[str, Json]:
        """See `Engine.model_facts`."""
        return weights.model_facts(scenario, locations, quantized_by_file=self.quantized_by_file)
