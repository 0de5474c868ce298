"""Campaign: all fresh starts of one scenario's engine in one session, judged as they come in.

One start serves every probe that needs it (the sweep and the accuracy tasks); another is made only
for probes that the gate could not decide. A scenario that measures its own reference has those
starts interleaved with the build under test, so that a drifting machine touches both alike.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

from perfgate.baselines import BaselineRun, as_run
from perfgate.errors import PerfgateError, RunError, as_run_error
from perfgate.fresh_start import FreshStart, Place, fresh_start
from perfgate.gate.performance import Rule
from perfgate.gate.verdict import Verdict
from perfgate.hardware import Machine
from perfgate.injection import Injection, inject
from perfgate.judging import Judged, judge
from perfgate.launchers.base import Launcher
from perfgate.measurement import Measurement
from perfgate.outcome import Outcome
from perfgate.paths import machine_store
from perfgate.probe import Probe
from perfgate.progress import Progress
from perfgate.records import RunFolder, now
from perfgate.references import Comparison, ReferencePolicy, References, measures_itself
from perfgate.scenarios.scenario import Scenario
from perfgate.tools import Tools

Role = Literal["reference", "new"]


@dataclass(frozen=True)
class Session:
    """What all campaigns of a session share.

    Attributes:
        run: the run folder.
        machine: the machine's facts.
        launcher: how programs are started.
        rule: error rates of the gate.
        reference: where scenarios that measure their own reference take it from.
        injections: settings changed on purpose in the build under test.
        cache: where what can be used again is kept.
        synthetic: whether stand-ins make the numbers.
    """

    run: RunFolder
    machine: Machine
    launcher: Launcher
    rule: Rule
    reference: ReferencePolicy = "auto"
    injections: tuple[Injection, ...] = ()
    cache: Path = field(default_factory=lambda: machine_store() / "cache")
    synthetic: bool = False


@dataclass
class _State:
    """How far one probe is."""

    measurements: list[Measurement] = field(default_factory=list)
    own_reference: list[BaselineRun] = field(default_factory=list)
    judged: Judged | None = None
    comparison: Comparison | None = None
    error: RunError | None = None
    folder: Path | None = None

    @property
    def open(self) -> bool:
        """Whether another start of the build under test would serve it."""
        if self.error is not None:
            return False
        return self.judged is None or self.judged.needs_more_runs


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
        self._states = {probe: _State() for probe in ordered}
        self._references = References(
            tools, session.machine, session.reference, measured=not session.synthetic
        )
        self._progress = Progress(session.run.path / "progress.jsonl", scenario.id)
        self._folder = session.run.path / scenario.id
        self._starts: list[Role] = []
        self._ran = False
        self._reference_saved = False

    def outcome(self, probe: Probe) -> Outcome:
        """What became of `probe`; the first call makes all measurements of the campaign."""
        if not self._ran:
            self._ran = True
            try:
                self._run()
            except PerfgateError as error:  # e.g. a stored reference that cannot be read
                unfinished = [one for one, state in self._states.items() if state.open]
                self._fail(unfinished, error, self._folder)
        state = self._states[probe]
        if state.judged is None and state.error is None:
            state.error = RunError(
                "incomplete", "not measured: other probes' failures used up the starts"
            )
        judged = state.judged or Judged(Verdict.ERROR)
        return Outcome(
            probe,
            Verdict.ERROR if state.error else judged.verdict,
            () if state.error else judged.judgements,
            state.measurements,
            compared_with=state.comparison.description if state.comparison else "",
            reason="" if state.error else judged.reason,
            error=state.error,
            folder=state.folder or self._folder,
            injected=tuple(str(injection) for injection in self.session.injections),
            synthetic=self.session.synthetic,
        )

    def measure_again(self, probe: Probe) -> bool:
        """One more fresh start for `probe` alone, as a claim needs it; False: none is left."""
        before = self.outcome(probe)
        starts = self._starts.count("new")
        if before.error is not None or starts >= self._most_new_starts():
            return False
        self._make_start("new", [probe])
        self._judge()
        return self._states[probe].error is None

    def _run(self) -> None:
        schedule = self._schedule()
        while schedule:
            role = schedule.pop(0)
            self._tell_plan([role, *schedule])
            self._make_start(role)
            if schedule:
                continue
            self._judge()
            if self._any_open() and self._starts.count("new") < self._most_new_starts():
                schedule.append("new")

    def _schedule(self) -> list[Role]:
        """Reference starts, where they are due, around the first start of the new build."""
        if not any(self._references.are_due(probe) for probe in self._states):
            return ["new"]
        starts = self.scenario.gate.reference_starts
        first: list[Role] = ["reference"] * (starts // 2)
        rest: list[Role] = ["reference"] * (starts - starts // 2)
        return [*first, "new", *rest]

    def _most_new_starts(self) -> int:
        return min(self.scenario.gate.max_starts, self.session.rule.max_runs)

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

    def _make_start(self, role: Role, probes: Sequence[Probe] | None = None) -> None:
        """One fresh start, and on it `probes`, or every probe that needs it."""
        probes = self._probes_of(role) if probes is None else probes
        if not probes:
            return
        self._starts.append(role)
        number = len(self._starts)
        folder = self._folder / f"start-{number}-{role}"
        place = Place(self.session.launcher, folder, self.session.cache, number)
        try:
            scenario = self.scenario
            if role == "new":
                scenario = inject(scenario, self.session.injections)
            with ExitStack() as stack:
                with self._progress.step("start", f"start {number} ({role})"):
                    start = stack.enter_context(fresh_start(scenario, self.tools, place, probes))
                for probe in probes:
                    self._measure(start, probe, role, number)
                    error = self._states[probe].error
                    if error is not None and _ends_the_start(probe, error):
                        never = [one for one in probes if not self._states[one].measurements]
                        self._fail(never, _not_measured(probe, error), folder)
                        break
                    if start.has_ended:
                        break  # it died; what is left gets another start
        except PerfgateError as error:
            self._fail(probes, error, folder)

    def _measure(self, start: FreshStart, probe: Probe, role: Role, number: int) -> None:
        state = self._states[probe]
        started = now()
        try:
            with self._progress.step(probe.label, f"start {number} ({role}): {probe.label}"):
                measured = start.measure(probe)
        except PerfgateError as error:
            self._fail([probe], error, start.place.folder / probe.label)
            return
        if role == "new":
            state.measurements.append(measured)
            state.folder = start.place.folder / probe.label
        else:
            state.own_reference.append(as_run(measured, self.session.run.id, started))
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
                "engine": asdict(self.tools.build),
                "fingerprint": dict(self._references.fingerprint(probe)),
                "metrics": dict(measured.metrics),
                "facts": dict(measured.facts),
                "answers": {name: dict(given) for name, given in measured.answers.items()},
                "folder": str(start.place.folder / probe.label),
                "injected": [str(one) for one in self.session.injections] if role == "new" else [],
                "synthetic": self.session.synthetic,
            },
        )

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
            if state.error is not None or not state.measurements:
                continue
            if probe.is_smoke:
                state.judged = Judged(Verdict.PASS, reason=_answered(state.measurements[-1]))
                continue
            try:
                state.comparison = self._references.comparison(probe, state.own_reference)
                state.judged = judge(
                    probe,
                    state.comparison.entry,
                    state.measurements,
                    self._references.fingerprint(probe),
                    replace(self.session.rule, max_runs=self._most_new_starts()),
                    documented=state.comparison.documented,
                )
            except PerfgateError as error:
                self._fail([probe], error, self._folder)


def _ends_the_start(probe: Probe, error: RunError) -> bool:
    """Whether it would be a waste to measure anything else on the same start.

    An engine that gave no first answer, or that hangs, keeps the next probe waiting until its time
    limit too.
    """
    return probe.is_smoke or error.failure in ("hang", "total_timeout")


def _not_measured(probe: Probe, error: RunError) -> RunError:
    """What becomes of the other probes of a start that `error` made useless."""
    return RunError(
        error.failure,
        f"not measured, as {probe.label} failed before it: {error.message}",
        evidence=error.evidence,
        hint=error.hint,
    )


def _answered(measured: Measurement) -> str:
    facts = measured.facts
    return f"it answered: {facts.get('first_answer') or facts.get('answers', 'every prompt')}"
