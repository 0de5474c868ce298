"""Progress state: what the events of a run so far say, and how long the rest will take. Pure."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from perfgate.core.redaction import visible
from perfgate.core.verdict import counted


@dataclass(frozen=True)
class Left:
    """The time left.

    Attributes:
        seconds: of what is known.
        unknown: steps, or scenarios, of which nothing is known.
        guessed: scenarios that are taken for the mean of those done.
    """

    seconds: float = 0.0
    unknown: int = 0
    guessed: int = 0


@dataclass
class _Campaign:
    plan: list[str] = field(default_factory=list)
    now: dict[str, Any] | None = None
    done: int = 0
    began: float | None = None
    note: str = ""
    noted: float = 0.0
    why: str = ""
    over: bool = False


class ProgressState:
    """What the events so far say; pure bookkeeping, no clock of its own."""

    def __init__(self) -> None:
        self._campaigns: dict[str, _Campaign] = {}
        self._seconds: dict[str, list[float]] = {}
        self._expected: dict[str, float | None] = {}
        self._kept: set[str] = set()
        self._took: list[float] = []

    def feed(self, event: dict[str, Any]) -> str | None:
        """Take one event; returns a line worth printing where lines cannot be replaced."""
        kind = event["event"]
        if kind == "selection":
            self._expected = dict(event["seconds"])
            self._kept = set(event["over"])
            return self.total(event["clock"])
        campaign = self._campaigns.setdefault(event["who"], _Campaign())
        told = self._fed(campaign, event)
        return None if told is None else self._shown(f"{event['who']}: {told}")

    def _fed(self, campaign: _Campaign, event: dict[str, Any]) -> str | None:
        """What an event of a campaign is worth telling."""
        match event["event"]:
            case "plan":
                campaign.plan, campaign.why = list(event["steps"]), ""
            case "note":
                campaign.note, campaign.noted = event["text"], event["clock"]
                return str(event["text"])
            case "again":
                campaign.why = event["text"]
                return str(event["text"])
            case "begin":
                campaign.now, campaign.note = event, ""
                if campaign.began is None:
                    campaign.began = event["clock"]
                if event["kind"] in campaign.plan:
                    campaign.plan.remove(event["kind"])
                return f"{self._step(campaign)}, {self._left(campaign, event['clock'])}"
            case "end":
                self._ended(campaign, event["clock"])
            case "over":
                return self._over(campaign, event)
        return None

    def _ended(self, campaign: _Campaign, clock: float) -> None:
        campaign.note = ""
        if campaign.now is not None:
            took = max(0.0, clock - campaign.now["clock"])  # a machine may have restarted
            self._seconds.setdefault(campaign.now["kind"], []).append(took)
            campaign.done += 1
            campaign.now = None

    def _over(self, campaign: _Campaign, event: dict[str, Any]) -> str | None:
        campaign.over, campaign.now, campaign.note, campaign.why = True, None, "", ""
        campaign.plan = []
        if campaign.began is None:
            return "not measured"
        took = max(0.0, event["clock"] - campaign.began)
        if event["who"] in self._expected:
            self._took.append(took)
        return f"done in {span(took)}"

    def lines(self, clock: float) -> list[str]:
        """One line per scenario that is at work, for time `clock` (of the monotonic clock)."""
        return [self._shown(line) for _, line in self._at_work(clock)]

    def reasons(self, clock: float) -> list[tuple[str, str]]:
        """The same, each with why its present start is made; empty: it was planned."""
        return [
            (self._shown(line), self._shown(campaign.why))
            for campaign, line in self._at_work(clock)
        ]

    def _at_work(self, clock: float) -> list[tuple[_Campaign, str]]:
        found = []
        for who, campaign in self._campaigns.items():
            if campaign.now is not None:
                elapsed = _since(campaign.now["clock"], clock)
                waits = f"; {campaign.note}" if campaign.note else ""
                left = self._left(campaign, clock)
                line = f"{who}: {self._step(campaign)}, for {span(elapsed)}, {left}{waits}"
                found.append((campaign, line))
            elif campaign.note:
                waited = span(_since(campaign.noted, clock))
                found.append((campaign, f"{who}: {campaign.note}, for {waited}"))
        return found

    def count(self) -> str:
        """``[3/12] ``: scenarios done, of all; empty: it is not known what was selected."""
        return f"[{self._done}/{len(self._expected)}] " if self._expected else ""

    @property
    def _done(self) -> int:
        return sum(name in self._kept or self._is_over(name) for name in self._expected)

    def _is_over(self, name: str) -> bool:
        return name in self._campaigns and self._campaigns[name].over

    def total(self, clock: float) -> str:
        """The whole selection in one line; empty: it is not known what was selected."""
        if not self._expected:
            return ""
        open_ones = [self._campaigns.get(one) for one in self._expected if not self._is_done(one)]
        states = Counter(_state(one) for one in open_ones)
        parts = [f"{self._done} of {len(self._expected)} scenarios done"]
        parts += [f"{states[one]} {one}" for one in _STATES if states[one]]
        if not open_ones:
            return ", ".join(parts)
        return f"{', '.join(parts)}; {self._all_left(clock)}"

    def _is_done(self, name: str) -> bool:
        return name in self._kept or self._is_over(name)

    def _all_left(self, clock: float) -> str:
        """The time left for all scenarios, as many at once as now."""
        lefts: list[Left] = []
        for name, expected in self._expected.items():
            if not self._is_done(name):
                lefts.append(self._left_of(self._campaigns.get(name), expected, clock))
        at_once = max(1, sum(one.now is not None for one in self._campaigns.values()))
        longest = max(one.seconds for one in lefts)
        known = max(math.fsum(one.seconds for one in lefts) / at_once, longest)
        unknown = sum(one.unknown > 0 for one in lefts)
        guessed = sum(one.guessed for one in lefts)
        if unknown == len(lefts):
            return "time left not yet known"
        more = f", {guessed} taken for the mean of those done" if guessed else ""
        more += f", and {counted(unknown, 'scenario')} not yet known" if unknown else ""
        return f"about {span(known)} left{more}"

    def _left_of(self, campaign: _Campaign | None, expected: float | None, clock: float) -> Left:
        """The time left for one scenario: by its steps, by its baseline, or as others took."""
        began = None if campaign is None else campaign.began
        spent = 0.0 if began is None else _since(began, clock)
        if campaign is not None and began is not None:
            by_steps = self._by_steps(campaign, clock)
            if not by_steps.unknown and (campaign.now or campaign.plan):
                return by_steps
        if expected is not None:
            return Left(max(0.0, expected - spent))
        if self._took:
            return Left(max(0.0, fmean(self._took) - spent), guessed=1)
        return Left(unknown=1)

    def _by_steps(self, campaign: _Campaign, clock: float) -> Left:
        """The time left by the mean time of finished steps of the same kinds."""
        means = {name: fmean(took) for name, took in self._seconds.items()}
        known = [means[step] for step in campaign.plan if step in means]
        steps = len(campaign.plan)
        if campaign.now is not None:
            steps += 1
            kind = campaign.now["kind"]
            if kind in means:
                known.append(max(0.0, means[kind] - _since(campaign.now["clock"], clock)))
        return Left(sum(known), steps - len(known))

    def _left(self, campaign: _Campaign, clock: float) -> str:
        left = self._by_steps(campaign, clock)
        if left.unknown == len(campaign.plan) + 1:
            return "time left not yet known"
        more = f" and {counted(left.unknown, 'step')} not yet timed" if left.unknown else ""
        return f"about {span(left.seconds)} left{more}"

    def _step(self, campaign: _Campaign) -> str:
        total = campaign.done + 1 + len(campaign.plan)
        detail = (campaign.now or {}).get("detail")
        return f"step {campaign.done + 1} of {total}: {detail}"

    def _shown(self, text: str) -> str:
        """Text of programs among it: on one line, nothing hidden."""
        return visible(" ".join(text.split()))


_STATES = ("running", "waiting", "between starts", "to come")


def _state(campaign: _Campaign | None) -> str:
    """Of a scenario that is not done."""
    if campaign is not None and campaign.now is not None:
        return "running"
    if campaign is not None and campaign.note:
        return "waiting"
    return "to come" if campaign is None or campaign.began is None else "between starts"


def heartbeat(lines: Sequence[str], most: int = 2) -> str:
    """What is at work, in one line."""
    more = f" (and {len(lines) - most} more)" if len(lines) > most else ""
    return f"{' | '.join(lines[:most])}{more}"


def _since(began: float, clock: float) -> float:
    return max(0.0, clock - float(began))


def span(seconds: float) -> str:
    """``12 s``, ``3 min 5 s``, ``2 h 10 min``."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if minutes else f"{rest} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min"
