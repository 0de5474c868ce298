"""Files that outlive a run: written whole or not at all, appended line by whole line.

What a function here has written is there after a power cut too, once it has returned: the file, its
name in its folder, and the folders that were made for it. Rights are those that the umask leaves.

Text that is not Unicode (a file name, a byte of a program's output) is written as the escape
``\\udcXX``, which JSON reads back as the same text.
"""

import errno
import fcntl
import json
import math
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any

from perfgate.core.errors import InputError, RunError

_BLOCK_BYTES = 65536
_SHOWN_BYTES = 60  # of a damaged line


_FULL = (errno.ENOSPC, errno.EDQUOT)
# What file systems answer that cannot make the names in a folder durable (fsync(2), and some
# network and FUSE file systems).
_NO_SYNC_OF_FOLDERS = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EBADF)


@contextmanager
def disk_errors_named(path: Path) -> Iterator[None]:
    """Turn a full disk, or a used-up share of it, into an error that says so.

    Raises:
        RunError: class ``disk_full``; other errors of the file system stay as they are.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise cannot_write(path, error) from error
        raise


@contextmanager
def write_errors_named(path: Path, hint: str | None = None) -> Iterator[None]:
    """Turn whatever keeps a file or folder from being written into an error that says so.

    Args:
        path: what is written, or the folder that it goes into.
        hint: the next step; None: that of the class.

    Raises:
        RunError: class ``disk_full``, or ``unwritable`` for any other reason.
    """
    try:
        yield
    except OSError as error:
        raise cannot_write(path, error, hint) from error


def cannot_write(path: Path | str | None, error: OSError, hint: str | None = None) -> RunError:
    """What a run fails with that cannot write `path`; None: a file that the system did not name."""
    what = "a file" if path is None else str(path)
    told = f"cannot write {what}: {error.strerror or error}"
    if error.errno in _FULL:
        return RunError("disk_full", told, hint=hint)
    return RunError("unwritable", told, hint=hint)


def is_unwritable(error: BaseException | None) -> bool:
    """Whether `error` says that something could not be written, for want of room or of the right.

    Of an error that only the system has named, a full disk and a read-only one.
    """
    if isinstance(error, OSError):
        return error.errno in (*_FULL, errno.EROFS)
    return isinstance(error, RunError) and error.failure in ("disk_full", "unwritable")


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing.

    Raises:
        OSError: it cannot be made, or something else has the name.
    """
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Have the names in `folder` outlast a power cut, where its file system can do that."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        return  # a folder that may be written to but not read cannot be opened for it
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC_OF_FOLDERS:
            raise
    finally:
        os.close(descriptor)


def make_executable(path: Path) -> None:
    """Let everybody run a file who may read it."""
    mode = path.stat().st_mode
    path.chmod(stat.S_IMODE(mode) | (mode & 0o444) >> 2)


def write_text(path: Path, text: str) -> None:
    """Write `path` so that a reader sees the old content or the new, never a part.

    Raises:
        RunError: it cannot be written (class ``disk_full`` or ``unwritable``); the old content is
            untouched, or the new one is there, but may not outlast a power cut.
    """
    with write_errors_named(path):
        make_folder(path.parent)
        draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
        try:
            # Not tempfile's: its files are for their owner alone, whatever the umask.
            new = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            with os.fdopen(new, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except BaseException:
            with suppress(OSError):
                draft.unlink()
            raise
        sync_folder(path.parent)


def write_json(path: Path, value: object) -> None:
    """Write `value` as JSON that reads and merges well: indented, one key a line, sorted."""
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")


def append_line(path: Path, value: Mapping[str, object]) -> None:
    """Append one JSON object as one line; lines of several processes do not mix.

    What a killed process left of its last line is taken away first.

    Raises:
        RunError: it cannot be written (class ``disk_full`` or ``unwritable``), or the file system
            has no locks; what was written of the line is undone.
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"
    line = memoryview(text.encode(errors="backslashreplace"))
    # Unbuffered: a buffer would write the rest of a failed line when the file is closed.
    with write_errors_named(path), path.open("a+b", buffering=0) as file:
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
        if end == 0:  # the file may be new
            sync_folder(path.parent)


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
        InputError: no such file, not readable, not UTF-8, or not JSON, which knows no infinity;
            with the line where it breaks.
    """
    try:
        text = path.read_text(encoding="utf-8")
        return json.loads(text, parse_float=_finite, parse_constant=_finite)
    except FileNotFoundError:
        raise InputError(f"no such {what}", file=path, hint=hint) from None
    except OSError as error:
        raise InputError(
            f"{what} cannot be read", file=path, found=error.strerror, hint=hint
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{what} is not UTF-8 text", file=path, hint=hint) from error
    except json.JSONDecodeError as error:
        raise InputError(
            f"{what} is not JSON", file=path, line=error.lineno, found=error.msg, hint=hint
        ) from error
    except ValueError as error:
        raise InputError(f"{what} is not JSON", file=path, found=str(error), hint=hint) from error


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"not a finite number: {text}")
    return value


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
    problem = "not JSON"
    try:
        value = json.loads(line.decode(), parse_constant=_finite)
        if isinstance(value, dict):
            return value
        problem = "not a JSON object"
    except (ValueError, RecursionError):
        pass
    found = line[:_SHOWN_BYTES].decode(errors="backslashreplace")
    found = repr(found) + (f", {len(line)} bytes" if len(line) > _SHOWN_BYTES else "")
    raise InputError(
        problem, file=path, line=number, found=found, expected="a JSON object", hint=hint
    )
