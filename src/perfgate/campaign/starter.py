"""Starter: makes the fresh starts of one campaign, and puts what they gave into its state.

Which start is made is not its affair (`perfgate.campaign.schedule`), nor what its numbers amount to
(`perfgate.campaign.campaign_state`).
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from perfgate.campaign.builds.build import AbBuilds, Build, build_under_test, source_of
from perfgate.campaign.campaign_state import CampaignState
from perfgate.campaign.fresh_start import FreshStart, StartSetup, fresh_start
from perfgate.campaign.probe_state import why_another
from perfgate.campaign.schedule import (
    Start,
    StartRequest,
    StartRole,
    Starts,
    controlled_by,
    keeps_its_place,
)
from perfgate.campaign.session import Session
from perfgate.campaign.start_guard import PlaceCheck, leased, measure_guarded, watch_start
from perfgate.core.durable_files import disk_errors_named
from perfgate.core.errors import FAILURES, PerfgateError, RunError, as_run_error
from perfgate.core.measurement import Measurement
from perfgate.core.plain import to_plain
from perfgate.core.verdict import Against
from perfgate.judging.assembly.judgement import measures_itself
from perfgate.judging.assembly.references import References
from perfgate.machine.conditions.watch import Watch
from perfgate.machine.leases import Lease
from perfgate.plan.toolchain import Toolchain
from perfgate.runs.progress import Progress
from perfgate.runs.record import MeasurementRecord
from perfgate.runs.run_folder import PROGRESS, now
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import Scenario

# Failures after which nothing else is measured on the same start.
_ENDING = ("hang", "total_timeout", "job_cancelled", "job_time_limit")


@dataclass
class StartAttempt:
    """One fresh start of a campaign while it is made.

    Attributes:
        build: what it starts.
        session: the campaign's, with what starts that build.
        counts: its account.
        folder: where its files go.
        probes: what is to be measured on it.
        watch: what watches the machine since before it; None: nothing does.
        other: the start of another build that is up at the same time; None: none is.
    """

    build: Build
    session: Session
    counts: Start
    folder: Path
    probes: Sequence[Probe]
    watch: Watch | None = None
    other: "StartAttempt | None" = None

    @property
    def controls(self) -> Against | None:
        """Whose build it is a control of; None: it is no control."""
        return controlled_by(self.counts.role)


class Starter:
    """Makes the starts of one campaign.

    Args:
        tools: the scenario's programs, with the build under test.
        session: what the campaigns share.
        state: what is known of each probe.
        references: told of the machine that measures.
        ab: the builds of an A/B; None: it is none.

    Attributes:
        starts: those so far.
        explains: whether it shows why a start is made: those of the opening were planned.
        can_make_blocks: whether load may take turns on two builds that are both up on this machine.
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
        self.starts = Starts(tools.scenario.gate.budget_s, session.budget)
        self._progress = Progress(session.run.path / PROGRESS, tools.scenario.id)
        self.explains = False
        self.can_make_blocks = can_make_blocks(tools.scenario, session)

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
        attempt = self._attempt(role, probes)
        counts = attempt.counts
        self._explain(counts, request)
        try:
            with disk_errors_named(attempt.folder), ExitStack() as stack:
                start: FreshStart | None = self._bring_up(attempt, stack)
                if start is not None and request.beside is not None:
                    start = self._with_other(attempt, start, request.beside, stack)
                if start is not None:
                    self._measure_each(attempt, start)
        except PerfgateError as error:
            failed = attempt.other or attempt
            self._handle_error(failed, probes, error, failed.folder)
            counts.disturbed |= failed.counts.disturbed
        if request.beside is not None and not self.can_make_blocks:
            return None  # all is measured in another order
        if not (counts.disturbed and keeps_its_place(role) and self.starts.repeats(role)):
            return None
        lost = tuple(one for one in probes if self._state.lacks(one, role, counts.number))
        return StartRequest(role, lost, request.then, request.beside) if lost else None

    def _attempt(self, role: StartRole, probes: Sequence[Probe]) -> StartAttempt:
        """Another start of a role, with an account and a folder of its own."""
        serves = not all(self._tools.is_offline(probe) for probe in probes)
        counts, build = self.starts.begin(role, serves=serves), self._build(role)
        return StartAttempt(
            build,
            replace(self._session, launcher=build.launcher),
            counts,
            self._folder / f"start-{counts.number}-{role}",
            probes,
        )

    def _with_other(
        self, attempt: StartAttempt, start: FreshStart, role: StartRole, stack: ExitStack
    ) -> FreshStart | None:
        """The start with that of another build beside it; None: there is no room for both."""
        if not start.leaves_room:
            self.can_make_blocks, attempt.counts.disturbed = False, True
            self._progress.note("no memory for two servers: the builds are measured one by one")
            return None
        loads = tuple(one for one in attempt.probes if one.is_load)
        attempt.other = self._attempt(role, loads if self._ab is None else attempt.probes)
        beside = self._bring_up(attempt.other, stack, start.setup.lease)
        whole = start.scenario.gate.whole_load
        whole = whole and not any(self._state.states[one].measured for one in loads)
        return replace(start, beside=beside, whole_load=whole)

    def _show_plan(self, request: StartRequest) -> None:
        steps = ["start", *(probe.label for probe in request.probes)]
        steps += ["start"] * (request.beside is not None)
        for role in request.then:
            steps += ["start", *(probe.label for probe in self._state.serves(role))]
        self._progress.plan(steps)

    def _explain(self, counts: Start, request: StartRequest) -> None:
        """Show why a start is made that was not planned from the beginning."""
        why, self._repeat_reason = self._repeat_reason, ""
        if why:
            self._progress.again(counts.number, f"again, as {why}")
        elif self.explains and not keeps_its_place(request.role):
            states = [(probe, self._state.states[probe]) for probe in request.probes]
            why = why_another(states, controlled_by(request.role))
            self._progress.again(counts.number, why)

    def _build(self, role: StartRole) -> Build:
        """What a start of a role is of."""
        against = controlled_by(role)
        if against is not None:
            return self._state.controls.build(against)
        if self._ab is not None:
            return self._ab.a if role == "a" else self._ab.b
        injections = () if role == "reference" else self._session.injections
        return build_under_test(self._tools, self._session, injections)

    def _bring_up(
        self, attempt: StartAttempt, stack: ExitStack, lease: Lease | None = None
    ) -> FreshStart:
        """The engine, started and watched, when it is ready to be measured; `lease`: it has one."""
        build, session, counts = attempt.build, attempt.session, attempt.counts
        if lease is None:  # waiting for others costs no budget
            lease = stack.enter_context(leased(build.scenario, session, self._progress.note))
        counts.began = monotonic()
        stack.callback(counts.end)
        self.starts.synthetic |= lease.synthetic
        setup = StartSetup(
            build.launcher,
            attempt.folder,
            session.cache,
            counts.number,
            self._progress.note,
            lease,
            partial(self._place.look, counts.role, build.tools, session, lease, attempt.folder),
            counts.role,
            self._place.nodes,
            session.site,
        )
        attempt.watch = stack.enter_context(watch_start(build.scenario, session, lease))
        with self._progress.step("start", f"start {counts.number} ({counts.role})"):
            start = stack.enter_context(
                fresh_start(build.scenario, build.tools, setup, attempt.probes)
            )
        counts.ready_s = counts.seconds()
        return start

    def _measure_each(self, attempt: StartAttempt, start: FreshStart) -> None:
        """Measure the probes in order, until the start has ended or is of no more use."""
        probes, states, counts = attempt.probes, self._state.states, attempt.counts
        for done, probe in enumerate(probes, start=1):
            state = states[probe]
            if state.is_dropped:
                continue
            if attempt.build.tools.is_offline(probe):
                counts.offline += 1
            else:
                counts.served += 1
            succeeded = self._measure(start, probe, attempt)
            if succeeded and attempt.other and start.beside and self._ab and not probe.is_load:
                self._measure(start.beside, probe, attempt.other)
            if attempt.controls is not None:
                if not succeeded or start.has_ended:
                    return  # what is left gets another control
                continue
            error = state.error
            if error is not None and (start.has_ended or _ends_the_start(probe, error)):
                never = [one for one in probes[done:] if not states[one].measured]
                why = f"not measured, as {probe.label} failed before it: {error.message}"
                self._state.fail(never, error.saying(why), attempt.folder)
                return
            if start.has_ended:
                return  # with its machine: what is left gets another start
            if counts.role == "new" and not probe.is_load:
                self._state.stop_at_broken_answers(probe)

    def _measure(self, start: FreshStart, probe: Probe, attempt: StartAttempt) -> bool:
        """Measure one probe; whether it gave numbers. Disturbed ones are not used."""
        counts, folder = attempt.counts, attempt.folder / probe.label
        started, began = now(), monotonic()
        try:
            step = f"start {counts.number} ({counts.role}): {probe.label}"
            with self._progress.step(probe.label, step):
                measured = measure_guarded(start, probe, attempt.watch)
        except PerfgateError as error:
            self._handle_error(attempt, [probe], error, folder)
            return False
        seconds = (counts.ready_s or 0.0) / len(attempt.probes) + monotonic() - began
        if measured.disturbed:
            counts.disturbed = True
            self._repeat_reason = f"start {counts.number} was disturbed: {measured.disturbed[0]}"
        record = self._record(
            attempt,
            probe,
            measured,
            synthetic=start.setup.lease.synthetic or self._state.is_synthetic,
            started=started,
            seconds=round(seconds, 1),
            folder=str(folder),
            lease=start.setup.lease.plain(),
        )
        self._keep(record, counts.role, probe)
        if start.beside is not None and attempt.other is not None and probe.is_load:
            other = self._record(
                attempt.other,
                probe,
                start.other_half(probe),
                synthetic=record.synthetic,
                started=started,
                seconds=record.seconds,
                folder=str(attempt.other.folder / probe.label),
                lease=record.lease,
            )
            self._keep(other, attempt.other.counts.role, probe)
        return True

    def _keep(self, record: MeasurementRecord, role: StartRole, probe: Probe) -> None:
        self._session.run.record(record)
        self._state.take(probe, role, record)

    def _record(
        self,
        attempt: StartAttempt,
        probe: Probe,
        measured: Measurement,
        *,
        synthetic: bool,
        **where: Any,
    ) -> MeasurementRecord:
        """The record of a measurement; `where`: time, folder and lease, as the record's fields."""
        build, scenario = attempt.build, attempt.build.scenario
        # Mock programs are gone after the run.
        source = None if synthetic else source_of(build, measured.facts)
        return MeasurementRecord(
            scenario=scenario.id,
            hardware=scenario.hardware.label,
            probe=probe.label,
            machine_bound=measures_itself(probe),
            role=attempt.counts.role,
            start=attempt.counts.number,
            engine=build.tools.build,
            fingerprint=dict(self._references.fingerprint(probe, build.tools)),
            injected=tuple(str(one) for one in build.injections),
            source=to_plain(source),
            synthetic=synthetic,
            metrics=measured.metrics,
            facts=measured.facts,
            answers=measured.answers,
            disturbed=measured.disturbed,
            **where,
        )

    def _handle_error(
        self, attempt: StartAttempt, probes: Sequence[Probe], error: PerfgateError, folder: Path
    ) -> None:
        """Give `probes` the error; if the machine failed, not the build, another start instead.

        What a control meets is no fault of the build under test.
        """
        run_error, counts = as_run_error(error), attempt.counts
        if self._ab is not None:
            build = counts.role.upper()
            build += f" beside {attempt.other.counts.role.upper()}" if attempt.other else ""
            run_error = run_error.saying(f"build {build}: {run_error.message}")
        what = f"{run_error.failure}: {run_error.message}"
        text = f"fresh start {counts.number}: {what}"
        states = [self._state.states[probe] for probe in probes]
        if attempt.controls is not None:
            self._state.controls.failed(attempt.controls, text)
            for state in states:
                state.unused_controls.append(text)
        elif FAILURES[run_error.failure].of_machine and self.starts.lose():
            self._repeat_reason = f"start {counts.number} was lost: {what}"
            for state in states:
                state.disturbed.append(text)
        else:
            self._state.fail(probes, run_error, folder)
            return
        counts.disturbed = True


def can_make_blocks(scenario: Scenario, session: Session) -> bool:
    """Whether two builds can be up at once, with load in turns: on this machine, as programs."""
    return scenario.gate.blocks > 0 and session.launcher.name == "local"


def _ends_the_start(probe: Probe, error: RunError) -> bool:
    """Whether it would be a waste to measure anything else on the same start.

    An engine that gave no first answer, or that hangs, keeps the next probe waiting until its time
    limit too; and who cancels a job does not want the next one.
    """
    return probe.is_smoke or error.failure in _ENDING
