"""Remembered: what was read of a file, as long as nothing about the file has changed; for good,
tables of perfgate's own: facts that lie as data beside the module that uses them.
"""

import hashlib
import tomllib
from collections.abc import Callable
from functools import cache, lru_cache, wraps
from pathlib import Path
from typing import Any, TypeVar

Value = TypeVar("Value")


@cache
def toml_beside(module_file: str, name: str) -> dict[str, Any]:
    """The table ``NAME.toml`` in the folder of a module, read once.

    Args:
        module_file: ``__file__`` of the module.
        name: the table's name without its ending.
    """
    return tomllib.loads(Path(module_file).with_name(f"{name}.toml").read_text(encoding="utf-8"))


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
