"""Pack manifest: which files an evidence pack holds, in which roles and by which names. Pure.

`manifest.json` lists every file but itself and the attestation, which names the manifest by its
SHA-256; so a signature covers everything. Names come from a pack that anybody may have made, or
from what programs left in a run folder.
"""

import json
import unicodedata
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from perfgate.core.json_text import LARGEST_OWN, JsonError, parse
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus

SCHEMA_VERSION: Literal[2] = 2
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


_Line = Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f-\x9f]+\Z")]
_Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
_Second = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00\Z")]


class PackedFile(Struct, frozen=True, forbid_unknown_fields=True):
    """One line of the manifest.

    Attributes:
        path: inside the pack, with ``/``; no ``..``, no leading ``/``.
        sha256: of its bytes.
        size: in bytes.
        role: what it is there for.
    """

    path: str
    sha256: _Sha256
    size: Annotated[int, Meta(ge=0)]
    role: Role


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
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

    release: _Line
    perfgate: _Line
    rule: _Line
    ended: _Second
    runs: Annotated[tuple[str, ...], Meta(min_length=1)]
    files: Annotated[tuple[PackedFile, ...], Meta(min_length=1)]
    schema_version: Literal[2] = SCHEMA_VERSION

    @property
    def ended_at(self) -> datetime:
        """`ended` as a time."""
        return datetime.fromisoformat(self.ended)


def manifest_text(manifest: Manifest) -> str:
    """The file's text: one field a line, sorted."""
    plain = msgspec.to_builtins(manifest)
    return json.dumps(plain, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


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
    fields = plain if isinstance(plain, dict) else {}
    given, writer = fields.get("schema_version"), str(fields.get("perfgate"))[:60]
    if type(given) is int and given != SCHEMA_VERSION:
        raise ReleaseRefused(
            ReleaseStatus.OTHER_VERSION,
            "a pack of a form that this perfgate does not know",
            file=pack,
            field=f"{MANIFEST}: schema_version",
            found=f"{given}, written by perfgate {writer}",
            expected=str(SCHEMA_VERSION),
            hint=f"read it with perfgate {writer}",
        )
    try:
        manifest = msgspec.convert(plain, Manifest)
        _ = manifest.ended_at
    except (msgspec.ValidationError, ValueError) as error:
        raise broken_pack(pack, f"{MANIFEST} is not as perfgate writes it", found=error) from error
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


def _require_files(manifest: Manifest, pack: Path) -> None:
    """Check the paths that it lists: allowed, sorted, each once, no two one file anywhere."""
    paths = [one.path for one in manifest.files]
    if len(paths) > MOST_FILES:
        raise broken_pack(
            pack, f"{MANIFEST} lists too many files", found=len(paths), expected=f"{MOST_FILES}"
        )
    listed = set(paths)
    problems: list[tuple[str, str | None]] = [
        ("a file that it cannot list", one) for one in listed & {MANIFEST, ATTESTATION}
    ]
    problems += [(problem, one) for one in paths if (problem := problem_of_name(one))]
    if paths != sorted(listed):
        problems.append(("files unsorted, or one twice", None))
    if POLICY not in listed:
        problems.append((f"no {POLICY}", None))
    problems += [
        ("a run without its run.json", run)
        for run in manifest.runs
        if f"{RUNS}/{run}/run.json" not in listed
    ]
    if pair := colliding_names(paths):
        problems.append(("two names that are one on some systems", " and ".join(map(repr, pair))))
    for problem, found in problems:
        raise broken_pack(pack, f"{MANIFEST} lists {problem}", found=found)
