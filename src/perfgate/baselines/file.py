"""The file of a baseline: reading, with everything that can be wrong told; writing, whole.

The numbers are under ``entries``. What a choice among many baselines needs is beside them and has
a hash of its own, so that it can be believed without reading the numbers: `read_head`.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from perfgate.baselines import questions
from perfgate.baselines.baseline import Baseline, BaselineRun, Entry, Head, Retired
from perfgate.baselines.stored_json import (
    MEASURED,
    check_hash,
    check_place,
    digest,
    own_hash,
    read_stored,
    with_hash,
)
from perfgate.core.errors import InputError
from perfgate.core.files import json_text
from perfgate.core.files.durable_files import write_json
from perfgate.core.files.untrusted_files import read_input
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.plain import from_plain, to_plain
from perfgate.engines.base import EngineBuild

SCHEMA_VERSION = 3
SAMPLE = "sample"  # a folder beside those of hardware: a store of samples of the format
_SCHEMA = "baseline.schema.json"
_HINT = "restore the file from git, or record the baseline again"
_PARTS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_PART = msgspec.json.Decoder()
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|\+00:00)")

# Fields that the file keeps together, as `accepted`: the name there → the baseline's.
_ACCEPTED = {
    "by": "accepted_by",
    "at": "accepted_at",
    "reason": "reason",
    "change": "change",
    "regression": "regression",
}


def read(path: Path, *, allow_sample: bool = False) -> Baseline:
    """Read one baseline file.

    Args:
        path: the file.
        allow_sample: whether the file may be a sample, which is shown and never compared with.

    Raises:
        InputError: a sample, not JSON, of another schema version than this perfgate reads, not as
            the schema says, with a metric or a value that cannot be, not where its content belongs,
            edited by hand, or with answers to questions whose own file is missing or altered.
    """
    plain = read_stored(path, what="baseline", schema=_SCHEMA, version=SCHEMA_VERSION, hint=_HINT)
    if not allow_sample and _is_sample(path, plain.get("synthetic", False)):
        raise InputError(
            "a sample of the format is no baseline",
            file=path,
            found=f"numbers that a rehearsal made, in the folder {SAMPLE}",
            expected="a baseline that a measuring run recorded and a person promoted",
            hint="record one: docs/how-to/baselines.md; `perfgate baseline show` prints the sample",
        )
    _check_place(path, plain)
    _check_values(path, plain["entries"])
    check_hash(path, _without_entries(plain), "baseline")
    _check_entries(path, plain)
    answers = {
        label: [run.pop("answers", {}) for run in entry["runs"]]
        for label, entry in plain["entries"].items()
    }
    found = _baseline(plain)
    entries = {
        label: _answered(path, label, entry, answers[label])
        for label, entry in found.entries.items()
    }
    return replace(found, entries=entries, file=path)


def read_head(path: Path) -> Head:
    """Read what a baseline's file says of itself; its numbers are neither read nor checked.

    Raises:
        InputError: as `read`, as far as what is read goes.
    """
    found = _head(path)
    if found is not None and not _is_sample(path, found.synthetic):
        return found
    # Something is wrong: reading it in full tells.
    return head_of(read(path))


def head_of(baseline: Baseline) -> Head:
    """What the file of `baseline` would say of itself."""
    fields = {name: getattr(baseline, name) for name in _OF_HEAD}
    return Head(**fields, labels=frozenset(baseline.entries), file=baseline.file or Path())


_OF_HEAD = (
    "scenario",
    "hardware",
    "engine",
    "accepted_by",
    "accepted_at",
    "change",
    "retired",
    "synthetic",
)


def _head(path: Path) -> Head | None:
    """The head of a baseline's file; None: something is wrong with it."""
    try:
        content = read_input(path, json_text.LARGEST_OWN)
        parts = _PARTS.decode(content)
        plain = {name: _PART.decode(part) for name, part in parts.items() if name != "entries"}
        accepted, retired = plain["accepted"], plain.get("retired")
        head = Head(
            scenario=plain["scenario"],
            hardware=plain["hardware"],
            engine=msgspec.convert(plain["engine"], EngineBuild),
            accepted_by=accepted["by"],
            accepted_at=accepted["at"],
            change=accepted["change"],
            labels=frozenset(plain["probes"]),
            file=path,
            retired=retired and msgspec.convert(retired, Retired),
            synthetic=plain.get("synthetic", False),
        )
        is_whole = plain["schema_version"] == SCHEMA_VERSION and plain["hash"] == own_hash(plain)
        is_dated = _TIME.fullmatch(head.accepted_at) is not None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, InputError):
        return None
    said = (head.hardware, head.scenario, head.engine.commit)
    in_place = said == (path.parent.parent.name, path.parent.name, path.stem)
    return head if is_whole and is_dated and in_place else None


