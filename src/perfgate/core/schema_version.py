"""Schema version: one version of each file is read; of another, say who wrote it, what to do."""

from pathlib import Path
from typing import Any

from perfgate.core.errors import InputError


def require_version(path: Path, plain: Any, *, what: str, version: int, hint: str) -> None:
    """Check the schema version of a file of perfgate's own.

    Args:
        path: the file.
        plain: its content.
        what: what it is, for messages.
        version: the only version that this perfgate reads.
        hint: what to do where the file has no version at all.

    Raises:
        InputError: it has another version, or none.
    """
    found = plain.get("schema_version") if isinstance(plain, dict) else None
    if found == version:
        return
    problem = f"{what} of an unknown schema version"
    if type(found) is int and found > version:
        problem, hint = f"{what} written by a newer perfgate", "update perfgate"
    elif type(found) is int and found > 0:
        problem, hint = f"{what} written by an older perfgate", "measure and record it again"
    raise InputError(
        problem,
        file=path,
        field="schema_version",
        found=found,
        expected=f"{version}, the one that this perfgate reads",
        hint=hint,
    )
