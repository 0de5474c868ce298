"""Progress view: shows the progress of a run, to a person at a terminal or in the log of a CI job.

In a terminal: a line for each scenario at work, why its start is made, and the whole selection, in
a status area. Elsewhere one line a step with the time of day, and one from time to time where
nothing happens: systems end jobs that are silent for long (ten minutes at the least).
"""

import atexit
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from rich.cells import set_cell_size

from perfgate.core.errors import InputError
from perfgate.core.files.durable_files import read_lines
from perfgate.runs.progress import ProgressState

_LOOK_EVERY_S = 1.0
_SILENT_FOR_S = 240.0
_HINT = "delete the file: it is only shown, never read for a verdict"
_SHARE = 3  # of a terminal's height, at most a third
_LOWEST = 8  # lines of a terminal that has room for the area
_SAVE, _RESTORE = "\x1b7", "\x1b8"  # where the cursor is
_DOWN = "\x1bD"  # scrolls at the lowest line, and keeps the column


class ProgressView:
    """A thread that shows the progress file.

    Args:
        file: the file.
        stream: where to; None: standard error.
        from_now: whether what the file holds already, of a session before, is not shown.
        column: where on its line who else prints there has stopped; 0: at its beginning.
    """

    def __init__(
        self,
        file: Path,
        stream: TextIO | None = None,
        *,
        from_now: bool = False,
        column: Callable[[], int] = lambda: 0,
    ) -> None:
        self._file = file
        self._stream = stream or sys.__stderr__ or sys.stderr
        self._area = StatusArea(self._stream) if has_room(self._stream) else None
        self._state = ProgressState()
        self._seen = len(read_lines(file, _HINT)) if from_now else 0
        self._shown_at = time.monotonic()
        self._column, self._left_at = column, 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="progress", daemon=True)

    def start(self) -> None:
        """Begin to show."""
        if self._area is not None:
            atexit.register(self._area.close)  # whatever ends pytest, the terminal is whole again
        self._thread.start()

    def stop(self) -> None:
        """Show what is left to show, and end."""
        self._end.set()
        self._thread.join()
        if self._area is not None:
            self._area.close()
            atexit.unregister(self._area.close)

    def _follow(self) -> None:
        while not self._end.wait(_LOOK_EVERY_S):
            self._show()
        self._show()

    def _show(self) -> None:
        try:
            events = read_lines(self._file, _HINT)
            fresh, self._seen = events[self._seen :], len(events)
            news = [line for event in fresh if (line := self._state.feed(event))]
            if self._area is None:
                self._print(news)
            else:
                self._draw(self._area)
        except (InputError, OSError, ValueError):
            self._end.set()  # file or terminal is gone; the run goes on without a view

    def _draw(self, area: "StatusArea") -> None:
        clock = time.monotonic()
        lines: list[str] = []
        for line, why in self._state.at_work(clock):
            lines += [line, f"  {why}"] if why else [line]
        if total := self._state.total(clock):
            lines.append(f"perfgate: {total}")
        if lines:
            area.show(lines)

    def _print(self, lines: Sequence[str]) -> None:
        now = time.monotonic()
        if not lines and now - self._shown_at > _SILENT_FOR_S:
            at_work = [line for line, _ in self._state.at_work(now)]
            more = f" (and {len(at_work) - 2} more)" if len(at_work) > 2 else ""
            if at_work:
                lines = [f"{self._state.count()}{' | '.join(at_work[:2])}{more}"]
        if not lines:
            return
        # Behind dots and names a line of its own begins, unless it has begun since they came.
        column = self._column()
        start = "\n" if column not in (0, self._left_at) else ""
        self._left_at = column
        day = time.strftime("%H:%M:%S")
        self._stream.write(start + "".join(f"perfgate {day} {line}\n" for line in lines))
        self._stream.flush()
        self._shown_at = now


def has_room(stream: TextIO) -> bool:
    """Whether the stream is a terminal that can have a status area, and a person looks at it.

    A CI system may give its jobs a terminal and keep what they print.
    """
    is_ci = os.environ.get("CI", "").lower() not in ("", "0", "false")
    if stream.closed or not stream.isatty() or is_ci:
        return False
    return os.environ.get("TERM", "dumb") not in ("", "dumb") and _size(stream).lines >= _LOWEST


class StatusArea:
    """The lowest lines of a terminal, kept for what a run does now; grows with what it shows.

    What everything else prints scrolls above it: the lines are outside of the terminal's scrolling
    region (DECSTBM of the VT100), so that neither disturbs the other, whoever writes. A terminal is
    given all of a change in one write. (`rich.live` would overwrite what pytest leaves on a line.)
    """

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
            text = self._cleared()
            self._size, self._rows = size, max(len(shown), min(self._rows, most))
            region = f"\x1b[1;{size.lines - self._rows}r"
            # The cursor keeps its column; setting a region moves it, so it is saved.
            text += f"{_DOWN * self._rows}\x1b[{self._rows}A{_SAVE}{region}{_RESTORE}"
        shown = [*[""] * (self._rows - len(shown)), *shown]
        self._write(text + self._drawn(shown))

    def close(self) -> None:
        """Give the lines back; what was shown is gone."""
        text, self._rows = self._cleared(), 0
        if text:
            with suppress(OSError, ValueError):
                self._write(text)

    def _cleared(self) -> str:
        """What gives the lines back, empty."""
        return self._drawn([""] * self._rows, "\x1b[r") if self._rows else ""

    def _drawn(self, lines: Sequence[str], first: str = "") -> str:
        top, width = self._size.lines - self._rows, self._size.columns - 1
        text = f"{_SAVE}{first}"
        for row, line in enumerate(lines, start=top + 1):
            text += f"\x1b[{row};1H\x1b[2K{set_cell_size(line, width).rstrip()}"
        return text + _RESTORE

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _size(stream: TextIO) -> os.terminal_size:
    with suppress(OSError, ValueError, AttributeError):
        found = os.get_terminal_size(stream.fileno())
        if found.columns and found.lines:
            return found
    return shutil.get_terminal_size()
