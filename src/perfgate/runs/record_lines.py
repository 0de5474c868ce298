"""Record lines: read ``records.jsonl``; what is damaged is told with its line and its field.

A field has one type in all kinds of records. Which of them a record needs is known where it is
used: a field that is missing there is told as a damaged line, too.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from perfgate.core.durable_files import read_lines
from perfgate.core.errors import InputError
from perfgate.core.verdict import Verdict

HINT = "restore run.json and records.jsonl from a copy, or measure anew in a run of its own"


class RecordLine(dict[str, Any]):
    """One record; a field that it lacks is an error with file, line and field."""

    def __init__(self, fields: dict[str, Any], file: Path, number: int) -> None:
        super().__init__(fields)
        self._file = file
        self._number = number

    def __missing__(self, field: str) -> Any:
        raise self.damaged(field, "this field, as perfgate writes it")

    def damaged(self, field: str, expected: str) -> InputError:
        """What is wrong with a field of it."""
        found = repr(self.get(field))[:80] if field in self else "nothing"
        return InputError(
            "a record is not whole",
            file=self._file,
            line=self._number,
            field=field,
            found=found,
            expected=expected,
            hint=HINT,
        )


def read_records(file: Path, base: Path | None = None) -> list[RecordLine]:
    """The records of a run, in order; a last line that was cut by a kill is left out.

    Args:
        file: ``records.jsonl``.
        base: the run's ``run.json``, on which the checksums rest; None: they are not checked.

    Raises:
        InputError: a line is not JSON, is not as it was written, or a field of it is not of its
            type.
    """
    lines = read_lines(file, HINT, base=base)
    return [_checked(RecordLine(one, file, number)) for number, one in enumerate(lines, start=1)]


def require_agreement(facts: Mapping[str, Any], lines: Iterable[RecordLine]) -> None:
    """Check that no record calls real what the run as a whole says stand-ins made.

    Args:
        facts: content of ``run.json``.
        lines: the records.

    Raises:
        InputError: one does.
    """
    if facts.get("synthetic"):
        for line in lines:
            if line.get("synthetic") is False:
                raise line.damaged("synthetic", "true: run.json says that it was a rehearsal")


def _checked(line: RecordLine) -> RecordLine:
    if "record" not in line:
        raise line.damaged("record", "the kind of the record")
    for field, value in line.items():
        rule = _FIELDS.get(field)
        if rule is not None and not rule[1](value):
            raise line.damaged(field, rule[0])
    return line


def _is(*types: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, types)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_mappings(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(one, dict) for one in value.values())


def _is_lists_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_texts, value))


def _is_documented(value: Any) -> bool:
    fields = {"metric", "value", "unit", "source", "change"}
    return isinstance(value, list) and all(
        isinstance(one, dict) and one.keys() == fields for one in value
    )


def _is_numbers(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(one, int | float) and not isinstance(one, bool) for one in value.values()
    )


def _is_mapping_of(*fields: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and set(fields) <= value.keys()


def _or_none(rule: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or rule(value)


_TEXT = ("text", _is(str))
_TEXTS = ("a list of texts", _is_texts)
_MAPPING = ("a mapping", _is(dict))
_FIELDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("record", "test", "scenario", "probe", "hardware", "role", "reason"), _TEXT),
    **dict.fromkeys(("tests", "repeats", "keeps", "disturbed", "injected", "notes"), _TEXTS),
    **dict.fromkeys(("settings", "failed", "bugs", "markers"), _TEXTS),
    **dict.fromkeys(("title", "engine_name", "model", "document", "section", "rerun"), _TEXT),
    **dict.fromkeys(("expression", "selection"), _TEXT),
    **dict.fromkeys(("gpus", "number", "of"), ("a whole number", _is(int))),
    "subjects": ("a mapping of mappings", _is_mappings),
    "scenarios": ("a list of lists of texts", _is_lists_of_texts),
    "documented": ("a list of values with metric, value, unit, source and change", _is_documented),
    **dict.fromkeys(("facts", "answers", "content", "fingerprint"), _MAPPING),
    "metrics": ("metric → number", _is_numbers),
    "starts": ("a whole number, or numbers by their names", _is(int, dict)),
    "verdict": (f"one of {', '.join(Verdict)}", lambda value: value in list(Verdict)),
    "engine": (
        "name, version and commit of a build",
        _or_none(_is_mapping_of("name", "version", "commit")),
    ),
    "error": (
        "class, message, evidence and next step of a failure",
        _or_none(_is_mapping_of("class", "message", "evidence", "next_step")),
    ),
    "judgements": ("a list", _is(list)),
    "observed": ("a list, or a mapping", _is(list, dict)),
}
