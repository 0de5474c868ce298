"""Starter: makes the fresh starts of one campaign, and puts what they gave into its state.

Which start is made is not its affair (`perfgate.campaign.schedule`), nor what its numbers amount to
(`perfgate.campaign.campaign_state`).
"""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from perfgate.campaign.budget import StartAllowance
from perfgate.campaign.builds.other_build import AbBuilds
from perfgate.campaign.builds.started import StartedBuild, started_build
from perfgate.campaign.campaign_state import CampaignState
from perfgate.campaign.fresh_start import FreshStart, StartSetup, fresh_start
from perfgate.campaign.preflight_check import PlaceCheck
from perfgate.campaign.probe_state import ProbeState
from perfgate.campaign.schedule import StartRequest, StartRole, controlled_by, keeps_its_place
from perfgate.campaign.session import Session
from perfgate.campaign.start_counts import Account, Start
from perfgate.campaign.start_guard import leased, measure_guarded, watch_start
from perfgate.core.durable_files import disk_errors_named
from perfgate.core.errors import PerfgateError, RunError, as_run_error
from perfgate.core.failures import FAILURES
from perfgate.core.metrics import is_accuracy
from perfgate.core.verdict import Against, Judgement, counted, percent, points
from perfgate.judging.assembly.references import References
from perfgate.machine.conditions.watch import Watch
from perfgate.machine.leases import Lease
from perfgate.plan.toolchain import Toolchain
from perfgate.runs.progress import Progress
from perfgate.runs.run_folder import PROGRESS, now
from perfgate.scenarios.probe import Probe

# Failures after which nothing else is measured on the same start.
_ENDING = ("hang", "total_timeout", "job_cancelled", "job_time_limit")


@dataclass
class StartAttempt:
    """One fresh start of a campaign while it is made.

    Attributes:
        build: what it starts.
        number: which start of the campaign it is, from 1.
        folder: where its files go.
        probes: what is to be measured on it.
        began: when it had what it needs of the machine, on the monotonic clock.
        disturbed: whether anything measured on it was disturbed, or the machine failed.
    """

    build: StartedBuild
    number: int
    folder: Path
    probes: Sequence[Probe]
    began: float = field(default_factory=time.monotonic)
    disturbed: bool = False

    @property
    def role(self) -> StartRole:
        """Which build it is of."""
        return self.build.role

    @property
    def controls(self) -> Against | None:
        """Whose build it is a control of; None: it is no control."""
        return controlled_by(self.role)


@dataclass(frozen=True)
class ReadyStart:
    """A fresh start that is ready to be measured.

    Attributes:
        start: the start.
        watch: what watches the machine since before it; None: nothing does.
        seconds: until it was ready.
        share_s: the same, divided among the probes that it serves.
    """

    start: FreshStart
    watch: Watch | None
    seconds: float
    share_s: float


