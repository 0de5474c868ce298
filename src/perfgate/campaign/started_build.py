"""Started build: what one fresh start of a campaign is of, and what its records say of that."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from perfgate.campaign.injection import Injection, inject
from perfgate.campaign.other_build import OtherBuild
from perfgate.campaign.recorded_source import source_of
from perfgate.campaign.schedule import StartRole
from perfgate.campaign.session import Session
from perfgate.core.measurement import Measurement
from perfgate.core.plain import to_plain
from perfgate.judging.assembly.judgement import measures_itself
from perfgate.plan.toolchain import Toolchain
from perfgate.runs.record import MeasurementRecord
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import Scenario


@dataclass(frozen=True)
class StartedBuild:
    """A build of a scenario, as it is started.

    Attributes:
        role: which build it is.
        scenario: the scenario, injections included.
        tools: the programs.
        session: the session, with the launcher that starts this build.
        injections: settings changed in it on purpose.
    """

    role: StartRole
    scenario: Scenario
    tools: Toolchain
    session: Session
    injections: tuple[Injection, ...] = ()

    def record(
        self,
        probe: Probe,
        fingerprint: Mapping[str, str],
        measured: Measurement,
        *,
        started: str,
        seconds: float,
        synthetic: bool,
        **start: Any,
    ) -> MeasurementRecord:
        """The record of a measurement of this build.

        Args:
            probe: what was measured.
            fingerprint: the facts that a baseline's must equal.
            measured: the measurement, with what the launcher says of the image.
            started: when it began, ISO 8601.
            seconds: how long it took, its share of the start included.
            synthetic: whether mock programs played the engine's.
            start: number, folder and lease of the start, as the record's fields.
        """
        source = source_of(self.tools, measured.facts, self.injections, synthetic=synthetic)
        return MeasurementRecord(
            scenario=self.scenario.id,
            hardware=self.scenario.hardware.label,
            probe=probe.label,
            machine_bound=measures_itself(probe),
            role=self.role,
            engine=self.tools.build,
            fingerprint=dict(fingerprint),
            injected=tuple(str(one) for one in self.injections),
            source=to_plain(source),
            synthetic=synthetic,
            started=started,
            seconds=seconds,
            metrics=measured.metrics,
            facts=measured.facts,
            answers=measured.answers,
            disturbed=measured.disturbed,
            **start,
        )


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
        )
    injections = session.injections if role in ("new", "claim") else ()
    return StartedBuild(role, inject(scenario, injections), tools, session, injections)
