"""Campaign: all fresh starts of one scenario's engine in one session, judged as they come in.

One start serves every probe that needs it (the sweep and the accuracy tasks); another is made only
for probes that the gate could not decide, and before it a control where a loss is suspected.
`perfgate.campaign.schedule` says which start comes next, the starter makes it.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from perfgate.campaign.budget import engine_starts
from perfgate.campaign.builds.build import AbBuilds
from perfgate.campaign.builds.controls import ControlBuilds
from perfgate.campaign.campaign_state import CampaignState
from perfgate.campaign.schedule import (
    AB,
    AB_BLOCKS,
    BLOCKS,
    CONTROL_ROLES,
    LoopState,
    Schedule,
    StartRequest,
    StartRole,
    Starts,
    around_own_reference,
    controlled_by,
    next_start,
    taking_turns,
)
from perfgate.campaign.session import Session
from perfgate.campaign.starter import Starter
from perfgate.core.errors import PerfgateError
from perfgate.core.verdict import FIRST_LOOK, Against
from perfgate.judging.assembly.judge_input import Outcome
from perfgate.judging.assembly.measured import measured_build
from perfgate.judging.assembly.references import References
from perfgate.judging.assembly.sweeps import SweepProbe
from perfgate.judging.rules.paired import AB_RULE, OWN_NOISE_RULE
from perfgate.launchers.start_commands import command_facts
from perfgate.plan.toolchain import Toolchain
from perfgate.scenarios.probe import Probe


class Campaign:
    """The measurements of one scenario; made when the first outcome is asked for.

    Args:
        probes: what is measured of it.
        tools: its programs, with the build under test.
        session: what the campaigns share.
        ab: the two builds that are compared, B the one under test; None: with a baseline.
        schedule: the order of its starts; `CLAIMS` where claims ask for them, in turns with
            another's.

    Attributes:
        references: what its probes are compared with.
        starts: those so far, as the group's record counts them.
        has_run: whether its measurements were asked for.
    """

    def __init__(
        self,
        probes: Sequence[Probe],
        tools: Toolchain,
        session: Session,
        *,
        ab: AbBuilds | None = None,
        schedule: Schedule | None = None,
    ) -> None:
        self.scenario, self.tools, self.session = tools.scenario, tools, session
        self._ab = ab
        # Whether load may take turns on two builds that are both up, as programs of this machine.
        self._both_up = self.scenario.gate.blocks > 0 and session.launcher.name == "local"
        self.references = References(
            tools,
            session.machine,
            session.synthetic or self.scenario.is_synthetic,
            session.repo,
            command_facts(session.site),
        )
        self.controls = ControlBuilds(self.scenario, session, self.references, probes)
        self._schedule = schedule or (Schedule() if ab is None else AB)
        self._state = CampaignState(
            self.scenario, probes, self.references, session, self.controls, self._schedule.tested
        )
        self._starter = Starter(tools, session, self._state, self.references, ab)
        self.starts: Starts = self._starter.starts
        self._rounds = 0  # that were judged
        self.has_run = False

    @property
    def has_measured(self) -> bool:
        """Whether anything of the build under test was measured."""
        return any(state.measured for state in self._state.states.values())

    def outcome(self, probe: Probe) -> Outcome:
        """What became of `probe`; the first call makes all measurements of the campaign."""
        self._run_once()
        found = self._state.outcome(probe, self._why_no_more(probe))
        found = replace(found, build=measured_build(self.tools.build, found.measurements))
        return found if self._ab is None else self._ab.describe(found, self._state.sides(probe))

    def curve_outcome(self, sweep: SweepProbe) -> Outcome:
        """What becomes of a whole sweep, whose points are measured again where it is undecided."""
        while True:
            ends = [self.outcome(probe) for probe in sweep.probes]
            if failed := next((end for end in ends if end.error is not None), None):
                return failed.failing(sweep)
            judged = self._state.curve(sweep)
            if self.controls.look_up(judged.suspected):
                judged = self._state.curve(sweep)
            if judged.needs_more_runs and (reason := self.starts.beyond_budget()):
                judged = replace(judged, notes=(*judged.notes, reason))
            wanted = judged.controls_wanted
            if not (judged.needs_more_runs and self.measure_again(sweep.probes, wanted)):
                return self._state.curve_outcome(sweep, judged, ends[0])

    def measure_again(self, probes: Sequence[Probe], controls: Collection[Against] = ()) -> bool:
        """The next starts for `probes`, for a claim or a curve; False: none is left.

        Args:
            probes: what is measured on each of them.
            controls: the builds of which a control comes first; none: the build under test.
        """
        self._run_once()
        states = [self._state.states[probe] for probe in probes]
        wanted = (role for against, role in CONTROL_ROLES.items() if against in controls)
        roles = [role for role in wanted if self._allows(role)]
        most = self._state.rule.max_runs  # what other probes took of it does not count
        left = any(len(one.measured) + len(one.disturbed) < most for one in states)
        if not controls and left and self.starts.has_time:
            roles = ["new"]
        if any(state.error for state in states) or not roles:
            return False
        for role in roles:
            self._starter.start(StartRequest(role, tuple(probes)))
        self._judge()
        return not any(state.error for state in states)

    def measure_for_claims(self, probes: Sequence[Probe]) -> bool:
        """One fresh start in turns with another scenario's; whether it gave all its numbers."""
        self._run_once()
        states = [self._state.states[probe] for probe in probes]
        before = [len(state.measured) for state in states]
        self._starter.start(StartRequest("claim", tuple(probes)))
        self._judge()
        return all(len(one.measured) > was for one, was in zip(states, before, strict=True))

    def _run_once(self) -> None:
        if self.has_run:
            return
        self.has_run = True
        try:
            self._run()
        except PerfgateError as error:  # e.g. a stored reference that cannot be read
            folder = self.session.run.path / self.scenario.id
            self._state.fail(self._state.serves(self._schedule.tested), error, folder)

    def _run(self) -> None:
        """The loop: make the start that comes next, judge each round, until none comes next."""
        if self._schedule.opening:
            self._settle_references()
            self._plan()
        due = self._schedule.opening
        while (request := next_start(self._seen(due))) is not None:
            due = request.then
            if not self._starter.start(request):  # no room for both builds
                self._both_up = False
                self._plan()
                due = self._schedule.opening
            elif not due:
                self._judge()

    def _settle_references(self) -> None:
        """Which probes have a reference that this session must measure itself; of an A/B none."""
        policy = self.session.reference
        if policy == "auto" and self._both_up:
            # What stood beside another build was measured for that one alone: none takes it over.
            policy = "fresh"
        if self._ab is None:
            self._state.due = self.references.due(self._state.states, policy)

    def _plan(self) -> None:
        """Settle the order of the starts: those of the machine's own reference may be due."""
        gate, state, looks = self.scenario.gate, self._state, 1
        if self._ab is not None:
            self._schedule = AB_BLOCKS if self._both_up else AB
            looks = (OWN_NOISE_RULE if gate.noise == "measured" else AB_RULE).looks[0]
        elif state.due:
            if not state.is_interleaved:
                self._schedule = around_own_reference(gate.reference_starts)
            elif self._both_up:
                self._schedule = BLOCKS
            else:
                self._schedule = taking_turns(gate.reference_starts, state.rule.max_runs)
        planned = self._schedule.opening * looks
        if self._schedule.beside is not None:
            planned = (self._schedule.tested, self._schedule.beside) * FIRST_LOOK
        self.starts.planned = sum(engine_starts(self.tools, state.serves(one)) for one in planned)

    def _seen(self, due: tuple[StartRole, ...]) -> LoopState:
        """All that the next start depends on, with what is still due of this round."""
        schedule = self._schedule
        roles = {*schedule.opening, *(role for later in schedule.further for role in later)}
        roles |= set(CONTROL_ROLES.values()) if schedule.tested == "new" else set()
        return LoopState(
            schedule,
            due,
            {role: self._state.serves(role) for role in roles},
            frozenset(role for role in roles if self._allows(role)),
            self._rounds,
        )

    def _allows(self, role: StartRole) -> bool:
        """Whether another start of a role can be made, as far as is known, and is allowed."""
        against = controlled_by(role)
        if against is not None and not self.controls.can_start(against):
            return False
        most = self._state.rule.max_runs if role == "new" else None
        return self.starts.allows(role, most)

    def _judge(self) -> None:
        """Judge what is measured; again where a build turns out to be no control."""
        self._rounds += 1
        # Of blocks nothing can be decided before the first look.
        self._starter.explains = not self._schedule.beside or self._rounds >= FIRST_LOOK
        self._state.judge()
        if self.controls.look_up(self._state.suspected):
            self._state.judge()

    def _why_no_more(self, probe: Probe) -> tuple[str, ...]:
        """What kept the campaign from deciding, beside the numbers."""
        state = self._state.states[probe]
        undecided = state.judged is not None and state.judged.needs_more_runs
        reasons = tuple(self.starts.why_no_more(undecided=undecided, is_open=state.open))
        return reasons or tuple(self.controls.why_no_more(state.controls_wanted))