class Starter:
    """Makes the starts of one campaign.

    Args:
        tools: the scenario's programs, with the build under test.
        session: what the campaigns share.
        state: what is known of each probe.
        references: told of the machine that measures.
        ab: the builds of an A/B; None: it is none.

    Attributes:
        account: the starts so far, as the group's record counts them.
        allowance: whether another start is allowed.
        progress: tells who looks on.
        explains: whether it shows why a start is made: those of the opening were planned.
    """

    def __init__(
        self,
        tools: Toolchain,
        session: Session,
        state: CampaignState,
        references: References,
        ab: AbBuilds | None = None,
    ) -> None:
        self._tools, self._session, self._state = tools, session, state
        self._references, self._ab = references, ab
        self._folder = session.run.path / tools.scenario.id
        self._place = PlaceCheck(references)
        self._repeat_reason = ""  # what took a start's numbers, until the next start is made
        self.account = Account()
        self.allowance = StartAllowance(tools.scenario.gate.budget_s, session.budget, self.account)
        self.progress = Progress(session.run.path / PROGRESS, tools.scenario.id)
        self.explains = False

    def engine_starts(self, probes: Sequence[Probe]) -> int:
        """Starts of the engine in one of the schedule's: an offline program is one by itself."""
        offline = [self._tools.is_offline(probe) for probe in probes]
        return sum(offline) + (not all(offline))

    def start(self, request: StartRequest) -> StartRequest | None:
        """One fresh start.

        Returns:
            the start that measures at once, in its place, what was lost of this one; None: none.
        """
        role, probes = request.role, request.probes
        self._show_plan(request)
        number = self.allowance.begin(role)
        self._explain(number, request)
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
            self._handle_error(attempt, probes, error, attempt.folder)
        self.account.ended(wasted=attempt.disturbed)
        spent_s = time.monotonic() - attempt.began
        self.allowance.ended(role, spent_s, disturbed=attempt.disturbed)
        if not (attempt.disturbed and keeps_its_place(role) and self.allowance.repeats(role)):
            return None
        lost = tuple(one for one in probes if self._state.lacks(one, role, number))
        return StartRequest(role, lost, request.then) if lost else None

    def _show_plan(self, request: StartRequest) -> None:
        steps = ["start", *(probe.label for probe in request.probes)]
        for role in request.then:
            steps += ["start", *(probe.label for probe in self._state.serves(role))]
        self.progress.plan(steps)

    def _explain(self, number: int, request: StartRequest) -> None:
        """Show why a start is made that was not planned from the beginning."""
        why, self._repeat_reason = self._repeat_reason, ""
        if why:
            self.progress.again(number, f"again, as {why}")
        elif self.explains and not keeps_its_place(request.role):
            states = [(probe, self._state.states[probe]) for probe in request.probes]
            self.progress.again(number, why_another(states, controlled_by(request.role)))

    def _build(self, role: StartRole) -> StartedBuild:
        """What a start of a role is of."""
        against = controlled_by(role)
        other = None if against is None else self._state.controls.build(against)
        if self._ab is not None:
            other = self._ab.a if role == "a" else self._ab.b
        return started_build(role, self._tools, self._session, other)

    def _lease(self, attempt: StartAttempt, stack: ExitStack) -> Lease:
        """The GPUs, or the CPU, of a start; waiting for others costs no budget."""
        build = attempt.build
        lease = stack.enter_context(leased(build.scenario, build.session, self.progress.note))
        attempt.began = time.monotonic()
        return lease

    def _open_account(self, attempt: StartAttempt, lease: Lease, stack: ExitStack) -> Start:
        """The start's line in the group's record, closed when the start has ended."""
        serves = not all(self._tools.is_offline(probe) for probe in attempt.probes)
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
            self._session.cache,
            attempt.number,
            self.progress.note,
            lease,
            partial(self._place.look, build, lease, attempt.folder),
            attempt.role,
            self._place.nodes,
            self._session.site,
        )
        watch = stack.enter_context(watch_start(build.scenario, build.session, lease))
        with self.progress.step("start", f"start {attempt.number} ({attempt.role})"):
            start = stack.enter_context(
                fresh_start(build.scenario, build.tools, setup, attempt.probes)
            )
        seconds = time.monotonic() - attempt.began
        return ReadyStart(start, watch, seconds, seconds / len(attempt.probes))

    def _measure_each(self, attempt: StartAttempt, ready: ReadyStart, account: Start) -> None:
        """Measure the probes in order, until the start has ended or is of no more use."""
        probes, states = attempt.probes, self._state.states
        for done, probe in enumerate(probes, start=1):
            state = states[probe]
            if state.is_dropped:
                continue
            account.measured(offline=attempt.build.tools.is_offline(probe))
            succeeded = self._measure(ready, probe, attempt)
            if attempt.controls is not None:
                if not succeeded or ready.start.has_ended:
                    return  # what is left gets another control
                continue
            error = state.error
            if error is not None and (ready.start.has_ended or _ends_the_start(probe, error)):
                never = [one for one in probes[done:] if not states[one].measured]
                why = f"not measured, as {probe.label} failed before it: {error.message}"
                self._state.fail(never, error.saying(why), attempt.folder)
                return
            if ready.start.has_ended:
                return  # with its machine: what is left gets another start
            if attempt.role == "new" and not probe.is_load:
                self._state.stop_at_broken_answers(probe)

    def _measure(self, ready: ReadyStart, probe: Probe, attempt: StartAttempt) -> bool:
        """Measure one probe; whether it gave numbers. Disturbed ones are not used."""
        start, role = ready.start, attempt.role
        folder = start.setup.folder / probe.label
        started, began = now(), time.monotonic()
        try:
            with self.progress.step(probe.label, f"start {attempt.number} ({role}): {probe.label}"):
                measured = measure_guarded(start, probe, ready.watch)
        except PerfgateError as error:
            self._handle_error(attempt, [probe], error, folder)
            return False
        seconds = round(ready.share_s + time.monotonic() - began, 1)
        if measured.disturbed:
            attempt.disturbed = True
            self._repeat_reason = f"start {attempt.number} was disturbed: {measured.disturbed[0]}"
        synthetic = start.setup.lease.synthetic or self._state.is_synthetic
        record = attempt.build.record(
            probe,
            self._references.fingerprint(probe, attempt.build.tools),
            measured,
            started=started,
            seconds=seconds,
            synthetic=synthetic,
            start=attempt.number,
            folder=str(folder),
            lease=start.setup.lease.plain(),
        )
        self._session.run.record(record)
        self._state.take(probe, role, record)
        return True

    def _handle_error(
        self, attempt: StartAttempt, probes: Sequence[Probe], error: PerfgateError, folder: Path
    ) -> None:
        """Give `probes` the error; if the machine failed, not the build, another start instead.

        What a control meets is no fault of the build under test.
        """
        run_error = as_run_error(error)
        if self._ab is not None:
            run_error = run_error.saying(f"build {attempt.role.upper()}: {run_error.message}")
        text = f"fresh start {attempt.number}: {run_error.failure}: {run_error.message}"
        states = [self._state.states[probe] for probe in probes]
        if attempt.controls is not None:
            self._state.controls.failed(attempt.controls, text)
            for state in states:
                state.unused_controls.append(text)
        elif FAILURES[run_error.failure].of_machine and self.allowance.lose():
            self._repeat_reason = (
                f"start {attempt.number} was lost: {run_error.failure}: {run_error.message}"
            )
            for state in states:
                state.disturbed.append(text)
        else:
            self._state.fail(probes, run_error, folder)
            return
        attempt.disturbed = True


