"""Read waivers.yaml: known losses that are let through for a time; errors with file and line.

Whether a waiver names anything that the suite has, and what it lets through, is not decided here
but in `waiving` and `faulty`.
"""

import re
from pathlib import Path
from typing import Any

from perfgate.baselines.waivers.rules import broken_waiver_rules
from perfgate.baselines.waivers.waiver import Waiver
from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.core.paths import found_in_repository
from perfgate.core.plain import from_plain
from perfgate.scenarios.yaml_document import Document, read_document

_LAST_DAY = re.compile(r"waivers\[[0-9]+\]\.last_day")


def default_file() -> Path:
    """The gate repository's own list."""
    return found_in_repository("waivers.yaml")


def load_waivers(path: Path | None = None) -> tuple[Waiver, ...]:
    """The waivers of a file, in its order.

    Args:
        path: the file; None: the suite's own, which may be missing and then holds no waiver.

    Raises:
        SeveralInputErrors: all that is wrong with the file.
    """
    file = path or default_file()
    if file == default_file() and not file.exists():
        return ()
    if not file.exists():
        missing = InputError(
            "no such file",
            field="--waivers",
            found=file,
            expected="a file of waivers",
            hint="name another file; without the option the suite's own is read",
        )
        raise SeveralInputErrors([missing])
    document, errors = read_document(
        file,
        expected="schema_version and waivers",
        hint="write schema_version: 1 and waivers: [] (docs/how-to/waivers.md), "
        "or restore it from git",
    )
    if document is None:
        raise SeveralInputErrors(errors)
    errors = [error for error in errors if not _is_written_day(error)]
    known = {error.line for error in errors}  # what else is wrong in such a line follows from it
    found = (document.error(problem) for problem in broken_waiver_rules(document))
    errors += [error for error in found if error.line not in known]
    if errors:
        raise SeveralInputErrors(sorted(errors, key=lambda error: error.line or 0))
    plain: Any = document.value
    return tuple(_waiver(document, number, one) for number, one in enumerate(plain["waivers"]))


def _waiver(document: Document, number: int, plain: dict[str, Any]) -> Waiver:
    read = {
        **plain,
        "reason": " ".join(plain["reason"].split()),
        "owner": " ".join(plain["owner"].split()),
        "line": document.line(("waivers", number)) or 1,
        "file": document.file,
    }
    return from_plain(Waiver, read)


def _is_written_day(error: InputError) -> bool:
    """Whether only the way in which a last day is written was refused.

    YAML has a kind of its own for dates without quotes. The text is kept, and the schema tells
    whether it is a day. (A field given twice tells no value.)
    """
    return error.found is not None and _LAST_DAY.fullmatch(error.field or "") is not None
