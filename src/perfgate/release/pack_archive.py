"""Pack archive: an evidence pack as an uncompressed tar file, written whole and read with care.

Every file that a pack holds is compared with the manifest before any of it is used. Owner, rights
and time of an entry are always the same when it is written, and are not read.
"""

import hashlib
import io
import os
import shutil
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Self

from perfgate.core.durable_files import write_errors_named, written_whole
from perfgate.core.errors import InputError
from perfgate.core.input_files import open_input
from perfgate.core.untrusted_files import open_regular
from perfgate.release.pack_manifest import (
    ATTESTATION,
    LARGEST_MANIFEST,
    LONGEST_PATH,
    MANIFEST,
    MOST_FILES,
    Manifest,
    PackedFile,
    Role,
    broken_pack,
    manifest_text,
    problem_of_name,
    read_manifest,
)
from perfgate.release.release_status import ReleaseRefused

LARGEST_PACK = 16 * 2**30  # bytes; a release's runs have some hundreds of megabytes
LARGEST_ATTESTATION = 16 * 2**20  # bytes: 100,000 names of tests
_KINDS = {
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.LNKTYPE: "a hard link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.DIRTYPE: "a folder",
    tarfile.FIFOTYPE: "a FIFO",
}


@dataclass(frozen=True)
class Ingredient:
    """A file that goes into a pack.

    Attributes:
        path: in the pack.
        role: what it is there for.
        source: its content, or the regular file that has it; no link is followed.
    """

    path: str
    role: Role
    source: bytes | Path

    def __post_init__(self) -> None:
        """Refuse a name that no pack has: ids of runs and tests, and names of files, are in it.

        Raises:
            InputError: what is wrong with it.
        """
        if problem := problem_of_name(self.path):
            raise InputError(
                f"a file has {problem}",
                file=self.source if isinstance(self.source, Path) else None,
                found=repr(self.path),
                hint="rename or remove it, or measure anew in a new run folder; then pack again",
            )

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """The content, to be read.

        Raises:
            UntrustedFile: its file is a link or no regular file.
            OSError: its file cannot be read.
        """
        if isinstance(self.source, bytes):
            yield io.BytesIO(self.source)
        else:
            with open_regular(self.source) as file:
                yield file

    def listed(self) -> PackedFile:
        """The manifest's line of it; its content is read once.

        Raises:
            UntrustedFile, OSError: as `opened`.
        """
        with self.opened() as file:
            return PackedFile(self.path, _sha256(file), file.seek(0, os.SEEK_END), self.role)


@dataclass(frozen=True)
class Pack:
    """A pack whose files are those that its manifest lists.

    Attributes:
        path: its file.
        manifest: what it holds.
        manifest_sha256: of the manifest's file, which the attestation names.
        attestation: content of its file; None: it is not signed.
    """

    path: Path
    manifest: Manifest
    manifest_sha256: str
    attestation: bytes | None

    def extract(self, folder: Path) -> None:
        """Write the files that the manifest lists into an empty folder.

        Raises:
            ReleaseRefused: status BROKEN_PACK: the pack changed since it was opened.
            RunError: they cannot be written (class ``disk_full`` or ``unwritable``).
        """
        with _archive(self.path) as (archive, members):
            for one in self.manifest.files:
                target = folder / one.path
                with write_errors_named(target):
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with target.open("xb") as file:
                        if one.path in members:
                            shutil.copyfileobj(_content(archive, members[one.path]), file)
                if Ingredient(one.path, one.role, target).listed() != one:
                    problem = "the pack was changed while it was read"
                    raise broken_pack(self.path, problem, field=one.path)


