"""Campaign state: what a campaign has measured, probe by probe, and what that amounts to so far."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfgate.baselines import SELF, Baseline, BaselineRun, as_run, own_store
from perfgate.baselines.snapshots import keep_baseline, keep_waivers
from perfgate.campaign.builds.controls import ControlBuilds
from perfgate.campaign.schedule import CONTROL_ROLES, StartRole, controlled_by
from perfgate.campaign.session import Session
from perfgate.clients import client_facts
from perfgate.clients.blocks import FACT
from perfgate.core.errors import PerfgateError, RunError, as_run_error
from perfgate.core.measurement import Measurement
from perfgate.core.verdict import FEWEST_REFERENCES, Against, Rule, Verdict
from perfgate.judging.assembly.judge_input import (
    JudgeInput,
    Outcome,
    ProbeJudgement,
    Provenance,
    Side,
    broken_answers,
    judge,
    not_worth_measuring,
)
from perfgate.judging.assembly.judgement import (
    ControlStarts,
    ProbeEvidence,
    Reference,
    ab_input,
    is_interleaved,
    probe_input,
    smoke_input,
)
from perfgate.judging.assembly.measured import measured_metrics
from perfgate.judging.assembly.references import References
from perfgate.judging.assembly.sweeps import SweepProbe, curve_input, curve_outcome
from perfgate.runs.record import MeasurementRecord
from perfgate.runs.run_folder import now
from perfgate.scenarios.probe import Probe, order
from perfgate.scenarios.scenario import Scenario


@dataclass
class ProbeState:
    """How far one probe is.

    Attributes:
        tested: the role whose measurements are judged.
        starts: role → number of the fresh start → what it gave, nothing disturbed.
        own_reference: what the reference's starts gave, as a baseline has it.
        unused_controls: which control starts are not used, and why, each in words.
        disturbed: what disturbed a start so that its numbers are not used, each in words.
        judge_input: all that its verdict rests on, but for answers found to be broken since; None:
            it rests on no numbers.
        is_dropped: it is not measured, as other answers of the build were found to be broken.
    """

    tested: StartRole = "new"
    starts: dict[StartRole, dict[int, Measurement]] = field(default_factory=dict)
    own_reference: list[BaselineRun] = field(default_factory=list)
    unused_controls: list[str] = field(default_factory=list)
    disturbed: list[str] = field(default_factory=list)
    judge_input: JudgeInput | None = None
    judged: ProbeJudgement | None = None
    comparison: Reference = field(default_factory=Reference)
    error: RunError | None = None
    folder: Path | None = None
    is_dropped: bool = False

    @property
    def measured(self) -> Mapping[int, Measurement]:
        """What is judged, by the number of its start."""
        return self.starts.get(self.tested, {})

    @property
    def measurements(self) -> list[Measurement]:
        return list(self.measured.values())

    @property
    def in_blocks(self) -> bool:
        """Whether load took turns on its build and another in short blocks."""
        return any(FACT in measurement.facts for measurement in self.measurements)

    @property
    def controls(self) -> Mapping[Against, Mapping[int, Measurement]]:
        """Which other build → number of the start → what that build gave in this session."""
        found = {against: self.starts.get(role) for against, role in CONTROL_ROLES.items()}
        return {against: given for against, given in found.items() if given}

    @property
    def open(self) -> bool:
        """Whether another start of the build under test would serve it."""
        if self.error is not None:
            return False
        return self.judged is None or self.judged.needs_more_runs

    @property
    def controls_wanted(self) -> frozenset[Against]:
        """The builds of which a control comes before the next start of the build under test."""
        return self.judged.controls_wanted if self.open and self.judged else frozenset()

    @property
    def suspected(self) -> frozenset[Against]:
        """What a loss against it is not excluded yet, while another start may decide it."""
        return self.judged.suspected if self.open and self.judged else frozenset()


_FOR_A_CLAIM = ProbeJudgement(Verdict.INCONCLUSIVE, reason="measured for a claim")


@dataclass
class CampaignState:
    """What is known of each probe of one scenario.

    Attributes:
        scenario: the scenario.
        probes: what is measured of it.
        references: what the probes are compared with.
        session: what the campaigns share.
        controls: the other builds that can be started.
        tested: the role of the starts whose measurements are judged.
        due: the probes whose reference this session measures itself.
        states: probe → how far it is, in the order in which probes are measured.
    """

    scenario: Scenario
    probes: Sequence[Probe]
    references: References
    session: Session
    controls: ControlBuilds
    tested: StartRole = "new"
    due: frozenset[Probe] = frozenset()
    _reference_saved: bool = False

    def __post_init__(self) -> None:
        self.states = {probe: ProbeState(self.tested) for probe in sorted(self.probes, key=order)}
        self._folder = self.session.run.path / self.scenario.id

    @property
    def suspected(self) -> frozenset[Against]:
        """What a loss against it is not excluded yet, for any probe."""
        return frozenset().union(*(state.suspected for state in self.states.values()))

    @property
    def rule(self) -> Rule:
        """The session's rule, with the most fresh starts that the scenario allows."""
        most = self.scenario.gate.max_starts
        if not self.is_interleaved:
            most = min(most, self.session.rule.max_runs)
        return replace(self.session.rule, max_runs=most)

    @property
    def is_interleaved(self) -> bool:
        """Whether this session's references take turns with the build under test."""
        return is_interleaved(self.scenario) and bool(self.due)

    def serves(self, role: StartRole) -> tuple[Probe, ...]:
        """The probes that a start of this role would serve."""
        return tuple(one for one, state in self.states.items() if self._is_served(role, one, state))

    def _is_served(self, role: StartRole, probe: Probe, state: ProbeState) -> bool:
        if role == "reference":
            return probe in self.due and state.error is None and not state.is_dropped
        if role == "claim":
            return state.error is None
        against = controlled_by(role)
        if against is not None:
            return against in state.controls_wanted
        return state.open and not state.controls_wanted

    def lacks(self, probe: Probe, role: StartRole, number: int) -> bool:
        """Whether a start was to measure a probe, gave nothing of it, and may be made again."""
        state = self.states[probe]
        return state.error is None and number not in state.starts.get(role, {})

    def fail(self, probes: Sequence[Probe], error: PerfgateError, folder: Path) -> None:
        """Give `probes` the error, unless they already have one."""
        for probe in probes:
            state = self.states[probe]
            state.error = state.error or as_run_error(error)
            state.folder = folder

    def take(self, probe: Probe, role: StartRole, record: MeasurementRecord) -> None:
        """Keep what a start gave, by its record; a disturbed measurement is only told."""
        state, number = self.states[probe], record.start
        if role in (self.tested, "a"):
            state.folder = Path(record.folder)
        if record.disturbed:
            state.disturbed.append(f"fresh start {number}: {', '.join(record.disturbed)}")
            return
        state.starts.setdefault(role, {})[number] = record.measurement
        if role == "reference":
            run = self.session.run.id
            state.own_reference.append(
                as_run(record.measurement, run, record.started, record.seconds, number)
            )

    def judge(self) -> None:
        """Judge what has been measured; a reference of this session is kept first."""
        own = {
            probe: state.own_reference
            for probe, state in self.states.items()
            # Of one that a build was up beside, a later session has no use.
            if state.own_reference
            and state.error is None
            and not (state.is_dropped or state.in_blocks)
        }
        if own and not self._reference_saved:
            self._save(own)
            self._reference_saved = True
        for probe in self.states:
            self._judge_one(probe)

    def _save(self, own: Mapping[Probe, Sequence[BaselineRun]]) -> None:
        """Keep what this machine measured of itself in its own store."""
        known, entries = self.references, {}
        for probe, runs in own.items():
            stored = known.stored(probe)
            entries[probe.label] = stored.with_session(known.fingerprint(probe), runs)
        reference = Baseline(
            scenario=self.scenario.id,
            hardware=self.scenario.hardware.label,
            engine=known.tools.build,
            accepted_by=SELF,
            accepted_at=now(),
            reason="reference that this machine measured of itself",
            entries=entries,
        )
        own_store().save(reference)

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
            notes = (*notes, why_not_used(state))
        if state.judged is not None and state.unused_controls:
            notes = (*notes, f"control not used: {'; '.join(state.unused_controls)}")
        notes = (*notes, *client_facts.notes(state.measurements))
        judged = replace(judged, notes=(*judged.notes, *notes))
        provenance = None
        if state.error:
            judged, judge_input = ProbeJudgement(Verdict.ERROR), None
        else:
            provenance = self.provenance(probe)
        return Outcome(
            probe,
            **judged.of_outcome(),
            measurements=state.measurements,
            compared_with=state.comparison.description,
            error=state.error,
            folder=state.folder or self._folder,
            injected=tuple(str(injection) for injection in self.session.injections),
            synthetic=self.references.synthetic,
            measured=measured_metrics(
                state.measurements, judged.judgements, probe.gating_metrics()
            ),
            controls=self.controls.behind(judged.judgements, state.controls),
            judge_input=judge_input,
            provenance=provenance,
        )

    def sides(self, probe: Probe) -> dict[str, list[Measurement]]:
        """What each build of an A/B gave."""
        starts = self.states[probe].starts
        return {"A": [*starts.get("a", {}).values()], "B": [*starts.get("b", {}).values()]}

    def provenance(self, probe: Probe) -> Provenance:
        """Where the values come from that the verdict of a probe rests on.

        Its baselines and waivers are kept in the run folder.

        Raises:
            InputError: a baseline cannot be read any more.
            RunError: a copy cannot be written (class ``disk_full`` or ``unwritable``).
        """
        state = self.states[probe]
        if self.tested == "b":
            sides = tuple(
                Side(probe.scenario.id, probe.label, role, tuple(state.starts.get(role, ())))
                for role in ("a", "b")
            )
            return Provenance(sides=sides, noise=self.references.noise_of(probe))
        found, controls, run = state.comparison, self._control_starts(probe), self.session.run.path
        return Provenance(
            role=self.tested,
            starts=tuple(state.measured),
            own_starts=tuple(one.start for one in state.own_reference if one.start is not None),
            window=tuple(keep_baseline(run, file) for file in found.window),
            anchor=keep_baseline(run, found.anchor_file),
            waivers=self._kept_waivers(),
            controls=None if controls is None else controls.sources(),
            earlier=found.earlier,
            documented=found.documented,
            noise=found.noise,
        )

    def _kept_waivers(self) -> str:
        """The run's copy of the file of waivers; empty: none is for this scenario."""
        own = [waiver for waiver in self.session.waivers if waiver.scenario == self.scenario.id]
        return keep_waivers(self.session.run.path, own[0].file) if own else ""

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
            controls=self.controls.behind(judged.judgements, self.states[sweep.probes[0]].controls),
            judge_input=self._curve_input(sweep),
            provenance=Provenance(
                waivers=self._kept_waivers(),
                controls=self.controls.starts({}).sources(),
                points={probe.label: self.provenance(probe) for probe in sweep.probes},
            ),
        )

    def _points(self, sweep: SweepProbe) -> list[ProbeEvidence]:
        starts = self.controls.starts
        return [
            self._evidence(probe, starts(self.states[probe].controls)) for probe in sweep.probes
        ]

    def _evidence(self, probe: Probe, controls: ControlStarts) -> ProbeEvidence:
        state, facts = self.states[probe], self.references.fingerprint(probe)
        return ProbeEvidence(probe, state.comparison, facts, state.measured, controls)

    def _broken_answers(self) -> str:
        return broken_answers(
            {probe.label: one.judged for probe, one in self.states.items() if one.judged}
        )

    def _judge_one(self, probe: Probe) -> None:
        """Judge what has been measured of one probe, if anything was."""
        state = self.states[probe]
        if state.error is not None or not state.measured:
            return
        if self.tested == "claim":
            state.judged = _FOR_A_CLAIM  # which judges both sides
            return
        if self.tested == "b" and not state.starts.get("a"):
            return
        try:
            state.judge_input = self._input(probe, state)
            given = state.judge_input
            state.judged = _undecided(state) if given is None else judge(given)
        except PerfgateError as error:
            self.fail([probe], error, self._folder)

    def _input(self, probe: Probe, state: ProbeState) -> JudgeInput | None:
        """All that the verdict of a probe rests on; None: too much was disturbed."""
        if self.tested == "b":
            sides = self.sides(probe)
            return ab_input(probe, sides["A"], sides["B"], self.references.noise_of(probe))
        if probe.is_smoke:
            return smoke_input(probe, state.measurements)
        state.comparison = self.references.comparison(probe, state.own_reference)
        too_few = len(state.own_reference) < FEWEST_REFERENCES and not state.in_blocks
        if probe in self.due and state.disturbed and too_few:
            return None
        controls = self._control_starts(probe) or ControlStarts()
        return self._with_waivers(probe_input(self._evidence(probe, controls), self.rule))

    def _control_starts(self, probe: Probe) -> ControlStarts | None:
        """The controls of a probe; None where references of this session stand beside it."""
        if probe in self.due:
            return None
        return self.controls.starts(self.states[probe].controls)

    def _with_waivers(self, given: JudgeInput) -> JudgeInput:
        return given.waived_by(self.session.waivers, self.session.today)


def _undecided(state: ProbeState) -> ProbeJudgement:
    """What disturbances leave of a probe whose numbers they made useless."""
    return ProbeJudgement(Verdict.INCONCLUSIVE, reason=why_not_used(state))


def why_not_used(state: ProbeState) -> str:
    """Why starts were not used."""
    return f"disturbed, so not used: {'; '.join(state.disturbed)}"
