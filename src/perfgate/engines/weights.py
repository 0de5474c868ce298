"""Where a model is, what identifies its weights, and whether a folder is what the scenario says.

Hundreds of gigabytes are never read: the configuration files, and the names and sizes of the
shards, tell one checkpoint from another.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from perfgate.core.errors import tabled_error
from perfgate.core.files import json_text
from perfgate.core.files.remembered import toml_beside
from perfgate.core.files.untrusted_files import read_input
from perfgate.core.measurement import Json
from perfgate.core.programs.locations import MODELS, Locations
from perfgate.scenarios.scenario import Scenario

# Our names of precisions → those of checkpoints and of the documents' tables.
CHECKPOINTS: Mapping[str, str] = {"fp8": "FP8", "nvfp4": "NVFP4", "fp4": "NVFP4"}

UNNAMED = "<MODELS>"
QUANTIZATION = "hf_quant_config.json"
NOT_QUANTIZED = "none"  # in a scenario: the key is null, or missing
_DESCRIBING = ("config.json", QUANTIZATION, "model.safetensors.index.json")
_GIB = 2**30
_LARGEST_POINTER = 1024  # bytes; Git LFS: "must be less than 1024 bytes"
_error = partial(tabled_error, toml_beside(__file__, "weights"))
_ROUNDING_GIB = 1  # the documents give what `ls` prints, rounded to a whole number


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


def model_facts(
    scenario: Scenario, locations: Locations, *, quantized_by_file: bool = False
) -> Mapping[str, Json]:
    """What identifies the weights: ``sha256`` over what describes them, bytes, shards.

    Without a local folder the public name is all that is known, and nothing is checked.

    Args:
        scenario: whose model it is.
        locations: where models are.
        quantized_by_file: the engine knows the quantization of weights and KV cache from
            ``hf_quant_config.json``, and takes the scenario's word for neither.

    Raises:
        InputError: the folder is not as the scenario says, its quantization is another one or
            cannot be read; or a folder with a name of its own is missing.
    """
    model = reference(scenario, locations)
    precision = scenario.model.precision
    if model.path is None:
        _require_folder_for_quantization(scenario, locations)
        digest = hashlib.sha256(model.name.encode()).hexdigest()
        return {"name": model.name, "source": "hub", "sha256": digest, "precision": precision}
    if not locations.on_paper and not any(model.path.iterdir()):
        raise _error("empty", model.path, name=model.name, variable=MODELS)
    shards = sorted(model.path.glob("*.safetensors"))
    _check_shards(scenario, model.path, shards)
    if not locations.on_paper:
        _check_quantization(scenario, model.path, is_needed=quantized_by_file)
    return {
        "name": model.name,
        "source": str(model.path),
        "sha256": _digest(model.path, shards),
        "bytes": sum(shard.stat().st_size for shard in shards),
        "shards": len(shards),
        "precision": precision,
    }


def _digest(folder: Path, shards: list[Path]) -> str:
    digest = hashlib.sha256()
    for name in _DESCRIBING:
        file = folder / name
        if file.is_file():
            content = read_input(file, json_text.LARGEST_OWN, "model's configuration")
            digest.update(f"{name}\0{len(content)}\0".encode())
            digest.update(content)
    for shard in shards:
        digest.update(f"{shard.name}\0{shard.stat().st_size}\0".encode())
    return digest.hexdigest()


def _check_shards(scenario: Scenario, folder: Path, shards: list[Path]) -> None:
    """As many as the documents say, and as large."""
    asked = scenario.model.weights
    if asked is None:
        return
    if len(shards) != asked.shards:
        missing = _missing(shards, asked.shards)
        found = f"{len(shards)} files *.safetensors" + (f"; no {missing}" if missing else "")
        raise _error("incomplete", folder, found, id=scenario.id, shards=asked.shards)
    gib = sum(file.stat().st_size for file in folder.iterdir() if file.is_file()) / _GIB
    if abs(gib - asked.gib) > _ROUNDING_GIB:
        found, within = f"{gib:.1f} GiB" + _pointer(shards), _ROUNDING_GIB
        raise _error("another_size", folder, found, id=scenario.id, gib=asked.gib, within=within)


def _pointer(shards: list[Path]) -> str:
    """The first shard that Git LFS left as a pointer, which has some hundred bytes."""
    for shard in shards:
        size = shard.stat().st_size
        if size < _LARGEST_POINTER:
            return f"; {shard.name} has {size} bytes: fetch it with `git lfs pull`"
    return ""


def _missing(shards: list[Path], count: int) -> str | None:
    """The first shard that is not there, by the usual names."""
    names = {shard.name for shard in shards}
    for number in range(1, count + 1):
        name = f"model-{number:05d}-of-{count:05d}.safetensors"
        if name not in names:
            return name
    return None


def _check_quantization(scenario: Scenario, folder: Path, *, is_needed: bool) -> None:
    """The engine reads the file by itself (DeepSeek-V3 example, "Option 1: Checkpoint config")."""
    model, file = scenario.model, folder / QUANTIZATION
    weights = CHECKPOINTS.get(model.precision.lower(), "")
    asked = dict(model.quantization or {})
    if not file.is_file():
        if asked or (is_needed and weights == "NVFP4"):
            needed = json.dumps({"quantization": asked or {"quant_algo": weights}})
            raise _error("no_quantization", file, "no such file", id=scenario.id, asked=needed)
        return
    found = _quantization(file)
    for key, value in asked.items():
        if (says := found.get(key) or NOT_QUANTIZED) != value:
            step = _right_checkpoint(asked) if model.folder else "put the right checkpoint there"
            raise _error("other_quantization", file, says, key=key, value=value, next_step=step)
    algorithm = str(found.get("quant_algo") or NOT_QUANTIZED)
    if weights and "quant_algo" not in asked and not algorithm.upper().startswith(weights):
        raise _error("other_precision", file, algorithm, id=scenario.id, weights=weights)
    cache = str(found.get("kv_cache_quant_algo") or "")
    own = scenario.engine.settings.kv_cache_dtype
    is_claimed = "kv_cache_quant_algo" not in asked and own not in (None, "auto")
    if is_needed and is_claimed and cache and cache.lower() != str(own).lower():
        raise _error("other_cache", file, cache, id=scenario.id, asked=own)


def _quantization(file: Path) -> Mapping[str, Json]:
    try:
        content = read_input(file, json_text.LARGEST_OWN, "quantization config")
        found = json_text.parse_object(content)["quantization"]
        if isinstance(found, dict):
            return found
        problem: object = f"quantization: {found!r}"
    except KeyError:
        problem = "no key quantization"
    except (OSError, ValueError) as error:
        problem = error
    raise _error("damaged_config", file, problem)


def _require_folder_for_quantization(scenario: Scenario, locations: Locations) -> None:
    """Of a checkpoint that the hub has not: its folder has a name of its own."""
    asked, folder = scenario.model.quantization, scenario.model.folder
    if asked and folder is not None and not locations.on_paper:
        found, step = f"no local folder for {folder}", _right_checkpoint(asked)
        words = {"variable": MODELS, "folder": folder, "next_step": step}
        raise _error("unseen", scenario.file, found, **words)


def _right_checkpoint(asked: Mapping[str, str]) -> str:
    """What to do where the hub has no such checkpoint (the same section of the example)."""
    says = json.dumps({"quantization": dict(asked)})
    return f"put a copy of the checkpoint there whose {QUANTIZATION} says {says}"
