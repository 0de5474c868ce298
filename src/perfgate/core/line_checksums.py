"""Line checksums: each line of a file ends in a checksum over itself and the line before it. Pure.

A changed, removed, added or reordered line is seen, wherever it is but at the end: of lines that
are missing there nothing tells. It is no signature: whoever can write the file can write new
checksums, too.
"""

import hashlib
import re

_DIGITS = 32  # of SHA-256: enough for accidents, and whoever forges the whole needs no collision
_SEAL = re.compile(rb', "checksum": "([0-9a-f]{%d})"\}' % _DIGITS)
SEAL_BYTES = len(b', "checksum": ""}') + _DIGITS


def first_checksum(content: bytes) -> str:
    """What the checksum of a file's first line follows: the checksum of another file's content."""
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


def sealed(line: bytes, before: str) -> bytes:
    """A line with its checksum as its last field.

    Args:
        line: a JSON object that is not empty, without the end of the line.
        before: the checksum of the line before.
    """
    return line[:-1] + b', "checksum": "%s"}' % _checksum(line, before).encode()


def checksum_of(line: bytes) -> str | None:
    """The checksum that a line, or the end of one, carries; None: it has none."""
    found = _SEAL.fullmatch(line[-SEAL_BYTES:])
    return None if found is None else found[1].decode()


def is_right(line: bytes, before: str) -> bool:
    """Whether a line carries the checksum of itself, after that of the line before."""
    return checksum_of(line) == _checksum(line[:-SEAL_BYTES] + b"}", before)


def _checksum(line: bytes, before: str) -> str:
    return hashlib.sha256(before.encode() + b"\n" + line).hexdigest()[:_DIGITS]
