"""Packs for tests: small ones, whole or tampered with."""

from collections.abc import Iterable
from pathlib import Path

from perfgate.release.pack_layout import CERTIFICATE, POLICY, Manifest
from perfgate.release.pack_writer import Ingredient, packed, write_pack

LONG = "runs/a/" + "x" * 90 + "/server.err"
FILES = (
    Ingredient(CERTIFICATE, "certificate", b"# fit\n"),
    Ingredient(POLICY, "policy", b"schema_version: 1\n"),
    Ingredient("reproduce/a-c1.sh", "reproduce", b"#!/bin/bash\n"),
    Ingredient("runs/a/records.jsonl", "records", b"{}\n" * 200),
    Ingredient("runs/a/empty.out", "log", b""),
    Ingredient(LONG, "log", b"ready\n"),
    Ingredient("runs/a/Messung é.txt", "raw", b"1 ms\n"),
)


def manifest(files: Iterable[Ingredient] = FILES, **changes: object) -> Manifest:
    listed = tuple(sorted(map(packed, files), key=lambda one: one.path))
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
