"""The file of a baseline: reading, with everything that can be wrong told; writing, whole.

``hash`` is the SHA-256 of all else, so that a number changed by hand is noticed. It proves nothing
against a person who computes it anew: a baseline changes by review, and review sees the change.
"""

import hashlib
import json
import math
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from perfgate.baselines.baseline import Baseline, BaselineRun, Entry, Retired
from perfgate.core.durable_files import read_json, write_json
from perfgate.core.errors import InputError
from perfgate.core.metrics import is_accuracy, lookup
from perfgate.core.paths import repository
from perfgate.engines.base import EngineBuild

SCHEMA_VERSION = 2
_READABLE = (1, 2)  # version 1 had no hash; it is saved as version 2
_HINT = "restore the file from git, or record the baseline again"


def read(path: Path) -> Baseline:
    """Read one baseline file.

    Raises:
        InputError: not JSON, of a schema version this perfgate does not know, not as the schema
            says, with a metric or a value that cannot be, not where its content belongs, or edited
            by hand.
    """
    plain = _json(path)
    version = plain.get("schema_version") if isinstance(plain, dict) else None
    if version not in _READABLE:
        raise InputError(
            "baseline of an unknown schema version",
            file=path,
            field="schema_version",
            found=version,
            expected=" or ".join(map(str, _READABLE)),
            hint="update perfgate" if isinstance(version, int) and version > 2 else _HINT,
        )
    check_schema(path, plain, "baseline.schema.json", _HINT)
    check_place(path, plain, plain["engine"]["commit"])
    _check_values(path, plain["entries"])
    if version != 1:
        check_hash(path, plain, "the baseline was edited by hand")
    return _from_plain(plain, path)


def write(path: Path, baseline: Baseline) -> None:
    """Write one baseline file, with its hash."""
    write_json(path, with_hash(_to_plain(baseline)))


def with_hash(plain: dict[str, Any]) -> dict[str, Any]:
    """The same with `hash`: that of everything else."""
    rest = {name: value for name, value in plain.items() if name != "hash"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return {**rest, "hash": hashlib.sha256(text.encode()).hexdigest()}


def check_hash(path: Path, plain: dict[str, Any], problem: str) -> None:
    """Refuse what was changed without perfgate.

    Raises:
        InputError: the hash is not that of the rest.
    """
    right = with_hash(plain)["hash"]
    if plain["hash"] != right:
        raise InputError(
            problem,
            file=path,
            field="hash",
            found=f"{plain['hash'][:12]}…, where the content has {right[:12]}…",
            expected="numbers that come from `perfgate baseline record` and `promote` alone",
            hint=f"git checkout -- {path}",
        )


def check_schema(path: Path, plain: object, schema: str, hint: str) -> None:
    """Refuse what is not as `schema`, a file of `baselines/`, says.

    Raises:
        InputError: it is not; with the field.
    """
    validator = _validator(repository() / "baselines" / schema)
    error = best_match(validator.iter_errors(plain))
    if error is not None:
        raise InputError(
            error.message[:300],
            file=path,
            field=".".join(str(part) for part in error.absolute_path) or None,
            hint=hint,
        )


def check_place(path: Path, plain: dict[str, Any], name: str) -> None:
    """Refuse a file that does not lie in ``<hardware>/<scenario>/<name>.json``.

    Raises:
        InputError: it does not; with the field that says otherwise.
    """
    folder = path.parent.resolve()
    found = {
        "hardware": (folder.parent.name, plain["hardware"]),
        "scenario": (folder.name, plain["scenario"]),
        "engine.commit": (path.stem, name),
    }
    wrong = [field for field, (here, said) in found.items() if here != said]
    if wrong:
        raise InputError(
            "the file does not lie where its content belongs",
            file=path,
            field=wrong[0],
            found="/".join(here for here, _ in found.values()),
            expected="/".join(said for _, said in found.values()),
            hint="move it back; a measurement counts only for the hardware it was made on",
        )


@cache
def _validator(schema: Path) -> Draft202012Validator:
    return Draft202012Validator(read_json(schema, what="schema"))


def _json(path: Path) -> Any:
    try:
        return read_json(path, what="baseline", hint=_HINT)
    except InputError as error:
        # JSON knows no NaN; a lenient second reading finds the field that says so.
        if not str(error.found).startswith("not a finite number"):
            raise
        field = _not_finite(json.loads(path.read_text(encoding="utf-8")))
        raise InputError(
            "not a finite number", file=path, field=field, found=error.found, hint=_HINT
        ) from error


def _not_finite(value: object, field: str = "") -> str | None:
    """The place of the first number that is not finite."""
    inside: list[tuple[str, object]] = []
    if isinstance(value, dict):
        inside = [(f"{field}.{name}".lstrip("."), one) for name, one in value.items()]
    elif isinstance(value, list):
        inside = [(f"{field}.{number}", one) for number, one in enumerate(value)]
    elif isinstance(value, float) and not math.isfinite(value):
        return field
    return next((place for name, one in inside if (place := _not_finite(one, name))), None)


def _check_values(path: Path, entries: dict[str, Any]) -> None:
    for label, entry in entries.items():
        for number, run in enumerate(entry["runs"]):
            field = f"entries.{label}.runs.{number}.metrics"
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
            f"no value that {metric} can have",
            file=path,
            field=field,
            found=f"{value}"[:40],
            expected="0 to 1" if is_accuracy(metric) else "a finite number, not negative",
            hint=_HINT,
        )


