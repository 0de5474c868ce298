"""Files that outlive a run: written whole or not at all, appended line by whole line.

What a function here has written is there after a power cut too, once it has returned: the file, its
name in its folder, and the folders that were made for it. Rights are those that the umask leaves.
Lines are appended and read without following a link, with a checksum each where that is asked for.
A kept folder is made once and used by later runs, with size and hash of its files: what a power
cut, a full disk or a stray hand has cut or changed is made again.

Text that is not Unicode (a file name, a byte of a program's output) is written as the escape
``\\udcXX``, which JSON reads back as the same text.
"""

import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any

from perfgate.core.errors import InputError, RunError
from perfgate.core.files import json_text, untrusted_files
from perfgate.core.files.remembered import file_sha256
from perfgate.core.files.untrusted_files import open_regular, opened_regular

CHECKSUMS = "checksums.json"  # in each kept folder, about the files beside it
ANOTHER_STORE = "free space, or choose another folder with PERFGATE_HOME"
_BLOCK_BYTES = 65536
_SHOWN_BYTES = 60  # of a damaged line

_FULL = (errno.ENOSPC, errno.EDQUOT)
# What file systems answer that cannot make the names in a folder durable (fsync(2), and some
# network and FUSE file systems).
_NO_SYNC_OF_FOLDERS = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EBADF)


@contextmanager
def write_errors_named(
    path: Path, hint: str | None = None, *, only_full: bool = False
) -> Iterator[None]:
    """Turn whatever keeps a file or folder from being written into an error that says so.

    Args:
        path: what is written, or the folder that it goes into.
        hint: the next step; None: that of the class.
        only_full: leave other errors of the file system than a full disk as they are.

    Raises:
        RunError: class ``disk_full`` (also of a used-up quota), or ``unwritable`` for any other
            reason.
    """
    try:
        yield
    except OSError as error:
        if only_full and error.errno not in _FULL:
            raise
        raise cannot_write(path, error, hint) from error


