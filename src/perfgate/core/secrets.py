"""Keeping secrets out of what is written: masked by the name they go by."""

import re
from collections.abc import Iterable, Mapping

MASK = "***"
# ``max_num_tokens`` and its like count tokens, ``tokenizer`` names a program: they hold none.
_WORDS = r"token(?!s|i[sz])|secret|passw|api[-_.]?key|authorization|credential"
_NAME = re.compile(_WORDS, re.IGNORECASE)
# A named value inside a longer text: ``a=1,api_key=V``, ``{"api_key": "V"}``, ``TOKEN: Bearer V``.
_PAIR = re.compile(
    rf"""((?:{_WORDS})[\w.-]*["']?\s*(?:=|:(?!:))\s*["']?)(?:(?:bearer|basic)\s+)?[^\s,"']+""",
    re.IGNORECASE,
)


def is_secret(name: str) -> bool:
    """Whether a variable or option of this name is taken for a secret."""
    return _NAME.search(name) is not None


def mask_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The same variables, with the values of secret ones masked."""
    return {
        name: MASK if is_secret(name) else _mask_pairs(value) for name, value in environment.items()
    }


def mask_arguments(arguments: Iterable[str]) -> list[str]:
    """The same command line with secrets masked: ``--x V``, ``--x=V``, ``--header "x: V"``."""
    masked: list[str] = []
    hide_next = False
    for argument in arguments:
        is_option = argument.startswith("-")
        name, equals, _ = argument.partition("=")
        if hide_next and not is_option:
            masked.append(MASK)
        elif is_option and equals and is_secret(name):
            masked.append(f"{name}={MASK}")
        else:
            masked.append(_mask_pairs(argument))
        hide_next = is_option and not equals and is_secret(name)
    return masked


def _mask_pairs(text: str) -> str:
    return _PAIR.sub(rf"\g<1>{MASK}", text)
