"""Pack manifest: which files an evidence pack holds, in which roles and by which names. Pure.

`manifest.json` lists every file but itself and the attestation, which names the manifest by its
SHA-256; so a signature covers everything. Names come from a pack that anybody may have made, or
from what programs left in a run folder.
"""

import hashlib
import json
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal

from perfgate.core.errors import InputError
from perfgate.core.json_text import LARGEST_OWN, JsonError, parse
from perfgate.core.plain import from_plain, to_plain
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus
from perfgate.scenarios.problem import dotted
from perfgate.scenarios.schema import Schema, read_schema

SCHEMA_VERSION = 2
MANIFEST = "manifest.json"
POLICY = "policy/release.yaml"
WAIVERS = "waivers.yaml"
SCENARIOS = "scenarios"
"""Folder: the files of the scenarios, claims and documented values, as the runs were made with."""
RUNS = "runs"
"""Folder: one folder a run, named by its id, with what the run folder holds."""
REPORT_PAGE = "report/report.html"
REPORT_JSON = "report/report.json"
CERTIFICATE = "certificate/certificate.md"
CERTIFICATE_PAGE = "certificate/certificate.html"
CHECK_JSON = "certificate/check.json"
REPRODUCE = "reproduce"
"""Folder: one script a required test, which runs it again."""
ATTESTATION = "attestations/test-result.dsse.json"

MOST_FILES = 100_000
LARGEST_MANIFEST = LARGEST_OWN
LONGEST_PATH = 1024  # bytes of UTF-8; PATH_MAX of Linux is 4096, with the folder it is unpacked to
LONGEST_PART = 255  # bytes of UTF-8: NAME_MAX of nearly every file system
_NOT_SHOWN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}

Role = Literal[
    "policy",
    "scenarios",
    "baseline",
    "waivers",
    "noise",
    "run",
    "records",
    "raw",
    "script",
    "log",
    "report",
    "certificate",
    "reproduce",
]


@dataclass(frozen=True)
class PackedFile:
    """One line of the manifest.

    Attributes:
        path: inside the pack, with ``/``; no ``..``, no leading ``/``.
        sha256: of its bytes.
        size: in bytes.
        role: what it is there for.
    """

    path: str
    sha256: str
    size: int
    role: Role


@dataclass(frozen=True)
class Manifest:
    """What a pack holds (docs/reference/evidence_manifest.schema.json).

    Attributes:
        release: the policy's name of what is released.
        perfgate: version of perfgate that wrote the pack.
        rule: version of the gate's rule that the verdicts are by.
        ended: when the newest run ended, ISO 8601 UTC.
        runs: ids of the runs, in the order of their start.
        files: sorted by path.
        schema_version: of this form.
    """

    release: str
    perfgate: str
    rule: str
    ended: str
    runs: tuple[str, ...]
    files: tuple[PackedFile, ...]
    schema_version: int = SCHEMA_VERSION

    @property
    def ended_at(self) -> datetime:
        """`ended` as a time."""
        return datetime.fromisoformat(self.ended)


