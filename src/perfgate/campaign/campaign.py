"""Campaign: all fresh starts of one scenario's engine in one session, judged as they come in.

One start serves every probe that needs it (the sweep and the accuracy tasks); another is made only
for probes that the gate could not decide. A scenario that measures its own reference has those
starts interleaved with the build under test, so that a drifting machine touches both alike.
"""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from perfgate.baselines import as_run
from perfgate.campaign.campaign_state import CampaignState
from perfgate.campaign.disturbance_guard import measure_guarded
from perfgate.campaign.fresh_start import StartSetup, fresh_start
from perfgate.campaign.gpu_lease import leased, watch_start
from perfgate.campaign.injection import inject
from perfgate.campaign.preflight_check import look_at, require_alike, try_ranks
from perfgate.campaign.probe_state import (
    ProbeState,
    ReadyStart,
    StartAttempt,
    ends_the_start,
    not_measured,
)
from perfgate.campaign.schedule import Schedule, StartRole, around_own_reference, taking_turns
from perfgate.campaign.session import Session
from perfgate.campaign.vboost import level_for
from perfgate.core.durable_files import disk_errors_named
from perfgate.core.errors import PerfgateError, as_run_error
from perfgate.core.failures import FAILURES
from perfgate.core.measurement import Measurement
from perfgate.gate.probe import ProbeJudgement
from perfgate.launchers.base import Placement
from perfgate.machine.hardware import Machine
from perfgate.machine.leases import Lease
from perfgate.plan.toolchain import Toolchain
from perfgate.runs.progress import Progress
from perfgate.runs.records import now
from perfgate.runs.start_counts import Account, Start
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import Scenario
from perfgate.verdicts.measured import measured_build
from perfgate.verdicts.outcome import Outcome
from perfgate.verdicts.references import References, measures_itself
from perfgate.verdicts.sweeps import SweepProbe

# Fresh starts made again because something disturbed them, of either role, at most.
_MOST_REPEATS = 2
# Fresh starts made again, elsewhere if possible, because the machine failed and not the build.
_MOST_LOST = 1


