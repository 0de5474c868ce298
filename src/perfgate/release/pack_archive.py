"""Pack archive: an evidence pack, a manifest and its files as an uncompressed tar file.

`manifest.json` lists every file but itself and the attestation, which names the manifest by its
SHA-256; so a signature covers everything. A pack is written whole and read with care: anybody may
have made it, and every file is compared with the manifest before any of it is used. Owner, rights
and time of an entry are always the same when it is written, and are not read.
"""

import hashlib
import io
import json
import os
import shutil
import tarfile
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import IO, Annotated, Any, Literal, Self

import msgspec
from msgspec import Meta, Struct

from perfgate.core.errors import InputError
from perfgate.core.files.durable_files import write_errors_named, written_whole
from perfgate.core.files.json_text import LARGEST_OWN, JsonError, parse
from perfgate.core.files.untrusted_files import open_input, open_regular
from perfgate.core.plain import to_plain
from perfgate.core.verdict import RULE_VERSION
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus

SCHEMA_VERSION: Literal[2] = 2
MANIFEST = "manifest.json"
POLICY = "policy/release.yaml"
WAIVERS = "waivers.yaml"
SCENARIOS = "scenarios"
"""Folder: the files of the scenarios, claims and documented values, as the runs were made with."""
RUNS = "runs"
"""Folder: one folder a run, named by its id, with what the run folder holds."""
REPORT = "report"
"""Folder: the report, as HTML and JSON."""
CERTIFICATE = "certificate/certificate.md"
CERTIFICATE_PAGE = "certificate/certificate.html"
CHECK_JSON = "certificate/check.json"
REPRODUCE = "reproduce"
"""Folder: one script a required test, which runs it again."""
ATTESTATION = "attestations/test-result.dsse.json"

LARGEST_PACK = 16 * 2**30  # bytes; a release's runs have some hundreds of megabytes
LARGEST_ATTESTATION = 16 * 2**20  # bytes: 100,000 names of tests
MOST_FILES = 100_000
LARGEST_MANIFEST = LARGEST_OWN
LONGEST_PATH = 1024  # bytes of UTF-8; PATH_MAX of Linux is 4096, with the folder it is unpacked to
LONGEST_PART = 255  # bytes of UTF-8: NAME_MAX of nearly every file system
_KINDS = {
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.LNKTYPE: "a hard link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.DIRTYPE: "a folder",
    tarfile.FIFOTYPE: "a FIFO",
}

Configuration = Literal["policy", "scenarios", "baseline", "waivers", "noise"]
Rendered = Literal["report", "certificate", "reproduce"]
Role = Literal[Configuration, "run", "records", "raw", "script", "log", Rendered]
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


