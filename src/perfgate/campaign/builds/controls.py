"""Controls: the builds behind a scenario's baseline and anchor, as far as they can be started here.

Each is looked for when a loss is first suspected, and never before: most sessions need none. Starts
nothing itself.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from perfgate.baselines import SELF, Baseline, Entry
from perfgate.baselines.baseline import BuildSource
from perfgate.campaign.builds.build import (
    Build,
    build_under_test,
    other_build,
    same_build,
    tools_under_test,
)
from perfgate.campaign.schedule import CONTROL_ROLES
from perfgate.campaign.session import Session
from perfgate.core.errors import CannotDo, InputError, PerfgateError, RunError
from perfgate.core.measurement import MeasuredControl, Measurement
from perfgate.core.verdict import Against, ControlPolicy, Judgement
from perfgate.judging.assembly.judgement import ControlStarts
from perfgate.judging.assembly.measured import measured_build
from perfgate.judging.assembly.references import References
from perfgate.scenarios.probe import Probe
from perfgate.scenarios.scenario import Scenario


def baseline_build(
    scenario: Scenario, session: Session, against: Against, baseline: Baseline
) -> Build:
    """The build that a baseline was measured with, found here and asked what it is.

    It is started as the person says, if that is this build, else as the baseline recorded. Where it
    is the build under test itself, or has other settings than the baseline's, its note says so.

    Args:
        scenario: what is started with it.
        session: says whether a person named a build.
        against: the baseline, or the anchor.
        baseline: tells the build, and how it was started.

    Raises:
        CannotDo: it cannot be started here, with the reason in one line.
    """
    source, what = baseline.source, f"the build that the {against} recorded"
    if session.control is not None and (against == "baseline" or source is None):
        source, what = session.control, "the build named by --control"
    elif session.synthetic:
        source = source or BuildSource()  # mock programs play it
    elif source is None and baseline.accepted_by == SELF:
        source = BuildSource()  # this machine's own programs, with nothing injected
    if source is None:
        raise CannotDo(f"the {against} does not say how its build was started")
    try:
        found = other_build(scenario, session, source, expected=baseline.engine)
    except PerfgateError as error:
        raise CannotDo(f"{what} cannot be started: {in_one_line(error)}") from error
    return replace(found, note=_note(scenario, session, found))


def _note(scenario: Scenario, session: Session, found: Build) -> str:
    if found.injections:
        return f"settings of the control were changed: {', '.join(map(str, found.injections))}"
    try:
        tools = tools_under_test(scenario, session)
        same = same_build(found, build_under_test(tools, session, session.injections))
    except PerfgateError:
        return ""  # the build under test will say so itself
    return f"the control is the build under test: {same}" if same else ""


def in_one_line(error: PerfgateError) -> str:
    """What an error says, without what is to be done about it."""
    if isinstance(error, InputError):
        found = f", found {error.found}" if error.found is not None else ""
        wanted = f", expected {error.expected}" if error.expected else ""
        return " ".join(f"{error.problem}{found}{wanted}".split())
    if isinstance(error, RunError):
        return " ".join([error.message, *error.evidence[-1:]])
    return " ".join(str(error).split())


# Failed starts of a control, the first of which is made again.
_MOST_FAILURES = 2


@dataclass
class ControlBuilds:
    """The baseline's build and the anchor's, as far as they are known.

    Attributes:
        scenario: what is started with them.
        session: what the campaigns share.
        references: what the probes are compared with.
        probes: those of the scenario that are selected.
    """

    scenario: Scenario
    session: Session
    references: References
    probes: Sequence[Probe]
    _found: dict[Against, Build] = field(default_factory=dict)
    _skip_reasons: dict[Against, str] = field(default_factory=dict)
    _failures: dict[Against, list[str]] = field(default_factory=dict)

    @property
    def _policy(self) -> ControlPolicy:
        return self.session.control_policy or self.scenario.gate.control

    def _startable(self, against: Against) -> Build:
        """The build behind what the probes are compared with, fit to be compared with the new one.

        Raises:
            PerfgateError: there is none, or it cannot be started or be compared with.
        """
        references, session = self.references, self.session
        known = [(one, references.stored(one).chosen.get(against)) for one in self.probes]
        stored = [(probe, chosen.baseline) for probe, chosen in known if chosen is not None]
        if not stored:
            raise CannotDo(f"there is no {against} whose build could be started")
        # Speeds alone have controls, and may have another store than answers.
        stored.sort(key=lambda one: not one[0].is_load)
        other = baseline_build(self.scenario, session, against, stored[0][1])
        for probe in (one for one, _ in stored if one.is_load):
            facts = Entry(references.fingerprint(probe, other.tools), ())
            if different := facts.differences(references.fingerprint(probe)):
                raise CannotDo(f"its numbers cannot be compared: {'; '.join(different)}")
        return other

    def look_up(self, suspected: Collection[Against]) -> bool:
        """Find the builds that a loss is suspected against, each once.

        Returns:
            whether one of them turned out not to be startable.
        """
        missing = False
        for against in CONTROL_ROLES:
            known = against in self._found or against in self._skip_reasons
            if against not in suspected or known or self._policy == "none":
                continue
            try:
                self._found[against] = self._startable(against)
            except PerfgateError as error:
                self._skip_reasons[against] = str(error).splitlines()[0]
                missing = True
        return missing

    def build(self, against: Against) -> Build:
        """A build that was found."""
        return self._found[against]

    def can_start(self, against: Against) -> bool:
        """Whether nothing speaks against a start of this build, as far as is known."""
        return against not in self.skip_reasons

    def failed(self, against: Against, reason: str) -> None:
        """Take note of a start of this build that failed; after the second there is no other."""
        failures = self._failures.setdefault(against, [])
        failures.append(reason)
        if len(failures) >= _MOST_FAILURES:
            self._skip_reasons[against] = f"it failed twice: {'; '.join(failures)}"

    def why_no_more(self, wanted: Collection[Against]) -> Iterator[str]:
        """Why controls that are wanted are not made."""
        for against in CONTROL_ROLES:
            if against in wanted and (reason := self._skip_reasons.get(against)):
                yield f"no further control of the {against}'s build: {reason}"

    @property
    def skip_reasons(self) -> Mapping[Against, str]:
        """Which build cannot be started, and why."""
        if self._policy == "none":
            return dict.fromkeys(CONTROL_ROLES, "gate.control is none")
        return self._skip_reasons

    def starts(self, measured: Mapping[Against, Mapping[int, Measurement]]) -> ControlStarts:
        """The controls of one probe, as its judgement takes them.

        What was measured counts even if that build cannot be started any more.

        Args:
            measured: which build → number of the start → what it gave.
        """
        known = {
            against: measured.get(against, {})
            for against in CONTROL_ROLES
            if measured.get(against) or self.can_start(against)
        }
        return ControlStarts(self._policy, known, self.skip_reasons)

    def behind(
        self, judgements: Sequence[Judgement], measured: Mapping[Against, Mapping[int, Measurement]]
    ) -> tuple[MeasuredControl, ...]:
        """The builds that judgements rest on, or for which they have no control.

        Args:
            judgements: of one probe, or of a curve.
            measured: as in `starts`.
        """
        found = []
        for against in CONTROL_ROLES:
            asked = [judgement for judgement in judgements if judgement.against == against]
            starts = tuple(measured.get(against, {}).values())
            used = max((one.controls_used for one in asked), default=0)
            skip_reason = self.skip_reasons.get(against, "")
            if used and against in self._found:
                other = self._found[against]
                build = measured_build(other.tools.build, starts)
                found.append(MeasuredControl(against, build, used, skip_reason, other.note))
            elif any(one.mark == "NO_CONTROL" for one in asked):
                found.append(MeasuredControl(against, None, 0, skip_reason))
        return tuple(found)
