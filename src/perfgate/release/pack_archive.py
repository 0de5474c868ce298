"""Pack archive: an evidence pack as an uncompressed tar file, written whole and read with care.

Every file that a pack holds is compared with the manifest before any of it is used. Owner, rights
and time of an entry are always the same when it is written, and are not read.
"""

import hashlib
import io
import os
import secrets
import shutil
import tarfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

from perfgate.core.durable_files import make_folder, sync_folder, write_errors_named
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
    sha256_of,
)

LARGEST_PACK = 16 * 2**30  # bytes; a release's runs have some hundreds of megabytes
LARGEST_ATTESTATION = 16 * 2**20  # bytes: 100,000 names of tests
_HINT = "let the run end, and pack again"
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
            digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
            return PackedFile(self.path, digest, file.seek(0, os.SEEK_END), self.role)


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
        with _archive(self.path) as (archive, _):
            members = {one.name: one for one in archive}
            for listed in self.manifest.files:
                target = folder / listed.path
                with write_errors_named(target):
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with self._content(archive, members, listed) as file, target.open("xb") as out:
                        shutil.copyfileobj(file, out)

    @contextmanager
    def _content(
        self, archive: tarfile.TarFile, members: dict[str, tarfile.TarInfo], listed: PackedFile
    ) -> Iterator[IO[bytes]]:
        """The content of a file, compared with the manifest once all of it was read."""
        member = members.get(listed.path)
        file = archive.extractfile(member) if member else None
        if file is None:
            raise self._changed(listed.path)
        checked = _Checked(file, listed)
        yield checked  # type: ignore[misc]
        if not checked.is_as_listed():
            raise self._changed(listed.path)

    def _changed(self, path: str) -> Exception:
        return broken_pack(self.path, "the pack was changed while it was read", field=path)


class _Checked:
    """A file that is read from its beginning, and hashed meanwhile."""

    def __init__(self, file: IO[bytes], listed: PackedFile) -> None:
        self._file, self._listed, self._digest = file, listed, hashlib.sha256()

    def read(self, size: int) -> bytes:
        block = self._file.read(size)
        self._digest.update(block)
        return block

    def is_as_listed(self) -> bool:
        """Whether what was read is the whole content that the manifest lists."""
        return not self._file.read(1) and self._digest.hexdigest() == self._listed.sha256


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
    listed = {one.path: one for one in manifest.files}
    text = manifest_text(manifest).encode()
    read_manifest(text, output)  # what nobody could read is not written

    def content(one: Ingredient) -> Callable[[], AbstractContextManager[IO[bytes]]]:
        return lambda: _as_listed(one, listed[one.path])

    files = [(one.path, listed[one.path].size, content(one)) for one in ingredients]
    _write(output, [_in_memory(MANIFEST, text), *files])
    return sha256_of(text)


def with_attestation(pack: Pack, attestation: bytes, output: Path) -> None:
    """Write a pack with an attestation, in place of the one that it has; all else stays.

    Raises:
        ReleaseRefused: status BROKEN_PACK: the pack changed since it was opened.
        RunError: it cannot be written (class ``disk_full``, ``unwritable``); what was there stays.
    """
    with _archive(pack.path) as (archive, _):
        members = {one.name: one for one in archive}

        def content(one: PackedFile) -> Callable[[], AbstractContextManager[IO[bytes]]]:
            return lambda: pack._content(archive, members, one)

        files = [(one.path, one.size, content(one)) for one in pack.manifest.files]
        manifest = _in_memory(MANIFEST, manifest_text(pack.manifest).encode())
        _write(output, [manifest, _in_memory(ATTESTATION, attestation), *files])


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
    with _archive(path) as (archive, source):
        members = _members(archive, source, path)
        contents = {
            name: archive.extractfile(members[name]).read()  # type: ignore[union-attr]
            for name, limit in ((MANIFEST, LARGEST_MANIFEST), (ATTESTATION, LARGEST_ATTESTATION))
            if name in members and _is_within(members[name], limit, path)
        }
        if MANIFEST not in contents:
            raise broken_pack(path, "a file is missing", found=f"no {MANIFEST}")
        manifest = read_manifest(contents[MANIFEST], path)
        listed = {one.path: one for one in manifest.files}
        for name in members:
            if name not in listed and name not in contents:
                raise broken_pack(
                    path, "a file is extra: the manifest does not list it", found=name
                )
        for name, one in listed.items():
            if name not in members:
                raise broken_pack(path, "a file is missing", found=name)
            file = archive.extractfile(members[name])
            digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
            if (digest, members[name].size) != (one.sha256, one.size):
                raise broken_pack(
                    path,
                    "a file was changed since it was packed",
                    field=name,
                    found=f"{members[name].size} bytes, SHA-256 {digest}",
                    expected=f"{one.size} bytes, SHA-256 {one.sha256}",
                )
    return Pack(path, manifest, sha256_of(contents[MANIFEST]), contents.get(ATTESTATION))


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