class _Entry(tarfile.TarInfo):
    """An entry of an archive; what no pack has is refused before `tarfile` acts on it."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        found = super().frombuf(buf, encoding, errors)
        if found.type == tarfile.XHDTYPE:  # the record of a long path
            if found.size > 2 * LONGEST_PATH:
                raise tarfile.ReadError("a path is too long")
        elif found.type != tarfile.REGTYPE:
            kind = _KINDS.get(found.type, "of an unknown kind")
            raise tarfile.ReadError(f"{found.name} is {kind}, and no regular file")
        return found


def write_pack(output: Path, manifest: Manifest, ingredients: Iterable[Ingredient]) -> str:
    """Write a pack.

    Args:
        output: the file; one that is there is replaced.
        manifest: lists each of the ingredients, as `Ingredient.listed` gave it.
        ingredients: in any order.

    Returns:
        The SHA-256 of the manifest's file.

    Raises:
        InputError: a file changed since it was listed.
        ReleaseRefused: status BROKEN_PACK: the manifest is none that a pack may have.
        RunError: it cannot be written (class ``disk_full`` or ``unwritable``).
        UntrustedFile: a file is a link, or no regular file.
    """
    text = manifest_text(manifest).encode()
    read_manifest(text, output)  # what nobody could read is not written
    sizes = {one.path: one.size for one in manifest.files}
    files: _Files = {one.path: (sizes[one.path], one.opened) for one in ingredients}
    try:
        return _write(output, {**files, MANIFEST: _in_memory(text)}).manifest_sha256
    except ReleaseRefused as error:
        raise InputError(
            "a file changed while it was packed",
            field=error.field,
            found=error.found,
            expected=error.expected,
            hint="let the run end, and pack again",
        ) from error


def with_attestation(pack: Pack, attestation: bytes, output: Path) -> None:
    """Write a pack with an attestation, in place of the one that it has; all else stays.

    Raises:
        ReleaseRefused: status BROKEN_PACK: the pack changed since it was opened.
        RunError: it cannot be written (class ``disk_full``, ``unwritable``); what was there stays.
    """
    with _archive(pack.path) as (archive, members):
        files = {name: (one.size, partial(_content, archive, one)) for name, one in members.items()}
        manifest = _in_memory(manifest_text(pack.manifest).encode())
        _write(output, {**files, MANIFEST: manifest, ATTESTATION: _in_memory(attestation)})


def open_pack(path: Path) -> Pack:
    """Open a pack: read all of it once, and refuse it unless it is what was packed.

    Args:
        path: the file, as a person named it.

    Raises:
        ReleaseRefused: status BROKEN_PACK: no tar, cut off, a file changed, missing, extra or
            twice, a link, a name that no pack has, too large, …; OTHER_VERSION: of a form of
            another perfgate.
        InputError: no such file, not a regular one, or it cannot be read.
    """
    with _archive(path) as (archive, members):
        contents: dict[str, bytes] = {}
        for name, limit in ((MANIFEST, LARGEST_MANIFEST), (ATTESTATION, LARGEST_ATTESTATION)):
            if name in members:
                _require_size(members[name].size, limit, path, f"{name} is too large")
                contents[name] = _content(archive, members[name]).read()
        if MANIFEST not in contents:
            raise broken_pack(path, "a file is missing", found=f"no {MANIFEST}")
        manifest = read_manifest(contents[MANIFEST], path)
        listed = {one.path: one for one in manifest.files}
        if extra := [name for name in members if name not in listed and name not in contents]:
            problem = "a file is extra: the manifest does not list it"
            raise broken_pack(path, problem, found=extra[0])
        for name, one in listed.items():
            if name not in members:
                raise broken_pack(path, "a file is missing", found=name)
            digest = _sha256(_content(archive, members[name]))
            if (digest, members[name].size) != (one.sha256, one.size):
                raise broken_pack(
                    path,
                    "a file was changed since it was packed",
                    field=name,
                    found=f"{members[name].size} bytes, SHA-256 {digest}",
                    expected=f"{one.size} bytes, SHA-256 {one.sha256}",
                )
    digest = hashlib.sha256(contents[MANIFEST]).hexdigest()
    return Pack(path, manifest, digest, contents.get(ATTESTATION))


def _sha256(file: IO[bytes]) -> str:
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def _members(archive: tarfile.TarFile, file: IO[bytes], pack: Path) -> dict[str, tarfile.TarInfo]:
    """The entries by path: regular files of allowed names, each once, and nothing behind them."""
    found: dict[str, tarfile.TarInfo] = {}
    end = 0
    for one in archive:
        if problem := problem_of_name(one.name):
            raise broken_pack(pack, f"a file has {problem}", found=one.name)
        if one.name in found:
            raise broken_pack(pack, "a file is in the pack twice", found=one.name)
        if one.pax_headers.keys() - {"path"}:
            raise broken_pack(pack, "settings of a file that no pack has", field=one.name)
        if len(found) > MOST_FILES + 2:
            raise broken_pack(pack, "too many files", expected=f"at most {MOST_FILES}")
        found[one.name] = one
        end = one.offset_data + one.size + -one.size % tarfile.BLOCKSIZE
    file.seek(end)
    rest = file.read(2 * tarfile.RECORDSIZE)
    if not 2 * tarfile.BLOCKSIZE <= len(rest) < 2 * tarfile.RECORDSIZE or any(rest):
        raise broken_pack(
            pack,
            "the pack is cut off, or something follows its last file",
            found=f"{len(rest)} bytes or more after byte {end}",
            expected="zeros, as tar ends an archive",
            hint="copy it again, and compare the sizes",
        )
    return found


def _require_size(size: int, limit: int, pack: Path, problem: str) -> None:
    if size > limit:
        expected = f"at most {limit} bytes (docs/reference/limits.md)"
        raise broken_pack(pack, problem, found=f"{size} bytes", expected=expected)


@contextmanager
def _archive(path: Path) -> Iterator[tuple[tarfile.TarFile, dict[str, tarfile.TarInfo]]]:
    """The archive and its `_members`; what is wrong while it is read is a fault of the pack."""
    try:
        with open_input(path) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            _require_size(size, LARGEST_PACK, path, "the file is too large for a pack")
            with tarfile.open(
                fileobj=file, mode="r:", tarinfo=_Entry, encoding="utf-8", errors="strict"
            ) as archive:
                yield archive, _members(archive, file, path)
    except FileNotFoundError:
        raise InputError(
            "no such file", file=path, expected="what perfgate release pack wrote"
        ) from None
    except (tarfile.TarError, ValueError) as error:
        raise broken_pack(
            path,
            "not an evidence pack, or a damaged one",
            found=str(error),
            expected="the uncompressed tar file that perfgate release pack wrote",
        ) from error
    except OSError as error:
        raise InputError("cannot be read", file=path, found=error.strerror) from error


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    found = archive.extractfile(member)
    if found is None:
        raise tarfile.ReadError(f"{member.name} has no content")
    return found


_Files = Mapping[str, tuple[int, Callable[[], AbstractContextManager[IO[bytes]]]]]
"""Path → bytes, and what opens the content."""


def _in_memory(content: bytes) -> tuple[int, Callable[[], IO[bytes]]]:
    return len(content), lambda: io.BytesIO(content)


def _write(output: Path, files: _Files) -> Pack:
    """Write an archive, sorted by path, and read it; a reader sees the old file or the new.

    Raises:
        ReleaseRefused: what was written is no pack: a file is not what the manifest lists.
        RunError: it cannot be written (class ``disk_full`` or ``unwritable``).
    """
    with written_whole(output) as draft:
        with draft.open("xb") as file:
            with tarfile.open(
                fileobj=file, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8"
            ) as archive:
                for path, (size, opened) in sorted(files.items()):
                    head = tarfile.TarInfo(path)  # of owner 0 and time 0
                    head.size = size
                    head.mode = 0o755 if path.endswith(".sh") else 0o644
                    with opened() as content:
                        if content.seek(0, os.SEEK_END) != size:
                            raise broken_pack(output, "a file has another size", field=path)
                        content.seek(0)
                        archive.addfile(head, content)
            file.flush()
            os.fsync(file.fileno())
        return open_pack(draft)
