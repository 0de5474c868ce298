"""Effective records: which lines of a run's records count, once it was resumed or lost a worker.

The file itself is only ever appended to. Pure.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from perfgate.runs.record import (
    CandidateRecord,
    EndedRecord,
    GroupRecord,
    NoiseKeptRecord,
    NotRecordedRecord,
    Record,
    ResumedRecord,
    ScenarioRecord,
    SelectedRecord,
    SetAsideRecord,
    ShardRecord,
    SkippedRecord,
    VerdictRecord,
    WaiverFaultRecord,
)

_OF_TESTS = (VerdictRecord, SkippedRecord)
_OF_THE_SELECTION = (SelectedRecord, ScenarioRecord, ShardRecord)  # whatever became of it
_OF_THE_END = (  # written again when the session that resumed it ends
    *(WaiverFaultRecord, CandidateRecord, NotRecordedRecord, NoiseKeptRecord, EndedRecord),
)


def effective(records: Iterable[Record]) -> list[Record]:
    """The records that no later one supersedes, in order.

    Two kinds supersede: ``resumed`` all records of the groups that it repeats, and of tests that it
    does not keep; ``set_aside`` the measurements of a scenario that a replaced worker left. A
    verdict that was kept says so: ``resumed_from`` is when it was recorded.
    """
    kept: list[Record] = []
    for record in records:
        if isinstance(record, ResumedRecord):
            kept = [_marked(earlier) for earlier in kept if _is_kept(earlier, record)]
        elif isinstance(record, SetAsideRecord):
            kept = [earlier for earlier in kept if not _was_set_aside(earlier, record)]
        kept.append(record)
    return kept


def _is_kept(record: Record, resumed: ResumedRecord) -> bool:
    if isinstance(record, (ResumedRecord, *_OF_THE_SELECTION)):
        return True
    if isinstance(record, _OF_TESTS):
        return record.test in resumed.keeps
    if isinstance(record, _OF_THE_END):
        return False
    return getattr(record, "scenario", None) not in resumed.repeats


def _marked(record: Record) -> Record:
    """A record of a session before; a verdict with when it was recorded."""
    if isinstance(record, VerdictRecord):
        return replace(record, resumed_from=record.at)
    return record


def _was_set_aside(record: Record, aside: SetAsideRecord) -> bool:
    if isinstance(
        record, (ResumedRecord, GroupRecord, SetAsideRecord, *_OF_THE_SELECTION, *_OF_TESTS)
    ):
        return False
    return getattr(record, "scenario", None) == aside.scenario
