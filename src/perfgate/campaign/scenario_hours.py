"""Scenario hours: how long a scenario is taken to last, the same on every machine.

From what the stored baselines of the gate repository say that their measurements took, else from
the scenario's limits. Nothing that a machine keeps of itself counts: shards would differ.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from perfgate.baselines import suite_store
from perfgate.baselines.baseline import Baseline
from perfgate.baselines.choice import in_order
from perfgate.core.rule import Rule
from perfgate.scenarios.probe import Probe, all_probes
from perfgate.scenarios.scenario import Scenario

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


def seconds_of(scenario: Scenario, baselines: Sequence[Baseline]) -> ScenarioSeconds:
    """How long all of a scenario lasts, whatever is selected of it.

    Args:
        scenario: with the limits of its file.
        baselines: all that are stored of it.
    """
    limits = scenario.limits
    usual = [one for one in baselines if one.retired is None]
    newest_first = [*reversed(in_order(usual))] if usual else []
    measured = [one for one in all_probes(scenario) if not one.is_smoke]
    told = [_told(probe, newest_first) for probe in measured]
    known = [one for one in told if one is not None]
    hanging = limits.start_s + limits.total_s * max(1, len(all_probes(scenario)))
    one_start = math.fsum(known) + limits.total_s * (len(told) - len(known))
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
        bool(told) and len(known) == len(told),
        max(one_start, 1.0) * most + hanging,
    )


def stored_seconds(scenarios: Iterable[Scenario]) -> dict[str, ScenarioSeconds]:
    """Scenario → how long it lasts, by the baselines of the gate repository.

    Raises:
        InputError: a stored baseline is unusable.
    """
    store = suite_store()
    return {
        one.id: seconds_of(one, store.of_scenario(one.hardware.label, one.id)) for one in scenarios
    }


def _told(probe: Probe, newest_first: Sequence[Baseline]) -> float | None:
    """What the newest baseline that has a probe says of the seconds of its measurements."""
    for baseline in newest_first:
        entry = baseline.entries.get(probe.label)
        found = [] if entry is None else [one.seconds for one in entry.runs if one.seconds]
        if found:
            return fmean(found)
    return None
