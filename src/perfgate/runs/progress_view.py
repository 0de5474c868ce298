"""Progress view: shows the progress of a run, to a person at a terminal or in the log of a CI job.

In a terminal: a line for each scenario at work, why its start is made, and the whole selection, in
a status area. Elsewhere one line a step with the time of day, and one from time to time where
nothing happens: systems end jobs that are silent for long (ten minutes at the least).
"""

import atexit
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from perfgate.core.durable_files import read_lines
from perfgate.core.errors import InputError
from perfgate.runs.progress_state import ProgressState, heartbeat
from perfgate.runs.status_area import StatusArea, has_room

_LOOK_EVERY_S = 1.0
_SILENT_FOR_S = 240.0
_HINT = "delete the file: it is only shown, never read for a verdict"


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
        except InputError:
            self._end.set()  # the run goes on without a view
            return
        fresh, self._seen = events[self._seen :], len(events)
        news = []
        for event in fresh:
            line = self._state.feed(event)
            if line:
                news.append(f"{self._state.count()}{line}")
        try:
            if self._area is None:
                self._print(news)
            else:
                self._draw(self._area)
        except (OSError, ValueError):
            self._end.set()  # the terminal is gone; the run goes on without a view

    def _draw(self, area: StatusArea) -> None:
        clock = time.monotonic()
        lines: list[str] = []
        for line, why in self._state.reasons(clock):
            lines += [line, f"  {why}"] if why else [line]
        total = self._state.total(clock)
        lines += [f"perfgate: {total}"] if total else []
        if lines:
            area.show(lines)

    def _print(self, news: Sequence[str]) -> None:
        now = time.monotonic()
        lines = list(news)
        if not lines and now - self._shown_at > _SILENT_FOR_S:
            at_work = self._state.lines(now)
            lines = [f"{self._state.count()}{heartbeat(at_work)}"] if at_work else []
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
