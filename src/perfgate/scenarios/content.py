"""Content: what shapes a measurement, as one short hash; baselines are found by it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass


def content_hash(*parts: object) -> str:
    """16 hex digits of the SHA-256 of `parts`, which are dataclasses and plain values.

    Raises:
        TypeError: a part has a value that JSON does not know.
    """
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plain(value: object) -> object:
    """Dataclasses and mappings as JSON knows them.

    What is not set is left out, so that a field added later keeps the hashes of stored baselines.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: held
            for field in fields(value)
            if (held := getattr(value, field.name)) is not None
        }
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"no JSON for {type(value).__name__}")
