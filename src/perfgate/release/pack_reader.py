"""Pack reader: an evidence pack, with every byte of it accounted for before any is believed.

Attestations are files like others here: whether a signature is right is for `verify` to say, and
they are the only files that the manifest does not list.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from perfgate.core.durable_files import make_folder, write_errors_named
from perfgate.core.errors import InputError
from perfgate.core.input_files import open_input
from perfgate.core.json_text import LARGEST_DOCUMENT
from perfgate.core.untrusted_files import created_regular, make_new_folder, make_new_folders
from perfgate.release.pack_entries import (
    LARGEST_PACK,
    PackEntry,
    content_blocks,
    read_entries,
)
from perfgate.release.pack_layout import (
    ATTESTATION_NAMES,
    ATTESTATIONS,
    MANIFEST,
    Manifest,
    PackedFile,
    Role,
)
from perfgate.release.pack_manifest import (
    LARGEST_MANIFEST,
    broken_pack,
    read_manifest,
    seconds_of,
    sha256_of,
)
from perfgate.release.pack_writer import Entry, write_archive

LARGEST_ATTESTATION = 16 * 2**20  # bytes: 100,000 names of tests


@dataclass(frozen=True)
class Pack:
    """A pack whose bytes are those that were packed.

    Attributes:
        path: its file.
        manifest: what it holds.
        manifest_sha256: of the manifest's file, which attestations name.
        attestations: path → content; none where it is not signed.
        entries: path → where in the archive it lies; the manifest and attestations among them.
    """

    path: Path
    manifest: Manifest
    manifest_sha256: str
    attestations: Mapping[str, bytes]
    entries: Mapping[str, PackEntry]

    def files(self, *roles: Role) -> tuple[PackedFile, ...]:
        """The files of these roles, sorted by path; of none named: all of the manifest."""
        return tuple(one for one in self.manifest.files if not roles or one.role in roles)

    def read(self, path: str, limit: int = LARGEST_DOCUMENT) -> bytes:
        """The content of a file.

        Args:
            path: in the pack.
            limit: the most bytes that are read.

        Raises:
            KeyError: no such file.
            ReleaseRefused: status BROKEN_PACK: it is larger, or the pack changed since it was
                opened.
            OSError: the pack cannot be read.
        """
        size = self.entries[path].size
        if size > limit:
            raise broken_pack(
                self.path, "a file is too large to be read", field=path, found=f"{size} bytes",
                expected=f"at most {limit} bytes (docs/reference/limits.md)",
            )  # fmt: skip
        with open_input(self.path) as file:
            return b"".join(_content(file, self.entries[path], self.path))

    def extracted(self, folder: Path) -> Path:
        """Write every file of the pack into a folder, the manifest and attestations among them.

        Args:
            folder: it is made; it must not be there.

        Returns:
            `folder`, absolute.

        Raises:
            InputError: it is there already.
            ReleaseRefused: status BROKEN_PACK: the pack changed since it was opened.
            RunError: it cannot be written (class ``disk_full`` or ``unwritable``).
        """
        root = folder.parent.resolve() / folder.name
        with write_errors_named(root):
            make_folder(root.parent)
            try:
                make_new_folder(root)
            except FileExistsError:
                raise InputError(
                    "there is something already", file=root, expected="a folder that is made anew"
                ) from None
        with open_input(self.path) as file:
            for entry in self.entries.values():
                target = root / entry.path
                mode = 0o755 if entry.path.endswith(".sh") else 0o644
                with write_errors_named(target):
                    with suppress(FileExistsError):
                        make_new_folders(target.parent)
                    handle = created_regular(target, mode)
                with os.fdopen(handle, "wb") as out:
                    for block in _content(file, entry, self.path):
                        with write_errors_named(target):
                            out.write(block)
        return root


def open_pack(path: Path) -> Pack:
    """Open a pack: read all of it once, and refuse it unless it is exactly what was packed.

    Args:
        path: the file, as a person named it.

    Raises:
        ReleaseRefused: status BROKEN_PACK: no tar, cut off, a byte changed, a file missing, extra
            or twice, …; OTHER_VERSION: of a form of another perfgate.
        InputError: no such file, not a regular one, or it cannot be read.
    """
    try:
        with open_input(path) as file:
            _require_size(file, path)
            entries = read_entries(file, path)
            return _pack(file, entries, path)
    except FileNotFoundError:
        raise InputError(
            "no such file", file=path, expected="what perfgate release pack wrote"
        ) from None
    except OSError as error:
        raise InputError("cannot be read", file=path, found=error.strerror) from error


def with_attestations(path: Path, attestations: Mapping[str, bytes]) -> str:
    """Write attestations into a pack; those that it has are replaced, all else stays.

    Args:
        path: the pack.
        attestations: path, one of `ATTESTATION_NAMES`, → content.

    Returns:
        The SHA-256 of the manifest, which they should name.

    Raises:
        ReleaseRefused: as `open_pack`, or an attestation of another name or too large.
        InputError: as `open_pack`.
        RunError: it cannot be written (class ``disk_full``, ``unwritable``); the pack is as before.
    """
    pack = open_pack(path)
    _require_attestations({name: len(content) for name, content in attestations.items()}, path)
    new = {**pack.attestations, **attestations}
    with open_input(path) as file:
        entries = [
            Entry(one.path, one.size, _content(file, one, path))
            for one in pack.entries.values()
            if one.path not in new
        ]
        entries += [Entry(name, len(content), [content]) for name, content in new.items()]
        write_archive(path.resolve(), entries, seconds_of(pack.manifest))
    return pack.manifest_sha256


def _pack(file: BinaryIO, entries: Mapping[str, PackEntry], path: Path) -> Pack:
    if MANIFEST not in entries:
        raise broken_pack(path, "a file is missing", found=f"no {MANIFEST}")
    if entries[MANIFEST].size > LARGEST_MANIFEST:
        raise broken_pack(
            path,
            f"{MANIFEST} is too large",
            found=f"{entries[MANIFEST].size} bytes",
            expected=f"at most {LARGEST_MANIFEST} bytes (docs/reference/limits.md)",
        )
    content = b"".join(_content(file, entries[MANIFEST], path))
    manifest = read_manifest(content, path)
    signed = {name: one for name, one in entries.items() if name.startswith(f"{ATTESTATIONS}/")}
    _require_attestations({name: one.size for name, one in signed.items()}, path)
    _require_listed(manifest, entries, path)
    attestations = {name: b"".join(_content(file, one, path)) for name, one in signed.items()}
    return Pack(path, manifest, sha256_of(content), attestations, entries)


def _require_listed(manifest: Manifest, entries: Mapping[str, PackEntry], path: Path) -> None:
    """Check that the archive holds what the manifest lists, and nothing else."""
    listed = {one.path: one for one in manifest.files}
    time = seconds_of(manifest)
    for name, entry in entries.items():
        if entry.time != time:
            raise broken_pack(
                path, "a file has another time than the pack", field=name, expected=manifest.ended
            )
        if name not in listed and name != MANIFEST and name not in ATTESTATION_NAMES:
            raise broken_pack(path, "a file is extra: the manifest does not list it", found=name)
    for name, file in listed.items():
        found = entries.get(name)
        if found is None:
            raise broken_pack(path, "a file is missing", found=name)
        if (found.sha256, found.size) != (file.sha256, file.size):
            raise broken_pack(
                path,
                "a file was changed since it was packed",
                field=name,
                found=f"{found.size} bytes, SHA-256 {found.sha256}",
                expected=f"{file.size} bytes, SHA-256 {file.sha256}",
            )


def _require_attestations(sizes: Mapping[str, int], path: Path) -> None:
    for name, size in sizes.items():
        if name not in ATTESTATION_NAMES:
            raise broken_pack(
                path,
                "an attestation of an unknown name",
                found=name,
                expected=" or ".join(ATTESTATION_NAMES),
            )
        if size > LARGEST_ATTESTATION:
            raise broken_pack(
                path,
                "an attestation is too large",
                field=name,
                found=f"{size} bytes",
                expected=f"at most {LARGEST_ATTESTATION} bytes (docs/reference/limits.md)",
            )


def _require_size(file: BinaryIO, path: Path) -> None:
    size = file.seek(0, 2)
    file.seek(0)
    if size > LARGEST_PACK:
        raise broken_pack(
            path,
            "the file is too large for a pack",
            found=f"{size} bytes",
            expected=f"at most {LARGEST_PACK} bytes (docs/reference/limits.md)",
        )


def _content(file: BinaryIO, entry: PackEntry, pack: Path) -> Iterator[bytes]:
    """The content of a file, in parts; its hash is checked at the end."""
    file.seek(entry.offset)
    digest = hashlib.sha256()
    for block in content_blocks(file, entry.size, pack, entry.path):
        digest.update(block)
        yield block
    if digest.hexdigest() != entry.sha256:
        raise broken_pack(pack, "the pack was changed while it was read", field=entry.path)
