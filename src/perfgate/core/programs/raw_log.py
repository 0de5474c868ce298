"""Raw logs: what a program wrote itself, read from its end or as a stream, never whole.

A raw log is not ours: it may have hundreds of megabytes, a line without an end, any byte, and any
secret. Its mode lets only its owner read it, and what is shown of it is redacted.
"""

import io
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from perfgate.core.files.untrusted_files import UntrustedFile, open_regular
from perfgate.core.redaction import redacted_lines

PRIVATE = stat.S_IRUSR | stat.S_IWUSR  # the mode of a raw log
LONGEST_LINE = 64 * 1024  # bytes of a line that are looked at
LONGEST_SHOWN = 1000  # characters of a line that are shown
MOST_SEARCHED = 128 * 1024 * 1024  # bytes of a log that are searched: half of them at each end

_BLOCK = 1024 * 1024
_TAIL = 1024 * 1024  # bytes at the end of a log in which its last lines are looked for
_REDACTED = 4 * LONGEST_SHOWN  # bytes of a line that are redacted, to show fewer of them
_BETWEEN_WORDS = b" \t\"',;&"  # what no secret has in it
_CONTEXT = 80  # lines before those that are shown: a private key that begins there is known as one


def tail(log: Path, count: int) -> tuple[str, ...]:
    """The last `count` lines of the log, redacted; none if it cannot be read."""
    try:
        read = _end(log, _TAIL)
    except UntrustedFile as error:  # the program put another file in its place
        return (str(error).partition("\n")[0],)
    except OSError:
        return ()
    last = read.splitlines()[-count - _CONTEXT - 1 :]
    is_whole = len(read) < _TAIL or len(last) > count + _CONTEXT
    if not is_whole and len(last) == 1:  # its end tells more
        last = [last[0][-_REDACTED:]]
    shown = (_cut(line, _REDACTED, _BETWEEN_WORDS) for line in last)
    found = [line.decode(errors="replace") for line in shown]
    if not is_whole:  # a secret may be cut there, which nothing would recognise
        found = found[1:] or [f"… {found[0].partition(' ')[2]}"]
    return tuple(map(_shortened, redacted_lines(found)[-count:]))


def end_of(log: Path, size: int) -> str:
    """The last `size` bytes of the log as they stand there, to be searched; none if it is gone."""
    return _end(log, size).decode(errors="replace")


def lines(log: Path) -> Iterator[str]:
    """All lines of the log as they stand there, to be searched; none if it is not there.

    Where they are shown, they must be redacted. A line is cut after `LONGEST_LINE` bytes.
    """
    with _opened(log) as file:
        for block in _blocks(file):
            for line in block.splitlines():
                yield _cut(line).decode(errors="replace")


def lines_with(log: Path | BinaryIO, words: Iterable[str]) -> Iterator[tuple[int, str]]:
    """The lines of the log that may hold one of `words`, and those around them, to be searched.

    As `lines` gives them; of a log of more than `MOST_SEARCHED` bytes the middle is left out.

    Args:
        log: the log, or its open file; one that is not there has no lines.
        words: what is searched for, in lower case.

    Returns:
        number of each line, from 1, as editors count them, and its text.
    """
    if isinstance(log, Path):
        with _opened(log) as file:
            yield from lines_with(file, words)
        return
    sought = [word.encode() for word in words]
    size = log.seek(0, os.SEEK_END)
    log.seek(0)
    number, position = 1, 0
    for block in _blocks(log):
        at_ends = min(position, size - position) <= MOST_SEARCHED // 2
        position += len(block)
        lowered = block.lower() if at_ends else b""
        if not any(word in lowered for word in sought):
            number += block.count(b"\n")
            continue
        for line in block.splitlines(keepends=True):
            yield number, _cut(line.rstrip(b"\r\n")).decode(errors="replace")
            number += line.endswith(b"\n")


def _opened(log: Path) -> BinaryIO:
    """The log; an empty file if it is not there."""
    return open_regular(log) if log.is_file() else io.BytesIO()


def _blocks(log: BinaryIO) -> Iterator[bytes]:
    """The log in blocks of whole lines; a line that is longer than a block is cut."""
    begun = b""
    while block := log.read(_BLOCK):
        if block.endswith(b"\r"):
            block += log.read(1)
        end = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
        if end:
            yield begun + block[:end]
            begun = block[end:]
        elif len(begun) < LONGEST_LINE:
            begun += block
    if begun:
        yield begun + b"\n"


def _end(log: Path, size: int) -> bytes:
    """The last `size` bytes of the log; none if it is gone."""
    with _opened(log) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - size))
        return file.read(size)


def _cut(line: bytes, most: int = LONGEST_LINE, between: bytes = b" ") -> bytes:
    """The line, if it is too long to its last whole word: half a secret is not recognised.

    Args:
        line: without its end.
        most: bytes of it that may stay.
        between: what stands between words, each byte by itself.
    """
    if len(line) <= most:
        return line
    return line[: max(0, *(line.rfind(bytes([one]), 0, most) for one in between))]


def _shortened(line: str) -> str:
    return line if len(line) <= LONGEST_SHOWN else f"{line[:LONGEST_SHOWN]} …"