def cannot_write(path: Path | str | None, error: OSError, hint: str | None = None) -> RunError:
    """What a run fails with that cannot write `path`; None: a file that the system did not name."""
    what = "a file" if path is None else str(path)
    problem = f"cannot write {what}: {error.strerror or error}"
    failure = "disk_full" if error.errno in _FULL else "unwritable"
    return RunError(failure, problem, hint=hint)


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


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A draft beside `path`, not there yet, that is put in its place where the block does not fail.

    So a reader sees the old content or the new, never a part. The block makes the draft and has its
    content outlast a power cut.

    Raises:
        RunError: it cannot be written (class ``disk_full`` or ``unwritable``); the old content is
            untouched, or the new one is there, but may not outlast a power cut.
    """
    with write_errors_named(path):
        make_folder(path.parent)
        # Not tempfile's: its files are for their owner alone, whatever the umask.
        draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
        try:
            yield draft
            draft.replace(path)
        except BaseException:
            with suppress(OSError):
                draft.unlink()
            raise
        sync_folder(path.parent)


def write_text(path: Path, text: str) -> None:
    """Write `path` whole or not at all; errors as of `written_whole`."""
    with written_whole(path) as draft:
        new = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        with os.fdopen(new, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())


def write_json(path: Path, value: object) -> None:
    """Write `value` as JSON that reads and merges well: indented, one key a line, sorted."""
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")


def append_line(path: Path, value: Mapping[str, object], *, base: Path | None = None) -> None:
    """Append one JSON object as one line; lines of several processes do not mix.

    What a killed process left of its last line is taken away first.

    Args:
        path: the file; it is made if it is missing.
        value: the object.
        base: the file on whose content the checksum of the first line rests, and with it those of
            all; None: lines have no checksums.

    Raises:
        RunError: it cannot be written (class ``disk_full`` or ``unwritable``), or the file system
            has no locks; what was written of the line is undone.
        InputError: something else is in the file's place, or its last line has no checksum.
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)
    line = text.encode(errors="backslashreplace")
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    # Unbuffered: a buffer would write the rest of a failed line when the file is closed.
    with write_errors_named(path), FileIO(opened_regular(path, flags), "a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        end = _end_of_whole_lines(file)
        if base is not None:
            line = sealed(line, _last_checksum(path, file, end, base))
        left = memoryview(line + b"\n")
        try:
            file.truncate(end)
            while left:
                left = left[file.write(left) :]
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


def _last_checksum(path: Path, file: FileIO, end: int, base: Path) -> str:
    """The checksum that the next line follows: that of the last whole line, else of `base`."""
    if end == 0:
        return checksum_of_file(base)
    file.seek(max(0, end - 1 - SEAL_BYTES))
    found = checksum_of(file.read(min(end - 1, SEAL_BYTES)))
    if found is None:
        raise InputError(
            "the last line has no checksum, so something else than perfgate wrote it",
            file=path,
            expected="lines as perfgate writes them",
            hint="measure again in a new run folder",
        )
    return found


def checksum_of_file(path: Path) -> str:
    """What the checksum of the first line follows: that of another file's content."""
    with open_regular(path) as file:
        return hashlib.sha256(file.read()).hexdigest()[:_DIGITS]


def read_json(path: Path, *, what: str, hint: str | None = None, is_named: bool = True) -> Any:
    """Read one JSON document.

    Args:
        path: the file.
        what: what it is, in words.
        hint: the next step where it cannot be read.
        is_named: whether a person named it, and may have named a link.

    Raises:
        InputError: no such file, not readable, too large, not UTF-8, or not JSON as perfgate writes
            it: no infinity, no field twice; with the line where it breaks.
    """
    try:
        if is_named:
            content = untrusted_files.read_input(path, json_text.LARGEST_OWN, what)
        else:
            content = untrusted_files.read_regular(path, json_text.LARGEST_OWN)
        return json_text.parse(content, limit=json_text.LARGEST_OWN, own=True)
    except FileNotFoundError:
        raise InputError(f"no such {what}", file=path, hint=hint) from None
    except OSError as error:
        raise InputError(
            f"{what} cannot be read", file=path, found=error.strerror, hint=hint
        ) from error
    except json_text.JsonError as error:
        raise error.input_error(what, file=path, hint=hint) from error


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


def read_lines(
    path: Path, hint: str | None = None, *, base: Path | None = None
) -> list[dict[str, Any]]:
    """The JSON objects of a line file; a last line without its end, cut by a kill, is left out.

    Args:
        path: the file; one that is missing has no lines.
        hint: the next step where a line is damaged.
        base: as of `append_line`; the checksums are checked, and left out of the objects.

    Raises:
        InputError: the file cannot be read or is no regular one, a whole line is not a JSON object,
            or is not the one that was written there.
    """
    lines, found = whole_lines(path), list[dict[str, Any]]()
    for number, line in enumerate(lines, start=1):
        try:
            found.append(json_text.parse_object(line, limit=json_text.LARGEST_OWN, own=True))
        except json_text.JsonError as error:
            problem = error.problem.removeprefix("is ")
            raise _damaged(problem, path, number, line, "a JSON object", hint) from None
    if base is not None and found:
        require_checksums(lines, path, base, hint)
        for one in found:
            del one["checksum"]
    return found


def whole_lines(path: Path) -> list[bytes]:
    """The lines as they stand, without their ends; see `read_lines`.

    Raises:
        InputError: the file cannot be read or is no regular one.
    """
    try:
        with open_regular(path) as file:
            *lines, _cut = file.read().split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError("cannot be read", file=path, found=error.strerror) from error
    return lines


def require_checksums(lines: Sequence[bytes], path: Path, base: Path, hint: str | None) -> None:
    """Check that each line carries the checksum of itself after the one before; see `read_lines`.

    Raises:
        InputError: one does not.
    """
    before, follows = checksum_of_file(base), base.name
    for number, line in enumerate(lines, start=1):
        if sealed(line[:-SEAL_BYTES] + b"}", before) != line:
            problem = f"the checksum is not that of this line after {follows}"
            expected = f"line and {follows} as perfgate wrote them, none changed or taken away"
            raise _damaged(problem, path, number, line, expected, hint)
        before, follows = checksum_of(line) or "", f"line {number}"


def _damaged(
    problem: str, path: Path, number: int, line: bytes, expected: str, hint: str | None
) -> InputError:
    """The error of a damaged line, with as much of it as tells which it is."""
    found = ascii(line[:_SHOWN_BYTES].decode(errors="backslashreplace"))
    found += f", {len(line)} bytes" if len(line) > _SHOWN_BYTES else ""
    return InputError(problem, file=path, line=number, found=found, expected=expected, hint=hint)


_DIGITS = 32  # of SHA-256: enough for accidents, and whoever forges the whole needs no collision
_SEAL = re.compile(rb', "checksum": "([0-9a-f]{%d})"\}' % _DIGITS)
SEAL_BYTES = len(b', "checksum": ""}') + _DIGITS


def sealed(line: bytes, before: str) -> bytes:
    """A line with its checksum as its last field.

    Args:
        line: a JSON object that is not empty, without the end of the line.
        before: the checksum of the line before.
    """
    checksum = hashlib.sha256(before.encode() + b"\n" + line).hexdigest()[:_DIGITS]
    return line[:-1] + b', "checksum": "%s"}' % checksum.encode()


def checksum_of(line: bytes) -> str | None:
    """The checksum that a line, or the end of one, carries; None: it has none."""
    found = _SEAL.fullmatch(line[-SEAL_BYTES:])
    return None if found is None else found[1].decode()


def kept_folder(folder: Path, make: Callable[[Path], None]) -> bool:
    """Have `folder` there, whole: as it was kept, else made again.

    Others may do the same meanwhile; their folder is as good.

    Args:
        folder: where it is kept.
        make: puts its files, which have no folders below them, into the empty folder that it gets.

    Returns:
        Whether it had to be made.

    Raises:
        RunError: it cannot be written (class ``disk_full`` or ``unwritable``).
    """
    if is_whole(folder):
        return False
    draft = folder.with_name(f".{folder.name}.{secrets.token_hex(6)}")
    try:
        with write_errors_named(folder, ANOTHER_STORE):
            make_folder(draft)
        make(draft)
        with write_errors_named(folder, ANOTHER_STORE):
            _seal(draft)
            _put(draft, folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return True


def is_whole(folder: Path) -> bool:
    """Whether the kept folder is there, and its files are what was put into it."""
    try:
        sums = read_json(folder / CHECKSUMS, what="list of checksums")
        return bool(sums) and all(_sum(folder / name) == one for name, one in sums.items())
    except (InputError, OSError, AttributeError):
        return False


def _seal(draft: Path) -> None:
    """Write down the size and hash of each file, and have all of it outlast a power cut."""
    files = sorted(draft.iterdir())
    for file in files:
        with file.open("rb") as stream:
            os.fsync(stream.fileno())
    write_json(draft / CHECKSUMS, {file.name: _sum(file) for file in files})


def _put(draft: Path, folder: Path) -> None:
    if folder.exists() and not is_whole(folder):
        damaged = draft.with_name(f"{draft.name}.damaged")
        folder.rename(damaged)  # whoever reads its files goes on reading
        shutil.rmtree(damaged, ignore_errors=True)
    try:
        draft.rename(folder)
    except OSError:
        if not is_whole(folder):
            raise
    sync_folder(folder.parent)


def _sum(file: Path) -> dict[str, int | str]:
    return {"bytes": file.stat().st_size, "sha256": file_sha256(file)}
