"""The YAML file of LLM-API options, read as the played release reads it, from its recorded page."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from msgspec import UNSET

from perfgate.engines.definitions import KeyDefinition, Keys
from perfgate.rehearsal.options import GivenOptions, announce_page
from perfgate.rehearsal.playbook import Playbook, crash
from perfgate.rehearsal.recorded_pages import YAML, read


class _Problem(NamedTuple):
    """What pydantic would say of one key.

    Attributes:
        place: the key and those above it.
        value: what was given.
        choices: what it may be; none: the key is unknown.
        model: the class that has no such key.
    """

    place: tuple[str, ...]
    value: Any
    choices: tuple[str, ...]
    model: str


def read_options(playbook: Playbook, given: GivenOptions) -> dict[str, Any]:
    """The options in the file that the command line names; none without a file.

    Ends the program as the release does on a key or choice that it does not know.
    """
    name = given.text("--extra_llm_api_options")
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
    problems = list(_problems(found, page.yaml_keys(), unknown, ()))
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
                yield _Problem(here, value, (), model)
        elif isinstance(value, Mapping) and key.models:
            below = unknown if key.unknown is UNSET else key.unknown
            yield from _of_mapping(value, key, below, here)
        elif isinstance(value, str) and key.choices and not key.types and value not in key.choices:
            yield _Problem(here, value, key.choices, model)


def _of_mapping(
    value: Mapping[str, Any], key: KeyDefinition, unknown: str, place: tuple[str, ...]
) -> list[_Problem]:
    """Those with the class that fits best; which one is meant, ``decoding_type`` says."""
    tried = [
        list(_problems(value, keys, unknown, place, model)) for model, keys in key.models.items()
    ]
    meant = str(value.get("decoding_type", "")).replace("_", "").lower()
    if meant:
        for model, found in zip(key.models, tried, strict=True):
            if model.lower().startswith(meant):
                return found
    return min(tried, key=len)


def _refuse(problems: list[_Problem]) -> NoReturn:
    first = problems[0]
    if first.model == "PyTorchConfig":  # a dataclass, where all others are pydantic's
        name = first.place[-1]
        crash(f"TypeError: PyTorchConfig.__init__() got an unexpected keyword argument '{name}'")
    count = f"{len(problems)} validation error{'s' if len(problems) > 1 else ''}"
    lines = [f"pydantic_core._pydantic_core.ValidationError: {count} for TorchLlmArgs"]
    for problem in problems:
        told, kind = "Extra inputs are not permitted", "extra_forbidden"
        if problem.choices:
            *some, last = map(repr, problem.choices)
            listed = f"{', '.join(some)} or {last}" if some else last
            told, kind = f"Input should be {listed}", "literal_error"
        value = problem.value
        lines += [
            ".".join(problem.place),
            f"  {told} [type={kind}, input_value={value!r}, input_type={type(value).__name__}]",
            f"    For further information visit https://errors.pydantic.dev/2.11/v/{kind}",
        ]
    crash("\n".join(lines))
