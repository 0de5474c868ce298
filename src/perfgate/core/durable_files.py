"""Files that outlive a run: written whole or not at all, appended line by whole line.

Text that is not Unicode (a file name, a byte of a program's output) is written as the escape
``\\udcXX``, which JSON reads back as the same text.
"""

import errno
import fcntl
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any

from perfgate.core import json_text
from perfgate.core.errors import InputError, RunError
from perfgate.core.input_files import read_input

_BLOCK_BYTES = 65536
_SHOWN_BYTES = 60  # of a damaged line


@contextmanager
def disk_errors_named(path: Path) -> Iterator[None]:
    """Turn a full disk, or a used-up share of it, into an error that says so.

    Raises:
        RunError: class ``disk_full``; other errors of the file system stay as they are.
    """
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise RunError("disk_full", f"cannot write {path}: {error.strerror}") from error
        raise


def write_text(path: Path, text: str) -> None:
    """Write `path` so that a reader sees the old content or the new, never a part.

    Raises:
        RunError: the disk is full (class ``disk_full``); the old content is untouched.
    """
    with disk_errors_named(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(0o644)
            Path(name).replace(path)
        except BaseException:
            with suppress(FileNotFoundError):
                Path(name).unlink()
            raise


def write_json(path: Path, value: object) -> None:
    """Write `value` as JSON that reads and merges well: indented, one key a line, sorted."""
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")


def append_line(path: Path, value: Mapping[str, object]) -> None:
    """Append one JSON object as one line; lines of several processes do not mix.

    What a killed process left of its last line is taken away first.

    Raises:
        RunError: the disk is full (class ``disk_full``); what was written of the line is undone.
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"
    line = memoryview(text.encode(errors="backslashreplace"))
    # Unbuffered: a buffer would write the rest of a failed line when the file is closed.
    with disk_errors_named(path), path.open("a+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        end = _end_of_whole_lines(file)
        try:
            file.truncate(end)
            while line:
                line = line[file.write(line) :]
            os.fsync(file.fileno())
        except BaseException:
            file.truncate(end)
            raise


def _end_of_whole_lines(file: FileIO) -> int:
    """Where the last whole line of `file` ends."""
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - _BLOCK_BYTES)
        file.seek(start)
        newline = file.read(end - start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def read_json(path: Path, *, what: str, hint: str | None = None) -> Any:
    """Read one JSON document.

    Raises:
        InputError: no such file, not readable, too large, not UTF-8, or not JSON as perfgate writes
            it: no infinity, no field twice; with the line where it breaks.
    """
    try:
        content = read_input(path, json_text.LARGEST_OWN, what)
        return json_text.parse(content, limit=json_text.LARGEST_OWN, own=True)
    except FileNotFoundError:
        raise InputError(f"no such {what}", file=path, hint=hint) from None
    except OSError as error:
        raise InputError(
            f"{what} cannot be read", file=path, found=error.strerror, hint=hint
        ) from error
    except json_text.JsonError as error:
        raise error.input_error(what, file=path, hint=hint) from error


def read_lines(path: Path, hint: str | None = None) -> list[dict[str, Any]]:
    """The JSON objects of a line file; a last line without its end, cut by a kill, is left out.

    Args:
        path: the file; one that is missing has no lines.
        hint: the next step where a line is damaged.

    Raises:
        InputError: the file cannot be read, or a whole line is not a JSON object.
    """
    try:
        *lines, _cut = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError("cannot be read", file=path, found=error.strerror) from error
    return [_object(line, path, number, hint) for number, line in enumerate(lines, start=1)]


def _object(line: bytes, path: Path, number: int, hint: str | None) -> dict[str, Any]:
    try:
        value: dict[str, Any] = json_text.parse_object(line, limit=json_text.LARGEST_OWN, own=True)
        return value
    except json_text.JsonError as error:
        problem = error.problem.removeprefix("is ")
    found = line[:_SHOWN_BYTES].decode(errors="backslashreplace")
    found = repr(found) + (f", {len(line)} bytes" if len(line) > _SHOWN_BYTES else "")
    raise InputError(
        problem, file=path, line=number, found=found, expected="a JSON object", hint=hint
    )
