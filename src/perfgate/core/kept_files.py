"""Kept files: a folder that is made once and used by later runs, with size and hash of its files.

A power cut, a full disk or a stray hand can leave a kept file cut or changed, and a run that loaded
it would measure something else. What does not match is made again.
"""

import hashlib
import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path

from perfgate.core.durable_files import (
    make_folder,
    read_json,
    sync_folder,
    write_errors_named,
    write_json,
)
from perfgate.core.errors import InputError

CHECKSUMS = "checksums.json"  # in each kept folder, about the files beside it
ANOTHER_STORE = "free space, or choose another folder with PERFGATE_HOME"


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
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"bytes": file.stat().st_size, "sha256": digest}
