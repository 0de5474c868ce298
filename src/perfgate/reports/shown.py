"""A report as it may be shown: every text in it redacted once more, nothing hidden. Pure.

Records are redacted when they are written, by the process that knew the secrets. A report is made
elsewhere, of folders that came over a network: what is a character that a terminal obeys, half of a
character that no file can hold, or a secret of the process that makes the report, ends here.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeVar

from perfgate.core.plain import from_plain, to_plain
from perfgate.core.redaction import mask, visible

T = TypeVar("T")


def shown(value: T) -> T:
    """The same report, or part of one, with all its texts as they may be shown."""
    return from_plain(type(value), _shown(to_plain(value), cache(_text)))


def _shown(value: object, text: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, Mapping):
        return {str(_shown(name, text)): _shown(held, text) for name, held in value.items()}
    if isinstance(value, list):
        return [_shown(one, text) for one in value]
    return value


def _text(text: str) -> str:
    return visible(mask(text, by_name=False))
