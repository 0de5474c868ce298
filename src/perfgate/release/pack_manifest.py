"""Pack manifest: `manifest.json` of an evidence pack as text, and read again. Pure."""

import hashlib
import json
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from perfgate.core.errors import InputError
from perfgate.core.json_text import LARGEST_OWN, JsonError, parse
from perfgate.core.plain import from_plain, to_plain
from perfgate.release.pack_layout import ATTESTATIONS, MANIFEST, SCHEMA_VERSION, Manifest
from perfgate.release.pack_names import colliding_names, problem_of_name
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus
from perfgate.scenarios.problem import dotted
from perfgate.scenarios.schema import Schema, read_schema

MOST_FILES = 100_000
LARGEST_MANIFEST = LARGEST_OWN
_CHECKSUM = "checksum"


def manifest_text(manifest: Manifest) -> str:
    """The file's text: the fields of the manifest, and a checksum of that text without it."""
    plain = to_plain(manifest)
    return _text({**plain, _CHECKSUM: _checksum(plain)})


def sha256_of(content: bytes) -> str:
    """The SHA-256 of some bytes, as 64 hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def seconds_of(manifest: Manifest) -> int:
    """The time of every file of the pack, in seconds since 1970.

    Raises:
        ValueError: `ended` is no time, or before 1970.
    """
    seconds = int(datetime.fromisoformat(manifest.ended).timestamp())
    if seconds < 0:
        raise ValueError(f"before 1970: {manifest.ended}")
    return seconds


def read_manifest(content: bytes, pack: Path) -> Manifest:
    """The manifest of a pack.

    Args:
        content: of its file.
        pack: which pack it is of, for messages.

    Raises:
        ReleaseRefused: status OTHER_VERSION: it is of a form of another perfgate. BROKEN_PACK: it
            is not as the schema says, not as perfgate writes it, or was changed.
    """
    try:
        plain: Any = parse(content, limit=LARGEST_MANIFEST, own=True)
    except JsonError as error:
        raise broken_pack(
            pack, f"{MANIFEST} {error.problem}", found=error.found, expected=error.expected
        ) from error
    _require_version(plain, pack)
    problems = _schema().problems(plain)
    if problems:
        first = problems[0]
        raise broken_pack(
            pack,
            f"{MANIFEST} is not as its schema says: {first.problem}",
            field=dotted(first.path) or None,
            found=first.found,
            expected=first.expected,
        )
    _require_checksum(plain, pack)
    try:
        manifest = from_plain(Manifest, plain)
        seconds_of(manifest)
    except (InputError, ValueError) as error:
        raise broken_pack(pack, f"{MANIFEST} is not whole", found=str(error)) from error
    if manifest_text(manifest).encode() != content:
        raise broken_pack(
            pack,
            f"{MANIFEST} is not the text that perfgate writes of its content",
            expected="one field a line, sorted, with no other blanks",
        )
    _require_files(manifest, pack)
    return manifest


def broken_pack(pack: Path, problem: str, **told: Any) -> ReleaseRefused:
    """The refusal of a pack that is not as it was written.

    Args:
        pack: the file.
        problem: what is wrong with it.
        told: field, found, expected, hint: as of `ReleaseRefused`.
    """
    told.setdefault("hint", "have the pack again from whoever keeps it; do not repair it")
    return ReleaseRefused(ReleaseStatus.BROKEN_PACK, problem, file=pack, **told)


def _require_version(plain: Any, pack: Path) -> None:
    version = plain.get("schema_version") if isinstance(plain, dict) else None
    if type(version) is int and version != SCHEMA_VERSION:
        writer = plain.get("perfgate")
        raise ReleaseRefused(
            ReleaseStatus.OTHER_VERSION,
            "a pack of a form that this perfgate does not know",
            file=pack,
            field=f"{MANIFEST}: schema_version",
            found=f"{version}, written by perfgate {str(writer)[:60]}",
            expected=str(SCHEMA_VERSION),
            hint=f"read it with perfgate {str(writer)[:60]}",
        )


def _require_checksum(plain: dict[str, Any], pack: Path) -> None:
    rest = {name: value for name, value in plain.items() if name != _CHECKSUM}
    if (expected := _checksum(rest)) != plain[_CHECKSUM]:
        raise broken_pack(
            pack,
            f"{MANIFEST} was changed: its checksum is that of another text",
            found=plain[_CHECKSUM],
            expected=expected,
        )


def _require_files(manifest: Manifest, pack: Path) -> None:
    """Check the paths that it lists: allowed, sorted, each once, no two one file anywhere."""
    paths = [one.path for one in manifest.files]
    if len(paths) > MOST_FILES:
        raise broken_pack(
            pack, f"{MANIFEST} lists too many files", found=len(paths), expected=f"{MOST_FILES}"
        )
    for path in paths:
        if path == MANIFEST or path.startswith(f"{ATTESTATIONS}/"):
            raise broken_pack(pack, f"{MANIFEST} lists a file that it cannot list", found=path)
        if problem := problem_of_name(path):
            raise broken_pack(pack, f"{MANIFEST} lists {problem}", found=path)
    if paths != sorted(set(paths)):
        raise broken_pack(pack, f"{MANIFEST} lists files unsorted, or one twice")
    if pair := colliding_names(paths):
        raise broken_pack(
            pack,
            f"{MANIFEST} lists two names that are one on some systems",
            found=" and ".join(map(repr, pair)),
        )


def _text(plain: Any) -> str:
    return json.dumps(plain, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def _checksum(plain: Any) -> str:
    return sha256_of(_text(plain).encode(errors="surrogatepass"))


@cache
def _schema() -> Schema:
    return read_schema(
        Path(__file__).with_name("evidence_manifest.schema.json"), described=True, one_line=True
    )