class Campaign:
    """The measurements of one scenario; made when the first outcome is asked for."""

    def __init__(
        self, scenario: Scenario, probes: Sequence[Probe], tools: Toolchain, session: Session
    ) -> None:
        self.scenario = scenario
        self.tools = tools
        self.session = session
        self._references = References(
            tools,
            session.machine,
            session.reference,
            synthetic=session.synthetic,
            repo=session.repo,
            vboost=level_for(scenario, session),
        )
        self._found = CampaignState(scenario, probes, self._references, session)
        self._progress = Progress(session.run.path / "progress.jsonl", scenario.id)
        self._folder = session.run.path / scenario.id
        self._starts: list[StartRole] = []
        self._disturbed_starts = 0
        self._lost_starts = 0
        self._spent_s = 0.0
        self._ran = False
        self._machine: Machine | None = None
        self._ranks_were_tried = False
        self.account = Account()

    @property
    def has_run(self) -> bool:
        """Whether its measurements were asked for."""
        return self._ran

    @property
    def has_measured(self) -> bool:
        """Whether anything of the build under test was measured."""
        return self._found.any_measured

    def outcome(self, probe: Probe) -> Outcome:
        """What became of `probe`; the first call makes all measurements of the campaign."""
        self._run_once()
        found = self._found.outcome(probe, self._why_no_more(self._found.states[probe]))
        return replace(found, build=measured_build(self.tools.build, found.measurements))

    def curve(self, sweep: SweepProbe) -> ProbeJudgement:
        """The whole sweep, judged on what has been measured so far."""
        self._run_once()
        judged = self._found.curve(sweep)
        told = self._beyond_budget() if judged.needs_more_runs else None
        return replace(judged, notes=(*judged.notes, told)) if told else judged

    def curve_measurements(self, sweep: SweepProbe) -> tuple[Measurement, ...]:
        """The whole sweep, as measured so far: its means, one per complete fresh start."""
        return self._found.curve_measurements(sweep)

    def measure_again(self, probes: Sequence[Probe]) -> bool:
        """One more fresh start for `probes`, for a claim or a curve; False: none is left."""
        self._run_once()
        states = [self._found.states[probe] for probe in probes]
        if any(state.error for state in states) or not self._may_start():
            return False
        self._make_start("new", probes)
        self._found.judge()
        return not any(state.error for state in states)

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
        self.account.planned = sum(self._engine_starts(role) for role in due)
        repeated = 0
        while due:
            role = due.pop(0)
            self._tell_plan([role, *due])
            disturbed = self._make_start(role)
            if disturbed and role == "reference" and repeated < _MOST_REPEATS:
                repeated += 1
                due.append("reference")
            if due:
                continue
            self._found.judge()
            if self._may_start():
                due += schedule.after(is_open=self._found.any_open, controls=())

    def _schedule(self) -> Schedule:
        """The order of the starts, those of the machine's own reference where they are due."""
        if any(self._references.are_due(probe) for probe in self._found.states):
            starts = self.scenario.gate.reference_starts
            if self._found.takes_turns:
                return taking_turns(starts, self._found.rule.max_runs)
            return around_own_reference(starts)
        return Schedule()

    def _engine_starts(self, role: StartRole) -> int:
        """Starts of the engine in one of the schedule's: an offline program is one by itself."""
        offline = [self.tools.is_offline(probe) for probe in self._found.waiting_for(role)]
        return sum(offline) + (not all(offline))

    def _may_start(self) -> bool:
        """Whether another start of the build under test is allowed.

        A disturbed start does not count, unless there were too many of them.
        """
        if self._out_of_time or self._beyond_budget():
            return False
        made_up_for = min(self._disturbed_starts, _MOST_REPEATS)
        return self._starts.count("new") - made_up_for < self._found.rule.max_runs

    def _beyond_budget(self) -> str | None:
        """Why the session's time allows no further start; None: it does."""
        budget = self.session.budget
        return None if budget is None else budget.no_more(self.account.mean_s())

    @property
    def _out_of_time(self) -> bool:
        budget = self.scenario.gate.budget_s
        return budget is not None and self._spent_s >= budget

    def _why_no_more(self, state: ProbeState) -> tuple[str, ...]:
        """What kept the campaign from deciding, beside the numbers."""
        notes = []
        if state.judged is not None and state.judged.needs_more_runs and self._out_of_time:
            spent, budget = self._spent_s, self.scenario.gate.budget_s
            notes.append(f"no more starts: {spent:.0f} s used of gate.budget_s {budget:g}")
        if state.open and (told := self._beyond_budget()):
            notes.append(told)
        return tuple(notes)

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
        self._starts.append(role)
        number = len(self._starts)
        attempt = StartAttempt(role, number, self._folder / f"start-{number}-{role}", probes)
        try:
            with disk_errors_named(attempt.folder), ExitStack() as stack:
                scenario = self._as_started(role)
                lease = self._lease(attempt, scenario, stack)
                account = self._open_account(attempt, lease, stack)
                ready = self._bring_up(attempt, scenario, lease, stack)
                account.ready_s = ready.seconds if account.serves else None
                self._measure_each(attempt, ready, account)
        except PerfgateError as error:
            attempt.disturbed |= self._met(probes, error, attempt.folder, number)
        self._settle(attempt)
        return attempt.disturbed

    def _as_started(self, role: StartRole) -> Scenario:
        """The scenario, with what is injected into the build under test."""
        if role == "new":
            return inject(self.scenario, self.session.injections)
        return self.scenario

    def _lease(self, attempt: StartAttempt, scenario: Scenario, stack: ExitStack) -> Lease:
        """The GPUs, or the CPU, of a start; waiting for others costs no budget."""
        lease = stack.enter_context(leased(scenario, self.session, self._progress.note))
        attempt.began = time.monotonic()
        return lease

    def _open_account(self, attempt: StartAttempt, lease: Lease, stack: ExitStack) -> Start:
        """The start's line in the group's record, closed when the start has ended."""
        serves = not all(self.tools.is_offline(probe) for probe in attempt.probes)
        account = self.account.begin(attempt.role, serves=serves)
        stack.callback(account.end, attempt.began)
        self.account.synthetic |= lease.synthetic
        return account

    def _bring_up(
        self, attempt: StartAttempt, scenario: Scenario, lease: Lease, stack: ExitStack
    ) -> ReadyStart:
        """The engine, started and watched, when it is ready to be measured."""
        setup = StartSetup(
            self.session.launcher,
            attempt.folder,
            self.session.cache,
            attempt.number,
            self._progress.note,
            lease,
            partial(self._look_at, lease, attempt.folder),
        )
        watch = stack.enter_context(watch_start(scenario, self.session, lease))
        with self._progress.step("start", f"start {attempt.number} ({attempt.role})"):
            start = stack.enter_context(fresh_start(scenario, self.tools, setup, attempt.probes))
        seconds = time.monotonic() - attempt.began
        return ReadyStart(start, watch, seconds, seconds / len(attempt.probes))

    def _measure_each(self, attempt: StartAttempt, ready: ReadyStart, account: Start) -> None:
        """Measure the probes in order, until the start has ended or is of no more use."""
        probes, states = attempt.probes, self._found.states
        for done, probe in enumerate(probes, start=1):
            state = states[probe]
            if state.is_dropped:
                continue
            account.measured(offline=self.tools.is_offline(probe))
            attempt.disturbed |= self._measure(ready, probe, attempt.role)
            error = state.error
            if error is not None and (ready.start.has_ended or ends_the_start(probe, error)):
                never = [one for one in probes[done:] if not states[one].measured]
                self._found.fail(never, not_measured(probe, error), attempt.folder)
                return
            if ready.start.has_ended:
                return  # with its machine: what is left gets another start
            if attempt.role == "new" and not probe.is_load:
                self._found.stop_at_broken_answers(probe)

    def _settle(self, attempt: StartAttempt) -> None:
        """Count what the start took, and whether it must be made again."""
        self.account.ended(wasted=attempt.disturbed)
        if attempt.role == "new":
            self._spent_s += time.monotonic() - attempt.began
            self._disturbed_starts += attempt.disturbed

    def _measure(self, ready: ReadyStart, probe: Probe, role: StartRole) -> bool:
        """Measure one probe; tells whether it was disturbed, so that it is not used."""
        state, start = self._found.states[probe], ready.start
        number, folder = start.setup.number, start.setup.folder / probe.label
        started, began = now(), time.monotonic()
        try:
            with self._progress.step(probe.label, f"start {number} ({role}): {probe.label}"):
                measured = measure_guarded(start, probe, ready.watch)
        except PerfgateError as error:
            return self._met([probe], error, folder, number)
        seconds = round(ready.share_s + time.monotonic() - began, 1)
        if role == "new":
            state.folder = folder
        if measured.disturbed:
            state.disturbed.append(f"fresh start {number}: {', '.join(measured.disturbed)}")
        elif role == "new":
            state.measured[number] = measured
        else:
            run = as_run(measured, self.session.run.id, started, seconds, number)
            state.own_reference.append(run)
        self.session.run.record(
            "measurement",
            {
                **self._facts_of(probe),
                "role": role,
                "start": number,
                "started": started,
                "seconds": seconds,
                "metrics": dict(measured.metrics),
                "facts": dict(measured.facts),
                "answers": {name: dict(given) for name, given in measured.answers.items()},
                "folder": str(folder),
                "injected": [str(one) for one in self.session.injections] if role == "new" else [],
                "synthetic": self.session.synthetic or start.setup.lease.synthetic,
                "lease": start.setup.lease.plain(),
                "disturbed": list(measured.disturbed),
            },
        )
        return bool(measured.disturbed)

    def _facts_of(self, probe: Probe) -> dict[str, object]:
        """What the record of a measurement says of the probe itself."""
        return {
            "scenario": self.scenario.id,
            "hardware": self.scenario.hardware.label,
            "probe": probe.label,
            "machine_bound": measures_itself(probe),
            "engine": asdict(self.tools.build),
            "fingerprint": dict(self._references.fingerprint(probe)),
        }

    def _look_at(self, lease: Lease, folder: Path, placement: Placement) -> None:
        """Look at the place of a start: here once, on other nodes each time.

        Of stand-ins, or on GPUs that are simulated, the ranks alone are tried, once.

        Raises:
            RunError: it is not fit, or not of the kind that this campaign was measured on so far.
        """
        if self.session.synthetic or lease.synthetic:
            if not self._ranks_were_tried:
                self._ranks_were_tried = True
                try_ranks(placement, self.tools, folder)
            return
        if self._machine is not None and self.session.launcher.here:
            return
        machine = look_at(placement, self.tools, self.session, lease, folder).machine
        if self._machine is None:
            self._references.measured_on(machine)
        else:
            require_alike(machine, self._machine)
        self._machine = machine

    def _met(
        self, probes: Sequence[Probe], error: PerfgateError, folder: Path, number: int
    ) -> bool:
        """Give `probes` the error; if the machine failed, not the build, another start instead.

        Returns:
            whether there will be another start.
        """
        met = as_run_error(error)
        if not FAILURES[met.failure].of_machine or self._lost_starts >= _MOST_LOST:
            self._found.fail(probes, error, folder)
            return False
        self._lost_starts += 1
        for probe in probes:
            told = f"fresh start {number}: {met.failure}: {met.message}"
            self._found.states[probe].disturbed.append(told)
        return True
