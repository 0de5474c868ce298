"""Campaign: all fresh starts of one scenario's engine in one session, judged as they come in.

One start serves every probe that needs it (the sweep and the accuracy tasks); another is made only
for probes that the gate could not decide. A scenario that measures its own reference has those
starts interleaved with the build under test, so that a drifting machine touches both alike.
"""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal

from perfgate.baselines import as_run
from perfgate.errors import PerfgateError, RunError, as_run_error
from perfgate.failures import FAILURES
from perfgate.fresh_start import Place, fresh_start
from perfgate.gate.noise import FEWEST_TO_MEASURE_NOISE
from perfgate.gate.performance import Rule
from perfgate.gate.sanity import BROKEN_OUTPUT, OUTPUT_FORMAT
from perfgate.gate.verdict import Verdict
from perfgate.guarding import measure_guarded
from perfgate.injection import inject
from perfgate.judging import Judged, judge, with_waivers
from perfgate.leasing import leased, watch_start
from perfgate.outcome import Outcome
from perfgate.probe import Probe
from perfgate.probe_state import (
    ProbeState,
    Ready,
    answered,
    ends_the_start,
    not_measured,
    of_broken_answers,
    why_not_used,
)
from perfgate.progress import Progress
from perfgate.records import now
from perfgate.references import References, measures_itself
from perfgate.scenarios.scenario import Scenario
from perfgate.session import Session
from perfgate.sweeps import Point, SweepProbe, judge_curve
from perfgate.tools import Tools
from perfgate.waivers import waive

Role = Literal["reference", "new"]

# Fresh starts made again because something disturbed them, of either role, at most.
_MOST_REPEATS = 2
# Fresh starts made again, elsewhere if possible, because the machine failed and not the build.
_MOST_LOST = 1


