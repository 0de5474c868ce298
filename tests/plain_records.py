"""Records in tests: made of few fields, and read as the plain values that their file has."""

from collections.abc import Iterable
from typing import Any

from perfgate.core.plain import from_plain, to_plain
from perfgate.judging.assembly.judge_input import Outcome
from perfgate.runs.record import AnyRecord, Record
from perfgate.runs.run_folder import RunFolder

_BUILD = {"name": "llama.cpp", "version": "1.3.0", "commit": "fed987"}
_OF_TEST = {"test": "t", "scenario": "small-serve", "probe": "c1"}
_FIELDS: dict[str, dict[str, Any]] = {
    "measurement": {
        "scenario": "small-serve",
        "hardware": "cpu",
        "probe": "c1",
        "role": "new",
        "start": 1,
        "engine": _BUILD,
        "metrics": {},
        "facts": {},
        "answers": {},
        "disturbed": [],
        "started": "2026-11-20T08:00:00+00:00",
        "seconds": 60.0,
        "fingerprint": {},
        "machine_bound": False,
        "injected": [],
        "source": None,
        "synthetic": False,
        "folder": "",
        "lease": {},
    },
    "verdict": {
        **_OF_TEST,
        "verdict": "PASS",
        **dict.fromkeys(("judgements", "observed", "measured", "documented", "controls"), ()),
        **dict.fromkeys(("changed_questions", "settings", "injected", "notes"), ()),
        **dict.fromkeys(("reason", "compared_with", "extra_options", "rerun"), ""),
        **dict.fromkeys(("build", "error", "folder", "provenance", "judge_input"), None),
        "starts": 0,
        "synthetic": False,
    },
    "skipped": {**_OF_TEST, "reason": "no GPU"},
    "group": {
        "scenario": "small-serve",
        "hardware": "cpu",
        "engine": _BUILD,
        "content": {},
        "tests": [],
        "starts": {"planned": 1, "made": 1, "without_sharing": 1, "again": 0},
        "seconds": {"spent": 1.0, "starting": 1.0, "saved": 0.0},
        "ended": "measured",
        "synthetic": False,
    },
    "ended": {"status": 0, "gate": False, "recording": False},
    "resumed": {"repeats": [], "keeps": []},
    "selected": {"tests": []},
    "rehearsal": {"pages": []},
}


def record(kind: str, fields: dict[str, Any] | None = None, /, **more: Any) -> Record:
    """A record of a kind; what it needs and is not given is filled in."""
    plain = {"record": kind, **_FIELDS.get(kind, {}), **(fields or {}), **more}
    if kind in ("verdict", "skipped"):
        plain.setdefault("name", f"{plain['scenario']}-{plain['probe']}")
    made: Record = from_plain(AnyRecord, to_plain(plain))
    return made


def plain(records: Iterable[Record], kind: str = "") -> list[dict[str, Any]]:
    """Records as plain values, of all kinds or one."""
    found = [to_plain(one) for one in records]
    return [one for one in found if kind in ("", one["record"])]


def recorded(run: RunFolder, kind: str = "") -> list[dict[str, Any]]:
    """The records of a run that count, as plain values."""
    return plain(run.records(), kind)


def fields_of(outcome: Outcome) -> dict[str, Any]:
    """The fields of an outcome's record, but for its test."""
    found = to_plain(outcome.as_record(""))
    return {name: value for name, value in found.items() if name not in ("test", "record", "at")}
