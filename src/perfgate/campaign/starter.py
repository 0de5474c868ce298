"""Starter: makes the fresh starts of one campaign, and puts what they gave into its state.

Which start is made is not its affair (`perfgate.campaign.schedule`), nor what its numbers amount to
(`perfgate.campaign.campaign_state`).
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

from perfgate.campaign.builds.build import AbBuilds, Build, build_under_test, source_of
from perfgate.campaign.campaign_state import CampaignState, ProbeState
from perfgate.campaign.fresh_start import FreshStart, StartSetup, fresh_start
from perfgate.campaign.schedule import (
    KEEPS_ITS_PLACE,
    Start,
    StartRequest,
    StartRole,
    Starts,
    controlled_by,
)
from perfgate.campaign.session import Session
from perfgate.campaign.start_guard import PlaceCheck, leased, measure_guarded, watch_start
from perfgate.core.errors import FAILURES, PerfgateError, as_run_error
from perfgate.core.files.durable_files import write_errors_named
from perfgate.core.measurement import Measurement
from perfgate.core.metrics import is_accuracy
from perfgate.core.plain import to_plain
from perfgate.core.verdict import Against, Judgement, counted, percent, points
from perfgate.judging.assembly.judgement import measures_itself
from perfgate.judging.assembly.references import References
from perfgate.machine.leases import Lease
from perfgate.plan.toolchain import Toolchain
from perfgate.runs.progress import Progress
from perfgate.runs.record import MeasurementRecord
from perfgate.runs.run_folder import PROGRESS, now
from perfgate.scenarios.probe import Probe

# Failures after which nothing else is measured on the same start, as after no first answer: an
# engine that hangs keeps the next probe waiting until its time limit too; and who cancels a job
# does not want the next one.
_ENDING = ("hang", "total_timeout", "job_cancelled", "job_time_limit")
_NO_ROOM = "no memory for two servers: the builds are measured one by one"


@dataclass
class Starter:
    """Makes the starts of one campaign.

    Attributes:
        tools: the scenario's programs, with the build under test.
        session: what the campaigns share.
        state: what is known of each probe.
        references: told of the machine that measures.
        ab: the builds of an A/B; None: it is none.
        explains: whether it shows why a start is made: those of the opening were planned.
        starts: those so far.
    """

    tools: Toolchain
    session: Session
    state: CampaignState
    references: References
    ab: AbBuilds | None = None
    explains: bool = False
    _repeat_reason: str = ""  # what took a start's numbers, until the next start is made

    def __post_init__(self) -> None:
        scenario, run = self.tools.scenario, self.session.run.path
        self.starts = Starts(scenario.gate.budget_s, self.session.budget)
        self._folder = run / scenario.id
        self._place = PlaceCheck(self.references, self.session)
        self._progress = Progress(run / PROGRESS, scenario.id)

    def start(self, request: StartRequest) -> bool:
        """One fresh start, and at once, in its place, those that measure what was lost of it.

        Returns:
            False: the machine has no memory for the other build beside it, nothing was measured.
        """
        role, probes = request.role, request.probes
        self._show_plan(request)
        counts = self._begin(role, probes)
        self._explain(counts, request)
        try:
            with write_errors_named(self._folder_of(counts), only_full=True), ExitStack() as stack:
                start = self._bring_up(counts, probes, stack)
                if request.beside is not None:
                    if not start.leaves_room:
                        counts.disturbed = True
                        self._progress.note(_NO_ROOM)
                        return False
                    start = self._with_other(start, request.beside, stack)
                self._measure_each(start, probes)
        except PerfgateError as error:
            failed = self.starts.made[-1]  # that beside it, once that was begun
            self._handle_error(failed, probes, error, self._folder_of(failed))
            counts.disturbed |= failed.disturbed
        if not (counts.disturbed and role in KEEPS_ITS_PLACE and self.starts.repeats(role)):
            return True
        lost = tuple(probe for probe in probes if self.state.lacks(probe, role, counts.number))
        beside = request.beside and replace(request.beside, probes=lost)
        return not lost or self.start(replace(request, probes=lost, beside=beside))

    def _begin(self, role: StartRole, probes: Sequence[Probe]) -> Start:
        """The account of another start of a role."""
        return self.starts.begin(role, serves=not all(map(self.tools.is_offline, probes)))

    def _folder_of(self, counts: Start) -> Path:
        return self._folder / f"start-{counts.number}-{counts.role}"

    def _with_other(self, start: FreshStart, other: StartRequest, stack: ExitStack) -> FreshStart:
        """The start with that of another build beside it."""
        counts = self._begin(other.role, other.probes)
        beside = self._bring_up(counts, other.probes, stack, start.setup.lease)
        is_first = not any(
            self.state.states[probe].measured for probe in other.probes if probe.is_load
        )
        whole = is_first and start.scenario.gate.whole_load
        return replace(start, beside=beside, whole_load=whole)

    def _show_plan(self, request: StartRequest) -> None:
        steps = ["start", *(probe.label for probe in request.probes)]
        steps += ["start"] * (request.beside is not None)
        for role in request.then:
            steps += ["start", *(probe.label for probe in self.state.serves(role))]
        self._progress.plan(steps)

    def _explain(self, counts: Start, request: StartRequest) -> None:
        """Show why a start is made that was not planned from the beginning."""
        why, self._repeat_reason = self._repeat_reason, ""
        if why:
            self._progress.again(counts.number, f"again, as {why}")
        elif self.explains and request.role not in KEEPS_ITS_PLACE:
            states = [(probe, self.state.states[probe]) for probe in request.probes]
            why = why_another(states, controlled_by(request.role))
            self._progress.again(counts.number, why)

    def _build(self, role: StartRole) -> Build:
        """What a start of a role is of."""
        against = controlled_by(role)
        if against is not None:
            return self.state.controls.build(against)
        if self.ab is not None:
            return self.ab.a if role == "a" else self.ab.b
        injections = () if role == "reference" else self.session.injections
        return build_under_test(self.tools, self.session, injections)

    def _bring_up(
        self, counts: Start, probes: Sequence[Probe], stack: ExitStack, lease: Lease | None = None
    ) -> FreshStart:
        """The engine, started and watched, when it is ready to be measured; `lease`: it has one."""
        session, build = self.session, self._build(counts.role)
        if lease is None:  # waiting for others costs no budget
            lease = stack.enter_context(leased(build.scenario, session, self._progress.note))
        counts.began = monotonic()
        stack.callback(counts.end)
        self.starts.synthetic |= lease.synthetic
        setup = StartSetup(
            build,
            self._folder_of(counts),
            session.cache,
            counts,
            self._progress.note,
            lease,
            stack.enter_context(watch_start(build.scenario, session, lease)),
            self._place.look,
            self._place.nodes,
            session.site,
        )
        with self._progress.step("start", f"start {counts.number} ({counts.role})"):
            start = stack.enter_context(fresh_start(setup, probes))
        counts.ready_s = counts.seconds()
        return start

    def _measure_each(self, start: FreshStart, probes: Sequence[Probe]) -> None:
        """Measure the probes in order, until the start has ended or is of no more use."""
        counts, states = start.setup.account, self.state.states
        for done, probe in enumerate(probes, start=1):
            state = states[probe]
            if state.is_dropped:
                continue
            if start.setup.build.tools.is_offline(probe):
                counts.offline += 1
            else:
                counts.served += 1
            succeeded = self._measure(start, probe, len(probes))
            if succeeded and start.beside and self.ab and not probe.is_load:
                self._measure(start.beside, probe, len(probes))
            error = state.error
            if error and (start.has_ended or probe.is_smoke or error.failure in _ENDING):
                never = [one for one in probes[done:] if not states[one].measured]
                why = f"not measured, as {probe.label} failed before it: {error.message}"
                self.state.fail(never, error.saying(why), start.setup.folder)
                return
            if start.has_ended or (controlled_by(counts.role) is not None and not succeeded):
                return  # what is left gets another start, or another control
            if counts.role == "new" and not probe.is_load:
                self.state.stop_at_broken_answers(probe)

    def _measure(self, start: FreshStart, probe: Probe, sharing: int) -> bool:
        """Measure one probe; whether it gave numbers. Disturbed ones are not used.

        `sharing`: how many probes share the time until the start was ready.
        """
        counts = start.setup.account
        started, began = now(), monotonic()
        try:
            step = f"start {counts.number} ({counts.role}): {probe.label}"
            with self._progress.step(probe.label, step):
                measured = measure_guarded(start, probe)
        except PerfgateError as error:
            self._handle_error(counts, [probe], error, start.setup.folder / probe.label)
            return False
        seconds = round((counts.ready_s or 0.0) / sharing + monotonic() - began, 1)
        if measured.disturbed:
            counts.disturbed = True
            self._repeat_reason = f"start {counts.number} was disturbed: {measured.disturbed[0]}"
        self._record(start, probe, measured, started, seconds)
        if start.beside is not None and probe.is_load:
            self._record(start.beside, probe, start.beside.blocks_of(probe), started, seconds)
        return True

    def _record(
        self, start: FreshStart, probe: Probe, measured: Measurement, started: str, seconds: float
    ) -> None:
        """Write down what a start gave of a probe, and take it into the campaign's state."""
        setup, build, scenario = start.setup, start.setup.build, start.setup.build.scenario
        synthetic = setup.lease.synthetic or self.references.synthetic
        # Mock programs are gone after the run.
        source = None if synthetic else source_of(build, measured.facts)
        record = MeasurementRecord(
            scenario=scenario.id,
            hardware=scenario.hardware.label,
            probe=probe.label,
            machine_bound=measures_itself(probe),
            role=setup.account.role,
            start=setup.account.number,
            started=started,
            seconds=seconds,
            folder=str(setup.folder / probe.label),
            lease=setup.lease.plain(),
            engine=build.tools.build,
            fingerprint=dict(self.references.fingerprint(probe, build.tools)),
            injected=tuple(str(injection) for injection in build.injections),
            source=to_plain(source),
            synthetic=synthetic,
            **vars(measured),
        )
        self.session.run.record(record)
        self.state.take(probe, setup.account.role, record)

    def _handle_error(
        self, counts: Start, probes: Sequence[Probe], error: PerfgateError, folder: Path
    ) -> None:
        """Give `probes` the error; if the machine failed, not the build, another start instead.

        What a control meets is no fault of the build under test.
        """
        run_error, controls = as_run_error(error), controlled_by(counts.role)
        if self.ab is not None:
            build, last = counts.role.upper(), self.starts.made[-1]
            build += "" if last is counts else f" beside {last.role.upper()}"
            run_error = run_error.saying(f"build {build}: {run_error.message}")
        what = f"{run_error.failure}: {run_error.message}"
        text = f"fresh start {counts.number}: {what}"
        states = [self.state.states[probe] for probe in probes]
        if controls is not None:
            self.state.controls.failed(controls, text)
            for state in states:
                state.unused_controls.append(text)
        elif FAILURES[run_error.failure].of_machine and self.starts.lose():
            self._repeat_reason = f"start {counts.number} was lost: {what}"
            for state in states:
                state.disturbed.append(text)
        else:
            self.state.fail(probes, run_error, folder)
            return
        counts.disturbed = True


