"""Budget: how much time a session may take, and how long a scenario is taken to last.

What no longer fits into the budget is not begun; a start that runs is never cut. The deadline is a
value of the monotonic clock, which no change of the wall clock moves and which, on Linux, all
processes of one machine share: so the main process of a session can hand it to its workers. Workers
on other machines could not use it.

For the budget of this machine a scenario lasts as `perfgate plan` says, else as like ones took in
this run, else no less than its limit for a start. For shards, which must be the same on every
machine: by the stored baselines of the gate repository, else by the scenario's limits.
"""

import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from statistics import fmean
from typing import TYPE_CHECKING

from perfgate.baselines import suite_store
from perfgate.baselines.baseline import Baseline
from perfgate.baselines.choice import in_order
from perfgate.core.errors import InputError, PerfgateError
from perfgate.core.verdict import Rule
from perfgate.plan.toolchain import Toolchain
from perfgate.runs.record import GroupRecord
from perfgate.scenarios.probe import Probe, all_probes
from perfgate.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from perfgate.campaign.session import Session
    from perfgate.judging.forecast.forecast import Cost

# Starts of scenarios with the same of these take about as long.
_KIND = attrgetter("engine.name", "model", "hardware")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0}
_SPAN = re.compile(r"(?:\d+(?:\.\d+)?[hms])+|\d+(?:\.\d+)?")
_PART = re.compile(r"(\d+(?:\.\d+)?)([hms]?)")


def seconds_of(text: str) -> float:
    """Seconds of ``4h``, ``90m``, ``2h30m``, ``3600s`` or ``3600``.

    Raises:
        InputError: none of these, or not above 0.
    """
    found = _PART.findall(text) if _SPAN.fullmatch(text) else []
    units = [unit for _, unit in found]
    total = sum(float(number) * _UNITS[unit or "s"] for number, unit in found)
    if not total > 0 or units != sorted(set(units), key="hms".find):
        raise InputError(
            "not a duration",
            field="--budget",
            found=repr(text),
            expected="4h, 90m, 2h30m, 3600s or 3600 (seconds)",
        )
    return total


def span(seconds: float) -> str:
    """``1 h 10 min``, ``25 min``, ``12 s``."""
    if round(seconds) < 60:
        return f"{max(0, round(seconds))} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    if not hours:
        return f"{minutes} min"
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


@dataclass(frozen=True)
class Estimate:
    """How long a group is expected to take.

    Attributes:
        seconds: that time, or the least that it needs where nothing is known.
        known: whether it was measured before, for this scenario or one like it.
    """

    seconds: float
    known: bool = True

    def __add__(self, other: "Estimate") -> "Estimate":
        return Estimate(self.seconds + other.seconds, self.known and other.known)

    def __str__(self) -> str:
        if self.known:
            return f"needs about {span(self.seconds)}"
        return (
            f"how long it takes is not known, limits say at most {span(self.seconds)} "
            "for the engine to start"
        )


@dataclass(frozen=True)
class Budget:
    """A session's time.

    Attributes:
        text: as the person wrote it.
        deadline: when it is used up, on the monotonic clock.
    """

    text: str
    deadline: float

    @classmethod
    def from_now(cls, text: str) -> "Budget":
        """The budget of a session that begins now.

        Raises:
            InputError: not a duration.
        """
        return cls(text, time.monotonic() + seconds_of(text))

    def left_s(self) -> float:
        """Seconds left, never below 0."""
        return max(0.0, self.deadline - time.monotonic())

    def refuses(self, estimate: Estimate) -> str | None:
        """Why something that takes so long is not begun any more; None: it may begin."""
        left = self.left_s()
        if 0 < left >= estimate.seconds:
            return None
        return f"not run: {estimate}, {span(left)} of --budget {self.text} are left"

    def no_more(self, seconds: float | None) -> str | None:
        """Why no further start of a group is made; None: one may be.

        Args:
            seconds: what a start of the group took so far; None: there was none.
        """
        left = self.left_s()
        if 0 < left >= (seconds or 0.0):
            return None
        needs = "" if seconds is None else f", and one takes about {span(seconds)}"
        return (
            f"no more starts: --budget {self.text} is nearly used up ({span(left)} are left{needs})"
        )