def _ends_the_start(probe: Probe, error: RunError) -> bool:
    """Whether it would be a waste to measure anything else on the same start.

    An engine that gave no first answer, or that hangs, keeps the next probe waiting until its time
    limit too; and who cancels a job does not want the next one.
    """
    return probe.is_smoke or error.failure in _ENDING


_BUILD = {"baseline": "the baseline's build", "anchor": "the anchor's build"}


def why_another(states: Sequence[tuple[Probe, ProbeState]], controls: Against | None) -> str:
    """What is still open: ``c4: output_throughput undecided after 1 start (-1.2 %, …)``.

    Args:
        states: the probes that the start serves, with what is known of each.
        controls: whose build it is a control of; None: it is of the build under test.
    """
    open_ones = [
        (probe, one)
        for probe, state in states
        if state.judged is not None
        for one in state.judged.judgements
        if one.needs_more_runs and controls in (None, one.against)
    ]
    who = "" if controls is None else f"control, {_BUILD.get(controls, controls)}: "
    if not open_ones:
        return f"{who}for a claim or a curve that is undecided"
    probe, worst = max(open_ones, key=lambda one: _bands(one[1]))
    more = f", and {len(open_ones) - 1} more" if len(open_ones) > 1 else ""
    return f"{who}{probe.label}: {_undecided(worst)}{more}"


def _bands(one: Judgement) -> float:
    return abs(one.change or 0.0) / (one.band or 1.0)


def _undecided(one: Judgement) -> str:
    after = f"{one.metric} undecided after {counted(one.runs_used, 'start')}"
    if one.change is None or one.interval is None or one.band is None:
        return after
    shown = points if is_accuracy(one.metric) else _percent
    unit = "points" if is_accuracy(one.metric) else "%"
    low, high = one.interval
    return (
        f"{after} ({shown(one.change)} {unit}, interval {shown(low)}…{shown(high)} {unit}, "
        f"band {100 * one.band:.3g} {unit})"
    )


def _percent(share: float) -> str:
    return percent(share).removesuffix(" %")
