"""TensorRT-LLM's LLM API: its YAML file, the model behind it, a checkpoint; and its healthy log.

The file is read as the played release reads it, from its recorded page. An engine's own Python is
asked for the JSON schema of the model before anything is started, and so is a mock's. The log tells
what the played release runs with.
"""

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, NoReturn

from msgspec import UNSET

from perfgate.engines.definitions import YAML, Definitions, KeyDefinition, Keys
from perfgate.rehearsal.options import GivenOptions, announce_page
from perfgate.rehearsal.playbook import Playbook, crash, here
from perfgate.rehearsal.programs.report_format import printed
from perfgate.rehearsal.recorded_pages import read

_LARGEST_GRAPH = 128
_DRAFTED_FROM = (1, 1)
_HYPHENED_FROM = (1, 2)


class _Problem(NamedTuple):
    """What pydantic would say of one key.

    Attributes:
        place: the key and those above it.
        value: what was given.
        kind: of the problem.
        told: what is wrong.
        model: the class that is meant.
    """

    place: tuple[str, ...]
    value: Any
    kind: str
    told: str
    model: str


def read_options(playbook: Playbook, given: GivenOptions) -> dict[str, Any]:
    """The options in the file that the command line names; none without a file.

    Ends the program as the release does on a key or choice that it does not know.
    """
    name = given.get("--extra_llm_api_options", "")
    if not name:
        return {}
    import yaml  # takes as long as all other imports together, and few programs need it

    path = Path(name)
    if not path.is_file():
        crash(f"FileNotFoundError: [Errno 2] No such file or directory: '{name}'")
    found = yaml.safe_load(path.read_text())
    if not isinstance(found, dict):
        crash(f"TypeError: argument of type '{type(found).__name__}' is not a mapping")
    recorded = playbook.releases[playbook.version][YAML]
    announce_page("the YAML file", playbook.version, recorded)
    page = read(recorded)
    unknown = page.unknown_keys or "ignored"
    problems = list(_problems(found, page.keys or {}, unknown, ()))
    if problems:
        _refuse(problems)
    return found


def _problems(
    tree: Mapping[str, Any], keys: Keys, unknown: str, place: tuple[str, ...], model: str = ""
) -> Iterator[_Problem]:
    aliases = {key.alias: key for key in keys.values() if key.alias}
    for name, value in tree.items():
        here = (*place, str(name))
        key = keys.get(name) or aliases.get(name)
        if key is None:
            if unknown == "refused":
                told = "Extra inputs are not permitted"
                yield _Problem(here, value, "extra_forbidden", told, model)
        elif isinstance(value, Mapping) and key.models:
            below = unknown if key.unknown is UNSET else key.unknown
            yield from _of_mapping(value, key, below, here)
        elif isinstance(value, str) and key.choices and not key.types and value not in key.choices:
            listed = " or ".join(", ".join(map(repr, key.choices)).rsplit(", ", 1))
            yield _Problem(here, value, "literal_error", f"Input should be {listed}", model)


def _of_mapping(
    value: Mapping[str, Any], key: KeyDefinition, unknown: str, place: tuple[str, ...]
) -> list[_Problem]:
    """Those with the class that fits best; which one is meant, ``decoding_type`` says."""
    tried = {
        model: list(_problems(value, keys, unknown, place, model))
        for model, keys in key.models.items()
    }
    meant = str(value.get("decoding_type", "")).replace("_", "").lower()
    fitting = (found for model, found in tried.items() if meant and model.lower().startswith(meant))
    return next(fitting, min(tried.values(), key=len))


def _refuse(problems: list[_Problem]) -> NoReturn:
    first = problems[0]
    if first.model == "PyTorchConfig":  # a dataclass, where all others are pydantic's
        name = first.place[-1]
        crash(f"TypeError: PyTorchConfig.__init__() got an unexpected keyword argument '{name}'")
    count = f"{len(problems)} validation error{'s' if len(problems) > 1 else ''}"
    lines = [f"pydantic_core._pydantic_core.ValidationError: {count} for TorchLlmArgs"]
    for place, value, kind, told, _ in problems:
        of = f"type={kind}, input_value={value!r}, input_type={type(value).__name__}"
        lines += [".".join(place), f"  {told} [{of}]"]
        lines += [f"    For further information visit https://errors.pydantic.dev/2.11/v/{kind}"]
    crash("\n".join(lines))


def played_model() -> Any:
    """The model of the played release, from its recorded page."""
    playbook = here("tensorrt-llm")
    if not playbook.scenario and len(playbook.releases) > 1:
        raise ImportError("several releases are played, and nobody said which is asked")
    return model_of(read(playbook.releases[playbook.version][YAML]))


def model_of(page: Definitions) -> Any:
    """A class that can be asked like pydantic's models: fields, settings, JSON schema."""
    keys = page.keys or {}
    refused = page.unknown_keys == "refused"
    fields = {
        name: SimpleNamespace(annotation=object, alias=key.alias, validation_alias=None)
        for name, key in keys.items()
    }
    defs: dict[str, Any] = {}
    schema = {**_object(keys, defs, refused=refused), "$defs": defs}
    model: Any = type("TorchLlmArgs", (), {"model_json_schema": staticmethod(lambda: schema)})
    model.model_config, model.model_fields = {"extra": "forbid" if refused else "allow"}, fields
    return model


