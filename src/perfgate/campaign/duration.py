"""Duration: how long a group will take, before it begins: as `perfgate plan` says, else as like
ones took in this run, else no less than its limit for a start.
"""

from collections.abc import Mapping, Sequence

from perfgate.campaign.budget import Estimate
from perfgate.campaign.session import Session
from perfgate.core.errors import PerfgateError
from perfgate.judging.forecast.scenarios import Cost, forecast_scenario
from perfgate.plan.toolchain import Toolchain
from perfgate.runs.record import GroupRecord
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import Scenario


def estimate(
    tools: Toolchain,
    probes: Sequence[Probe],
    session: Session,
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
    cost, timed = _cost(tools, probes, session), any(not one.is_smoke for one in probes)
    if cost and timed and not cost.hours_at_most and not session.synthetic:
        return Estimate(3600 * cost.hours)
    starts = cost.starts if cost else 1.0
    offline = sum(tools.is_offline(probe) for probe in probes)
    starts *= offline + (offline < len(probes))
    like = [
        group
        for group in groups
        if group.starts.made and _alike(scenarios.get(group.scenario), tools.scenario)
    ]
    if like:
        spent = sum(group.seconds.spent for group in like)
        return Estimate(starts * spent / sum(group.starts.made for group in like))
    return Estimate(tools.scenario.limits.start_s, known=False)


def _cost(tools: Toolchain, probes: Sequence[Probe], session: Session) -> Cost | None:
    """What `perfgate plan` expects these probes to take; None: it cannot, which the campaign says.

    A first answer leaves no run in a baseline; it takes seconds, and is left out.
    """
    timed = [one for one in probes if not one.is_smoke]
    try:
        found = forecast_scenario(tools.scenario, timed, tools.build, session.machine, session.repo)
    except PerfgateError:
        return None
    return found.cost["unchanged"]


def _alike(one: Scenario | None, other: Scenario) -> bool:
    """Whether starts of both take about as long: the same engine, model and hardware."""
    return one is not None and (one.engine.name, one.model, one.hardware) == (
        other.engine.name,
        other.model,
        other.hardware,
    )