def why_another(states: Sequence[tuple[Probe, ProbeState]], controls: Against | None) -> str:
    """What is still open: ``c4: output_throughput undecided after 1 start (-1.2 %, …)``.

    Args:
        states: the probes that the start serves, with what is known of each.
        controls: whose build it is a control of; None: it is of the build under test.
    """
    open_ones = [
        (probe, judgement)
        for probe, state in states
        if state.judged is not None
        for judgement in state.judged.judgements
        if judgement.needs_more_runs and controls in (None, judgement.against)
    ]
    who = "" if controls is None else f"control, the {controls}'s build: "
    if not open_ones:
        return f"{who}for a claim or a curve that is undecided"
    probe, worst = max(open_ones, key=lambda one: abs(one[1].change or 0.0) / (one[1].band or 1.0))
    more = f", and {len(open_ones) - 1} more" if len(open_ones) > 1 else ""
    return f"{who}{probe.label}: {_undecided(worst)}{more}"


def _undecided(one: Judgement) -> str:
    after = f"{one.metric} undecided after {counted(one.runs_used, 'start')}"
    if one.change is None or one.interval is None or one.band is None:
        return after
    unit = "points" if is_accuracy(one.metric) else "%"
    change, low, high = (
        points(share) if is_accuracy(one.metric) else percent(share).removesuffix(" %")
        for share in (one.change, *one.interval)
    )
    band = f"band {100 * one.band:.3g} {unit}"
    return f"{after} ({change} {unit}, interval {low}…{high} {unit}, {band})"
