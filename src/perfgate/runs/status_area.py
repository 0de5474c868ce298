"""Status area: the lowest lines of a terminal, kept for what a run does now.

What everything else prints scrolls above it: the lines are outside of the terminal's scrolling
region (DECSTBM of the VT100), so that neither disturbs the other, whoever writes. A terminal is
given all of a change in one write.
"""

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

from rich.cells import set_cell_size

_SHARE = 3  # of the height, at most a third
_LOWEST = 8  # lines of a terminal that has room for it

_SAVE, _RESTORE, _CLEAR_LINE = "\x1b7", "\x1b8", "\x1b[2K"
_DOWN = "\x1bD"  # scrolls at the lowest line, and keeps the column


def has_room(stream: TextIO) -> bool:
    """Whether the stream is a terminal that can have such an area, and a person looks at it.

    A CI system may give its jobs a terminal and keep what they print.
    """
    if stream.closed or not stream.isatty():
        return False
    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        return False
    return os.environ.get("TERM", "dumb") not in ("", "dumb") and _size(stream).lines >= _LOWEST


class StatusArea:
    """The area of one terminal; it grows with what it has to show."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._rows = 0
        self._size = os.terminal_size((0, 0))

    def show(self, lines: Sequence[str]) -> None:
        """Show the lines, the last of them lowest; those that have no room are left out.

        Raises:
            OSError, ValueError: the terminal is gone.
        """
        size = _size(self._stream)
        most = max(1, size.lines // _SHARE)
        shown = [*lines[: most - 1], lines[-1]] if len(lines) > most else list(lines)
        text = ""
        if size != self._size or len(shown) > self._rows:
            text = self._made_room(size, max(len(shown), min(self._rows, most)))
        top = self._size.lines - self._rows
        text += _SAVE
        for row in range(self._rows):
            place = row - (self._rows - len(shown))
            line = shown[place] if place >= 0 else ""
            text += f"\x1b[{top + row + 1};1H{_CLEAR_LINE}{self._cut(line)}"
        self._write(text + _RESTORE)

    def close(self) -> None:
        """Give the lines back; what was shown is gone."""
        if self._rows:
            text = self._cleared()
            self._rows = 0
            with suppress(OSError, ValueError):
                self._write(text)

    def _made_room(self, size: os.terminal_size, rows: int) -> str:
        """What makes `rows` lines the terminal's lowest, with the cursor above them."""
        text = self._cleared() if self._rows else ""
        self._size, self._rows = size, rows
        above = size.lines - rows
        # The cursor keeps its column; setting a region moves it, so it is saved.
        return text + f"{_DOWN * rows}\x1b[{rows}A{_SAVE}\x1b[1;{above}r{_RESTORE}"

    def _cleared(self) -> str:
        top = self._size.lines - self._rows
        lines = (f"\x1b[{top + row + 1};1H{_CLEAR_LINE}" for row in range(self._rows))
        return f"{_SAVE}\x1b[r{''.join(lines)}{_RESTORE}"

    def _cut(self, line: str) -> str:
        return set_cell_size(line, self._size.columns - 1).rstrip()

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _size(stream: TextIO) -> os.terminal_size:
    with suppress(OSError, ValueError, AttributeError):
        found = os.get_terminal_size(stream.fileno())
        if found.columns and found.lines:
            return found
    return shutil.get_terminal_size()
