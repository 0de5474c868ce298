"""Exit statuses of a run, which of them verdicts give, and what a pipeline does with each. Pure.

pytest keeps its own: 2 interrupted, 3 internal error, 4 usage error, 5 nothing collected. What a
pipeline does is one table, the same for GitHub and GitLab; docs/reference/verdicts.md shows it.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from perfgate.core.verdict import Verdict


class ExitStatus(IntEnum):
    """What a finished run, or a command, tells the shell."""

    PASSED = 0
    REGRESSION = 1
    INCONCLUSIVE = 10
    ERROR = 11
    NOT_JUDGED = 12
    REHEARSED = 13
    WAIVERS = 14
    INTERNAL_ERROR = 15
    UNWRITABLE = 16


_JUDGED_GOOD = frozenset({Verdict.PASS, Verdict.IMPROVEMENT})
_UNJUDGED = frozenset({None, Verdict.NO_BASELINE, Verdict.NOT_COMPARABLE})
_OF_A_VERDICT = {
    Verdict.REGRESSION: ExitStatus.REGRESSION,
    Verdict.ERROR: ExitStatus.ERROR,
    Verdict.INCONCLUSIVE: ExitStatus.INCONCLUSIVE,
}
# From worst to best.
_MEANINGS = {
    ExitStatus.REGRESSION: "at least one regression of performance or accuracy",
    ExitStatus.INTERNAL_ERROR: "perfgate itself failed: a bug, so nothing is claimed",
    ExitStatus.ERROR: "an engine, client, evaluator or the machine failed, or a test without a "
    "verdict did",
    ExitStatus.WAIVERS: "a waiver is expired, unmatched or exceeded: fix or remove it",
    ExitStatus.NOT_JUDGED: "a selected scenario got no verdict where each must have one (--gate), "
    "or none was judged",
    ExitStatus.INCONCLUSIVE: "the allowed fresh starts did not decide between pass and regression",
    ExitStatus.UNWRITABLE: "something that perfgate or pytest had to write could not be written",
    ExitStatus.REHEARSED: "the rehearsal ran to its end; mock programs made the numbers, so "
    "nothing is claimed of any engine",
    ExitStatus.PASSED: "every judged scenario passed",
}


def meaning(status: ExitStatus, verdicts: Collection[Verdict | None] = ()) -> str:
    """One line for people; a status of 0 does not hide what was not judged.

    Args:
        status: how the run ended.
        verdicts: one per selected probe; None for a skipped one.
    """
    unjudged = sum(verdict in _UNJUDGED for verdict in verdicts)
    none_judged = bool(verdicts) and unjudged == len(verdicts)
    if status == ExitStatus.NOT_JUDGED and none_judged:
        if not any(verdicts):
            return "nothing was measured, so nothing is claimed"
        return (
            "measured, but nothing was judged, so nothing is claimed; "
            "--record is for a run that only records"
        )
    if status != ExitStatus.PASSED or not unjudged:
        return _MEANINGS[status]
    if none_judged:
        return "measured and recorded (--record); nothing was judged, so nothing is claimed"
    return (
        f"what was judged passed; {unjudged} of {len(verdicts)} selected tests got no verdict, "
        "with --gate alone this run fails"
    )


def worst(statuses: Iterable[ExitStatus]) -> ExitStatus:
    """The status that outweighs the others.

    A regression outweighs all else: it is a proved claim whatever happened beside it. Then an error
    of perfgate itself, which makes all else doubtful, an error of what it started, a waiver that
    does not hold, a missing verdict, and an undecided one. What could not be written outweighs only
    what is good news.

    Raises:
        ValueError: there is none.
    """
    return min(statuses, key=list(_MEANINGS).index)


def exit_status(
    verdicts: Iterable[Verdict | None],
    *,
    gate: bool,
    record: bool = False,
    rehearsed: bool = False,
    waivers_hold: bool = True,
) -> ExitStatus:
    """The status of a run; of several that hold, the worst.

    Args:
        verdicts: one per selected probe; None for a skipped one.
        gate: whether every selected probe must have been judged.
        record: whether it is enough that something was measured: a run that records what later ones
            are compared with. With `gate`, only what has no baseline need not be judged.
        rehearsed: whether mock programs made the numbers; such a run never ends in PASSED, and in
            NOT_JUDGED when every test was skipped.
        waivers_hold: whether no waiver is expired, unmatched or exceeded.
    """
    seen = set(verdicts)
    statuses = [_OF_A_VERDICT[verdict] for verdict in seen if verdict in _OF_A_VERDICT]
    if not waivers_hold:
        statuses.append(ExitStatus.WAIVERS)
    unjudged = _UNJUDGED - ({Verdict.NO_BASELINE} if record else set())
    if gate and (not seen or unjudged & seen):
        statuses.append(ExitStatus.NOT_JUDGED)
    # Without a judged PASS, 0 would say that the build is good though nobody looked.
    enough = any(seen) if rehearsed or record else bool(_JUDGED_GOOD & seen)
    if not statuses and not enough:
        statuses.append(ExitStatus.NOT_JUDGED)
    statuses.append(ExitStatus.REHEARSED if rehearsed else ExitStatus.PASSED)
    return worst(statuses)


LARGEST = 255  # a shell knows no larger status


class Event(StrEnum):
    """What a run was made for; `REHEARSAL`: to try the pipeline, with mocks for the engine."""

    PULL_REQUEST = "pull-request"
    NIGHTLY = "nightly"
    RELEASE = "release"
    REHEARSAL = "rehearsal"


class Action(StrEnum):
    """What the pipeline does: `WARN` is green, and says that something is open."""

    PASS = "pass"
    WARN = "warn"
    BLOCK = "block"


@dataclass(frozen=True)
class Decision:
    """What a pipeline does, and why.

    Attributes:
        action: pass, warn or block.
        sentence: for who reads the job: what the status claims, and who must do what.
    """

    action: Action
    sentence: str


_SENTENCES: dict[tuple[int, ...], str] = {
    (ExitStatus.PASSED,): "every judged test passed; what was only recorded claims nothing",
    (ExitStatus.REGRESSION,): "a regression is proved: the build's author fixes it, or its owner "
    "waives it with a reason",
    (ExitStatus.INCONCLUSIVE,): "neither a pass nor a regression is proved: run it again when the "
    "machine is quiet",
    (ExitStatus.ERROR,): "nothing is claimed of the build: the engine, a client or the machine "
    "failed, the report names which, and its owner fixes it",
    (ExitStatus.NOT_JUDGED,): "a selected test got no verdict: record and promote a baseline, or "
    "fix what was skipped",
    (ExitStatus.REHEARSED,): "mock programs made the numbers, nothing is claimed: run without "
    "--rehearse",
    (ExitStatus.WAIVERS,): "a waiver is expired, unmatched or exceeded: its owner fixes or removes "
    "it",
    (ExitStatus.INTERNAL_ERROR,): "perfgate itself failed, nothing is claimed: report the "
    "traceback to its maintainers",
    (ExitStatus.UNWRITABLE,): "a report or record could not be written: free space or fix rights",
    (20,): "perfgate release check --strict: a waiver or the policy let something through",
    (21,): "something that the release policy requires is missing or does not count: measure what "
    "the table names",
    (22, 23, 24): "the release policy cannot be used, the runs are not of its build, or a clock is "
    "wrong, nothing is claimed: fix what the message names",
    (25, 26, 27, 28, 29, 30, 31): "the evidence is damaged, expired, of another release, not "
    "signed by a known key, or not reproduced: do not publish it",
    (2,): "interrupted, or a shard is missing, nothing is claimed: the log says what to run again",
    (130, 137, 143): "the run was interrupted or killed, nothing is claimed: run it again, or "
    "resume it",
    (3,): "pytest or one of its plugins failed, nothing is claimed",
    (4,): "wrong usage or an unusable file, nothing was measured: fix the job",
    (5,): "no test was selected, nothing was measured: fix the expression",
    (124,): "the time limit ended the run, nothing is claimed: raise it above the harness's limits",
}


def decision(event: Event, status: int) -> Decision:
    """What a pipeline for `event` does with a run, or a merged report, that ended in `status`.

    Raises:
        ValueError: `status` is none that a shell knows (0 to 255).
    """
    if not 0 <= status <= LARGEST:
        raise ValueError(f"no exit status: {status}")
    action = Action.BLOCK
    if event is Event.REHEARSAL and status == ExitStatus.PASSED:
        sentence = "a rehearsal never ends in 0, so this was none: look at how the job calls pytest"
        return Decision(action, sentence)
    if event is Event.REHEARSAL and status == ExitStatus.REHEARSED:
        sentence = "the pipeline ran to its end with mock programs; nothing is claimed of any build"
        return Decision(Action.PASS, sentence)
    if status == ExitStatus.PASSED:
        action = Action.PASS
    elif status == ExitStatus.INCONCLUSIVE and event is not Event.RELEASE:
        action = Action.WARN
    sentences = (text for statuses, text in _SENTENCES.items() if status in statuses)
    return Decision(
        action, next(sentences, "no status of perfgate or pytest, so nothing is claimed")
    )


def final_status(decided: Decision, status: int) -> int:
    """The exit status that the pipeline's gate ends in: 0, or for a block one that is not 0."""
    if decided.action is not Action.BLOCK:
        return 0
    return status or ExitStatus.ERROR
