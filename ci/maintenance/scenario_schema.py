"""Scenario schema: JSON Schemas of scenario files and documented values, and lists of their fields.

They are made of the types in `perfgate.scenarios.scenario` and of what is said there of each field.
`make reference` writes them.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import Meta

from ci.maintenance.report_schema import described
from perfgate.scenarios.documented import Documented
from perfgate.scenarios.scenario import Claim, Marker, Scenario

# The lists of the page, each of the sections that it has together.
LISTS = (
    *("a scenario", "source, hardware, model", "engine", "workload", "accuracy", "smoke"),
    *("launch, container, listen", "floors, gate, limits", "a claim"),
)
_KINDS = {str: "string", int: "integer", float: "number", bool: "boolean"}
_LABELS = {"string": "text", "boolean": "bool", "object": "mapping", "array": "list"}
_SIGNS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}


def scenario_schema() -> str:
    """The schema as its file has it.

    A scenario may lack what the defaults block of its file gives: `complete` says what must be
    there once both are together. Claims, and what stands in lists, have no defaults.
    """
    scenario = "One documented workload. A field that is left out comes from the file's defaults "
    scenario += "block, if it is there."
    parts = {
        "scenario": {"description": scenario} | _section(Scenario, is_whole=False),
        "defaults": {
            "description": "A partial scenario, without the fields that are each scenario's own.",
            "$ref": "#/$defs/scenario",
            "properties": {name: {"not": {}} for name in ("id", "title")},
        },
        "complete": {"description": "What a scenario must have once the defaults are under it."}
        | _complete(Scenario),
        "claim": {
            "description": "A statement about one result, or about two results of one session."
        }
        | _section(Claim, is_whole=True),
    }
    return json.dumps(_FILE | {"$defs": parts}, indent=2, ensure_ascii=False) + "\n"


def documented_schema() -> str:
    """The schema of files of documented values, which have no defaults."""
    rule = _section(Documented, is_whole=True)
    version = {"schema_version": {"description": "Version of this format.", "const": 1}}
    schema = {
        "$schema": _FILE["$schema"],
        "title": "perfgate documented values",
        "description": "What a public document reports for one scenario; "
        'docs/reference/scenarios.md, "Documented values".',
        **rule,
        "required": [*version, *rule["required"]],
        "properties": version | rule["properties"],
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def field_list(names: str) -> str:
    """The fields of these sections of a scenario, a line each.

    Args:
        names: as the page has them, e.g. ``source, hardware``; ``a scenario``: its own fields;
            ``a claim``: those of a claim, whose source is as a scenario's.
    """
    lines = []
    for path, text, label in (*_told(Scenario), *_told(Claim, "claims[].")):
        section = re.split(r"\W", path)[0] if "." in path else "a scenario"
        section = {"claims": "a claim"}.get(section, section)
        if section in names.split(", ") and not path.startswith("claims[].source."):
            lines.append(f"- `{path}` ({label}): {text}")
    return "\n".join(lines)


@dataclass(frozen=True)
class _Field:
    """One field that a file may give; `held` is what it holds, `needed` that it must be there."""

    name: str
    text: str
    held: Any
    needed: bool
    default: object

    @property
    def item(self) -> Any:
        """What the mapping or each entry of the list is made of."""
        return get_args(self.held)[0] if get_origin(self.held) is tuple else self.held


def _fields(kind: Any) -> Iterator[_Field]:
    _, texts = described(kind.__doc__)
    types = get_type_hints(kind, include_extras=True)
    for one in fields(kind):
        if one.name == "file":  # no part of the file
            continue
        held, parts = types[one.name], get_args(types[one.name])
        is_optional = get_origin(held) in (Union, UnionType) and NoneType in parts
        has_default = one.default is not MISSING or one.default_factory is not MISSING
        text = " ".join(texts[one.name].split())
        held = parts[0] if is_optional else held
        yield _Field(one.name, text, held, not (is_optional or has_default), one.default)


def _section(kind: Any, *, is_whole: bool) -> dict[str, Any]:
    """The rule of a mapping; `is_whole`: what has no default must be there."""
    told = list(_fields(kind))
    required = [one.name for one in told if one.needed and is_whole]
    return {
        "type": "object",
        "additionalProperties": False,
        **({"required": required} if required else {}),
        "properties": {
            one.name: {"description": one.text} | _rule(one.held, is_whole=is_whole) for one in told
        },
    }


def _rule(held: Any, *, is_whole: bool = True) -> dict[str, Any]:
    """The rule of a value of that type."""
    origin, inside = get_origin(held), get_args(held)
    if origin is Annotated:
        own: dict[str, Any] = inside[1].extra_json_schema or {}
        return own if "enum" in own else _rule(inside[0]) | _bounds(*inside) | own
    if origin is Literal:
        return {"enum": [*inside]}
    if origin in (Union, UnionType):
        return {"type": [_KINDS[part] for part in inside]}
    if origin is tuple:
        return {"type": "array", "items": _item(inside[0])}
    if origin is Mapping:
        names = {name: part for name, part in _rule(inside[0]).items() if name != "type"}
        told = {"propertyNames": names} if names else {}
        return {"type": "object", **told, "additionalProperties": _item(inside[1])}
    if is_dataclass(held):
        return _section(held, is_whole=is_whole)
    return {} if held is Any else {"type": _KINDS[held]}


def _bounds(kind: Any, meta: Meta) -> dict[str, Any]:
    least = {tuple: "minItems", Mapping: "minProperties"}.get(get_origin(kind), "minLength")
    names = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
    names |= {"min_length": least, "pattern": "pattern"}
    told = {name: getattr(meta, name) for name in names}
    return {names[name]: value for name, value in told.items() if value is not None}


def _item(held: Any) -> dict[str, Any]:
    is_named = is_dataclass(held)
    text = {"description": described(held.__doc__)[0].partition("\n\n")[0]} if is_named else {}
    return text | _rule(held)


def _complete(kind: Any) -> dict[str, Any]:
    """What must be there of a section, and of those in it."""
    told = list(_fields(kind))
    inside = {one.name: _complete(one.held) for one in told if is_dataclass(one.held)}
    parts = {
        "required": [one.name for one in told if one.needed],
        "properties": {name: part for name, part in inside.items() if part},
    }
    return {name: part for name, part in parts.items() if part}


def _told(kind: Any, at: str = "") -> Iterator[tuple[str, str, str]]:
    """Path, meaning and kind of every field of a section and of those in it."""
    for one in _fields(kind):
        path, label = at + one.name, _label(_rule(one.held))
        if one.needed:
            label += ", required"
        elif isinstance(one.default, int | float | str) and "default:" not in one.text:
            shown = one.default if isinstance(one.default, str) else json.dumps(one.default)
            label += f", default `{shown}`"
        yield path, one.text, label
        if is_dataclass(one.item):
            yield from _told(one.item, path + ("." if one.item is one.held else "[]."))


def _label(rule: Mapping[str, Any]) -> str:
    """What a field holds, for people: ``integer ≥1``."""
    if "enum" in rule:
        return ", ".join(f"`{word}`" for word in rule["enum"])
    kinds: list[str] = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
    label = " or ".join(_LABELS.get(kind, kind) for kind in kinds)
    bounds = [f"{sign}{rule[bound]}" for bound, sign in _SIGNS.items() if bound in rule]
    if "minimum" in rule and "maximum" in rule:
        bounds = [f"{rule['minimum']}…{rule['maximum']}"]
    return f"{label} {', '.join(bounds)}".rstrip()


_Line = Annotated[str, Meta(pattern="^[^\\n]+$", extra_json_schema={"$comment": "one line"})]
_FILE: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "perfgate scenario file",
    "description": "Documented workloads of one family; docs/reference/scenarios.md explains every "
    "field.",
    "type": "object",
    "additionalProperties": False,
    "required": ["schema_version"],
    "properties": {
        "schema_version": {
            "description": "Version of this format.",
            "type": "integer",
            "const": 1,
        },
        "markers": {
            "description": "Markers that scenarios of any file may name: name → what it means, one "
            "line.",
            **_rule(Mapping[Marker, _Line]),
        },
        "defaults": {
            "description": "Partial scenario under each scenario of the file: mappings merge, "
            "lists and scalars are replaced.",
            "$ref": "#/$defs/defaults",
        },
        "scenarios": {
            "description": "The scenarios; a file of markers or claims needs none.",
            "type": "array",
            "minItems": 1,
            "items": {"$ref": "#/$defs/scenario"},
        },
        "claims": {
            "description": "What documents say about results of these or other scenarios.",
            "type": "array",
            "items": {"$ref": "#/$defs/claim"},
        },
    },
    "allOf": [
        {
            "if": {"not": {"anyOf": [{"required": ["markers"]}, {"required": ["claims"]}]}},
            "then": {"required": ["scenarios"]},
        },
        {
            "if": {"not": {"required": ["defaults"]}},
            "then": {"properties": {"scenarios": {"items": {"$ref": "#/$defs/complete"}}}},
        },
    ],
}