def _object(keys: Keys, defs: dict[str, Any], *, refused: bool) -> dict[str, Any]:
    properties = {name: _property(key, defs, refused=refused) for name, key in keys.items()}
    return {"type": "object", "properties": properties, "additionalProperties": not refused}


def _property(key: KeyDefinition, defs: dict[str, Any], *, refused: bool) -> Mapping[str, Any]:
    below = refused if key.unknown is UNSET else key.unknown == "refused"
    for name, model in key.models.items():
        defs[name] = _object(model, defs, refused=below)
    several: list[dict[str, Any]] = [{"$ref": f"#/$defs/{name}"} for name in key.models]
    # A page's types do not tell a list from what is in it, nor whether null is taken.
    several += [{}] if any(one not in key.models for one in key.types) else [{"type": "null"}]
    several += [{"enum": list(key.choices)}] if key.choices else []
    default = {} if key.default is UNSET else {"default": key.default}
    return {"anyOf": several, **default}


def checkpoint_quantization(folder: str) -> Mapping[str, str]:
    """What the checkpoint in a folder says of its quantization."""
    path = Path(folder, "hf_quant_config.json")
    if not folder or not path.is_file():
        return {}
    found: dict[str, str] = json.loads(path.read_text()).get("quantization", {})
    return found


def kv_cache_dtype(options: Mapping[str, Any]) -> str | None:
    """Type of the KV cache by the YAML file, in any release's spelling; None: it is silent."""
    above = (options.get("kv_cache_config"), options.get("pytorch_backend_config"), options)
    found = [(place or {}).get(name) for place in above for name in ("dtype", "kv_cache_dtype")]
    told = (one.upper() for one in found if isinstance(one, str) and one != "auto")
    return next(told, None)


def stamp() -> str:
    """Time as TensorRT-LLM's logger writes it."""
    return time.strftime("[%m/%d/%Y-%H:%M:%S]")


def info(message: str) -> None:
    """A line of TensorRT-LLM's own logger, which writes to standard output."""
    print(f"{stamp()} [TRT-LLM] [I] {message}")


def iterations(requests: int) -> None:
    """The iteration log, as `py_executor.py` of 1.0 writes it for rank 0: some of its lines."""
    at = time.strftime("%Y-%m-%d %H:%M:%S")
    for number in range(1, 4):
        values = {"number": number, "requests": requests, "at": at}
        info(printed(__file__, "iteration", (0,), values).rstrip("\n"))


def engine_starts(
    model: str, world_size: int, fraction: float, said: Mapping[str, Any] | None = None
) -> None:
    """Print the log from the first line to the ready engine.

    Args:
        model: name or folder of the model.
        world_size: ranks.
        fraction: of the free GPU memory that the KV cache takes.
        said: what the engine runs with, from `resolved`; None: nothing of it is printed.
    """
    values = {"model": model, "world_size": world_size, "fraction": fraction, **(said or {})}
    for line in printed(__file__, "start", values.get("release", (0,)), values).splitlines():
        print(f"{stamp()} {line}" if line.startswith("[TRT-LLM]") else line)


def resolved(
    playbook: Playbook, options: Mapping[str, Any], *, graphs_by_default: bool
) -> dict[str, Any]:
    """What the played release runs with, by the YAML file of its options, for `engine_starts`.

    Args:
        playbook: of this program; with its fault ``ignored_options`` the file has no effect.
        options: the file's content, in any release's spelling.
        graphs_by_default: whether this program captures graphs where the file is silent.
    """
    if playbook.fault_at("options"):
        options = {}
    flat, release = flattened(options), playbook.numbers
    config = options.get("cuda_graph_config", {})
    is_on = flat.get("use_cuda_graph", graphs_by_default or bool(config)) and config is not None
    older = {name[11:]: value for name, value in flat.items() if name.startswith("cuda_graph_")}
    graphs = {**older, **(config or {})}
    largest = graphs.get("max_batch_size") or _LARGEST_GRAPH
    sizes = graphs.get("batch_sizes") or (1, 2, 4, *range(8, largest, 8), largest)
    sizes = list(sizes) if is_on else []
    dtype = (kv_cache_dtype(options) or "auto").lower()
    kind = "generation-only" if release >= _HYPHENED_FROM else "generation only"
    drafted = f", draft_len={draft_tokens(options)}" if release >= _DRAFTED_FROM else ""
    captures = (
        f"[TRT-LLM] [I] Run {kind} CUDA graph warmup for batch size={size}{drafted}"
        for size in sorted(sizes, reverse=True)
    )
    return {
        "release": release,
        "kv_cache_dtype": dtype,
        "is_auto": dtype == "auto",
        "is_captured": bool(sizes),
        "sizes": sizes,
        "count": len(sizes),
        "largest": max(sizes, default=0),
        "padding": bool(graphs.get("enable_padding", graphs.get("padding_enabled"))),
        "captures": "\n".join(captures),
    }


def flattened(options: Mapping[str, Any]) -> dict[str, Any]:
    """The YAML file without the mapping that 0.20 and older have most of it in."""
    return {**options, **(options.get("pytorch_backend_config") or {})}


def draft_tokens(options: Mapping[str, Any]) -> int:
    """Tokens that are drafted at once, by the YAML file; 0: speculation is off."""
    speculative = options.get("speculative_config") or {}
    name = "num_nextn_predict_layers"
    return int(speculative.get(name, speculative.get("max_draft_len", 0)))
