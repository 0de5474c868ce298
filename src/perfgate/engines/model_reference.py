"""How a model is named to the programs: its public name, and its local folder where it is known."""

from dataclasses import dataclass
from pathlib import Path

from perfgate.core.locations import Locations
from perfgate.scenarios.scenario import Scenario

UNNAMED = "<MODELS>"


@dataclass(frozen=True)
class ModelReference:
    """A model's public name, and its local folder; None: it comes from the hub."""

    name: str
    path: Path | None

    @property
    def where(self) -> str:
        """The folder where it is known, else the name."""
        return self.name if self.path is None else str(self.path)


def reference(scenario: Scenario, locations: Locations) -> ModelReference:
    """The scenario's model: its folder is looked for below `locations.models`.

    Tried: the folder of other weights that the scenario gives; without one the public name as a
    path below (``nvidia/DeepSeek-R1-FP4``), then its last part. On paper a folder that the scenario
    gives is below one that is still to be named.
    """
    model = scenario.model
    if locations.models is None and locations.on_paper and model.folder:
        return ModelReference(model.name, Path(UNNAMED) / model.folder)
    if locations.models is None:
        return ModelReference(model.name, None)
    other = model.other_folder
    for name in [other] if other else [model.name, model.name.rpartition("/")[2]]:
        folder = locations.models / name
        if folder.is_dir():
            return ModelReference(model.name, folder)
    return ModelReference(model.name, None)
