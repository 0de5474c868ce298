"""Progress: what a long run does, as events in ``progress.jsonl``, and what they say so far.

Whoever measures writes events; one thread of the session's main process follows the file and shows
it (`perfgate.runs.progress_view`). So it works the same with and without xdist workers. No verdict
depends on it.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from perfgate.core.errors import RunError
from perfgate.core.files.durable_files import append_line
from perfgate.core.redaction import one_line
from perfgate.core.verdict import counted

_STATES = ("running", "waiting", "between starts", "to come")


class Progress:
    """Writes the events of one scenario.

    Args:
        file: the run's.
        who: id of the scenario; empty: the session itself.
    """

    def __init__(self, file: Path, who: str) -> None:
        self._file = file
        self._who = who

    def selection(self, seconds: Mapping[str, float | None], over: Sequence[str]) -> None:
        """Tell what the session is about.

        Args:
            seconds: id of each scenario → how long it will take; None: not known.
            over: those of them that a session before has finished.
        """
        self._write("selection", seconds=dict(seconds), over=list(over))

    def plan(self, steps: list[str]) -> None:
        """Tell what is still to do, as step kinds; replaces the plan told before."""
        self._write("plan", steps=steps)

    def again(self, number: int, why: str) -> None:
        """Tell why a further fresh start is made.

        Args:
            number: of that start.
            why: what made it necessary.
        """
        self._write("again", text=f"start {number}: {why}")

    @contextmanager
    def step(self, kind: str, detail: str) -> Iterator[None]:
        """Tell that a step of a kind runs while the block runs."""
        self._write("begin", kind=kind, detail=detail)
        try:
            yield
        finally:
            with suppress(RunError):  # a full disk must not take the place of what happened
                self._write("end", kind=kind)

    def note(self, text: str) -> None:
        """Tell what the step that runs, or the next one, is waiting for."""
        self._write("note", text=text)

    def over(self) -> None:
        """Tell that all tests of the scenario have their outcome."""
        with suppress(RunError):  # they have it, whether that can be told or not
            self._write("over")

    def _write(self, event: str, **values: object) -> None:
        # One clock for all processes of a machine, which no change of the day's time moves.
        head = {"who": self._who, "clock": time.monotonic(), "event": event}
        append_line(self._file, head | values)


@dataclass
class _Scenario:
    """What the events say of one scenario; `step` is the event that began the one that runs."""

    plan: list[str] = field(default_factory=list)
    step: Mapping[str, Any] | None = None
    done: int = 0
    began: float | None = None
    note: str = ""
    noted: float = 0.0
    why: str = ""
    is_over: bool = False

    @property
    def state(self) -> str:
        """One of `_STATES`, of a scenario that is not over."""
        if self.step is not None:
            return "running"
        if self.note:
            return "waiting"
        return "to come" if self.began is None else "between starts"


class ProgressState:
    """What the events so far say, and how long the rest will take; has no clock of its own."""

    def __init__(self) -> None:
        self._scenarios: defaultdict[str, _Scenario] = defaultdict(_Scenario)
        self._expected: dict[str, float | None] = {}  # seconds of each that is selected
        self._steps: defaultdict[str, list[float]] = defaultdict(list)  # kind → seconds of each
        self._took: list[float] = []  # seconds of each scenario that is over

    def feed(self, event: Mapping[str, Any]) -> str:
        """Take one event; returns a line worth printing, empty if there is none."""
        if event["event"] == "selection":
            self._expected = dict(event["seconds"])
            for name in event["over"]:
                self._scenarios[name].is_over = True
            return self.count() + self.total(event["clock"])
        text = self._fed(event["who"], self._scenarios[event["who"]], event)
        return self.count() + one_line(f"{event['who']}: {text}") if text else ""

    def _fed(self, who: str, one: _Scenario, event: Mapping[str, Any]) -> str:
        match event["event"]:
            case "plan":
                one.plan, one.why = list(event["steps"]), ""
            case "note":
                one.note, one.noted = event["text"], event["clock"]
                return one.note
            case "again":
                one.why = event["text"]
                return one.why
            case "begin":
                one.step, one.note = event, ""
                one.began = event["clock"] if one.began is None else one.began
                if event["kind"] in one.plan:
                    one.plan.remove(event["kind"])
                return f"{_step(one)}, {_time_left([self._left(who, event['clock'])])}"
            case "end" if one.step is not None:
                self._steps[one.step["kind"]].append(_since(one.step["clock"], event["clock"]))
                one.done, one.step, one.note = one.done + 1, None, ""
            case "over":
                self._scenarios[who] = _Scenario(is_over=True)
                if one.began is None:
                    return "not measured"
                self._took.append(_since(one.began, event["clock"]))
                return f"done in {span(self._took[-1])}"
        return ""

    def at_work(self, clock: float) -> list[tuple[str, str]]:
        """A line for each scenario at work at `clock` (monotonic), and why its start is made.

        The reason is empty if the start was planned.
        """
        found = []
        for who, one in self._scenarios.items():
            if one.step is not None:
                text = f"{_step(one)}, for {span(_since(one.step['clock'], clock))}, "
                text += _time_left([self._left(who, clock)]) + (f"; {one.note}" if one.note else "")
            elif one.note:
                text = f"{one.note}, for {span(_since(one.noted, clock))}"
            else:
                continue
            found.append((one_line(f"{who}: {text}"), one_line(one.why)))
        return found

    def count(self) -> str:
        """``[3/12] ``: scenarios done, of all; empty: it is not known what was selected."""
        done = len(self._expected) - len(self._open())
        return f"[{done}/{len(self._expected)}] " if self._expected else ""

    def total(self, clock: float) -> str:
        """The whole selection in one line; empty: it is not known what was selected."""
        rest = self._open()
        states = Counter(self._scenarios[name].state for name in rest)
        parts = [f"{len(self._expected) - len(rest)} of {len(self._expected)} scenarios done"]
        parts += [f"{states[state]} {state}" for state in _STATES if states[state]]
        at_once = max(1, sum(scenario.step is not None for scenario in self._scenarios.values()))
        left = _time_left([self._left(name, clock) for name in rest], at_once)
        return ", ".join(parts) + (f"; {left}" if rest else "") if self._expected else ""

    def _open(self) -> list[str]:
        """The selected scenarios that are not over."""
        return [name for name in self._expected if not self._scenarios[name].is_over]

    def _left(self, who: str, clock: float) -> float | None:
        """Seconds left for a scenario; None: not known.

        By the mean of finished steps of the same kinds where all that are left are known; else by
        what is expected of it, or what other scenarios took.
        """
        one = self._scenarios[who]
        kinds = [*one.plan, *([one.step["kind"]] if one.step else [])]
        if one.began is not None and kinds and self._steps.keys() >= set(kinds):
            means = [fmean(self._steps[kind]) for kind in kinds]
            if one.step is not None:
                means[-1] = max(0.0, means[-1] - _since(one.step["clock"], clock))
            return sum(means)
        expected = self._expected.get(who)
        if expected is None and not self._took:
            return None
        spent = 0.0 if one.began is None else _since(one.began, clock)
        return max(0.0, (fmean(self._took) if expected is None else expected) - spent)


def _time_left(seconds: Sequence[float | None], at_once: int = 1) -> str:
    """The time left for scenarios, of which as many are measured at once; None: not known."""
    known = [second for second in seconds if second is not None]
    if not known:
        return "time left not yet known"
    unknown = len(seconds) - len(known)
    more = f", and {counted(unknown, 'scenario')} not yet known" if unknown else ""
    return f"about {span(max(sum(known) / at_once, *known))} left{more}"


def _step(one: _Scenario) -> str:
    detail = one.step["detail"] if one.step else ""
    return f"step {one.done + 1} of {one.done + 1 + len(one.plan)}: {detail}"


def _since(began: float, clock: float) -> float:
    return max(0.0, clock - began)  # a machine may have restarted


def span(seconds: float) -> str:
    """``12 s``, ``3 min 5 s``, ``2 h 10 min``."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if minutes else f"{rest} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min"