def estimate(
    tools: Toolchain,
    probes: Sequence[Probe],
    session: "Session",
    groups: Sequence[GroupRecord],
    scenarios: Mapping[str, Scenario],
) -> Estimate:
    """How long the group of a scenario is expected to take.

    Args:
        tools: the scenario's programs, with the build under test.
        probes: what is selected of it.
        session: what the campaigns share.
        groups: the records of the run's finished groups.
        scenarios: id → scenario, of all that are selected.
    """
    # Its numpy and scipy take as long to load as all the rest.
    from perfgate.judging.forecast.forecast import forecast_scenario

    # A first answer leaves no run in a baseline; it takes seconds, and is left out.
    scenario, timed = tools.scenario, [probe for probe in probes if not probe.is_smoke]
    cost: Cost | None = None
    with suppress(PerfgateError):  # which the campaign says
        found = forecast_scenario(scenario, timed, tools.build, session.machine, session.repo)
        cost = found.cost["unchanged"]
    if cost and timed and not cost.hours_at_most and not session.synthetic:
        return Estimate(3600 * cost.hours)
    like = [
        group
        for group in groups
        if group.starts.made
        and (one := scenarios.get(group.scenario))
        and _KIND(one) == _KIND(scenario)
    ]
    if like:
        starts = (cost.starts if cost else 1.0) * engine_starts(tools, probes)
        spent = sum(group.seconds.spent for group in like)
        return Estimate(starts * spent / sum(group.starts.made for group in like))
    return Estimate(scenario.limits.start_s, known=False)


def engine_starts(tools: Toolchain, probes: Sequence[Probe]) -> int:
    """Starts of the engine in one of the schedule's: an offline program is one by itself."""
    offline = [tools.is_offline(probe) for probe in probes]
    return sum(offline) + (not all(offline))


# Fresh starts that a scenario of an unchanged build takes with all its probes: 1.5 to 2.2
# (simulated; statistics, section 3).
_USUAL_STARTS = 2.0
_STARTS_AGAINST_DOCUMENT = 3.0  # at most; without baseline and document it is one
_MOST_CONTROLS = 6.0  # three of the baseline's build, three of the anchor's


@dataclass(frozen=True)
class ScenarioSeconds:
    """How long a scenario lasts.

    Attributes:
        usual: seconds for an unchanged build, or by the limits.
        known: whether a baseline's runs say so; else `usual` is by the limits, a bound.
        longest: seconds of all starts that its tests can ask for, and of one that hangs until the
            harness's own limits end it.
    """

    usual: float
    known: bool
    longest: float


def scenario_seconds(scenario: Scenario, baselines: Sequence[Baseline]) -> ScenarioSeconds:
    """How long all of a scenario lasts, whatever is selected of it.

    Args:
        scenario: with the limits of its file.
        baselines: all that are stored of it.
    """
    limits = scenario.limits
    usual = [baseline for baseline in baselines if baseline.retired is None]
    newest_first = [*reversed(in_order(usual))] if usual else []
    measured = [one for one in all_probes(scenario) if not one.is_smoke]
    recorded = [_recorded(probe, newest_first) for probe in measured]
    known = [one for one in recorded if one is not None]
    hanging = limits.start_s + limits.total_s * max(1, len(all_probes(scenario)))
    one_start = math.fsum(known) + limits.total_s * (len(recorded) - len(known))
    if not known:
        one_start += limits.start_s  # else its share of the start is in each measurement
    gate = scenario.gate
    if gate.reference == "self":
        starts = most = float(gate.max_starts + gate.reference_starts)
    elif not known:
        starts, most = 1.0, _STARTS_AGAINST_DOCUMENT
    else:
        most_new = min(gate.max_starts, Rule().max_runs)
        starts, most = min(_USUAL_STARTS, most_new), most_new + _MOST_CONTROLS
    return ScenarioSeconds(
        max(one_start, 1.0) * starts,
        bool(recorded) and len(known) == len(recorded),
        max(one_start, 1.0) * most + hanging,
    )


def stored_seconds(scenarios: Iterable[Scenario]) -> dict[str, ScenarioSeconds]:
    """Scenario → how long it lasts, by the baselines of the gate repository.

    Raises:
        InputError: a stored baseline is unusable.
    """
    store = suite_store()
    return {
        scenario.id: scenario_seconds(
            scenario, store.of_scenario(scenario.hardware.label, scenario.id)
        )
        for scenario in scenarios
    }


def _recorded(probe: Probe, newest_first: Sequence[Baseline]) -> float | None:
    """What the newest baseline that has a probe says of the seconds of its measurements."""
    for baseline in newest_first:
        entry = baseline.entries.get(probe.label)
        found = [] if entry is None else [run.seconds for run in entry.runs if run.seconds]
        if found:
            return fmean(found)
    return None
