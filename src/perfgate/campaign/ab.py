"""A/B campaign: two builds of one scenario side by side in one session, without a baseline.

Starts come in pairs, A B B A A B B A …, and only probes that are not decided yet are loaded again
(`perfgate.judging.rules.paired`). Nothing that is measured here becomes a baseline.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfgate.campaign.campaign import Campaign
from perfgate.campaign.campaign_state import CampaignState
from perfgate.campaign.other_build import OtherBuild, other_build, same_build
from perfgate.campaign.probe_state import StartAttempt, smoke_input
from perfgate.campaign.schedule import AB_ORDER, StartRole
from perfgate.campaign.session import Session
from perfgate.campaign.started_build import StartedBuild, started_build
from perfgate.core.errors import PerfgateError, RunError, as_run_error
from perfgate.core.measurement import Measurement
from perfgate.core.redaction import mask_arguments
from perfgate.judging.assembly.ab import ab_input
from perfgate.judging.assembly.judge_input import Provenance, Side, judge
from perfgate.judging.assembly.measured import measured_build
from perfgate.judging.assembly.outcome import Outcome
from perfgate.judging.rules.paired import AB_RULE, OWN_NOISE_RULE
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import Scenario

# Starts of a pair made again because something disturbed them, at most.
_MOST_REPEATS = 2


@dataclass(frozen=True)
class AbBuilds:
    """Both builds of an A/B, found.

    Attributes:
        a: the build that is compared with.
        b: the build under test.
    """

    a: OtherBuild
    b: OtherBuild

    @property
    def same(self) -> str:
        """In what they are the same, so that their comparison shows the machine alone."""
        return same_build(self.a, self.b)

    def in_words(self, measurements: Mapping[str, Sequence[Measurement]]) -> str:
        """Both with what they tell of themselves; `measurements` of each tell of its image."""
        told = []
        for side, one in (("A", self.a), ("B", self.b)):
            (named,) = mask_arguments([one.source.in_words])
            build = measured_build(one.tools.build, measurements.get(side, ()))
            told.append(f"{side} = {named} ({build.in_words})")
        return "; ".join(told)


def ab_builds(scenario: Scenario, session: Session) -> AbBuilds:
    """The builds that the session compares; errors as of `other_build`.

    Raises:
        ValueError: the session compares none.
    """
    if session.ab is None:
        raise ValueError("the session compares no two builds")
    return AbBuilds(
        other_build(scenario, session, session.ab.a), other_build(scenario, session, session.ab.b)
    )


class AbState(CampaignState):
    """What is known of each probe: A's measurements as those of a control, B's as the new ones."""

    def waiting_for(self, role: StartRole) -> list[Probe]:  # noqa: ARG002 (both serve the same)
        """The probes that are not decided yet."""
        return [probe for probe, state in self.states.items() if state.open]

    def take(
        self,
        probe: Probe,
        measured: Measurement,
        attempt: StartAttempt,
        started: str,  # noqa: ARG002
        seconds: float,  # noqa: ARG002
    ) -> None:
        """Keep what a start gave; a disturbed measurement is only told."""
        state = self.states[probe]
        state.folder = attempt.folder / probe.label
        if measured.disturbed:
            why = ", ".join(measured.disturbed)
            state.disturbed.append(f"fresh start {attempt.number}: {why}")
        elif attempt.role == "a":
            state.controls.setdefault("ab", {})[attempt.number] = measured
        else:
            state.measured[attempt.number] = measured

    def sides(self, probe: Probe) -> dict[str, list[Measurement]]:
        """What each build gave."""
        state = self.states[probe]
        return {"A": list(state.controls.get("ab", {}).values()), "B": state.measurements}

    def provenance(self, probe: Probe) -> Provenance:
        """Where the values of both sides come from."""
        state = self.states[probe]
        starts = {"a": state.controls.get("ab", {}), "b": state.measured}
        sides = tuple(
            Side(probe.scenario.id, probe.label, role, tuple(numbers))
            for role, numbers in starts.items()
        )
        return Provenance(sides=sides, noise=self._references.noise_of(probe))

    def _judge_one(self, probe: Probe) -> None:
        state, sides = self.states[probe], self.sides(probe)
        if state.error is not None or not all(sides.values()):
            return
        if probe.is_smoke:
            state.judge_input = smoke_input(probe, sides)
            state.judged = judge(state.judge_input)
            return
        try:
            noise = self._references.noise_of(probe)
            state.judge_input = ab_input(probe, sides["A"], sides["B"], noise)
            state.judged = judge(state.judge_input)
        except PerfgateError as error:
            self.fail([probe], error, self._folder)


class AbCampaign(Campaign):
    """The measurements of both builds of one scenario."""

    def __init__(
        self, scenario: Scenario, probes: Sequence[Probe], builds: AbBuilds, session: Session
    ) -> None:
        super().__init__(scenario, probes, builds.b.tools, session)
        self._builds = builds
        self._found: AbState = AbState(scenario, probes, self._references, session, self.controls)

    def outcome(self, probe: Probe) -> Outcome:
        """What became of `probe`: of B against A; the first call makes all measurements."""
        found = super().outcome(probe)
        sides = self._found.sides(probe)
        notes = found.notes
        if self._builds.same and found.error is None:
            notes = (*notes, f"A and B are one build ({self._builds.same}): an A/A run")
        return replace(
            found,
            compared_with=self._builds.in_words(sides),
            injected=tuple(str(one) for one in self._builds.b.injections),
            notes=notes,
        )

    def _run(self) -> None:
        own_noise = self.scenario.gate.noise == "measured"
        first = (OWN_NOISE_RULE if own_noise else AB_RULE).looks[0]
        self.account.planned = sum(self._engine_starts(role) for role in AB_ORDER[: 2 * first])
        repeats = _MOST_REPEATS
        for pair in range(AB_RULE.most):
            if pair and not (self._found.waiting_for("b") and self._may_go_on()):
                return
            roles = AB_ORDER[2 * pair : 2 * pair + 2]
            for place, role in enumerate(roles):
                probes = self._found.waiting_for(role)
                self._tell_plan(roles[place:])
                missing = self._measure_side(role, probes)
                while missing and repeats:
                    repeats -= 1
                    missing = self._measure_side(role, missing)
            self._found.judge()

    def _measure_side(self, role: StartRole, probes: Sequence[Probe]) -> list[Probe]:
        """One start of a build; gives the probes that it left without a number."""
        before = {probe: self._counted(role, probe) for probe in probes}
        self._make_start(role, probes)
        return [
            probe
            for probe in probes
            if self._counted(role, probe) == before[probe] and self._found.states[probe].open
        ]

    def _counted(self, role: StartRole, probe: Probe) -> int:
        return len(self._found.sides(probe)["A" if role == "a" else "B"])

    def _may_go_on(self) -> bool:
        """Whether the scenario's and the session's time allow another pair."""
        return not (self._allowance.out_of_time or self._allowance.beyond_budget())

    def _build(self, role: StartRole) -> StartedBuild:
        other = self._builds.a if role == "a" else self._builds.b
        return started_build(role, self.tools, self.session, other)

    def _met(
        self, attempt: StartAttempt, probes: Sequence[Probe], error: PerfgateError, folder: Path
    ) -> bool:
        met = as_run_error(error)
        named = RunError(
            met.failure,
            f"build {attempt.role.upper()}: {met.message}",
            evidence=met.evidence,
            hint=met.hint,
        )
        return super()._met(attempt, probes, named, folder)
