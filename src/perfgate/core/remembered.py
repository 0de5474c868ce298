"""Remembered: what was read of a file, as long as nothing about the file has changed."""

import hashlib
from collections.abc import Callable
from functools import lru_cache, wraps
from pathlib import Path
from typing import TypeVar

Value = TypeVar("Value")


def remembered(most: int) -> Callable[[Callable[[Path], Value]], Callable[[Path], Value]]:
    """Decorate a reader of files so that one is read again only once anything about it has changed.

    Args:
        most: files that are remembered.
    """

    def decorate(read: Callable[[Path], Value]) -> Callable[[Path], Value]:
        @lru_cache(maxsize=most)
        def known(seen: tuple[Path, int, int, int, int]) -> Value:
            return read(seen[0])

        @wraps(read)
        def read_changed(path: Path) -> Value:
            try:
                seen = path.stat()
            except OSError:  # gone meanwhile: reading says so
                return read(path)
            times = (seen.st_mtime_ns, seen.st_ctime_ns)
            return known((path.absolute(), *times, seen.st_size, seen.st_ino))

        return read_changed

    return decorate


@remembered(16)
def file_sha256(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
