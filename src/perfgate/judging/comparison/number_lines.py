"""Lines of `perfgate judge`: a test of numbers as JSON, checked field by field. Pure.

People and programs write these lines by hand, so that every message says where what is wrong.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perfgate.core import json_text
from perfgate.core.errors import InputError
from perfgate.judging.comparison.numbers import NumberTest

REQUIRED = ("metric", "baseline", "new")
RATES = ("band", "sigma")
COUNTS = ("max_runs", "questions", "sessions")
CONTROLS = "controls"
LARGEST_LINE = 2**20  # bytes: the values of 50,000 fresh starts
FIELDS = (*REQUIRED, *RATES, *COUNTS, CONTROLS)


def read_question(text: str, *, file: Path, line: int) -> NumberTest:
    """Read one line.

    Args:
        text: the line.
        file: where it comes from, for messages.
        line: its number there.

    Raises:
        InputError: it is no JSON object, or a field is missing, unknown or of another kind.
    """
    try:
        fields = json_text.parse(text, limit=LARGEST_LINE, own=True)
    except json_text.JsonError as error:
        if not error.is_cut:
            raise error.input_error("the line", file=file, line=line) from None
        raise InputError(
            "the line is not JSON",
            file=file,
            line=line,
            found=f"{text.strip()[:80]} ({error.found})",
            expected='one whole object, e.g. {"metric": "output_throughput", '
            '"baseline": [101, 99.7], "new": [96.1]}',
        ) from None
    try:
        return _question(fields)
    except InputError as error:
        raise placed(error, file=file, line=line) from None


def placed(error: InputError, *, file: Path, line: int) -> InputError:
    """The same error with the place where it was found."""
    return InputError(
        error.problem,
        file=file,
        line=line,
        field=error.field,
        found=error.found,
        expected=error.expected,
        hint=error.hint,
    )


def _question(fields: Any) -> NumberTest:
    if not isinstance(fields, dict):
        raise InputError(
            "not a JSON object", found=_shown(fields), expected="an object with " + _listed()
        )
    for name in fields:
        if name not in FIELDS:
            raise InputError("unknown field", field=name, expected=_listed())
    for name in REQUIRED:
        if name not in fields:
            raise InputError("the field is missing", field=name, expected=_listed())
    metric = fields["metric"]
    if not isinstance(metric, str):
        raise InputError(
            "not a metric's name",
            field="metric",
            found=_shown(metric),
            expected='text, e.g. "output_throughput"',
        )
    rates = {name: _optional(fields, name, _number) for name in RATES}
    counts = {name: _optional(fields, name, _count) for name in COUNTS}
    controls = fields.get(CONTROLS)
    return NumberTest(
        metric,
        _values(fields, "baseline"),
        _values(fields, "new"),
        # An empty list says that the other build can be started, and was not yet.
        controls=None if controls is None else _values(fields, CONTROLS) if controls != [] else (),
        **rates,
        **counts,
    )


def _listed() -> str:
    return ", ".join(REQUIRED) + " and perhaps " + ", ".join((*RATES, *COUNTS, CONTROLS))


def _optional(fields: dict[str, Any], name: str, read: Callable[[str, object], Any]) -> Any:
    return None if fields.get(name) is None else read(name, fields[name])


def _values(fields: dict[str, Any], name: str) -> tuple[float, ...]:
    """The values of a list; a single number counts as a list of one."""
    found = fields[name]
    if not isinstance(found, list):
        return (_number(name, found),)
    if not found:
        raise InputError(
            "no values",
            field=name,
            found="[]",
            expected="at least one number",
            hint="one value per fresh start of the engine",
        )
    return tuple(_number(name, value, position) for position, value in enumerate(found, start=1))


def _number(name: str, value: object, position: int = 0) -> float:
    problem = f"value {position} is not a number" if position else "not a number"
    if isinstance(value, bool) or not isinstance(value, int | float):
        hint = "write it without quotes" if isinstance(value, str) else None
        raise InputError(
            problem, field=name, found=_shown(value), expected="a number, e.g. 96.1", hint=hint
        )
    try:
        return float(value)
    except OverflowError:
        raise InputError(
            problem, field=name, found=_shown(value), expected="a finite number"
        ) from None


def _count(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 10**12:
        raise InputError(
            "not a count", field=name, found=_shown(value), expected="a whole number of 1 or more"
        )
    return value


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}…"
