"""The YAML file of LLM-API options, read as the imitated release reads it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from perfgate.rehearsal.playbook import Playbook, crash


def read_options(playbook: Playbook, name: str) -> dict[str, Any]:
    """The options in file `name`; none without a file.

    Ends the program as pydantic does where a release that forbids unknown keys finds one.
    """
    if not name:
        return {}
    import yaml  # takes as long as all other imports together, and few programs need it

    path = Path(name)
    if not path.is_file():
        crash(f"FileNotFoundError: [Errno 2] No such file or directory: '{name}'")
    found = yaml.safe_load(path.read_text())
    if not isinstance(found, dict):
        crash(f"TypeError: argument of type '{type(found).__name__}' is not a mapping")
    if playbook.release.refuses_unknown_yaml:
        unknown = list(_unknown(found, playbook.release.yaml_keys, ()))
        if unknown:
            _refuse(unknown)
    return found


def _unknown(
    found: Mapping[str, Any], known: Mapping[str, Any], place: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in found.items():
        if key not in known:
            yield (*place, str(key)), value
        elif isinstance(value, Mapping) and isinstance(known[key], Mapping) and known[key]:
            yield from _unknown(value, known[key], (*place, str(key)))


def _refuse(unknown: list[tuple[tuple[str, ...], Any]]) -> NoReturn:
    count = f"{len(unknown)} validation error{'s' if len(unknown) > 1 else ''}"
    lines = [f"pydantic_core._pydantic_core.ValidationError: {count} for TorchLlmArgs"]
    for place, value in unknown:
        kind = type(value).__name__
        lines += [
            ".".join(place),
            "  Extra inputs are not permitted [type=extra_forbidden, "
            f"input_value={value!r}, input_type={kind}]",
            "    For further information visit https://errors.pydantic.dev/2.11/v/extra_forbidden",
        ]
    crash("\n".join(lines))
