"""Build behind a baseline: which build its controls are started of, or why there are none."""

from dataclasses import replace

from perfgate.baselines import SELF, Baseline
from perfgate.campaign.other_build import OtherBuild, other_build, same_build
from perfgate.campaign.session import Session
from perfgate.core.errors import CannotDo, InputError, PerfgateError, RunError
from perfgate.core.verdict import Against
from perfgate.engines.build_source import BuildSource
from perfgate.scenarios.scenario import Scenario


def build_behind(
    scenario: Scenario, session: Session, against: Against, baseline: Baseline
) -> OtherBuild:
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
    named = session.control
    if named is None or (against == "anchor" and baseline.source is not None):
        found = _recorded(scenario, session, against, baseline)
    else:
        found = _found(scenario, session, named, baseline, "the build named by --control")
    return replace(found, note=_note(scenario, session, found))


def _recorded(
    scenario: Scenario, session: Session, against: Against, baseline: Baseline
) -> OtherBuild:
    source = baseline.source
    if session.synthetic:
        source = source or BuildSource()  # stand-ins play it
    if source is None and baseline.accepted_by == SELF:
        source = BuildSource()  # this machine's own programs, with nothing injected
    if source is None:
        raise CannotDo(f"the {against} does not say how its build was started")
    return _found(scenario, session, source, baseline, f"the build that the {against} recorded")


def _found(
    scenario: Scenario, session: Session, source: BuildSource, baseline: Baseline, what: str
) -> OtherBuild:
    try:
        return other_build(scenario, session, source, expected=baseline.engine)
    except PerfgateError as error:
        raise CannotDo(f"{what} cannot be started: {in_one_line(error)}") from error


def _note(scenario: Scenario, session: Session, found: OtherBuild) -> str:
    if found.injections:
        return f"settings of the control were changed: {', '.join(map(str, found.injections))}"
    try:
        tested = other_build(scenario, session, BuildSource())
    except PerfgateError:
        return ""  # the build under test will say so itself
    tested = replace(tested, injections=session.injections)
    same = same_build(found, tested)
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