def manifest_text(manifest: Manifest) -> str:
    """The file's text: one field a line, sorted."""
    plain = to_plain(manifest)
    return json.dumps(plain, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def sha256_of(content: bytes) -> str:
    """The SHA-256 of some bytes, as 64 hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def read_manifest(content: bytes, pack: Path) -> Manifest:
    """The manifest of a pack.

    Args:
        content: of its file.
        pack: which pack it is of, for messages.

    Raises:
        ReleaseRefused: status OTHER_VERSION: it is of a form of another perfgate. BROKEN_PACK: it
            is not as the schema says, or lists a name that no pack has.
    """
    try:
        plain: Any = parse(content, limit=LARGEST_MANIFEST, own=True)
    except JsonError as error:
        raise broken_pack(
            pack, f"{MANIFEST} {error.problem}", found=error.found, expected=error.expected
        ) from error
    _require_version(plain, pack)
    if problems := _schema().problems(plain):
        first = problems[0]
        raise broken_pack(
            pack,
            f"{MANIFEST} is not as its schema says: {first.problem}",
            field=dotted(first.path) or None,
            found=first.found,
            expected=first.expected,
        )
    try:
        manifest = from_plain(Manifest, plain)
        _ = manifest.ended_at
    except (InputError, ValueError) as error:
        raise broken_pack(pack, f"{MANIFEST} is not whole", found=str(error)) from error
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


def problem_of_name(path: str) -> str | None:
    """What is wrong with the path of a file in a pack; None: nothing."""
    parts = path.split("/")
    if path.startswith("/"):
        return "an absolute path"
    if ".." in parts or "." in parts:
        return "a path that leaves its folder"
    if "" in parts:
        return "a path with an empty part"
    if "\\" in path:
        return "a path with a backslash"
    if any(unicodedata.category(one) in _NOT_SHOWN for one in path):
        return "a path with a character that cannot be seen, or is no Unicode"
    if unicodedata.normalize("NFC", path) != path:
        return "a path that is not in the composed form of Unicode (NFC)"
    if len(path.encode()) > LONGEST_PATH:
        return f"a path longer than {LONGEST_PATH} bytes"
    if max(len(one.encode()) for one in parts) > LONGEST_PART:
        return f"a path with a part longer than {LONGEST_PART} bytes"
    return None


def colliding_names(paths: Iterable[str]) -> tuple[str, str] | None:
    """Two paths of a pack that some file system takes for one, or of which one lies in the other.

    Names that differ in case, or in their form of Unicode, are one file on Windows and macOS.
    """
    seen: dict[str, tuple[str, bool]] = {}
    for path in paths:
        parts = path.split("/")
        for end in range(1, len(parts) + 1):
            name, is_file = "/".join(parts[:end]), end == len(parts)
            folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
            if folded in seen and (is_file or seen[folded] != (name, False)):
                return seen[folded][0], name
            seen[folded] = name, is_file
    return None


def _require_version(plain: Any, pack: Path) -> None:
    version = plain.get("schema_version") if isinstance(plain, dict) else None
    if type(version) is int and version != SCHEMA_VERSION:
        writer = str(plain.get("perfgate"))[:60]
        raise ReleaseRefused(
            ReleaseStatus.OTHER_VERSION,
            "a pack of a form that this perfgate does not know",
            file=pack,
            field=f"{MANIFEST}: schema_version",
            found=f"{version}, written by perfgate {writer}",
            expected=str(SCHEMA_VERSION),
            hint=f"read it with perfgate {writer}",
        )


def _require_files(manifest: Manifest, pack: Path) -> None:
    """Check the paths that it lists: allowed, sorted, each once, no two one file anywhere."""
    paths = [one.path for one in manifest.files]
    if len(paths) > MOST_FILES:
        raise broken_pack(
            pack, f"{MANIFEST} lists too many files", found=len(paths), expected=f"{MOST_FILES}"
        )
    for path in paths:
        if path in (MANIFEST, ATTESTATION):
            raise broken_pack(pack, f"{MANIFEST} lists a file that it cannot list", found=path)
        if problem := problem_of_name(path):
            raise broken_pack(pack, f"{MANIFEST} lists {problem}", found=path)
    if paths != sorted(set(paths)):
        raise broken_pack(pack, f"{MANIFEST} lists files unsorted, or one twice")
    folders = {run: f"{RUNS}/{run}/run.json" for run in manifest.runs}
    if absent := [run for run, facts in folders.items() if facts not in paths]:
        raise broken_pack(pack, f"{MANIFEST} lists a run without its run.json", found=absent[0])
    if pair := colliding_names(paths):
        raise broken_pack(
            pack,
            f"{MANIFEST} lists two names that are one on some systems",
            found=" and ".join(map(repr, pair)),
        )


@cache
def _schema() -> Schema:
    return read_schema(
        Path(__file__).with_name("evidence_manifest.schema.json"), described=True, one_line=True
    )
