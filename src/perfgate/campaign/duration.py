"""Duration: how long a group will take, before it begins: as `perfgate plan` says, else as like
ones took in this run, else no less than its limit for a start.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from perfgate.campaign.budget import Estimate
from perfgate.campaign.forecast import PlannedScenario, Planner
from perfgate.campaign.session import Session
from perfgate.core.errors import PerfgateError
from perfgate.plan.toolchain import BuildOverride, Toolchain
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import Scenario


def estimate(
    tools: Toolchain,
    probes: Sequence[Probe],
    session: Session,
    groups: Sequence[Mapping[str, Any]],
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
    planned = _planned(tools, session)
    if planned is not None and not session.synthetic:
        known = _from_baseline(planned, {probe.label for probe in probes})
        if known is not None:
            return known
    starts = planned.starts(planned.unchanged) if planned else 1.0
    offline = sum(tools.is_offline(probe) for probe in probes)
    starts *= offline + (offline < len(probes))
    like = [
        group
        for group in groups
        if group["starts"]["made"] and _alike(scenarios.get(group["scenario"]), tools.scenario)
    ]
    if like:
        spent = sum(group["seconds"]["spent"] for group in like)
        return Estimate(starts * spent / sum(group["starts"]["made"] for group in like))
    return Estimate(tools.scenario.limits.start_s, known=False)


def _planned(tools: Toolchain, session: Session) -> PlannedScenario | None:
    """The scenario as `perfgate plan` plans it; None: it cannot, which the campaign will tell."""
    build = tools.build
    planner = Planner(
        session.machine,
        BuildOverride(f"{build.name}={build.version}", f"{build.name}={build.commit}"),
        session.repo,
    )
    try:
        return planner.plan([tools.scenario], ()).scenarios[0]
    except PerfgateError:
        return None


def _from_baseline(planned: PlannedScenario, labels: Collection[str]) -> Estimate | None:
    """The time by the baseline's seconds; None where a probe's are not known.

    A first answer leaves no run in a baseline; it takes seconds, and is left out.
    """
    chosen = [one for one in planned.probes if one.probe.label in labels]
    timed = [one for one in chosen if not one.probe.is_smoke]
    found = replace(planned, probes=tuple(timed)).duration(planned.unchanged)
    return None if found.at_most or not timed else Estimate(found.value)


def _alike(one: Scenario | None, other: Scenario) -> bool:
    """Whether starts of both take about as long: the same engine, model and hardware."""
    return one is not None and (one.engine.name, one.model, one.hardware) == (
        other.engine.name,
        other.model,
        other.hardware,
    )
