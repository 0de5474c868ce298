"""Progress: what a long run does now, for how long, and how much is left.

Whoever measures writes events to ``progress.jsonl`` in the run folder; one thread of the session's
main process follows that file and shows it. So it works the same with and without xdist workers.
"""

import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from perfgate.core.durable_files import append_line, read_lines
from perfgate.core.errors import InputError, RunError

_LIVE_INTERVAL_S = 1.0
_PLAIN_INTERVAL_S = 30.0
_HINT = "delete the file: it is only shown, never read for a verdict"


class Progress:
    """Writes the events of one campaign."""

    def __init__(self, file: Path | None, who: str) -> None:
        self._file = file
        self._who = who

    def plan(self, steps: list[str]) -> None:
        """Tell what is still to do, as step kinds; replaces the plan told before."""
        self._write({"event": "plan", "steps": steps})

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
        """Tell what the step that runs is waiting for."""
        self._write({"event": "note", "text": text})

    def _write(self, event: dict[str, object]) -> None:
        if self._file is not None:
            # One clock for all processes of a machine, which no change of the day's time moves.
            append_line(self._file, {"who": self._who, "clock": time.monotonic(), **event})


@dataclass
class _Campaign:
    plan: list[str] = field(default_factory=list)
    now: dict[str, Any] | None = None
    done: int = 0


class ProgressState:
    """What the events so far say; pure bookkeeping, no clock of its own."""

    def __init__(self) -> None:
        self._campaigns: dict[str, _Campaign] = {}
        self._seconds: dict[str, list[float]] = {}

    def feed(self, event: dict[str, Any]) -> str | None:
        """Take one event; returns a line worth printing where lines cannot be replaced."""
        campaign = self._campaigns.setdefault(event["who"], _Campaign())
        if event["event"] == "plan":
            campaign.plan = list(event["steps"])
            return None
        if event["event"] == "note":
            return f"{event['who']}: {event['text']}"
        if event["event"] == "begin":
            campaign.now = event
            if event["kind"] in campaign.plan:
                campaign.plan.remove(event["kind"])
            return self._line(event["who"], campaign, event["clock"])
        if campaign.now is not None:
            took = max(0.0, event["clock"] - campaign.now["clock"])  # a machine may have restarted
            self._seconds.setdefault(campaign.now["kind"], []).append(took)
            campaign.done += 1
            campaign.now = None
        return None

    def lines(self, clock: float) -> list[str]:
        """One line per campaign that is at work, for time `clock` (of the monotonic clock)."""
        return [
            self._line(who, campaign, clock)
            for who, campaign in self._campaigns.items()
            if campaign.now is not None
        ]

    def _line(self, who: str, campaign: _Campaign, clock: float) -> str:
        event = campaign.now or {}
        elapsed = max(0.0, clock - float(event.get("clock", clock)))
        total = campaign.done + 1 + len(campaign.plan)
        left = self._left(campaign, str(event.get("kind")), elapsed)
        return (
            f"{who}: step {campaign.done + 1} of {total}: {event.get('detail')}"
            f", for {_span(elapsed)}, {left}"
        )

    def _left(self, campaign: _Campaign, kind: str, elapsed: float) -> str:
        """The time left, from the mean time of finished steps of the same kinds."""
        means = {name: sum(took) / len(took) for name, took in self._seconds.items()}
        known = [means[step] for step in campaign.plan if step in means]
        if kind in means:
            known.append(max(0.0, means[kind] - elapsed))
        if not known:
            return "time left not yet known"
        missing = 1 + len(campaign.plan) - len(known)
        more = f" and {missing} steps not yet timed" if missing else ""
        return f"about {_span(sum(known))} left{more}"


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


class ProgressView:
    """A thread that shows the progress file: live in a terminal, plain lines elsewhere.

    Args:
        file: the file.
        stream: where to; None: standard error.
        from_now: whether what the file holds already, of a session before, is not shown.
    """

    def __init__(self, file: Path, stream: TextIO | None = None, *, from_now: bool = False) -> None:
        self._file = file
        self._stream = stream or sys.__stderr__ or sys.stderr
        self._live = not self._stream.closed and self._stream.isatty()
        self._state = ProgressState()
        self._seen = len(read_lines(file, _HINT)) if from_now else 0
        self._shown_at = time.monotonic()
        self._begun = False
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="progress", daemon=True)

    def start(self) -> None:
        """Begin to show."""
        self._thread.start()

    def stop(self) -> None:
        """Show what is left to show, and end."""
        self._end.set()
        self._thread.join()
        if self._live:
            self._print("\r\x1b[K")

    def _follow(self) -> None:
        while not self._end.wait(_LIVE_INTERVAL_S):
            self._show()
        self._show()

    def _show(self) -> None:
        try:
            events = read_lines(self._file, _HINT)
        except InputError:
            self._end.set()  # the run goes on without a view
            return
        fresh, self._seen = events[self._seen :], len(events)
        news = [line for event in fresh if (line := self._state.feed(event))]
        lines = self._state.lines(time.monotonic())
        if self._live:
            if lines:
                # A line that wraps could not be replaced.
                width = shutil.get_terminal_size().columns - 1
                self._print("\r\x1b[K" + " | ".join(lines)[:width])
        elif news or (lines and time.monotonic() - self._shown_at > _PLAIN_INTERVAL_S):
            # pytest may have left the cursor behind a file's name, but only before the first line.
            start, self._begun = ("" if self._begun else "\n"), True
            self._print(start + "".join(f"perfgate: {line}\n" for line in news or lines))
            self._shown_at = time.monotonic()

    def _print(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._end.set()  # the terminal is gone; the run goes on without a view
