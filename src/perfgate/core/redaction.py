"""Redaction: text of programs as it may be shown and kept, without secrets and control characters.

What a program wrote itself stays as it is, in its raw log. All that leaves that log passes here: a
secret is known by its value (what programs were given, what this process's environment has), by the
name that it stands behind, by its place in an address, or by its shape (names and shapes are in
secrets.toml). A secret of another shape that stands alone is not recognised.
"""

import base64
import json
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any
from urllib.parse import quote, unquote

from perfgate.core.files.remembered import toml_beside

MASK = "***"
SHORTEST = 6  # characters of a known value; a shorter one would mask every second word

COLOUR = re.compile(r"\x1b\[[0-9;:?]*[A-Za-z]")
# What no text of one line needs, and what makes another text of it, for a terminal, a shell or a
# reader: C0, DEL and C1; bidirectional marks, embeddings and isolates; line and paragraph
# separators; surrogates, which are no characters.
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}  # categories of Unicode that are not seen

_REST_OF_LINE = re.compile(r".*")
_SEVERAL_WORDS = re.compile(r"cookie|authorization", re.IGNORECASE)
_USER = re.compile(r"(-u|--(?:proxy-)?user=)?((?!\d+:\d+$)[^:/\s]+:).+", re.DOTALL)
_NAME = re.compile(r"[\w.-]+")
_OPTION = re.compile(r"--[A-Za-z][\w-]*(?:=.*)?", re.DOTALL)

_TABLE = toml_beside(__file__, "secrets")
_WORDS = {kind: frozenset(words.split()) for kind, words in _TABLE["words"].items()}
_TABLE["shapes"]["tokens"] = [rf"(?<![A-Za-z0-9])(?:{'|'.join(_TABLE['shapes']['tokens'])})"]
_SHAPES = [re.compile(shape) for shapes in _TABLE["shapes"].values() for shape in shapes]
_NAMED = [re.compile(pattern) for pattern in _TABLE["named"].values()]
_PATTERNS = {name: re.compile(pattern) for name, pattern in _TABLE["patterns"].items()}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_LONGEST_NAME = 120
_NO_VALUES = {"", "none", "null", "true", "false", MASK}

_given: set[str] = set()
_ignoring: ContextVar[bool] = ContextVar("known values are ignored", default=False)


@lru_cache(maxsize=4096)
def is_secret(name: str) -> bool:
    """Whether a variable, option, header or field of this name is taken for a secret.

    A name that says where a secret is (``HF_TOKEN_PATH``), or counts tokens (``max_num_tokens``),
    is none.
    """
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or (words[-1] in _WORDS["about"] and "webhook" not in words):
        return False
    if any(word in _WORDS["always"] or _PATTERNS["inside"].search(word) for word in words):
        return True
    if not words[-1].isdigit() and words[-1].endswith("pw"):  # DBPW
        return True
    before, last = set(words[:-1]), words[-1]
    return (
        _is_token(words)
        or (last == "key" and bool(before) and not before & _WORDS["other_key"])
        or any(one in _WORDS["key_of"] and two in ("key", "keys") for one, two in pairwise(words))
        or (last in ("pass", "pwd", "auth") and bool(before) and not before & _WORDS["no_pass"])
    )


def _is_token(words: list[str]) -> bool:
    """Whether the name is that of a token that lets somebody in, not of one that is text."""
    if "token" in words:
        return not _WORDS["text_token"].intersection(words) and words[-1] not in _WORDS["counted"]
    return any(one in _WORDS["tokens_of"] and two == "tokens" for one, two in pairwise(words))


def remember(environment: Mapping[str, str], arguments: Iterable[str] = ()) -> None:
    """Let the secrets that a program is given be known by their values from now on.

    Args:
        environment: variables that it is given.
        arguments: its command line.
    """
    _given.update(_secrets_of(environment))
    before = ""
    for argument in arguments:
        name, _, value = argument.partition("=")
        if argument.startswith("-") and value and is_secret(name):
            _given.add(value)
        elif _is_value_of(before) and not _OPTION.fullmatch(argument):
            _given.add(argument)
        before = argument


def redact(text: str) -> str:
    """The text, of one line or several, as it may be shown: secrets masked, nothing hidden."""
    return visible(mask(COLOUR.sub("", text)))


def redacted_lines(lines: Iterable[str]) -> tuple[str, ...]:
    """The lines as they may be shown; what belongs together (a private key) is one line then."""
    plain = "\n".join(line.rstrip("\r\n") for line in lines)
    return tuple(redact(plain).split("\n")) if plain else ()


def visible(text: str) -> str:
    """The text with an escape for every character that a terminal obeys or a reader cannot see.

    Line ends and tabs stay.
    """
    return text if text.isprintable() else text.translate(_ESCAPES)


def one_line(text: str) -> str:
    """The text on one line, nothing hidden: line ends and tabs are one blank."""
    return visible(" ".join(text.split()))


def control_character_in(text: str) -> str | None:
    """The first control character as an escape, ``\\n``; None: there is none."""
    found = _CONTROL.search(text)
    return found and _escape(found)


def escaped(text: str) -> str:
    """The text on one line, with escapes for its control characters."""
    return _CONTROL.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


@contextmanager
def known_values_ignored() -> Iterator[None]:
    """Let `mask` find secrets by their shape and name alone, not by the values of this process.

    So that a text that is made in the block is of its input alone, on every machine.
    """
    before = _ignoring.set(True)
    try:
        yield
    finally:
        _ignoring.reset(before)


