"""What a power cut, or SIGKILL, leaves of files: a disk that keeps only what it was told to keep.

`Disk` watches the calls that its subject makes on the real file system. At each moment it knows
what may be found after a power cut there: of a file that fsync(2) was not called for since, its
content of before, nothing of it or any part; of a name in a folder, the file of before or of now.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

_WATCHED = ("open", "fsync", "replace", "rename", "mkdir")


class Disk:
    """The folder `root` as a power cut may leave it; all that is there at first is kept."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self._root = root
        self._kept: dict[
            int, dict[str, int] | bytes
        ] = {}  # of folders their names, of files content
        self._now: dict[int, dict[str, int] | bytes] = {}
        self._held: dict[int, int] = {}  # so that no number of an inode is given twice
        self._seen: dict[Path, set[bytes | None]] = {}
        self._patch = patch
        self._open, self._fsync = os.open, os.fsync

    def __enter__(self) -> Self:
        self.settle()
        for name in _WATCHED:
            self._patch.setattr(os, name, self._watching(name, getattr(os, name)))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._patch.undo()
        for descriptor in self._held.values():
            os.close(descriptor)

    def settle(self) -> None:
        """Have all that is there now kept."""
        self._look()
        self._kept = dict(self._now)

    def watch(self, path: Path) -> None:
        """Collect from now on what may be left of `path`."""
        self._seen[path] = set()

    def seen(self, path: Path) -> set[bytes | None]:
        """What a power cut at any moment may have left of `path`; None: no such file."""
        return self._seen[path]

    def possible(self, path: Path) -> set[bytes | None]:
        """What a power cut now may leave of `path`."""
        self._look()
        found: set[int | None] = {self._root.stat().st_ino}
        for name in path.relative_to(self._root).parts:
            found = {
                names.get(name) if isinstance(names, dict) else None
                for inode in found
                for names in self._versions(inode)
            }
        left: set[bytes | None] = set()
        for inode in found:
            left |= {None} if inode is None else set(self._contents(inode))
        return left

    def _versions(self, inode: int | None) -> Iterator[dict[str, int] | bytes | None]:
        if inode is None:
            yield None
            return
        yield self._kept.get(inode, {})
        yield self._now.get(inode, {})

    def _contents(self, inode: int) -> Iterator[bytes]:
        kept, now = self._kept.get(inode, b""), self._now.get(inode)
        assert isinstance(kept, bytes)
        yield kept
        if isinstance(now, bytes) and now != kept:
            begun = kept if now.startswith(kept) else b""
            yield begun + now[len(begun) :][: (len(now) - len(begun)) // 2]
            yield now

    def _look(self) -> None:
        for folder, folders, files in os.walk(self._root):
            place = Path(folder)
            names = {name: (place / name).stat().st_ino for name in (*folders, *files)}
            self._now[place.stat().st_ino] = names
            for name in files:
                self._now[names[name]] = (place / name).read_bytes()
                if names[name] not in self._held:
                    self._held[names[name]] = self._open(place / name, os.O_RDONLY)

    def _watching(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self._collect()
            answer = real(*arguments, **named)
            if name == "fsync":
                self._look()
                inode = os.fstat(arguments[0]).st_ino
                if inode in self._now:
                    self._kept[inode] = self._now[inode]
            self._collect()
            return answer

        return call

    def _collect(self) -> None:
        for path, found in self._seen.items():
            found |= self.possible(path)


_KILLED = """
import os, shutil, signal, sys
from pathlib import Path
from perfgate.core.files.durable_files import append_line, write_text
from perfgate.runs.run_folder import RunFolder

root, work, prepared = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
for number in range(100):
    folder = root / f"step-{number:02}"
    folder.mkdir()
    exec(prepared)
    child = os.fork()
    if child == 0:
        calls = 0

        def counted(real):
            def call(*arguments, **named):
                global calls
                calls += 1
                if calls > number:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*arguments, **named)

            return call

        for name in ("open", "fsync", "replace", "mkdir", "rename"):
            setattr(os, name, counted(getattr(os, name)))
        exec(work)
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        break
"""


def steps_of(root: Path, work: str, prepared: str = "") -> list[Path]:
    """Do `work` in a folder, again and again, and kill it before its first, second, … system call.

    Args:
        root: where the folders are made.
        work: lines of Python that write into `folder`.
        prepared: lines of Python that come before it, and are not killed.

    Returns:
        The folders: one for each moment, the last with the work done.
    """
    subprocess.run([sys.executable, "-c", _KILLED, str(root), work, prepared], check=True)
    return sorted(root.glob("step-*"))
