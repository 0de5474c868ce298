"""Progress: what a long run does, written down as events for whoever looks on.

Whoever measures writes events to ``progress.jsonl`` in the run folder; one thread of the session's
main process follows that file and shows it (`perfgate.runs.progress_view`). So it works the same
with and without xdist workers. No verdict depends on it.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from perfgate.core.durable_files import append_line
from perfgate.core.errors import RunError


class Progress:
    """Writes the events of one scenario.

    Args:
        file: the run's; None: nothing is written.
        who: id of the scenario; empty: the session itself.
    """

    def __init__(self, file: Path | None, who: str) -> None:
        self._file = file
        self._who = who

    def selection(self, seconds: Mapping[str, float | None], over: Sequence[str]) -> None:
        """Tell what the session is about.

        Args:
            seconds: id of each scenario → how long it will take; None: not known.
            over: those of them that a session before has finished.
        """
        self._write({"event": "selection", "seconds": dict(seconds), "over": list(over)})

    def plan(self, steps: list[str]) -> None:
        """Tell what is still to do, as step kinds; replaces the plan told before."""
        self._write({"event": "plan", "steps": steps})

    def again(self, number: int, why: str) -> None:
        """Tell why a further fresh start is made.

        Args:
            number: of that start.
            why: what made it necessary.
        """
        self._write({"event": "again", "text": f"start {number}: {why}"})

    @contextmanager
    def step(self, kind: str, detail: str) -> Iterator[None]:
        """Tell that a step of a kind runs while the block runs."""
        self._write({"event": "begin", "kind": kind, "detail": detail})
        ended: dict[str, object] = {"event": "end", "kind": kind}
        try:
            yield
        except BaseException:
            with suppress(RunError):  # a full disk must not take the place of what happened
                self._write(ended)
            raise
        self._write(ended)

    def note(self, text: str) -> None:
        """Tell what the step that runs, or the next one, is waiting for."""
        self._write({"event": "note", "text": text})

    def over(self) -> None:
        """Tell that all tests of the scenario have their outcome."""
        with suppress(RunError):  # they have it, whether that can be told or not
            self._write({"event": "over"})

    def _write(self, event: dict[str, object]) -> None:
        if self._file is not None:
            # One clock for all processes of a machine, which no change of the day's time moves.
            append_line(self._file, {"who": self._who, "clock": time.monotonic(), **event})
