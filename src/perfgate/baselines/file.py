"""The file of a baseline: reading, with everything that can be wrong told; writing, whole."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfgate.baselines.baseline import Baseline
from perfgate.baselines.stored_json import check_hash, check_place, read_stored, with_hash
from perfgate.core.durable_files import write_json
from perfgate.core.errors import InputError
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.plain import from_plain, to_plain

SCHEMA_VERSION = 2
_WITHOUT_HASH = (
    "it has no hash, so nobody can tell whether its numbers were measured: record the runs again "
    "(perfgate baseline record RUN) and promote them; without the runs, delete it and measure again"
)
_HINT = "restore the file from git, or record the baseline again"

# Fields that the file keeps together, as `accepted`: the name there → the baseline's.
_ACCEPTED = {
    "by": "accepted_by",
    "at": "accepted_at",
    "reason": "reason",
    "change": "change",
    "regression": "regression",
}


def read(path: Path) -> Baseline:
    """Read one baseline file.

    Raises:
        InputError: not JSON, of a schema version this perfgate does not know, not as the schema
            says, with a metric or a value that cannot be, not where its content belongs, or edited
            by hand.
    """
    plain = read_stored(
        path,
        what="baseline",
        schema="baseline.schema.json",
        versions=[SCHEMA_VERSION],
        hint=_HINT,
        dropped={1: _WITHOUT_HASH},
    )
    commit = plain["engine"]["commit"]
    said = {"hardware": plain["hardware"], "scenario": plain["scenario"], "engine.commit": commit}
    check_place(path, said)
    _check_values(path, plain["entries"])
    check_hash(path, plain, "baseline")
    accepted = {_ACCEPTED[name]: value for name, value in plain["accepted"].items()}
    return replace(from_plain(Baseline, {**plain, **accepted}, lax=True), file=path)


def write(path: Path, baseline: Baseline) -> None:
    """Write one baseline file, with its hash."""
    plain = to_plain(replace(baseline, file=None), leave_out_none=True)
    accepted = {name: plain.pop(field) for name, field in _ACCEPTED.items()}
    if not baseline.regression:
        del accepted["regression"]
    if not baseline.synthetic:
        del plain["synthetic"]
    if baseline.source is not None:
        plain["source"] = {name: told for name, told in plain["source"].items() if told}
    for entry in plain["entries"].values():
        for run in entry["runs"]:
            answers = run.pop("answers")
            if answers:
                run["answers"] = {
                    metric: {key: int(right) for key, right in given.items()}
                    for metric, given in answers.items()
                }
    plain = {**plain, "schema_version": SCHEMA_VERSION, "accepted": accepted}
    write_json(path, with_hash(plain))


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
