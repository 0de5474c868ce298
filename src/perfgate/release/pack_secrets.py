"""Pack secrets: whether a file that goes into a pack has a secret in it, and in which line.

The same redaction as for all that perfgate shows, as a check: nothing is masked here, since a pack
holds files as they were written. What is compressed cannot be looked into.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import zip_longest

from perfgate.core.redaction import mask

_LEAST = 1 << 20  # bytes that are looked at together, at least, of a file that has as many
_LONGEST_LINE = 1 << 28  # bytes; a longer line is looked at in parts
_LONGEST_CARRIED = 1 << 16
# A script asks for a value that nobody wrote down: "${HF_TOKEN:?its value is not written down}".
_ASKED = re.compile(r'"?\$\{\w+:\?[^}"]*\}"?')


def first_secret(blocks: Iterable[bytes]) -> int | None:
    """The number, from 1, of the first line that a secret begins in; None: there is none.

    Args:
        blocks: the content of a file, in parts of any size.
    """
    for line, part in _whole_lines(blocks):
        text = _ASKED.sub("none", part.decode(errors="replace"))
        masked = mask(text)
        if masked != text:
            lines = zip_longest(text.split("\n"), masked.split("\n"))
            return line + next(number for number, (one, two) in enumerate(lines) if one != two)
    return None


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
