"""Packs for tests: small ones, whole or as somebody else would write them."""

import io
import tarfile
from collections.abc import Iterable
from pathlib import Path

from perfgate.release.pack_archive import (
    CERTIFICATE,
    MANIFEST,
    POLICY,
    Ingredient,
    Manifest,
    packed_json,
    write_pack,
)

LONG = "runs/a/" + "x" * 90 + "/server.err"
FILES = (
    Ingredient(CERTIFICATE, "certificate", b"# fit\n"),
    Ingredient(POLICY, "policy", b"schema_version: 1\n"),
    Ingredient("reproduce/a-c1.sh", "reproduce", b"#!/bin/bash\n"),
    Ingredient("runs/a/records.jsonl", "records", b"{}\n" * 200),
    Ingredient("runs/a/run.json", "run", b"{}\n"),
    Ingredient("runs/a/empty.out", "log", b""),
    Ingredient(LONG, "log", b"ready\n"),
    Ingredient("runs/a/Messung é.txt", "raw", b"1 ms\n"),
)
Entry = tuple[str | tarfile.TarInfo, bytes]


def manifest(files: Iterable[Ingredient] = FILES, **changes: object) -> Manifest:
    listed = tuple(sorted((one.listed() for one in files), key=lambda one: one.path))
    fields: dict[str, object] = {
        "release": "engine 1.3",
        "perfgate": "0.1.0",
        "rule": "3",
        "ended": "2026-11-23T01:00:00+00:00",
        "runs": ("a",),
        "files": listed,
        **changes,
    }
    return Manifest(**fields)  # type: ignore[arg-type]


def write(path: Path, files: Iterable[Ingredient] = FILES, **changes: object) -> Path:
    """A pack of these files in `path`."""
    files = tuple(files)
    write_pack(path, manifest(files, **changes), files)
    return path


def archive(entries: Iterable[Entry]) -> bytes:
    """A tar file of these entries, in this order."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as file:
        for named, content in entries:
            head = tarfile.TarInfo(named) if isinstance(named, str) else named
            head.size = len(content)
            file.addfile(head, io.BytesIO(content))
    return made.getvalue()


def files_of(pack: Path) -> dict[str, bytes]:
    """Path → content of all files of an archive."""
    with tarfile.open(pack) as archive:
        return {one.name: archive.extractfile(one).read() for one in archive}  # type: ignore[union-attr]


def whole(text: bytes | None = None) -> list[tuple[str, bytes]]:
    """Paths and contents of the small pack, with another manifest if given."""
    files = {one.path: one.source for one in FILES if isinstance(one.source, bytes)}
    return sorted({**files, MANIFEST: text or packed_json(manifest()).encode()}.items())
