"""Exit statuses of a run, and which of them a set of verdicts gives (docs/reference/verdicts.md).

pytest keeps its own: 2 interrupted, 3 internal error, 4 usage error, 5 nothing collected.
"""

from collections.abc import Collection, Iterable
from enum import IntEnum

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


_FROM_WORST = (
    ExitStatus.REGRESSION,
    ExitStatus.INTERNAL_ERROR,
    ExitStatus.ERROR,
    ExitStatus.WAIVERS,
    ExitStatus.NOT_JUDGED,
    ExitStatus.INCONCLUSIVE,
    ExitStatus.UNWRITABLE,
    ExitStatus.REHEARSED,
    ExitStatus.PASSED,
)
_JUDGED_GOOD = frozenset({Verdict.PASS, Verdict.IMPROVEMENT})
_UNJUDGED = frozenset({None, Verdict.NO_BASELINE, Verdict.NOT_COMPARABLE})
_OF_A_VERDICT = {
    Verdict.REGRESSION: ExitStatus.REGRESSION,
    Verdict.ERROR: ExitStatus.ERROR,
    Verdict.INCONCLUSIVE: ExitStatus.INCONCLUSIVE,
}
_MEANINGS = {
    ExitStatus.PASSED: "every judged scenario passed",
    ExitStatus.REGRESSION: "at least one regression of performance or accuracy",
    ExitStatus.INCONCLUSIVE: "the allowed fresh starts did not decide between pass and regression",
    ExitStatus.ERROR: "an engine, client, evaluator or the machine failed, or a test without a "
    "verdict did",
    ExitStatus.NOT_JUDGED: "a selected scenario got no verdict where each must have one (--gate), "
    "or none was judged",
    ExitStatus.REHEARSED: "the rehearsal ran to its end; stand-ins made the numbers, so nothing is "
    "claimed of any engine",
    ExitStatus.WAIVERS: "a waiver is expired, unmatched or exceeded: mend or remove it",
    ExitStatus.INTERNAL_ERROR: "perfgate itself failed: a bug, so nothing is claimed",
    ExitStatus.UNWRITABLE: "something that perfgate or pytest had to write could not be written",
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
    return min(statuses, key=_FROM_WORST.index)


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
        rehearsed: whether stand-ins made the numbers; such a run never ends in PASSED, and in
            NOT_JUDGED when every test was skipped.
        waivers_hold: whether no waiver is expired, unmatched or exceeded.
    """
    seen = set(verdicts)
    found = [_OF_A_VERDICT[one] for one in seen if one in _OF_A_VERDICT]
    if not waivers_hold:
        found.append(ExitStatus.WAIVERS)
    unjudged = _UNJUDGED - ({Verdict.NO_BASELINE} if record else set())
    if gate and (not seen or unjudged & seen):
        found.append(ExitStatus.NOT_JUDGED)
    # Without a judged PASS, 0 would say that the build is good though nobody looked.
    enough = any(seen) if rehearsed or record else bool(_JUDGED_GOOD & seen)
    if not found and not enough:
        found.append(ExitStatus.NOT_JUDGED)
    found.append(ExitStatus.REHEARSED if rehearsed else ExitStatus.PASSED)
    return worst(found)
