"""Pack writer: the files of an evidence pack as one archive, whole or not at all.

What a pack holds is collected by `pack_contents`; this module adds nothing to it.
"""

import hashlib
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from perfgate.core.durable_files import make_folder, sync_folder, write_errors_named
from perfgate.core.errors import InputError
from perfgate.core.untrusted_files import open_regular
from perfgate.release.pack_archive import END, LARGEST_FILE, entry_head, padding
from perfgate.release.pack_layout import MANIFEST, Manifest, PackedFile, Role
from perfgate.release.pack_manifest import manifest_text, read_manifest, seconds_of, sha256_of

BLOCK_BYTES = 1 << 20
_HINT = "let the run end, and pack again"


@dataclass(frozen=True)
class Ingredient:
    """A file that goes into a pack.

    Attributes:
        path: in the pack.
        role: what it is there for.
        source: its content, or the regular file that has it; no link in its path is followed.
    """

    path: str
    role: Role
    source: bytes | Path

    def blocks(self) -> Iterator[bytes]:
        """The content, in parts.

        Raises:
            UntrustedFile: its file is a link or no regular file.
            OSError: its file cannot be read.
        """
        if isinstance(self.source, bytes):
            yield self.source
            return
        with open_regular(self.source) as file:
            while block := file.read(BLOCK_BYTES):
                yield block


@dataclass(frozen=True)
class Entry:
    """A file of an archive: path, bytes, and the blocks that they come in."""

    path: str
    size: int
    blocks: Iterable[bytes]


def packed(ingredient: Ingredient) -> PackedFile:
    """The manifest's line of a file; its content is read once.

    Raises:
        InputError: it is too large for an archive.
        UntrustedFile, OSError: as `Ingredient.blocks`.
    """
    digest, size = hashlib.sha256(), 0
    for block in ingredient.blocks():
        digest.update(block)
        size += len(block)
    if size > LARGEST_FILE:
        raise InputError(
            "a file is too large for an archive",
            file=Path(ingredient.path),
            found=f"{size} bytes",
            expected=f"at most {LARGEST_FILE} bytes",
        )
    return PackedFile(ingredient.path, digest.hexdigest(), size, ingredient.role)


def write_pack(output: Path, manifest: Manifest, ingredients: Sequence[Ingredient]) -> str:
    """Write a pack.

    Args:
        output: the file; one that is there is replaced.
        manifest: lists each of the ingredients, as `packed` gave it.
        ingredients: in any order.

    Returns:
        The SHA-256 of the manifest's file.

    Raises:
        InputError: a file changed since it was listed.
        ReleaseRefused: status BROKEN_PACK: the manifest is none that a pack may have.
        RunError: it cannot be written (class ``disk_full`` or ``unwritable``).
        UntrustedFile, OSError: a file cannot be read.
    """
    listed = {one.path: one for one in manifest.files}
    text = manifest_text(manifest).encode()
    read_manifest(text, output)  # what nobody could read is not written
    entries = [Entry(MANIFEST, len(text), [text])]
    entries += [
        Entry(one.path, listed[one.path].size, _as_listed(one, listed[one.path]))
        for one in ingredients
    ]
    write_archive(output, entries, seconds_of(manifest))
    return sha256_of(text)


def write_archive(output: Path, entries: Iterable[Entry], time: int) -> None:
    """Write entries as an archive, sorted by path, so that a reader sees the old file or the new.

    Args:
        output: the file.
        entries: what it holds; of each the blocks have its size.
        time: of every entry, seconds since 1970.

    Raises:
        RunError: it cannot be written (class ``disk_full`` or ``unwritable``).
        Whatever the blocks of an entry raise; what was there is then left.
    """
    with write_errors_named(output.parent):
        make_folder(output.parent)
    draft = output.with_name(f".{output.name}.{secrets.token_hex(6)}")
    with write_errors_named(output):
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            for block in archive_blocks(entries, time):
                with write_errors_named(output):
                    file.write(block)
            with write_errors_named(output):
                file.flush()
                os.fsync(file.fileno())
        with write_errors_named(output):
            draft.replace(output)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
    sync_folder(output.parent)


def archive_blocks(entries: Iterable[Entry], time: int) -> Iterator[bytes]:
    """The bytes of an archive, in parts; see `write_archive`."""
    for entry in sorted(entries, key=lambda one: one.path):
        yield entry_head(entry.path, entry.size, time)
        yield from entry.blocks
        yield padding(entry.size)
    yield END


def _as_listed(ingredient: Ingredient, listed: PackedFile) -> Iterator[bytes]:
    """The content, checked against the manifest's line."""
    digest, size = hashlib.sha256(), 0
    for block in ingredient.blocks():
        digest.update(block)
        size += len(block)
        if size > listed.size:
            break
        yield block
    if (size, digest.hexdigest()) != (listed.size, listed.sha256):
        raise InputError(
            "a file changed while it was packed",
            file=ingredient.source if isinstance(ingredient.source, Path) else None,
            found=f"{size} bytes or more, SHA-256 {digest.hexdigest()}",
            expected=f"{listed.size} bytes, SHA-256 {listed.sha256}",
            hint=_HINT,
        )