def _is_within(member: tarfile.TarInfo, limit: int, pack: Path) -> bool:
    if member.size > limit:
        raise broken_pack(
            pack,
            f"{member.name} is too large",
            found=f"{member.size} bytes",
            expected=f"at most {limit} bytes (docs/reference/limits.md)",
        )
    return True


@contextmanager
def _archive(path: Path) -> Iterator[tuple[tarfile.TarFile, IO[bytes]]]:
    """The archive and its file, to be read; what is wrong meanwhile is a fault of the pack."""
    try:
        with open_input(path) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            if size > LARGEST_PACK:
                raise broken_pack(
                    path,
                    "the file is too large for a pack",
                    found=f"{size} bytes",
                    expected=f"at most {LARGEST_PACK} bytes (docs/reference/limits.md)",
                )
            with tarfile.open(
                fileobj=file, mode="r:", tarinfo=_Entry, encoding="utf-8", errors="strict"
            ) as archive:
                yield archive, file
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


_File = tuple[str, int, Callable[[], AbstractContextManager[IO[bytes]]]]
"""Path, bytes, and what opens the content."""


def _in_memory(path: str, content: bytes) -> _File:
    return path, len(content), lambda: nullcontext(io.BytesIO(content))


@contextmanager
def _as_listed(ingredient: Ingredient, listed: PackedFile) -> Iterator[IO[bytes]]:
    """The content, compared with the manifest's line once it was read."""
    with ingredient.opened() as file:
        checked = _Checked(file, listed)
        try:
            yield checked  # type: ignore[misc]
            whole = checked.is_as_listed()
        except OSError as error:
            if error.errno is not None:
                raise
            whole = False  # it ended too early, as `tarfile` tells
    if not whole:
        raise InputError(
            "a file changed while it was packed",
            file=ingredient.source if isinstance(ingredient.source, Path) else None,
            field=listed.path,
            expected=f"{listed.size} bytes, SHA-256 {listed.sha256}",
            hint=_HINT,
        )


def _write(output: Path, files: Iterable[_File]) -> None:
    """Write an archive, sorted by path, so that a reader sees the old file or the new."""
    draft = output.with_name(f".{output.name}.{secrets.token_hex(6)}")
    with write_errors_named(output):
        make_folder(output.parent)
        try:
            with draft.open("xb") as file:
                with tarfile.open(
                    fileobj=file, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8"
                ) as archive:
                    for path, size, opened in sorted(files, key=lambda one: one[0]):
                        head = tarfile.TarInfo(path)  # of owner 0 and time 0
                        head.size = size
                        head.mode = 0o755 if path.endswith(".sh") else 0o644
                        with opened() as content:
                            archive.addfile(head, content)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(output)
        except BaseException:
            with suppress(OSError):
                draft.unlink()
            raise
        sync_folder(output.parent)
