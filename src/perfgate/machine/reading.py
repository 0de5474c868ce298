"""Reading: a fact of the machine as a plain value, or why it could not be read; never made up."""

from dataclasses import dataclass, field
from typing import Literal, TypeVar

Value = TypeVar("Value")


@dataclass(frozen=True)
class Unreadable:
    """A fact that could not be read.

    Attributes:
        why: in words.
        kind: "unsupported": this machine has no such thing; "hangs": no answer in time; else empty.
    """

    why: str
    kind: Literal["", "unsupported", "hangs"] = field(default="", compare=False)


class NotReadable(Exception):
    """A fact is needed that could not be read."""


def known(fact: Value | Unreadable) -> Value:
    """The fact itself.

    Raises:
        NotReadable: it could not be read; the message says why.
    """
    if isinstance(fact, Unreadable):
        raise NotReadable(fact.why)
    return fact
