"""Site: what is true of a cluster and not of a scenario: partition, account, container, limits.

Read from ``site.yaml`` in the checkout, or the file that PERFGATE_SITE names; without one, Slurm's
own defaults hold. docs/slurm.md tells the fields, and how SBATCH_* variables go before them.
"""

import difflib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from perfgate.durable import read_json
from perfgate.errors import InputError, SeveralInputErrors
from perfgate.paths import repository
from perfgate.scenarios.problem import Keys, dotted
from perfgate.scenarios.yaml_document import Document, read_document

VARIABLE = "PERFGATE_SITE"
SCHEMA = Path(__file__).with_name("site.schema.json")

_PROBLEMS = {
    "type": "wrong type",
    "const": "not an allowed value",
    "enum": "not an allowed value",
    "pattern": "malformed",
    "minLength": "empty",
    "minimum": "out of range",
    "exclusiveMinimum": "out of range",
}


@dataclass(frozen=True)
class SlurmContainer:
    """The container of engine programs, as the pyxis plugin takes it."""

    image: str
    mounts: tuple[str, ...] = ()


@dataclass(frozen=True)
class SlurmSite:
    """How jobs are asked for; None leaves it to Slurm.

    Attributes:
        partition, account, qos, constraint, reservation, nodelist: as sbatch takes them.
        gres: GPUs of a node, with ``{gpus}`` for their number and ``{gpu}`` for the scenario's
            GPU name; only asked for where a scenario needs GPUs.
        exclusive: whether nobody else may use the nodes: anything else disturbs a measurement.
        memory: of each node; "0" is all of it.
        segment: nodes that must be close together, as ``--segment`` takes it.
        options: further options of sbatch.
        step_options: further options of srun.
        container: the container of engine programs; None: none.
        clients: "beside": load clients run on the server's node; "login": where perfgate runs.
        time_margin_s: added to what the scenario's limits allow.
        most_time_s: never ask for more than this; None: no such limit.
        pending_limit_s: longest time that a job may wait for its nodes.
        lost_after_s: a job whose perfgate gives no sign of life for so long ends by itself.
    """

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    reservation: str | None = None
    nodelist: str | None = None
    gres: str = "gpu:{gpus}"
    exclusive: bool = True
    memory: str | None = "0"
    segment: int | None = None
    options: tuple[str, ...] = ()
    step_options: tuple[str, ...] = ()
    container: SlurmContainer | None = None
    clients: str = "beside"
    time_margin_s: float = 300.0
    most_time_s: float | None = None
    pending_limit_s: float = 4 * 3600.0
    lost_after_s: float = 180.0


def load_site(path: Path | None = None) -> SlurmSite:
    """The site's settings.

    Args:
        path: the file; None: PERFGATE_SITE, else ``site.yaml`` in the checkout, which may be
            missing.

    Raises:
        SeveralInputErrors: all that is wrong with the file.
    """
    file = path or _from_environment()
    if file is None:
        file = repository() / "site.yaml"
        if not file.exists():
            return SlurmSite()
    document, errors = read_document(file)
    if document is None:
        raise SeveralInputErrors([_of_site(error) for error in errors])
    if not errors:  # what the reader refused would be told a second time
        errors = list(_broken(document))
    if errors:
        raise SeveralInputErrors(sorted(errors, key=lambda error: error.line or 0))
    whole: Any = document.value
    return _site(whole.get("slurm", {}))


def _from_environment() -> Path | None:
    setting = os.environ.get(VARIABLE)
    return Path(setting).absolute() if setting else None


def _site(plain: dict[str, Any]) -> SlurmSite:
    values = dict(plain)
    for name in ("options", "step_options"):
        if name in values:
            values[name] = tuple(values[name])
    if "container" in values:
        container = values["container"]
        mounts = tuple(container.get("mounts", ()))
        values["container"] = SlurmContainer(container["image"], mounts)
    return SlurmSite(**values)


def _of_site(error: InputError) -> InputError:
    if error.problem != "empty file":
        return error
    return InputError(
        error.problem,
        file=error.file,
        expected="schema_version and slurm",
        hint="begin with site.example.yaml, or delete the file",
    )


@cache
def _validator() -> Draft202012Validator:
    return Draft202012Validator(read_json(SCHEMA, what="schema"))


def _broken(document: Document) -> Iterator[InputError]:
    """What the schema does not allow, one error a place."""
    told: set[Keys] = set()
    for error in _validator().iter_errors(document.value):
        for path, problem, expected, hint in _in_words(error):
            if path not in told:
                told.add(path)
                yield InputError(
                    problem,
                    file=document.file,
                    line=_line(document, path),
                    field=dotted(path) or None,
                    found=error.instance if path == tuple(error.absolute_path) else None,
                    expected=expected,
                    hint=hint,
                )


def _in_words(error: ValidationError) -> Iterator[tuple[Keys, str, str, str | None]]:
    path: Keys = tuple(error.absolute_path)
    rule: Any = error.schema
    given: Any = error.instance
    if error.validator == "additionalProperties":
        known = list(rule["properties"])
        for name in given:
            if name not in known:
                close = difflib.get_close_matches(str(name), known, n=1)
                hint = f"did you mean {close[0]}?" if close else None
                yield (*path, name), "unknown field", "one of " + ", ".join(known), hint
    elif error.validator == "required":
        for name in rule["required"]:
            if name not in given:
                yield (*path, name), "missing", rule["properties"][name]["description"], None
    else:
        is_bare = error.validator == "type" and isinstance(given, bool | int | float)
        hint = "quote it" if is_bare and rule["type"] == "string" else None
        problem = _PROBLEMS.get(str(error.validator), error.message)
        yield path, problem, rule["description"], hint


def _line(document: Document, path: Keys) -> int | None:
    """The line of a place, or of the nearest thing around it."""
    lines = (document.line(path[:end]) for end in range(len(path), -1, -1))
    return next((line for line in lines if line), None)
