"""Campaign: all fresh starts of one scenario's engine in one session, judged as they come in.

One start serves every probe that needs it (the sweep and the accuracy tasks); another is made only
for probes that the gate could not decide, and before it a control where a loss is suspected. The
order is that of `perfgate.campaign.schedule`.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from perfgate.campaign.build_behind import build_behind
from perfgate.campaign.campaign_state import CampaignState
from perfgate.campaign.control_builds import ControlBuilds, FindBuild, startable
from perfgate.campaign.disturbance_guard import measure_guarded
from perfgate.campaign.fresh_start import StartSetup, fresh_start
from perfgate.campaign.gpu_lease import leased, watch_start
from perfgate.campaign.preflight_check import PlaceCheck
from perfgate.campaign.probe_state import (
    ProbeState,
    ReadyStart,
    StartAttempt,
    ends_the_start,
    not_measured,
    suspected,
)
from perfgate.campaign.schedule import (
    Schedule,
    StartRole,
    around_own_reference,
    controlled_by,
    role_of,
    taking_turns,
)
from perfgate.campaign.session import Session
from perfgate.campaign.start_allowance import StartAllowance
from perfgate.campaign.start_counts import Account, Start
from perfgate.campaign.start_reasons import why_another
from perfgate.campaign.started_build import StartedBuild, started_build
from perfgate.core.durable_files import disk_errors_named
from perfgate.core.errors import PerfgateError, as_run_error
from perfgate.core.failures import FAILURES
from perfgate.core.measured import MeasuredControl
from perfgate.core.measurement import Measurement
from perfgate.core.verdict import Against
from perfgate.judging.assembly.measured import measured_build
from perfgate.judging.assembly.outcome import Outcome
from perfgate.judging.assembly.references import References
from perfgate.judging.assembly.sweeps import SweepProbe
from perfgate.judging.rules.probe import ProbeJudgement
from perfgate.launchers.start_commands import command_facts
from perfgate.machine.leases import Lease
from perfgate.plan.toolchain import Toolchain
from perfgate.runs.progress import Progress
from perfgate.runs.run_folder import now
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import Scenario


class Campaign:
    """The measurements of one scenario; made when the first outcome is asked for."""

    def __init__(
        self,
        scenario: Scenario,
        probes: Sequence[Probe],
        tools: Toolchain,
        session: Session,
        find_build: FindBuild | None = None,
    ) -> None:
        self.scenario = scenario
        self.tools = tools
        self.session = session
        self._references = References(
            tools,
            session.machine,
            session.reference,
            synthetic=session.synthetic or scenario.is_synthetic,
            repo=session.repo,
            commands=command_facts(session.site),
        )
        self.controls = ControlBuilds(
            session.control_policy or scenario.gate.control,
            partial(
                startable,
                self._references,
                probes,
                find_build or partial(build_behind, scenario, session),
            ),
        )
        self._found = CampaignState(scenario, probes, self._references, session, self.controls)
        self._progress = Progress(session.run.path / "progress.jsonl", scenario.id)
        self._folder = session.run.path / scenario.id
        self._ran = False
        self._lost_to = ""  # what took a start's numbers, until the next start is made
        self._opening = 0  # starts that are made before anything is judged
        self._place = PlaceCheck(self._references)
        self.account = Account()
        self._allowance = StartAllowance(scenario.gate.budget_s, session.budget, self.account)

    @property
    def has_run(self) -> bool:
        """Whether its measurements were asked for."""
        return self._ran

    @property
    def has_measured(self) -> bool:
        """Whether anything of the build under test was measured."""
        return self._found.any_measured

    def fingerprint(self, probe: Probe) -> Mapping[str, str]:
        """The facts of what is measured of `probe`, which a baseline must share."""
        return self._references.fingerprint(probe)

    def outcome(self, probe: Probe) -> Outcome:
        """What became of `probe`; the first call makes all measurements of the campaign."""
        self._run_once()
        found = self._found.outcome(probe, self._why_no_more(self._found.states[probe]))
        return replace(found, build=measured_build(self.tools.build, found.measurements))

    def curve(self, sweep: SweepProbe) -> ProbeJudgement:
        """The whole sweep, judged on what has been measured so far."""
        self._run_once()
        judged = self._found.curve(sweep)
        if self.controls.look_up(suspected(judged)):
            judged = self._found.curve(sweep)
        told = self._allowance.beyond_budget() if judged.needs_more_runs else None
        return replace(judged, notes=(*judged.notes, told)) if told else judged

    def with_curve_input(self, sweep: SweepProbe, outcome: Outcome) -> Outcome:
        """The outcome of a curve with what its verdict rests on, and where that comes from."""
        return replace(
            outcome,
            judge_input=self._found.curve_input(sweep),
            provenance=self._found.curve_provenance(sweep),
        )

    def curve_measurements(self, sweep: SweepProbe) -> tuple[Measurement, ...]:
        """The whole sweep, as measured so far: its means, one per complete fresh start."""
        return self._found.curve_measurements(sweep)

    def curve_controls(
        self, sweep: SweepProbe, judged: ProbeJudgement
    ) -> tuple[MeasuredControl, ...]:
        """The other builds that the verdict of a curve rests on, or that it lacks."""
        return self._found.curve_controls(sweep, judged)

    def measure_again(self, probes: Sequence[Probe], controls: Collection[Against] = ()) -> bool:
        """The next starts for `probes`, for a claim or a curve; False: none is left.

        Args:
            probes: what is measured on each of them.
            controls: the builds of which a control comes first; none: the build under test.
        """
        self._run_once()
        states = [self._found.states[probe] for probe in probes]
        roles = [
            one
            for one in Schedule().after(new=not controls, controls=self._possible(controls))
            if self._allows_again(one, states)
        ]
        if any(state.error for state in states) or not roles:
            return False
        for role in roles:
            self._make_start(role, probes)
        self._judge()
        return not any(state.error for state in states)

    def _allows_again(self, role: StartRole, states: Sequence[ProbeState]) -> bool:
        """Whether probes may be measured once more: what other probes took does not count."""
        if role != "new":
            return self._allows(role)
        if self._allowance.out_of_time or self._allowance.beyond_budget():
            return False
        most = self._found.rule.max_runs
        return any(len(one.measured) + len(one.disturbed) < most for one in states)

    def _run_once(self) -> None:
        if self._ran:
            return
        self._ran = True
        try:
            self._run()
        except PerfgateError as error:  # e.g. a stored reference that cannot be read
            self._found.fail(self._found.waiting_for("new"), error, self._folder)

    def _run(self) -> None:
        schedule = self._schedule()
        due = list(schedule.opening)
        self._opening = len(due)
        self.account.planned = sum(self._engine_starts(role) for role in due)
        while due:
            role = due.pop(0)
            self._tell_plan([role, *due])
            disturbed = self._make_start(role)
            if disturbed and role == "reference" and self._allowance.repeats(role):
                due.append("reference")
            if not due:
                self._judge()
                due += self._next(schedule)

    def _schedule(self) -> Schedule:
        """The order of the starts, those of the machine's own reference where they are due."""
        if any(self._references.are_due(probe) for probe in self._found.states):
            starts = self.scenario.gate.reference_starts
            if self._found.takes_turns:
                return taking_turns(starts, self._found.rule.max_runs)
            return around_own_reference(starts)
        return Schedule()

    def _judge(self) -> None:
        """Judge what is measured; again where a build turns out to be no control."""
        self._found.judge()
        if self.controls.look_up(self._found.suspected):
            self._found.judge()

    def _next(self, schedule: Schedule) -> list[StartRole]:
        """The starts that the judgement asks for, as far as they are allowed."""
        controls = self._possible(self._found.controls_wanted)
        wanted = schedule.after(new=bool(self._found.waiting_for("new")), controls=controls)
        return [role for role in wanted if self._allows(role)]

    def _possible(self, controls: Collection[Against]) -> list[Against]:
        """The builds of which another control can be started."""
        return [
            one for one in controls if self.controls.can_start(one) and self._allows(role_of(one))
        ]

    def _engine_starts(self, role: StartRole) -> int:
        """Starts of the engine in one of the schedule's: an offline program is one by itself."""
        offline = [self.tools.is_offline(probe) for probe in self._found.waiting_for(role)]
        return sum(offline) + (not all(offline))

    def _allows(self, role: StartRole) -> bool:
        return self._allowance.allows(role, self._found.rule.max_runs)

    def _why_no_more(self, state: ProbeState) -> tuple[str, ...]:
        """What kept the campaign from deciding, beside the numbers."""
        undecided = state.judged is not None and state.judged.needs_more_runs
        told = [*self._allowance.why_no_more(undecided=undecided, is_open=state.open)]
        if not told:
            told += self.controls.why_no_more(state.controls_wanted)
        return tuple(told)

    def _tell_plan(self, roles: Sequence[StartRole]) -> None:
        steps = []
        for role in roles:
            steps += ["start", *(probe.label for probe in self._found.waiting_for(role))]
        self._progress.plan(steps)

    def _make_start(self, role: StartRole, probes: Sequence[Probe] | None = None) -> bool:
        """One fresh start, and on it `probes`, or every probe that needs it.

        Returns:
            whether anything measured on it was disturbed.
        """
        probes = self._found.waiting_for(role) if probes is None else probes
        if not probes:
            return False
        number = self._allowance.begin(role)
        self._tell_why(number, role, probes)
        attempt = StartAttempt(
            self._build(role), number, self._folder / f"start-{number}-{role}", probes
        )
        try:
            with disk_errors_named(attempt.folder), ExitStack() as stack:
                lease = self._lease(attempt, stack)
                account = self._open_account(attempt, lease, stack)
                ready = self._bring_up(attempt, lease, stack)
                account.ready_s = ready.seconds if account.serves else None
                self._measure_each(attempt, ready, account)
        except PerfgateError as error:
            attempt.disturbed |= self._met(attempt, probes, error, attempt.folder)
        self.account.ended(wasted=attempt.disturbed)
        spent_s = time.monotonic() - attempt.began
        self._allowance.ended(role, spent_s, disturbed=attempt.disturbed)
        return attempt.disturbed

    def _tell_why(self, number: int, role: StartRole, probes: Sequence[Probe]) -> None:
        """Tell why a start is made that was not planned from the beginning."""
        why, self._lost_to = self._lost_to, ""
        states = [(probe, self._found.states[probe]) for probe in probes]
        if why:
            self._progress.again(number, f"again, as {why}")
        elif number > self._opening and role not in ("reference", "a", "b", "claim"):
            self._progress.again(number, why_another(states, controlled_by(role)))

    def _build(self, role: StartRole) -> StartedBuild:
        """What a start of a role is of."""
        against = controlled_by(role)
        other = None if against is None else self.controls.build(against)
        return started_build(role, self.tools, self.session, other)

    def _lease(self, attempt: StartAttempt, stack: ExitStack) -> Lease:
        """The GPUs, or the CPU, of a start; waiting for others costs no budget."""
        build = attempt.build
        lease = stack.enter_context(leased(build.scenario, build.session, self._progress.note))
        attempt.began = time.monotonic()
        return lease

    def _open_account(self, attempt: StartAttempt, lease: Lease, stack: ExitStack) -> Start:
        """The start's line in the group's record, closed when the start has ended."""
        serves = not all(self.tools.is_offline(probe) for probe in attempt.probes)
        account = self.account.begin(attempt.role, serves=serves)
        stack.callback(account.end, attempt.began)
        self.account.synthetic |= lease.synthetic
        return account

    def _bring_up(self, attempt: StartAttempt, lease: Lease, stack: ExitStack) -> ReadyStart:
        """The engine, started and watched, when it is ready to be measured."""
        build = attempt.build
        setup = StartSetup(
            build.session.launcher,
            attempt.folder,
            self.session.cache,
            attempt.number,
            self._progress.note,
            lease,
            partial(self._place.look, build, lease, attempt.folder),
            attempt.role,
            self._place.nodes,
            self.session.site,
        )
        watch = stack.enter_context(watch_start(build.scenario, build.session, lease))
        with self._progress.step("start", f"start {attempt.number} ({attempt.role})"):
            start = stack.enter_context(
                fresh_start(build.scenario, build.tools, setup, attempt.probes)
            )
        seconds = time.monotonic() - attempt.began
        return ReadyStart(start, watch, seconds, seconds / len(attempt.probes))

    def _measure_each(self, attempt: StartAttempt, ready: ReadyStart, account: Start) -> None:
        """Measure the probes in order, until the start has ended or is of no more use."""
        probes, states = attempt.probes, self._found.states
        for done, probe in enumerate(probes, start=1):
            state = states[probe]
            if state.is_dropped:
                continue
            account.measured(offline=attempt.build.tools.is_offline(probe))
            met = self._measure(ready, probe, attempt)
            if attempt.controls is not None:
                if met is not None or ready.start.has_ended:
                    return  # what is left gets another control
                continue
            error = state.error
            if error is not None and (ready.start.has_ended or ends_the_start(probe, error)):
                never = [one for one in probes[done:] if not states[one].measured]
                self._found.fail(never, not_measured(probe, error), attempt.folder)
                return
            if ready.start.has_ended:
                return  # with its machine: what is left gets another start
            if attempt.role == "new" and not probe.is_load:
                self._found.stop_at_broken_answers(probe)

    def _measure(
        self, ready: ReadyStart, probe: Probe, attempt: StartAttempt
    ) -> PerfgateError | None:
        """Measure one probe; gives what it met. A disturbed measurement is not used."""
        start, role = ready.start, attempt.role
        folder = start.setup.folder / probe.label
        started, began = now(), time.monotonic()
        try:
            with self._progress.step(
                probe.label, f"start {attempt.number} ({role}): {probe.label}"
            ):
                measured = measure_guarded(start, probe, ready.watch)
        except PerfgateError as error:
            attempt.disturbed |= self._met(attempt, [probe], error, folder)
            return error
        seconds = round(ready.share_s + time.monotonic() - began, 1)
        attempt.disturbed |= bool(measured.disturbed)
        if measured.disturbed:
            self._lost_to = f"start {attempt.number} was disturbed: {measured.disturbed[0]}"
        self._found.take(probe, measured, attempt, started, seconds)
        synthetic = (
            self.session.synthetic or start.setup.lease.synthetic or self.scenario.is_synthetic
        )
        fingerprint = self._references.fingerprint(probe, attempt.build.tools)
        self.session.run.record(
            attempt.build.record(
                probe,
                fingerprint,
                measured,
                started=started,
                seconds=seconds,
                synthetic=synthetic,
                start=attempt.number,
                folder=str(folder),
                lease=start.setup.lease.plain(),
            )
        )
        return None

    def _met(
        self,
        attempt: StartAttempt,
        probes: Sequence[Probe],
        error: PerfgateError,
        folder: Path,
    ) -> bool:
        """Give `probes` the error; if the machine failed, not the build, another start instead.

        What a control meets is no fault of the build under test.

        Returns:
            whether there will be another start.
        """
        met = as_run_error(error)
        told = f"fresh start {attempt.number}: {met.failure}: {met.message}"
        if attempt.controls is not None:
            self.controls.failed(attempt.controls, told)
            for probe in probes:
                self._found.states[probe].unused_controls.append(told)
            return True
        if not FAILURES[met.failure].of_machine or not self._allowance.lose():
            self._found.fail(probes, error, folder)
            return False
        self._lost_to = f"start {attempt.number} was lost: {met.failure}: {met.message}"
        for probe in probes:
            self._found.states[probe].disturbed.append(told)
        return True
