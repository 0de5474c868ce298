"""Campaign state: what a campaign has measured, probe by probe, and what that amounts to so far."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from perfgate.baselines import as_run
from perfgate.campaign.control_builds import ControlBuilds
from perfgate.campaign.kept_references import keep_references, keep_waivers
from perfgate.campaign.probe_state import (
    ProbeState,
    StartAttempt,
    not_reported,
    smoke_input,
    told_of_client,
    why_not_used,
)
from perfgate.campaign.schedule import StartRole, controlled_by
from perfgate.campaign.session import Session
from perfgate.core.errors import PerfgateError, RunError, as_run_error
from perfgate.core.measurement import Measurement
from perfgate.core.rule import FEWEST_REFERENCES, Rule
from perfgate.core.verdict import Against, Verdict
from perfgate.judging.assembly.judge_input import (
    JudgeInput,
    Provenance,
    broken_answers,
    judge,
    not_worth_measuring,
)
from perfgate.judging.assembly.judgement import (
    ControlStarts,
    ProbeEvidence,
    Reference,
    probe_input,
    takes_turns,
)
from perfgate.judging.assembly.measured import measured_metrics
from perfgate.judging.assembly.outcome import Outcome
from perfgate.judging.assembly.references import References
from perfgate.judging.assembly.sweeps import SweepProbe, curve_input, curve_outcome
from perfgate.judging.rules.probe import ProbeJudgement
from perfgate.scenarios.probe import Probe, order
from perfgate.scenarios.scenario import Scenario


class CampaignState:
    """What is known of each probe of one scenario.

    Attributes:
        role: of the starts whose measurements are judged.
        states: probe → how far it is, in the order in which probes are measured.
    """

    role: StartRole = "new"

    def __init__(
        self,
        scenario: Scenario,
        probes: Sequence[Probe],
        references: References,
        session: Session,
        controls: ControlBuilds,
    ) -> None:
        self.states = {probe: ProbeState() for probe in sorted(probes, key=order)}
        self._scenario = scenario
        self._references = references
        self._session = session
        self._controls = controls
        self._folder = session.run.path / scenario.id
        self._reference_saved = False

    @property
    def any_measured(self) -> bool:
        """Whether anything of the build under test was measured."""
        return any(state.measured for state in self.states.values())

    @property
    def controls_wanted(self) -> frozenset[Against]:
        """The builds of which a probe wants a control before its next start."""
        return frozenset().union(*(state.controls_wanted for state in self.states.values()))

    @property
    def suspected(self) -> frozenset[Against]:
        """What a loss against it is not excluded yet, for any probe."""
        return frozenset().union(*(state.suspected for state in self.states.values()))

    @property
    def rule(self) -> Rule:
        """The session's rule, with the most fresh starts that the scenario allows."""
        most = self._scenario.gate.max_starts
        if not self.takes_turns:
            most = min(most, self._session.rule.max_runs)
        return replace(self._session.rule, max_runs=most)

    @property
    def takes_turns(self) -> bool:
        """Whether this session's references take turns with the build under test."""
        return any(
            takes_turns(self._scenario) and self._references.are_due(probe) for probe in self.states
        )

    def waiting_for(self, role: StartRole) -> list[Probe]:
        """The probes that a start of this role would serve: of a control, those that want one."""
        against = controlled_by(role)
        if against is not None:
            return [
                probe for probe, state in self.states.items() if against in state.controls_wanted
            ]
        if role == "new":
            return [
                probe
                for probe, state in self.states.items()
                if state.open and not state.controls_wanted
            ]
        return [
            probe
            for probe, state in self.states.items()
            if state.error is None and not state.is_dropped and self._references.are_due(probe)
        ]

    def fail(self, probes: Sequence[Probe], error: PerfgateError, folder: Path) -> None:
        """Give `probes` the error, unless they already have one."""
        for probe in probes:
            state = self.states[probe]
            state.error = state.error or as_run_error(error)
            state.folder = folder

    def take(
        self,
        probe: Probe,
        measured: Measurement,
        attempt: StartAttempt,
        started: str,
        seconds: float,
    ) -> None:
        """Keep what a start gave; a disturbed measurement is only told.

        Args:
            probe: what was measured.
            measured: what it gave.
            attempt: the start.
            started: when the measurement began, ISO 8601.
            seconds: how long it took, its share of the start included.
        """
        state, number, against = self.states[probe], attempt.number, attempt.controls
        if attempt.role == "new":
            state.folder = attempt.folder / probe.label
        if measured.disturbed:
            state.disturbed.append(f"fresh start {number}: {', '.join(measured.disturbed)}")
        elif against is not None:
            state.controls.setdefault(against, {})[number] = measured
        elif attempt.role == "new":
            state.measured[number] = measured
        else:
            run = as_run(measured, self._session.run.id, started, seconds, number)
            state.own_reference.append(run)

    def judge(self) -> None:
        """Judge what has been measured; a reference of this session is kept first."""
        own = {
            probe: state.own_reference
            for probe, state in self.states.items()
            if state.own_reference and state.error is None and not state.is_dropped
        }
        if own and not self._reference_saved:
            self._references.save(own)
            self._reference_saved = True
        for probe in self.states:
            self._judge_one(probe)

    def stop_at_broken_answers(self, probe: Probe) -> None:
        """Drop the load of a build whose answers to `probe` were just found to be broken."""
        self._judge_one(probe)
        if fault := self._broken_answers():
            for one, state in self.states.items():
                if one.is_load and state.open and not state.measured:
                    state.judged = not_worth_measuring(fault)
                    state.is_dropped = True

    def outcome(self, probe: Probe, notes: Sequence[str] = ()) -> Outcome:
        """What became of `probe`.

        Args:
            probe: one of the scenario's.
            notes: what else kept the campaign from deciding, beside the numbers.
        """
        state = self.states[probe]
        if state.judged is None and state.error is None and not state.disturbed:
            state.error = RunError(
                "incomplete", "not measured: other probes' failures used up the starts"
            )
        judge_input, judged = state.judge_input, state.judged or _undecided(state)
        broken = self._broken_answers() if probe.is_load else ""
        if judge_input is not None and broken:
            judge_input = replace(judge_input, broken=broken)
            judged = judge(judge_input)
        if state.judged is not None and state.disturbed:
            notes = (*notes, why_not_used(state.disturbed))
        if state.judged is not None and state.unused_controls:
            notes = (*notes, f"control not used: {'; '.join(state.unused_controls)}")
        notes = (*notes, *not_reported(state.measurements), *told_of_client(state.measurements))
        judged = replace(judged, notes=(*judged.notes, *notes))
        if state.error:
            judged = ProbeJudgement(Verdict.ERROR)
        return Outcome(
            probe,
            judged.verdict,
            judged.judgements,
            state.measurements,
            compared_with=state.comparison.in_words if state.comparison else "",
            reason=judged.reason,
            error=state.error,
            folder=state.folder or self._folder,
            injected=tuple(str(injection) for injection in self._session.injections),
            synthetic=self._session.synthetic or probe.scenario.is_synthetic,
            notes=judged.notes,
            observed=judged.observed,
            changed=judged.changed,
            measured=measured_metrics(
                state.measurements, judged.judgements, probe.gating_metrics()
            ),
            controls=self._controls.behind(judged.judgements, state.controls),
            judge_input=None if state.error else judge_input,
            provenance=None if state.error else self.provenance(probe),
        )

    def provenance(self, probe: Probe) -> Provenance:
        """Where the values come from that the verdict of a probe rests on.

        Its baselines and waivers are kept in the run folder.

        Raises:
            InputError: a baseline cannot be read any more.
            RunError: a copy cannot be written (class ``disk_full`` or ``unwritable``).
        """
        state, found = self.states[probe], self.states[probe].comparison
        controls = self._control_starts(probe)
        sources = Provenance(
            role=self.role,
            starts=tuple(state.measured),
            own_starts=tuple(one.start for one in state.own_reference if one.start is not None),
            waivers=self._kept_waivers(),
            controls=None if controls is None else controls.sources(),
        )
        if found is None:
            return sources
        run = self._session.run.path
        return replace(
            sources,
            window=keep_references(run, found.window),
            anchor="".join(keep_references(run, filter(None, [found.anchor_file]))),
            earlier=found.earlier,
            documented=found.documented,
            noise=found.noise,
        )

    def _kept_waivers(self) -> str:
        """The run's copy of the file of waivers; empty: none is for this scenario."""
        own = [one for one in self._session.waivers if one.scenario == self._scenario.id]
        return keep_waivers(self._session.run.path, own[0].file) if own else ""

    def _curve_input(self, sweep: SweepProbe) -> JudgeInput | None:
        """All that the verdict of a whole sweep rests on so far; None: its load is not measured."""
        if any(self.states[probe].is_dropped for probe in sweep.probes):
            return None
        given = curve_input(sweep, self._points(sweep), self.rule)
        return replace(self._with_waivers(given), broken=self._broken_answers())

    def curve(self, sweep: SweepProbe) -> ProbeJudgement:
        """The whole sweep, judged on what has been measured so far."""
        given = self._curve_input(sweep)
        return not_worth_measuring(self._broken_answers()) if given is None else judge(given)

    def curve_outcome(self, sweep: SweepProbe, judged: ProbeJudgement, first: Outcome) -> Outcome:
        """What becomes of a whole sweep that was measured; `first`: the end of its first point."""
        return replace(
            curve_outcome(sweep, judged, self._points(sweep), first),
            controls=self._controls.behind(
                judged.judgements, self.states[sweep.probes[0]].controls
            ),
            judge_input=self._curve_input(sweep),
            provenance=Provenance(
                waivers=self._kept_waivers(),
                controls=self._controls.starts({}).sources(),
                points={probe.label: self.provenance(probe) for probe in sweep.probes},
            ),
        )

    def _points(self, sweep: SweepProbe) -> list[ProbeEvidence]:
        return [
            self._evidence(probe, self._controls.starts(self.states[probe].controls))
            for probe in sweep.probes
        ]

    def _evidence(self, probe: Probe, controls: ControlStarts) -> ProbeEvidence:
        state, facts = self.states[probe], self._references.fingerprint(probe)
        return ProbeEvidence(
            probe, state.comparison or Reference(), facts, state.measured, controls
        )

    def _broken_answers(self) -> str:
        return broken_answers(
            {probe.label: one.judged for probe, one in self.states.items() if one.judged}
        )

    def _judge_one(self, probe: Probe) -> None:
        """Judge what has been measured of one probe, if anything was."""
        state = self.states[probe]
        if state.error is not None or not state.measured:
            return
        if probe.is_smoke:
            state.judge_input = smoke_input(probe, {"": state.measurements})
            state.judged = judge(state.judge_input)
            return
        try:
            state.comparison = self._references.comparison(probe, state.own_reference)
            if self._reference_is_too_disturbed(probe, state):
                state.judge_input, state.judged = None, _undecided(state)
                return
            controls = self._control_starts(probe) or ControlStarts()
            given = probe_input(self._evidence(probe, controls), self.rule)
            state.judge_input = self._with_waivers(given)
            state.judged = judge(state.judge_input)
        except PerfgateError as error:
            self.fail([probe], error, self._folder)

    def _control_starts(self, probe: Probe) -> ControlStarts | None:
        """The controls of a probe; None where references of this session stand beside it."""
        if self._references.are_due(probe):
            return None
        return self._controls.starts(self.states[probe].controls)

    def _reference_is_too_disturbed(self, probe: Probe, state: ProbeState) -> bool:
        due = self._references.are_due(probe) and bool(state.disturbed)
        return due and len(state.own_reference) < FEWEST_REFERENCES

    def _with_waivers(self, given: JudgeInput) -> JudgeInput:
        return given.waived_by(self._session.waivers, self._session.today)


def _undecided(state: ProbeState) -> ProbeJudgement:
    """What disturbances leave of a probe whose numbers they made useless."""
    return ProbeJudgement(Verdict.INCONCLUSIVE, reason=why_not_used(state.disturbed))
