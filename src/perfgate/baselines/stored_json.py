"""Stored JSON: what the files of baselines share: schema version, schema, place and hash.

``hash`` is the SHA-256 of all else, so that a number changed by hand is noticed. It proves nothing
against a person who computes it again: a baseline changes by review, and review sees the change.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from perfgate.core.errors import InputError
from perfgate.core.files import json_text
from perfgate.core.files.durable_files import read_json, require_version
from perfgate.scenarios.schema import read_schema
from perfgate.scenarios.yaml_document import Keys, dotted

MEASURED = "numbers that come from `perfgate baseline record` and `promote` alone"


def read_stored(
    path: Path,
    *,
    what: str,
    schema: str,
    version: int,
    hint: str,
) -> dict[str, Any]:
    """The plain value of one file.

    Args:
        path: the file.
        what: what it is, for messages.
        schema: name of its schema, a file beside this one.
        version: the schema version that it must have.
        hint: how to fix a damaged one.

    Raises:
        InputError: not JSON, with a number that is not finite, of another schema version, or not as
            the schema says; with the field.
    """
    plain = _finite_json(path, what, hint)
    require_version(path, plain, what=what, version=version, hint=hint)
    read_schema(Path(__file__).with_name(schema)).require(path, plain, hint)
    return dict(plain)


def with_hash(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The same with `hash`: that of everything else."""
    return {**plain, "hash": own_hash(plain)}


def own_hash(plain: Mapping[str, Any]) -> str:
    """The right `hash` of a file's content."""
    return digest({name: value for name, value in plain.items() if name != "hash"})


def digest(plain: object) -> str:
    """SHA-256 of a plain value as JSON: keys sorted, without spaces, as ASCII."""
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def check_hash(path: Path, plain: Mapping[str, Any], what: str) -> None:
    """Refuse what was changed without perfgate.

    Raises:
        InputError: the hash is not that of the rest.
    """
    right = own_hash(plain)
    if plain["hash"] != right:
        raise InputError(
            f"the {what} was edited by hand",
            file=path,
            field="hash",
            found=f"{plain['hash'][:12]}…, where the content has {right[:12]}…",
            expected=MEASURED,
            hint=f"git checkout -- {path}",
        )


def check_place(path: Path, said: Mapping[str, str]) -> None:
    """Refuse a file that does not lie where its content belongs.

    Args:
        path: the file.
        said: field → what it says, of each folder above the file and of the file's own name.

    Raises:
        InputError: it does not; with the field that says otherwise.
    """
    here = (*path.parent.resolve().parts, path.stem)[-len(said) :]
    wrong = [field for field, part in zip(said, here, strict=True) if said[field] != part]
    if wrong:
        raise InputError(
            "the file is not in the folder of its content",
            file=path,
            field=wrong[0],
            found="/".join(here),
            expected="/".join(said.values()),
            hint="move it back; a measurement counts only for the hardware it was made on",
        )


def _finite_json(path: Path, what: str, hint: str) -> Any:
    try:
        return read_json(path, what=what, hint=hint)
    except InputError as error:
        # JSON knows no NaN; a lenient second reading finds the field that says so.
        if not str(error.found).startswith("not a finite number"):
            raise
        place = _not_finite(json_text.parse(path.read_bytes()), ())
        raise InputError(
            "not a finite number",
            file=path,
            field=dotted(place or ()) or None,
            found=error.found,
            hint=hint,
        ) from error


def _not_finite(value: object, path: Keys) -> Keys | None:
    """The place of the first number that is not finite."""
    inside: Iterable[tuple[str | int, object]] = ()
    if isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, list):
        inside = enumerate(value)
    elif isinstance(value, float) and not math.isfinite(value):
        return path
    places = (_not_finite(one, (*path, name)) for name, one in inside)
    return next((place for place in places if place is not None), None)