class Campaign:
    """The measurements of one scenario; made when the first outcome is asked for."""

    def __init__(
        self, scenario: Scenario, probes: Sequence[Probe], tools: Tools, session: Session
    ) -> None:
        self.scenario = scenario
        self.tools = tools
        self.session = session
        # Does it answer at all; then load, as on the reference's starts, where there is only load.
        ordered = sorted(probes, key=lambda probe: (not probe.is_smoke, not probe.is_load))
        self._states = {probe: ProbeState() for probe in ordered}
        self._references = References(
            tools,
            session.machine,
            session.reference,
            measured=not session.synthetic,
            repo=session.repo,
        )
        self._progress = Progress(session.run.path / "progress.jsonl", scenario.id)
        self._folder = session.run.path / scenario.id
        self._starts: list[Role] = []
        self._disturbed_starts = 0
        self._lost_starts = 0
        self._spent_s = 0.0
        self._ran = False
        self._reference_saved = False

    def outcome(self, probe: Probe) -> Outcome:
        """What became of `probe`; the first call makes all measurements of the campaign."""
        self._run_once()
        state = self._states[probe]
        if state.judged is None and state.error is None and not state.disturbed:
            state.error = RunError(
                "incomplete", "not measured: other probes' failures used up the starts"
            )
        judged = state.judged or Judged(Verdict.INCONCLUSIVE, reason=why_not_used(state.disturbed))
        if probe.is_load and (fault := self._broken_answers()):
            judged = of_broken_answers(judged, fault)
        return Outcome(
            probe,
            Verdict.ERROR if state.error else judged.verdict,
            () if state.error else judged.judgements,
            state.measurements,
            compared_with=state.comparison.in_words if state.comparison else "",
            reason="" if state.error else judged.reason,
            error=state.error,
            folder=state.folder or self._folder,
            injected=tuple(str(injection) for injection in self.session.injections),
            synthetic=self.session.synthetic,
            notes=() if state.error else (*judged.notes, *self._why_no_more(state)),
            observed=() if state.error else judged.observed,
        )

    def curve(self, sweep: SweepProbe) -> Judged:
        """The whole sweep, judged on what has been measured so far."""
        self._run_once()
        points = []
        for probe in sweep.probes:
            state = self._states[probe]
            entry = state.comparison.entry if state.comparison else None
            fingerprint = self._references.fingerprint(probe)
            different = entry.differences(fingerprint) if entry else ()
            points.append(Point(probe, entry, different, state.measured))
        judged = judge_curve(sweep, points, self._rule)
        if fault := self._broken_answers():
            judged = of_broken_answers(judged, fault)
        return self._waived(sweep.label, judged)

    def measure_again(self, probes: Sequence[Probe]) -> bool:
        """One more fresh start for `probes`, for a claim or a curve; False: none is left."""
        self._run_once()
        states = [self._states[probe] for probe in probes]
        if any(state.error for state in states) or not self._may_start():
            return False
        self._make_start("new", probes)
        self._judge()
        return not any(state.error for state in states)

    def _run_once(self) -> None:
        if self._ran:
            return
        self._ran = True
        try:
            self._run()
        except PerfgateError as error:  # e.g. a stored reference that cannot be read
            unfinished = [one for one, state in self._states.items() if state.open]
            self._fail(unfinished, error, self._folder)

    def _run(self) -> None:
        schedule = self._schedule()
        repeated = 0
        while schedule:
            role = schedule.pop(0)
            self._tell_plan([role, *schedule])
            disturbed = self._make_start(role)
            if disturbed and role == "reference" and repeated < _MOST_REPEATS:
                repeated += 1
                schedule.append("reference")
            if schedule:
                continue
            self._judge()
            if self._any_open() and self._may_start():
                schedule.append("new")

    def _schedule(self) -> list[Role]:
        """Reference starts, where they are due, around the first start of the new build."""
        if not any(self._references.are_due(probe) for probe in self._states):
            return ["new"]
        starts = self.scenario.gate.reference_starts
        first: list[Role] = ["reference"] * (starts // 2)
        rest: list[Role] = ["reference"] * (starts - starts // 2)
        return [*first, "new", *rest]

    @property
    def _rule(self) -> Rule:
        """The session's rule, with the most fresh starts that the scenario allows."""
        most = min(self.scenario.gate.max_starts, self.session.rule.max_runs)
        return replace(self.session.rule, max_runs=most)

    def _may_start(self) -> bool:
        """Whether another start of the build under test is allowed.

        A disturbed start does not count, unless there were too many of them.
        """
        if self._out_of_time:
            return False
        made_up_for = min(self._disturbed_starts, _MOST_REPEATS)
        return self._starts.count("new") - made_up_for < self._rule.max_runs

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
        if state.judged is not None and state.disturbed:
            notes.append(why_not_used(state.disturbed))
        return tuple(notes)

    def _broken_answers(self) -> str:
        """Why the speed of this build says nothing: its answers are broken; empty: they are not."""
        for probe, state in self._states.items():
            for one in state.judged.judgements if state.judged else ():
                if one.verdict == Verdict.REGRESSION and not one.waiver:
                    for fault in (BROKEN_OUTPUT, OUTPUT_FORMAT):
                        if fault in one.notes:
                            return f"{fault} in {probe.label}"
        return ""

    def _any_open(self) -> bool:
        return any(state.open for state in self._states.values())

    def _probes_of(self, role: Role) -> list[Probe]:
        if role == "reference":
            return [
                probe
                for probe, state in self._states.items()
                if state.error is None and self._references.are_due(probe)
            ]
        return [probe for probe, state in self._states.items() if state.open]

    def _tell_plan(self, roles: Sequence[Role]) -> None:
        steps = []
        for role in roles:
            steps += ["start", *(probe.label for probe in self._probes_of(role))]
        self._progress.plan(steps)

    def _make_start(self, role: Role, probes: Sequence[Probe] | None = None) -> bool:
        """One fresh start, and on it `probes`, or every probe that needs it.

        Returns:
            whether anything measured on it was disturbed.
        """
        probes = self._probes_of(role) if probes is None else probes
        if not probes:
            return False
        self._starts.append(role)
        number = len(self._starts)
        folder = self._folder / f"start-{number}-{role}"
        disturbed = False
        began = time.monotonic()
        try:
            scenario = self.scenario
            if role == "new":
                scenario = inject(scenario, self.session.injections)
            with ExitStack() as stack:
                session, tell = self.session, self._progress.note
                lease = stack.enter_context(leased(scenario, session, tell))
                began = time.monotonic()  # waiting for others costs no budget
                place = Place(session.launcher, folder, session.cache, number, tell, lease)
                before = stack.enter_context(watch_start(scenario, session, lease))
                with self._progress.step("start", f"start {number} ({role})"):
                    start = stack.enter_context(fresh_start(scenario, self.tools, place, probes))
                ready = Ready(start, before, (time.monotonic() - began) / len(probes))
                for probe in probes:
                    disturbed |= self._measure(ready, probe, role)
                    error = self._states[probe].error
                    if error is not None and ends_the_start(probe, error):
                        never = [one for one in probes if not self._states[one].measured]
                        self._fail(never, not_measured(probe, error), folder)
                        break
                    if start.has_ended:
                        break  # it died; what is left gets another start
        except PerfgateError as error:
            disturbed |= self._met(probes, error, folder, number)
        if role == "new":
            self._spent_s += time.monotonic() - began
            self._disturbed_starts += disturbed
        return disturbed

    def _measure(self, ready: Ready, probe: Probe, role: Role) -> bool:
        """Measure one probe; tells whether it was disturbed, so that it is not used."""
        state, start = self._states[probe], ready.start
        number = start.place.number
        started, began = now(), time.monotonic()
        try:
            with self._progress.step(probe.label, f"start {number} ({role}): {probe.label}"):
                measured = measure_guarded(start, probe, ready.watch)
        except PerfgateError as error:
            return self._met([probe], error, start.place.folder / probe.label, number)
        seconds = round(ready.share_s + time.monotonic() - began, 1)
        state.folder = start.place.folder / probe.label if role == "new" else state.folder
        if measured.disturbed:
            told = f"fresh start {number}: {', '.join(measured.disturbed)}"
            state.disturbed.append(told)
        elif role == "new":
            state.measured[number] = measured
        else:
            run = as_run(measured, self.session.run.id, started, seconds, number)
            state.own_reference.append(run)
        self.session.run.record(
            "measurement",
            {
                "scenario": self.scenario.id,
                "hardware": self.scenario.hardware.label,
                "probe": probe.label,
                "role": role,
                "machine_bound": measures_itself(probe),
                "start": number,
                "started": started,
                "seconds": seconds,
                "engine": asdict(self.tools.build),
                "fingerprint": dict(self._references.fingerprint(probe)),
                "metrics": dict(measured.metrics),
                "facts": dict(measured.facts),
                "answers": {name: dict(given) for name, given in measured.answers.items()},
                "folder": str(start.place.folder / probe.label),
                "injected": [str(one) for one in self.session.injections] if role == "new" else [],
                "synthetic": self.session.synthetic or start.place.lease.synthetic,
                "lease": start.place.lease.plain(),
                "disturbed": list(measured.disturbed),
            },
        )
        return bool(measured.disturbed)

    def _met(
        self, probes: Sequence[Probe], error: PerfgateError, folder: Path, number: int
    ) -> bool:
        """Give `probes` the error; if the machine failed, not the build, another start instead.

        Returns:
            whether there will be another start.
        """
        met = as_run_error(error)
        if not FAILURES[met.failure].of_machine or self._lost_starts >= _MOST_LOST:
            self._fail(probes, error, folder)
            return False
        self._lost_starts += 1
        for probe in probes:
            told = f"fresh start {number}: {met.failure}: {met.message}"
            self._states[probe].disturbed.append(told)
        return True

    def _fail(self, probes: Sequence[Probe], error: PerfgateError, folder: Path) -> None:
        """Give `probes` the error, unless they already have one."""
        for probe in probes:
            state = self._states[probe]
            state.error = state.error or as_run_error(error)
            state.folder = folder

    def _judge(self) -> None:
        """Judge what has been measured; a reference of this session is kept first."""
        own = {
            probe: state.own_reference
            for probe, state in self._states.items()
            if state.own_reference and state.error is None
        }
        if own and not self._reference_saved:
            self._references.save(own)
            self._reference_saved = True
        for probe, state in self._states.items():
            if state.error is not None or not state.measured:
                continue
            if probe.is_smoke:
                state.judged = Judged(Verdict.PASS, reason=answered(state.measurements[-1]))
                continue
            try:
                state.comparison = self._references.comparison(probe, state.own_reference)
                if self._reference_is_too_disturbed(probe, state):
                    state.judged = Judged(
                        Verdict.INCONCLUSIVE, reason=why_not_used(state.disturbed)
                    )
                    continue
                judged = judge(
                    probe,
                    state.comparison,
                    state.measurements,
                    self._references.fingerprint(probe),
                    self._rule,
                )
                state.judged = self._waived(probe.label, judged)
            except PerfgateError as error:
                self._fail([probe], error, self._folder)

    def _reference_is_too_disturbed(self, probe: Probe, state: ProbeState) -> bool:
        due = self._references.are_due(probe) and bool(state.disturbed)
        return due and len(state.own_reference) < FEWEST_TO_MEASURE_NOISE

    def _waived(self, label: str, judged: Judged) -> Judged:
        return with_waivers(
            judged,
            lambda judgements: waive(
                judgements,
                scenario=self.scenario.id,
                hardware=self.scenario.hardware.label,
                probe=label,
                waivers=self.session.waivers,
                today=self.session.today,
            ),
        )
