"""Pipeline decision: what a pipeline does with the exit status of a run, by what it was run for.

One table, the same for GitHub and GitLab; docs/reference/verdicts.md shows it. Pure.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from perfgate.judging.assembly.exit_status import ExitStatus

LARGEST = 255  # a shell knows no larger status
NEVER_PASSED = ExitStatus.ERROR  # what a block of status 0 ends in


class Event(StrEnum):
    """What a run was made for; `REHEARSAL`: to try the pipeline, with stand-ins for the engine."""

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


@dataclass(frozen=True)
class Row:
    """One row of the table.

    Attributes:
        statuses: exit statuses it is about; empty: all that no other row names.
        actions: event → action; an event that is missing is in another row of these statuses.
        sentence: the same for all of them.
    """

    statuses: tuple[int, ...]
    actions: dict[Event, Action]
    sentence: str


def _all(action: Action, *but: Event) -> dict[Event, Action]:
    return {event: action for event in Event if event not in but}


_EVERYWHERE = _all(Action.BLOCK)
_UNDECIDED = {
    Event.PULL_REQUEST: Action.WARN,
    Event.NIGHTLY: Action.WARN,
    Event.RELEASE: Action.BLOCK,
    Event.REHEARSAL: Action.WARN,
}

TABLE: tuple[Row, ...] = (
    Row(
        (ExitStatus.PASSED,),
        _all(Action.PASS, Event.REHEARSAL),
        "every judged test passed; what was only recorded claims nothing",
    ),
    Row(
        (ExitStatus.PASSED,),
        {Event.REHEARSAL: Action.BLOCK},
        "a rehearsal never ends in 0, so this was none: look at how the job calls pytest",
    ),
    Row(
        (ExitStatus.REGRESSION,),
        _EVERYWHERE,
        "a regression is proved: the build's author mends it, or its owner waives it with a reason",
    ),
    Row(
        (ExitStatus.INCONCLUSIVE,),
        _UNDECIDED,
        "neither a pass nor a regression is proved: run it again when the machine is quiet",
    ),
    Row(
        (ExitStatus.ERROR,),
        _EVERYWHERE,
        "nothing is claimed of the build: the engine, a client or the machine failed, the report "
        "names which, and its owner mends it",
    ),
    Row(
        (ExitStatus.NOT_JUDGED,),
        _EVERYWHERE,
        "a selected test got no verdict, so green would claim what nobody measured: record and "
        "promote a baseline, or mend what was skipped",
    ),
    Row(
        (ExitStatus.REHEARSED,),
        _all(Action.BLOCK, Event.REHEARSAL),
        "stand-ins made the numbers, so nothing is claimed of any build: run without --rehearse",
    ),
    Row(
        (ExitStatus.REHEARSED,),
        {Event.REHEARSAL: Action.PASS},
        "the pipeline ran to its end with stand-ins; nothing is claimed of any build",
    ),
    Row(
        (ExitStatus.WAIVERS,),
        _EVERYWHERE,
        "a waiver is expired, unmatched or exceeded: its owner mends or removes it",
    ),
    Row(
        (ExitStatus.INTERNAL_ERROR,),
        _EVERYWHERE,
        "perfgate itself failed, nothing is claimed: report the traceback to its maintainers",
    ),
    Row(
        (ExitStatus.UNWRITABLE,),
        _EVERYWHERE,
        "a report or record could not be written: the runner's owner makes room or mends rights",
    ),
    Row(
        (20,),
        _EVERYWHERE,
        "perfgate release check --strict: some of what the policy requires was let through, by a "
        "waiver or by the policy; without --strict that is 0, and in the certificate",
    ),
    Row(
        (21,),
        _EVERYWHERE,
        "something that the release policy requires is missing, undecided, stale, synthetic or of "
        "other hardware: measure what the table names",
    ),
    Row(
        (22, 23, 24),
        _EVERYWHERE,
        "the release policy cannot be used, the runs are not of its build, or a clock is wrong, so "
        "nothing is claimed: mend what the message names",
    ),
    Row(
        (25, 26, 27, 28, 29, 30, 31),
        _EVERYWHERE,
        "the evidence of the release is damaged, of another release, not signed by a known key, or "
        "not reproduced: it proves nothing, and is not published",
    ),
    Row(
        (2,),
        _EVERYWHERE,
        "interrupted, or runs that make no whole, as where a shard is missing; nothing is claimed: "
        "the log says which, and what to run again",
    ),
    Row(
        (130, 137, 143),
        _EVERYWHERE,
        "the run was interrupted or killed, nothing is claimed: run it again, resumed if it can be",
    ),
    Row((3,), _EVERYWHERE, "pytest or one of its plugins failed, nothing is claimed"),
    Row(
        (4,),
        _EVERYWHERE,
        "wrong usage or an unusable file, nothing was measured: the pipeline's owner mends the job",
    ),
    Row(
        (5,),
        _EVERYWHERE,
        "no test was selected, so nothing was measured: the pipeline's owner mends the expression",
    ),
    Row(
        (124,),
        _EVERYWHERE,
        "the time limit ended the run, nothing is claimed: raise it above the harness's own limits",
    ),
    Row((), _EVERYWHERE, "no status of perfgate or pytest, so nothing is claimed"),
)


def decision(event: Event, status: int) -> Decision:
    """What a pipeline for `event` does with a run, or a merged report, that ended in `status`.

    Raises:
        ValueError: `status` is none that a shell knows (0 to 255).
    """
    if not 0 <= status <= LARGEST:
        raise ValueError(f"no exit status: {status}")
    for row in _rows(status):
        if event in row.actions:
            return Decision(row.actions[event], row.sentence)
    raise AssertionError(f"the table has no row for {event}, {status}")


def final_status(found: Decision, status: int) -> int:
    """The exit status that the pipeline's gate ends in: 0, or for a block one that is not 0."""
    if found.action is not Action.BLOCK:
        return 0
    return status or NEVER_PASSED


def _rows(status: int) -> Iterator[Row]:
    named = [row for row in TABLE if status in row.statuses]
    yield from named or (row for row in TABLE if not row.statuses)