def packed_json(value: object) -> str:
    """The text of a JSON file in a pack: one field a line, sorted."""
    plain = to_plain(value)
    return json.dumps(plain, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def read_manifest(content: bytes, pack: Path) -> Manifest:
    """The manifest of a pack.

    Args:
        content: of its file.
        pack: which pack it is of, for messages.

    Raises:
        ReleaseRefused: status OTHER_VERSION: another perfgate packed it. BROKEN_PACK: it is not as
            the schema says, or lists a name that no pack has.
    """
    try:
        plain: Any = parse(content, limit=LARGEST_MANIFEST, own=True)
        _require_own_version(plain if isinstance(plain, dict) else {}, pack)
        manifest = msgspec.convert(plain, Manifest)
        _ = manifest.ended_at
    except JsonError as error:
        fields = {"found": error.found, "expected": error.expected}
        raise _broken("bad_manifest", pack, problem=error.problem, **fields) from error
    except (msgspec.ValidationError, ValueError) as error:
        problem = "is not as perfgate writes it"
        raise _broken("bad_manifest", pack, problem=problem, found=error) from error
    for problem, found in _problems_of_paths(manifest):
        raise _broken("bad_manifest", pack, problem=f"lists {problem}", found=found)
    return manifest


def _require_own_version(fields: Mapping[str, Any], pack: Path) -> None:
    """Check that this perfgate, which judges and renders the pack again, made it."""
    writer = str(fields.get("perfgate"))[:60]
    own = {"schema_version": SCHEMA_VERSION, "perfgate": version("perfgate"), "rule": RULE_VERSION}
    for field, expected in own.items():
        given = fields.get(field)
        if type(given) is type(expected) and given != expected:
            raise ReleaseStatus.OTHER_VERSION.refusal(
                "pack",
                file=pack,
                field=f"{MANIFEST}: {field}",
                found=f"{str(given)[:60]}, by perfgate {writer}",
                expected=str(expected),
                writer=writer,
            )


def _problems_of_paths(manifest: Manifest) -> Iterator[tuple[str, object]]:
    """What is wrong with the paths that it lists, and where."""
    paths = [file.path for file in manifest.files]
    listed = set(paths)
    if len(paths) > MOST_FILES:
        yield f"too many files, at most {MOST_FILES} are allowed", len(paths)
    yield from (("a file that it cannot list", one) for one in listed & {MANIFEST, ATTESTATION})
    yield from ((problem, path) for path in paths if (problem := _problem_of_name(path)))
    if paths != sorted(listed):
        yield "files unsorted, or one twice", None
    if POLICY not in listed:
        yield f"no {POLICY}", None
    for run in manifest.runs:
        if f"{RUNS}/{run}/run.json" not in listed:
            yield "a run without its run.json", run
    if pair := colliding_names(paths):
        yield "two names that are one on some systems", " and ".join(map(repr, pair))


def _broken(name: str, pack: Path, **fields: Any) -> ReleaseRefused:
    return ReleaseStatus.BROKEN_PACK.refusal(name, file=pack, **fields)


def _problem_of_name(path: str) -> str | None:
    """What is wrong with the path of a file in a pack; None: nothing."""
    parts = path.split("/")
    sizes = [len(one.encode(errors="surrogatepass")) for one in (path, *parts)]
    problems = {
        "an absolute path": path.startswith("/"),
        "a path that leaves its folder": not {"..", "."}.isdisjoint(parts),
        "a path with an empty part": "" in parts,
        "a path with a backslash": "\\" in path,
        "a path with a character that cannot be seen, or is no Unicode": not path.isprintable(),
        "a path that is not in the composed form of Unicode (NFC)": (
            not unicodedata.is_normalized("NFC", path)
        ),
        f"a path longer than {LONGEST_PATH} bytes": sizes[0] > LONGEST_PATH,
        f"a path with a part longer than {LONGEST_PART} bytes": max(sizes[1:]) > LONGEST_PART,
    }
    return next((problem for problem, holds in problems.items() if holds), None)


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
        if problem := _problem_of_name(self.path):
            raise InputError(
                f"a file has {problem}",
                file=self.source if isinstance(self.source, Path) else None,
                found=repr(self.path),
                hint="rename or remove it, or measure again in a new run folder; then pack again",
            )

    def opened(self) -> IO[bytes]:
        """The content, to be read and closed.

        Raises:
            UntrustedFile: its file is a link or no regular file.
            OSError: its file cannot be read.
        """
        source = self.source
        return io.BytesIO(source) if isinstance(source, bytes) else open_regular(source)

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
                    raise _broken("changed_meanwhile", self.path, field=one.path)


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
    text = packed_json(manifest).encode()
    read_manifest(text, output)  # what nobody could read is not written
    files: _Files = {ingredient.path: ingredient.opened for ingredient in ingredients}
    try:
        return _write(output, {**files, MANIFEST: partial(io.BytesIO, text)}).manifest_sha256
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
        files: _Files = {name: partial(_content, archive, one) for name, one in members.items()}
        own = {MANIFEST: packed_json(pack.manifest).encode(), ATTESTATION: attestation}
        _write(output, {**files, **{name: partial(io.BytesIO, one) for name, one in own.items()}})


def open_pack(path: Path) -> Pack:
    """Open a pack: read all of it once, and refuse it unless it is what was packed.

    Args:
        path: the file, as a person named it.

    Raises:
        ReleaseRefused: status BROKEN_PACK: no tar, cut off, a file changed, missing, extra or
            twice, a link, a name that no pack has, too large, …; OTHER_VERSION: another perfgate
            packed it.
        InputError: no such file, not a regular one, or it cannot be read.
    """
    with _archive(path) as (archive, members):
        contents: dict[str, bytes] = {}
        for name, limit in ((MANIFEST, LARGEST_MANIFEST), (ATTESTATION, LARGEST_ATTESTATION)):
            if name in members:
                _require_size(members[name].size, limit, path, f"{name} is too large")
                contents[name] = _content(archive, members[name]).read()
        if MANIFEST not in contents:
            raise _broken("missing_file", path, found=f"no {MANIFEST}")
        manifest = read_manifest(contents[MANIFEST], path)
        listed = {file.path: file for file in manifest.files}
        if extra := [name for name in members if name not in listed and name not in contents]:
            raise _broken("extra_file", path, found=extra[0])
        for name, one in listed.items():
            if name not in members:
                raise _broken("missing_file", path, found=name)
            digest = _sha256(_content(archive, members[name]))
            found = f"{members[name].size} bytes, SHA-256 {digest}"
            expected = f"{one.size} bytes, SHA-256 {one.sha256}"
            if found != expected:
                raise _broken("changed_file", path, field=name, found=found, expected=expected)
    digest = hashlib.sha256(contents[MANIFEST]).hexdigest()
    return Pack(path, manifest, digest, contents.get(ATTESTATION))


def _sha256(file: IO[bytes]) -> str:
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def _members(archive: tarfile.TarFile, file: IO[bytes], pack: Path) -> dict[str, tarfile.TarInfo]:
    """The entries by path: regular files of allowed names, each once, and nothing behind them."""
    found: dict[str, tarfile.TarInfo] = {}
    end = 0
    for one in archive:
        if problem := _problem_of_name(one.name):
            raise _broken("bad_entry", pack, problem=f"a file has {problem}", found=one.name)
        if one.name in found:
            raise _broken("double_file", pack, found=one.name)
        if one.pax_headers.keys() - {"path"}:
            raise _broken("settings", pack, field=one.name)
        if len(found) > MOST_FILES + 2:
            raise _broken("many_files", pack, limit=MOST_FILES)
        found[one.name] = one
        end = one.offset_data + one.size + -one.size % tarfile.BLOCKSIZE
    file.seek(end)
    rest = file.read(2 * tarfile.RECORDSIZE)
    if not 2 * tarfile.BLOCKSIZE <= len(rest) < 2 * tarfile.RECORDSIZE or any(rest):
        raise _broken("cut_off", pack, found=f"{len(rest)} bytes or more after byte {end}")
    return found


def _require_size(size: int, limit: int, pack: Path, problem: str) -> None:
    if size > limit:
        raise _broken("too_large", pack, problem=problem, found=f"{size} bytes", limit=limit)


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
        raise _broken("no_pack", path, found=str(error)) from error
    except OSError as error:
        raise InputError("cannot be read", file=path, found=error.strerror) from error


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    found = archive.extractfile(member)
    if found is None:
        raise tarfile.ReadError(f"{member.name} has no content")
    return found


_Files = Mapping[str, Callable[[], AbstractContextManager[IO[bytes]]]]
"""Path → what opens the content."""


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
                for path, opened in sorted(files.items()):
                    head = tarfile.TarInfo(path)  # of owner 0 and time 0
                    head.mode = 0o755 if path.endswith(".sh") else 0o644
                    with opened() as content:
                        head.size = content.seek(0, os.SEEK_END)
                        content.seek(0)
                        archive.addfile(head, content)
            file.flush()
            os.fsync(file.fileno())
        return open_pack(draft)
