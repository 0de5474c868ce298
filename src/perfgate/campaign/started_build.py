"""Started build: what one fresh start of a campaign is of, and what its records say of that."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from perfgate.campaign.injection import Injection, inject
from perfgate.campaign.other_build import OtherBuild
from perfgate.campaign.schedule import StartRole
from perfgate.campaign.session import Session
from perfgate.core.measurement import Measurement
from perfgate.core.plain import to_plain
from perfgate.engines.build_source import BuildSource
from perfgate.plan.toolchain import Toolchain
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import Scenario
from perfgate.verdicts.references import measures_itself


@dataclass(frozen=True)
class StartedBuild:
    """A build of a scenario, as it is started.

    Attributes:
        role: which build it is.
        scenario: the scenario, injections included.
        tools: the programs.
        session: the session, with the launcher that starts this build.
        injections: settings changed in it on purpose.
        source: how it is started, where it is another build than the one under test.
    """

    role: StartRole
    scenario: Scenario
    tools: Toolchain
    session: Session
    injections: tuple[Injection, ...] = ()
    source: BuildSource | None = None

    def facts(self, probe: Probe, fingerprint: Mapping[str, str]) -> dict[str, Any]:
        """What the record of a measurement says of the probe and of the build.

        Args:
            probe: what is measured.
            fingerprint: the facts that a baseline's must equal.
        """
        return {
            "scenario": self.scenario.id,
            "hardware": self.scenario.hardware.label,
            "probe": probe.label,
            "machine_bound": measures_itself(probe),
            "role": self.role,
            "engine": asdict(self.tools.build),
            "fingerprint": dict(fingerprint),
            "injected": [str(one) for one in self.injections],
            **({} if self.source is None else {"source": to_plain(self.source)}),
        }


def started_build(
    role: StartRole, tools: Toolchain, session: Session, other: OtherBuild | None = None
) -> StartedBuild:
    """The build that a start of a role is of.

    Args:
        role: of the start.
        tools: the scenario's programs, with the build under test.
        session: the campaign's.
        other: the build of a control.
    """
    scenario = tools.scenario
    if other is not None:
        return StartedBuild(
            role,
            inject(scenario, other.injections),
            other.tools,
            replace(session, launcher=other.launcher),
            other.injections,
            other.source,
        )
    injections = session.injections if role == "new" else ()
    return StartedBuild(role, inject(scenario, injections), tools, session, injections)


def measurement_facts(measured: Measurement, started: str, seconds: float) -> dict[str, object]:
    """What the record of a measurement says of its numbers.

    Args:
        measured: the measurement.
        started: when it began, ISO 8601.
        seconds: how long it took, its share of the start included.
    """
    return {
        "started": started,
        "seconds": seconds,
        "metrics": dict(measured.metrics),
        "facts": dict(measured.facts),
        "answers": {name: dict(given) for name, given in measured.answers.items()},
        "disturbed": list(measured.disturbed),
    }
