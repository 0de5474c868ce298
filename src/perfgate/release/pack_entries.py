"""Pack entries: where each file lies in an archive, with every byte that is no content checked.

An archive is accepted only if it is the one that `pack_archive` would make of what it holds.
"""

import hashlib
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from perfgate.release.pack_archive import BLOCK, END, entry_head, padding, pax_path
from perfgate.release.pack_manifest import MOST_FILES, broken_pack
from perfgate.release.pack_names import (
    LONGEST_PATH,
    colliding_names,
    problem_of_name,
)

LARGEST_PACK = 16 * 2**30  # bytes; a release's runs have some hundreds of megabytes
READ_BYTES = 1 << 20
_KINDS = {
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.LNKTYPE: "a hard link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.DIRTYPE: "a folder",
    tarfile.FIFOTYPE: "a FIFO",
    tarfile.CONTTYPE: "a contiguous file",
    tarfile.GNUTYPE_SPARSE: "a sparse file",
    tarfile.GNUTYPE_LONGNAME: "a long name as GNU tar writes it",
    tarfile.GNUTYPE_LONGLINK: "a long link as GNU tar writes it",
    tarfile.XGLTYPE: "settings for all files",
}
_LONGEST_RECORD = LONGEST_PATH + 16


@dataclass(frozen=True)
class PackEntry:
    """A file of an archive.

    Attributes:
        path: its name.
        offset: where its content begins, bytes.
        size: of the content, bytes.
        sha256: of the content.
        time: of its last change, seconds since 1970.
    """

    path: str
    offset: int
    size: int
    sha256: str
    time: int


def read_entries(file: BinaryIO, pack: Path) -> dict[str, PackEntry]:
    """The files of an archive, by path, in its order; all of it is read once.

    Args:
        file: the archive, at its beginning.
        pack: its name, for messages.

    Raises:
        ReleaseRefused: status BROKEN_PACK: it is no such archive, is cut or was changed; a path
            leaves its folder, is there twice or unsorted, or is one with another on some systems;
            something is no regular file; there is more than the limits allow.
    """
    found: dict[str, PackEntry] = {}
    last = ""
    for entry in _entries(file, pack):
        if entry.path in found:
            raise broken_pack(pack, "a file is in the pack twice", found=entry.path)
        if entry.path < last:
            raise broken_pack(
                pack, "the files of the pack are not sorted", found=f"{entry.path} after {last}"
            )
        if len(found) > MOST_FILES + 2:
            raise broken_pack(pack, "too many files", expected=f"at most {MOST_FILES}")
        found[entry.path] = entry
        last = entry.path
    if pair := colliding_names(found):
        raise broken_pack(
            pack,
            "two names in the pack are one on some systems",
            found=" and ".join(map(repr, pair)),
        )
    return found


def _entries(file: BinaryIO, pack: Path) -> Iterator[PackEntry]:
    first = True
    while True:
        head = _read(file, BLOCK, pack)
        if head == bytes(BLOCK):
            break
        yield _entry(file, head, pack, is_first=first)
        first = False
    if _read(file, BLOCK, pack) != bytes(BLOCK):
        raise broken_pack(pack, "a block of zeros among the files")
    if file.read(1):
        raise broken_pack(
            pack, "something follows the end of the archive", found=f"at byte {file.tell() - 1}"
        )


def _entry(file: BinaryIO, head: bytes, pack: Path, *, is_first: bool) -> PackEntry:
    """One file: its head, compared with what would have been written, and its content, hashed."""
    info = _info(head, pack, is_first=is_first)
    path, whole = info.name, head
    if info.type == tarfile.XHDTYPE:
        if not 0 < info.size <= _LONGEST_RECORD:
            raise broken_pack(pack, "a path is too long", expected=f"{LONGEST_PATH} bytes")
        record = _read(file, info.size + len(padding(info.size)), pack)
        long = pax_path(record[: info.size])
        if long is None:
            raise broken_pack(pack, "settings of a file that no pack has", found=record[:80])
        head = _read(file, BLOCK, pack)
        info = _info(head, pack, is_first=False)
        path, whole = long, whole + record + head
    if info.type != tarfile.REGTYPE:
        kind = _KINDS.get(info.type, "of an unknown kind")
        raise broken_pack(
            pack, f"a file is {kind}", field=path, expected="regular files and nothing else"
        )
    if problem := problem_of_name(path):
        raise broken_pack(pack, f"a file has {problem}", found=path)
    if info.size < 0 or info.mtime < 0 or entry_head(path, info.size, int(info.mtime)) != whole:
        raise broken_pack(
            pack,
            "the head of a file is not as perfgate writes it: owner, rights, or filling",
            field=path,
        )
    offset, digest = file.tell(), hashlib.sha256()
    for block in content_blocks(file, info.size, pack, path):
        digest.update(block)
    if any(_read(file, len(padding(info.size)), pack)):
        raise broken_pack(pack, "something follows the content of a file", field=path)
    return PackEntry(path, offset, info.size, digest.hexdigest(), int(info.mtime))


def content_blocks(file: BinaryIO, size: int, pack: Path, path: str) -> Iterator[bytes]:
    """The next `size` bytes, in parts.

    Raises:
        ReleaseRefused: status BROKEN_PACK: the archive ends before.
    """
    left = size
    while left:
        block = file.read(min(left, READ_BYTES))
        if not block:
            raise _cut(pack, file.tell(), f"in {path}, which lacks {left} of its {size} bytes")
        left -= len(block)
        yield block


def _info(head: bytes, pack: Path, *, is_first: bool) -> tarfile.TarInfo:
    try:
        info = tarfile.TarInfo.frombuf(head, "utf-8", "strict")
    except (tarfile.HeaderError, UnicodeDecodeError, ValueError) as error:
        if is_first:
            raise broken_pack(
                pack,
                "not an evidence pack: it does not begin as a tar archive",
                found=repr(head[:16]),
                expected="the uncompressed file that perfgate release pack wrote",
            ) from error
        raise broken_pack(pack, f"the head of a file is damaged: {error}") from error
    if info.type == tarfile.DIRTYPE or not head[345:500].strip(b"\0"):
        return info
    raise broken_pack(pack, "the head of a file is not as perfgate writes it", field=info.name)


def _read(file: BinaryIO, size: int, pack: Path) -> bytes:
    found = file.read(size)
    if len(found) < size:
        raise _cut(pack, file.tell(), f"{size - len(found)} bytes before the end of a block")
    return found


def _cut(pack: Path, size: int, where: str) -> Exception:
    return broken_pack(
        pack,
        "the pack is cut off, or no pack",
        found=f"it ends after {size} bytes, {where}",
        expected=f"{len(END)} bytes of zeros at its end",
        hint="copy it again, and compare the sizes",
    )