def mask(text: str, *, by_name: bool = True) -> str:
    """The text with its secrets masked.

    Args:
        text: any text.
        by_name: also what stands behind the name of a secret: right for what programs write and
            people enter, wrong for sentences of perfgate's own ("HF_TOKEN: must be a text").
    """
    for value in () if _ignoring.get() else _known_values():
        text = text.replace(value, MASK)
    text = _PATTERNS["user_info"].sub(f"://{MASK}@", text)
    text = _PATTERNS["signed"].sub(rf"\g<1>{MASK}", text)
    for shape in _SHAPES:
        text = shape.sub(MASK, text)
    for named in _NAMED if by_name else ():
        text = _mask_named(text, named)
    return text


def holds_known_value(text: str) -> bool:
    """Whether the value of a secret that this process knows stands in the text."""
    return any(value in text for value in _known_values())


def mask_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The same variables, with the values of secret ones masked."""
    return {name: MASK if is_secret(name) else mask(value) for name, value in environment.items()}


def mask_plain(value: Any) -> Any:
    """Plain values with the secrets in them masked, by the names of their fields or as texts."""
    if isinstance(value, Mapping):
        return {
            name: MASK if isinstance(field, str) and is_secret(name) else mask_plain(field)
            for name, field in value.items()
        }
    if isinstance(value, list | tuple):
        return [mask_plain(one) for one in value]
    return mask(value) if isinstance(value, str) else value


def holds_secret(name: str, value: str) -> bool:
    """Whether the variable is a secret, or its value has one in it."""
    return is_secret(name) or mask(value) != value


def mask_arguments(arguments: Iterable[str]) -> list[str]:
    """The same command line with secrets masked: ``--x V``, ``--x=V``, ``-u name:V``."""
    masked: list[str] = []
    before = ""
    for argument in arguments:
        name, equals, _ = argument.partition("=")
        if _is_value_of(before) and not _OPTION.fullmatch(argument):
            masked.append(MASK)
        elif equals and _NAME.fullmatch(name) and is_secret(name):
            masked.append(f"{name}={MASK}")
        elif user := _user_and_password(argument, before):
            masked.append(user + MASK)
        else:
            masked.append(mask(argument))
        before = argument
    return masked


def _is_value_of(before: str) -> bool:
    """Whether what stands behind this argument is a secret."""
    return before.startswith("-") and "=" not in before and is_secret(before)


def _user_and_password(argument: str, before: str) -> str:
    """What stands before the password of ``-u name:password``; empty if that is none.

    Two numbers are ids of a user and a group.
    """
    found = _USER.fullmatch(argument)
    if found is None or not (found[1] or before in ("-u", "--user", "--proxy-user")):
        return ""
    return (found[1] or "") + found[2]


def _mask_named(text: str, named: re.Pattern[str]) -> str:
    done, parts = 0, []
    for found in named.finditer(text):
        name = found["name"][-_LONGEST_NAME:]
        if found.start() < done or not is_secret(name):
            continue
        if name.startswith("-") and ":" in found[0]:  # --token: expected one argument
            continue
        value = _PATTERNS["value"].match(text, found.end())
        if _SEVERAL_WORDS.search(name) and not (value and value["quote"]):
            value = _REST_OF_LINE.match(text, found.end())
        if value is None or value[0].lower() in _NO_VALUES:
            continue
        parts += [text[done : found.end()], value.groupdict().get("quote") or "", MASK]
        done = value.end()
    return "".join(parts) + text[done:]


class _KnownValues:
    """What the values of known secrets look like in a text, the longest first.

    They are computed again only when the environment or the given secrets changed, as every text
    is masked.
    """

    def __init__(self) -> None:
        self._made_of: tuple[object, object] = ({}, set())
        self._values: tuple[str, ...] = ()

    def __call__(self) -> tuple[str, ...]:
        # The dict behind os.environ: to compare it costs a hundredth of reading name after name.
        environment = getattr(os.environ, "_data", os.environ)
        if self._made_of != (environment, _given):
            made_of = (dict(environment), set(_given))
            values = _given | _secrets_of(os.environ)
            forms = set(chain.from_iterable(map(_spellings, values)))
            self._values = tuple(sorted(forms, key=len, reverse=True))
            self._made_of = made_of
        return self._values


_known_values = _KnownValues()


def _secrets_of(environment: Mapping[str, str]) -> set[str]:
    """The secret values: of secret variables, and the passwords in addresses of any."""
    found = {value for name, value in environment.items() if is_secret(name)}
    return found.union(*map(_passwords, environment.values()))


@lru_cache(maxsize=4096)
def _passwords(value: str) -> frozenset[str]:
    if "://" not in value:
        return frozenset()
    users = (found[0][3:-1].partition(":") for found in _PATTERNS["user_info"].finditer(value))
    return frozenset(password or user for user, _, password in users)


@lru_cache(maxsize=1024)
def _spellings(value: str) -> frozenset[str]:
    """The value as it is, decoded and encoded for an address, as JSON, in base64, line by line."""
    encoded = base64.b64encode(value.encode(errors="replace")).decode().rstrip("=")
    forms = {value, quote(value, safe=""), unquote(value), json.dumps(value)[1:-1], encoded}
    forms |= {line.strip() for line in value.splitlines()}
    return frozenset(form for form in forms if len(form.strip()) >= SHORTEST)


class _Escapes(dict[int, str]):
    """What each character is shown as; filled as characters are met."""

    def __missing__(self, code: int) -> str:
        one = chr(code)
        is_shown = one in "\t\n" or unicodedata.category(one) not in _HIDDEN
        self[code] = one if is_shown else ascii(one)[1:-1].replace("\\r", "\\x0d")
        return self[code]


_ESCAPES = _Escapes()
