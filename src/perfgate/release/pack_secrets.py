"""Pack secrets: whether a file that goes into a pack has a secret in it, and in which line.

The same redaction as for all that perfgate shows, as a check: nothing is masked here, since a pack
holds files as they were written. What only stands behind the name of a secret is told and refused
by nobody: models answer with "token:", programs print their options. What is compressed cannot be
looked into.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

from perfgate.core.redaction import holds_known_value, mask

_LEAST = 1 << 20  # bytes that are looked at together, at least, of a file that has as many
_LONGEST_LINE = 1 << 28  # bytes; a longer line is looked at in parts
_LONGEST_CARRIED = 1 << 16
# A script asks for a value that nobody wrote down: "${HF_TOKEN:?its value is not written down}".
_ASKED = re.compile(r'"?\$\{\w+:\?[^}"]*\}"?')
# What perfgate, or a program, has masked already, in quotes.
_MASKED = re.compile(r"""(\\{0,3}["'])(?:\*{3,20}|<[A-Za-z_ -]{1,30}>|None|null)\1""")
# What stands behind the name of a secret and is none: what opens a group of values, nothing in
# quotes, a small number or a fraction; behind the name of a token, any count of them.
_NO_VALUE = re.compile(
    r"""(?<=[:=])([ \t]{0,8})
        (?:[{\[](?=[\s"'{}\[\]]|$)|""|''|-?\d{1,5}(?![\w.])|-?\d{1,12}\.\d{1,20}(?![\w.]))""",
    re.VERBOSE,
)
_COUNT = re.compile(
    r"""(token[\w.-]{0,40}\\?["']?[ \t]{0,8}[:=][ \t]{0,8})\d{1,12}(?![\w.-])""", re.IGNORECASE
)

# Of these the redaction masks the rest of the line.
_HEADER = re.compile(
    r"""[\w-]{0,40}(?:cookie|authorization)[\w-]{0,40}\\{0,3}["']?[ \t]{0,8}[:=][ \t]{0,8}
        (?:\*{3}|null(?=[ \t]*(?:[,;})\]]|$)))""",
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)

# Lines of a log differ in their numbers: one of each form is looked at, with this for a number. It
# is as long as any number that is no secret, so that it hides none.
_NUMBER = re.compile(r"(?<![\w.-])\d{1,12}(?:\.\d{1,20})?(?![\w.-])")
_ANY_NUMBER = "123456789012"
_MOST_FORMS = 100_000
_LONGEST_FORM = 400  # characters
_OF_SEVERAL_LINES = "PRIVATE KEY"


@dataclass(frozen=True)
class Suspects:
    """What of a file should not be handed on, or may not: numbers of lines, from 1.

    Attributes:
        secret: the first with a secret: a value that this process knows, a token of a published
            shape, a password in an address; None: there is none.
        named: the first with a value behind the name of a secret ("api_key=…"), which may be one or
            be text of a model; None: there is none.
    """

    secret: int | None = None
    named: int | None = None


def suspects(blocks: Iterable[bytes]) -> Suspects:
    """What of a file a person should know before it is handed on.

    Args:
        blocks: the content of a file, in parts of any size.
    """
    forms: set[str] = set()
    named: int | None = None
    for line, part in _whole_lines(blocks):
        whole = part.decode(errors="replace")
        # The first name is told, so behind it only secrets are looked for.
        if _is_harmless(whole, forms, by_name=named is None):
            continue
        text = _without_placeholders(whole)
        masked = mask(text, by_name=False)
        if masked != text:
            return Suspects(line + _first_difference(text, masked), named)
        if named is None and (masked := mask(text)) != text:
            named = line + _first_difference(text, masked)
    return Suspects(None, named)


def _first_difference(one: str, two: str) -> int:
    lines = zip_longest(one.split("\n"), two.split("\n"))
    return next(number for number, (a, b) in enumerate(lines) if a != b)


def _is_harmless(text: str, forms: set[str], *, by_name: bool) -> bool:
    """Whether nothing of a text is to be told, by the forms of its lines.

    Args:
        text: whole lines.
        forms: those that were looked at and have nothing; new ones are added.
        by_name: whether the name of a secret is to be told too.
    """
    if _OF_SEVERAL_LINES in text or holds_known_value(text):
        return False
    new = dict.fromkeys(_NUMBER.sub(_ANY_NUMBER, text).split("\n")).keys() - forms
    shown = _without_placeholders("\n".join(new))
    if mask(shown, by_name=by_name) != shown:
        return False
    if len(forms) < _MOST_FORMS:
        forms.update(one for one in new if len(one) <= _LONGEST_FORM)
    return True


def _without_placeholders(text: str) -> str:
    """The text with nothing in place of what stands for a value and is no secret."""
    for form in (_ASKED, _MASKED):
        text = form.sub("null", text)
    for form in (_NO_VALUE, _COUNT):
        text = form.sub(r"\1null", text)
    return _HEADER.sub("null", text)


def _whole_lines(blocks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """The content in parts that end with a line, each with the number of its first line.

    A part begins with the last line of the one before: what ends a private key is known by it.
    """
    number, begun, fresh = 1, b"", 0
    for block in blocks:
        begun += block
        fresh += len(block)
        if fresh < _LEAST:
            continue
        end = begun.rfind(b"\n") + 1
        if end <= len(begun) - fresh or not end:
            if len(begun) < _LONGEST_LINE:
                continue
            end = len(begun)
        part = begun[:end]
        yield number, part
        last = part.rfind(b"\n", 0, end - 1) + 1
        carried = last if end - last <= _LONGEST_CARRIED else end
        number += part.count(b"\n", 0, carried)
        begun = begun[carried:]
        fresh = len(begun) - (end - carried)
    if fresh:
        yield number, begun
