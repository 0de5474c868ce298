"""Answers: which questions were answered rightly: a mapping to truth values, kept as bits."""

import base64
import binascii
from collections.abc import Iterator, Mapping
from functools import cached_property

from perfgate.core.errors import InputError


class Answers(Mapping[str, bool]):
    """Question key → answered rightly.

    Args:
        questions: the keys, in the order of the bits.
        bits: eight answers a byte, the first in its highest bit; what is left of the last is 0.

    Raises:
        InputError: there are more bits or fewer than the questions need, or one beyond them is set.
    """

    def __init__(self, questions: tuple[str, ...], bits: bytes) -> None:
        left = -len(questions) % 8
        if len(bits) != (len(questions) + left) // 8 or (bits and bits[-1] & ((1 << left) - 1)):
            raise InputError(
                "the answers are not one bit for each question",
                found=f"{len(bits)} bytes for {len(questions)} questions",
            )
        self._questions = questions
        self._bits = bits

    def __len__(self) -> int:
        return len(self._questions)

    def __iter__(self) -> Iterator[str]:
        return iter(self._questions)

    def __getitem__(self, question: str) -> bool:
        return self._right[question]

    def __repr__(self) -> str:
        return f"Answers({dict(self)})"

    @cached_property
    def _right(self) -> Mapping[str, bool]:
        digits = "".join(f"{byte:08b}" for byte in self._bits)
        return {key: digit == "1" for key, digit in zip(self._questions, digits, strict=False)}


def packed(answers: Mapping[str, bool], questions: tuple[str, ...]) -> str:
    """The answers to `questions` as text: their bits (`Answers`) in base64."""
    bits = "".join("1" if answers[key] else "0" for key in questions)
    bits += "0" * (-len(bits) % 8)
    raw = bytes(int(bits[place : place + 8], 2) for place in range(0, len(bits), 8))
    return base64.b64encode(raw).decode()


def unpacked(text: str, questions: tuple[str, ...]) -> Answers:
    """The answers that `packed` made a text of.

    Raises:
        InputError: it is not such a text.
    """
    try:
        bits = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InputError("the answers are not base64", found=text[:40]) from error
    return Answers(questions, bits)
