"""Exit statuses of a run, and which of them a set of verdicts gives (docs/reference/verdicts.md).

pytest keeps its own: 2 interrupted, 3 internal error, 4 usage error, 5 nothing collected.
"""

from collections.abc import Collection, Iterable
from enum import IntEnum

from perfgate.gate.verdict import Verdict


class ExitStatus(IntEnum):
    """What a finished run tells the shell."""

    PASSED = 0
    REGRESSION = 1
    INCONCLUSIVE = 10
    ERROR = 11
    NOT_JUDGED = 12
    REHEARSED = 13
    WAIVERS = 14


_UNJUDGED = frozenset({None, Verdict.NO_BASELINE, Verdict.NOT_COMPARABLE})
_MEANINGS = {
    ExitStatus.PASSED: "every judged scenario passed",
    ExitStatus.REGRESSION: "at least one regression of performance or accuracy",
    ExitStatus.INCONCLUSIVE: "the allowed fresh starts did not decide between pass and regression",
    ExitStatus.ERROR: "an engine, client, evaluator or the machine failed",
    ExitStatus.NOT_JUDGED: "a selected scenario got no verdict where each must have one (--gate), "
    "or a rehearsal rehearsed nothing",
    ExitStatus.REHEARSED: "the rehearsal ran to its end; stand-ins made the numbers, so nothing is "
    "claimed of any engine",
    ExitStatus.WAIVERS: "a waiver is expired, unmatched or exceeded: mend or remove it",
}


def meaning(status: ExitStatus, verdicts: Collection[Verdict | None] = ()) -> str:
    """One line for people; a status of 0 does not hide what was not judged.

    Args:
        status: how the run ended.
        verdicts: one per selected probe; None for a skipped one.
    """
    unjudged = sum(verdict in _UNJUDGED for verdict in verdicts)
    if status != ExitStatus.PASSED or not unjudged:
        return _MEANINGS[status]
    if unjudged == len(verdicts):
        return "nothing was judged, so nothing is claimed; with --gate this run fails"
    return (
        f"what was judged passed; {unjudged} of {len(verdicts)} selected tests got no verdict, "
        "with --gate this run fails"
    )


def exit_status(
    verdicts: Iterable[Verdict | None],
    *,
    gate: bool,
    rehearsed: bool = False,
    waivers_hold: bool = True,
) -> ExitStatus:
    """The status of a run.

    A regression outweighs all else: it is a proved claim whatever happened beside it. Then an
    error, then a waiver that does not hold, then (in gate mode only) a missing verdict, then an
    undecided one.

    Args:
        verdicts: one per selected probe; None for a skipped one.
        gate: whether every selected probe must have been judged.
        rehearsed: whether stand-ins made the numbers; such a run never ends in PASSED, and in
            NOT_JUDGED when every test was skipped.
        waivers_hold: whether no waiver is expired, unmatched or exceeded.
    """
    seen = list(verdicts)
    if Verdict.REGRESSION in seen:
        return ExitStatus.REGRESSION
    if Verdict.ERROR in seen:
        return ExitStatus.ERROR
    if not waivers_hold:
        return ExitStatus.WAIVERS
    if gate and (not seen or _UNJUDGED & set(seen)):
        return ExitStatus.NOT_JUDGED
    if rehearsed and not any(seen):
        return ExitStatus.NOT_JUDGED
    if Verdict.INCONCLUSIVE in seen:
        return ExitStatus.INCONCLUSIVE
    return ExitStatus.REHEARSED if rehearsed else ExitStatus.PASSED