def _from_plain(plain: dict[str, Any], path: Path) -> Baseline:
    accepted = plain["accepted"]
    entries = {
        label: Entry(entry["fingerprint"], tuple(map(_run, entry["runs"])))
        for label, entry in plain["entries"].items()
    }
    retired = plain.get("retired")
    return Baseline(
        scenario=plain["scenario"],
        hardware=plain["hardware"],
        engine=EngineBuild(**plain["engine"]),
        accepted_by=accepted["by"],
        accepted_at=accepted["at"],
        reason=accepted["reason"],
        entries=entries,
        verdicts=plain.get("verdicts", {}),
        change=accepted.get("change", "none"),
        regression=accepted.get("regression", ""),
        retired=Retired(**retired) if retired else None,
        file=path,
    )


def _run(plain: dict[str, Any]) -> BaselineRun:
    answers = {
        metric: {key: bool(right) for key, right in given.items()}
        for metric, given in plain.get("answers", {}).items()
    }
    return BaselineRun(
        plain["run"],
        plain["started"],
        plain["metrics"],
        answers,
        plain.get("seconds"),
        plain.get("start"),
    )


def _to_plain(baseline: Baseline) -> dict[str, Any]:
    engine, retired = baseline.engine, baseline.retired
    accepted = {
        "by": baseline.accepted_by,
        "at": baseline.accepted_at,
        "reason": baseline.reason,
        "change": baseline.change,
    }
    if baseline.regression:
        accepted["regression"] = baseline.regression
    plain: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "scenario": baseline.scenario,
        "hardware": baseline.hardware,
        "engine": {"name": engine.name, "version": engine.version, "commit": engine.commit},
        "accepted": accepted,
        "verdicts": dict(baseline.verdicts),
        "entries": {
            label: {
                "fingerprint": dict(entry.fingerprint),
                "runs": [_plain_run(run) for run in entry.runs],
            }
            for label, entry in baseline.entries.items()
        },
    }
    if retired:
        plain["retired"] = {"by": retired.by, "at": retired.at, "reason": retired.reason}
    return plain


def _plain_run(run: BaselineRun) -> dict[str, Any]:
    plain: dict[str, Any] = {"run": run.run, "started": run.started, "metrics": dict(run.metrics)}
    if run.answers:
        plain["answers"] = {
            metric: {key: int(right) for key, right in answers.items()}
            for metric, answers in run.answers.items()
        }
    for name, value in (("seconds", run.seconds), ("start", run.start)):
        if value is not None:
            plain[name] = value
    return plain