def write(path: Path, baseline: Baseline) -> None:
    """Write one baseline file, with its hashes, and before it the files of questions it needs."""
    store = _store_of(path)
    plain = to_plain(replace(baseline, file=None, entries={}), leave_out_none=True)
    accepted = {name: plain.pop(field) for name, field in _ACCEPTED.items()}
    if not baseline.regression:
        del accepted["regression"]
    if not baseline.synthetic:
        del plain["synthetic"]
    if baseline.source is not None:
        plain["source"] = {name: told for name, told in plain["source"].items() if told}
    entries = {
        label: {
            "fingerprint": dict(entry.fingerprint),
            "runs": [_plain_run(store, run) for run in entry.runs],
        }
        for label, entry in baseline.entries.items()
    }
    plain = {
        **plain,
        "schema_version": SCHEMA_VERSION,
        "accepted": accepted,
        "probes": {label: digest(entry) for label, entry in entries.items()},
    }
    write_json(path, {**with_hash(_without_entries(plain)), "entries": entries})


def question_files(baseline: Baseline, store: Path) -> list[Path]:
    """The files of questions that a baseline in the store of that folder needs beside it."""
    runs = [run for entry in baseline.entries.values() for run in entry.runs]
    asked = {
        questions.questions_of(metric, given).file(store)
        for run in runs
        for metric, given in run.answers.items()
    }
    return sorted(asked)


def _plain_run(store: Path, run: BaselineRun) -> dict[str, Any]:
    """A run as the file has it; the files of its questions are written."""
    plain: dict[str, Any] = to_plain(replace(run, answers={}), leave_out_none=True)
    del plain["answers"]
    answers = {}
    for metric, given in run.answers.items():
        if not given:
            continue
        of_metric = questions.questions_of(metric, given)
        questions.keep(store, of_metric)
        answers[metric] = {
            "task": of_metric.task,
            "questions": of_metric.digest,
            "count": len(of_metric.keys),
            "right": questions.packed(given, of_metric.keys),
        }
    return {**plain, "answers": answers} if answers else plain


def _answered(path: Path, label: str, entry: Entry, told: list[Any]) -> Entry:
    """The entry with the answers of its runs."""
    runs = []
    for number, (run, of_run) in enumerate(zip(entry.runs, told, strict=True)):
        answers = {}
        for metric, one in of_run.items():
            asked = questions.read(_store_of(path), one["task"], one["questions"])
            try:
                if one["count"] != len(asked.keys):
                    told_of = f"{one['count']} answers, {len(asked.keys)} questions"
                    raise InputError("not as many answers as questions", found=told_of)
                answers[metric] = questions.unpacked(one["right"], asked.keys)
            except InputError as error:
                raise InputError(
                    error.problem,
                    file=path,
                    field=f"entries.{label}.runs[{number}].answers.{metric}",
                    found=error.found,
                    hint=_HINT,
                ) from error
        runs.append(replace(run, answers=answers) if answers else run)
    return replace(entry, runs=tuple(runs))


def _is_sample(path: Path, synthetic: bool) -> bool:
    """Whether a file is in a folder of samples; a store of measured baselines may have its name."""
    return synthetic and _store_of(path).name == SAMPLE


def _store_of(path: Path) -> Path:
    return path.parent.resolve().parents[1]


def _baseline(plain: Mapping[str, Any]) -> Baseline:
    accepted = {_ACCEPTED[name]: value for name, value in plain["accepted"].items()}
    return from_plain(Baseline, {**plain, **accepted}, lax=True)


def _without_entries(plain: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in plain.items() if name != "entries"}


def _check_place(path: Path, plain: Mapping[str, Any]) -> None:
    commit = plain["engine"]["commit"]
    said = {"hardware": plain["hardware"], "scenario": plain["scenario"], "engine.commit": commit}
    check_place(path, said)


def _check_entries(path: Path, plain: Mapping[str, Any]) -> None:
    """Refuse numbers that are not those of the head's hashes."""
    said, found = plain["probes"], plain["entries"]
    for label in sorted({*said, *found}):
        right = digest(found[label]) if label in found else ""
        if said.get(label) != right:
            raise InputError(
                "the baseline was edited by hand",
                file=path,
                field=f"entries.{label}",
                found=f"{right[:12]}…, where probes has {said.get(label, 'none')[:12]}…",
                expected=MEASURED,
                hint=f"git checkout -- {path}",
            )


def _check_values(path: Path, entries: dict[str, Any]) -> None:
    for label, entry in entries.items():
        for number, run in enumerate(entry["runs"]):
            field = f"entries.{label}.runs[{number}].metrics"
            for metric, value in run["metrics"].items():
                _check_value(path, f"{field}.{metric}", metric, value)


def _check_value(path: Path, field: str, metric: str, value: float) -> None:
    try:
        lookup(metric)
        possible = 0 <= float(value) <= (1 if is_accuracy(metric) else math.inf)
    except InputError as error:
        raise InputError(
            error.problem, file=path, field=field, found=metric, expected=error.expected, hint=_HINT
        ) from error
    except OverflowError:  # a whole number that no float can hold
        possible = False
    if not possible:
        raise InputError(
            f"not a possible value of {metric}",
            file=path,
            field=field,
            found=f"{value}"[:40],
            expected="0 to 1" if is_accuracy(metric) else "a finite number, not negative",
            hint=_HINT,
        )
