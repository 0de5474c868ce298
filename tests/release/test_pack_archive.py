"""A pack is what was packed, or it is refused with the name of what is wrong.

What somebody does to a signed pack is in tests/suite/test_release_attacks.py.
"""

import json
import os
import tarfile
from pathlib import Path
from typing import Any, get_args

import made_packs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from made_packs import archive, files_of, whole
from refusals import refused
from tables import each

from perfgate.release import pack_archive
from perfgate.release.pack_archive import ATTESTATION, CERTIFICATE, MANIFEST, POLICY, open_pack
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus

TEXT = pack_archive.packed_json(made_packs.manifest())


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    return made_packs.write(tmp_path / "evidence.tar")


def broken(path: Path, content: bytes, status: int = ReleaseStatus.BROKEN_PACK) -> str:
    """What a pack of this content is refused with."""
    path.write_bytes(content)
    error = refused(open_pack, path)
    assert error.status == status
    assert str(path) in str(error)
    return str(error)


def test_a_pack_holds_what_was_packed_and_tar_reads_it(pack: Path) -> None:
    found = open_pack(pack)
    assert (found.manifest, found.attestation) == (made_packs.manifest(), None)
    assert files_of(pack) == dict(whole())
    with tarfile.open(pack) as read:
        members = read.getmembers()
    assert [one.name for one in members] == [path for path, _ in whole()]
    owners = {(one.uid, one.gid, one.uname, one.gname, one.mtime) for one in members}
    assert owners == {(0, 0, "", "", 0)}
    modes = {one.name: one.mode for one in members if one.mode != 0o644}
    assert modes == {"reproduce/a-c1.sh": 0o755}


def test_it_is_extracted_whole_and_long_paths_are_as_they_were_written(tmp_path: Path) -> None:
    names = ["w" * length for length in range(76, 102)]
    names += ["/".join(["é" * 95] * 4 + ["z" * length]) for length in range(170, 215)]
    files = [pack_archive.Ingredient(f"runs/a/{one}", "log", b"") for one in names]
    pack = open_pack(made_packs.write(tmp_path / "evidence.tar", [*made_packs.FILES, *files]))
    assert {one.path for one in files} <= {one.path for one in pack.manifest.files}
    new = tmp_path / "new"
    new.mkdir()
    pack.extract(new)
    written = [path for path in new.rglob("*") if path.is_file()]
    found = {str(path.relative_to(new)): path.read_bytes() for path in written}
    packed = files_of(pack.path)
    assert found == {name: packed[name] for name in packed if name != MANIFEST}


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_byte_of_a_file_can_change_and_no_pack_is_cut(pack: Path, data: st.DataObject) -> None:
    content = archive(whole())
    place = data.draw(st.integers(0, len(content) - 1))
    other = bytes([content[place] ^ data.draw(st.integers(1, 255))])
    pack.write_bytes(content[:place] + other + content[place + 1 :])
    try:
        open_pack(pack)
    except ReleaseRefused as error:
        assert error.status in (ReleaseStatus.BROKEN_PACK, ReleaseStatus.OTHER_VERSION)  # noqa: PT017
    else:
        changed = files_of(pack)  # an owner, a time, or the manifest's text
        assert {**changed, MANIFEST: b""} == {**dict(whole()), MANIFEST: b""}
    used = len(content.rstrip(b"\0"))
    broken(pack, content[: data.draw(st.integers(0, used))])


def path(new: str, old: str = "runs/a/empty.out") -> tuple[str, str]:
    return f'"path": "{old}"', f'"path": "{new}"'


@each(
    "change, status, told",
    [
        (('"schema_version": 2', '"schema_version": 1'), 26, "install perfgate 0.1.0"),
        (('"role": "log"', '"role": "junk"'), 25, "not as perfgate writes it"),
        (('"ended": "2026-11', '"ended": "2026-99'), 25, "not as perfgate writes it"),
        ((TEXT, "[]"), 25, "not as perfgate writes it"),
        ((TEXT, "[" * 9999), 25, "nested too deep"),
        ((TEXT, TEXT[:-9]), 25, "is not JSON"),
        (('"release": "engine 1.3"', '"release": "a", "release": "b"'), 25, "twice"),
        (path("manifest.json", POLICY), 25, "cannot list"),
        (path(ATTESTATION, POLICY), 25, "cannot list"),
        (path("policy/x", POLICY), 25, "no policy/release.yaml"),
        (path("z"), 25, "unsorted"),
        (path("runs/a/records.jsonl"), 25, "one twice"),
        (path("runs/a/RECORDS.jsonl"), 25, "one on some systems"),
        (path("RUNS/a/x"), 25, "unsorted"),
        (('"runs": [\n  "a"', '"runs": [\n  "../../a"'), 25, "a run without its run.json"),
        (path("../a", CERTIFICATE), 25, "leaves its folder"),
        (path("/etc/passwd", CERTIFICATE), 25, "absolute"),
    ],
)
def test_a_manifest_that_is_another_is_refused(pack, change, status, told) -> None:
    assert change[0] in TEXT
    text = TEXT.replace(*change).encode()
    assert told in broken(pack, archive(whole(text)), status)


@each(
    "name, told",
    [
        ("a//b", "an empty part"),
        ("a\\b", "backslash"),
        ("a\n", "cannot be seen"),
        ("a\u202eb", "cannot be seen"),
        ("a\u0301", "composed form"),
        ("a" * 256, "longer than 255 bytes"),
        ("runs/a/é" + "/x" * 600, "longer than 1024 bytes"),
        ("runs/a/é" + "/x" * 1600, "a path is too long"),
    ],
)
def test_a_name_that_no_pack_has_is_refused(pack: Path, name: str, told: str) -> None:
    assert told in broken(pack, archive([*whole(), (name, b"")]))


@each("fields", [{"path": "a"}, {"SCHILY.xattr.user.a": "b"}, {"GNU.sparse.major": "1"}])
def test_only_a_long_path_has_settings(pack: Path, fields: dict[str, str]) -> None:
    head = tarfile.TarInfo("z")
    head.pax_headers = fields
    broken(pack, archive([*whole(), (head, b"1\n")]))


def test_sizes_beyond_the_limits_are_refused_before_they_are_read(pack, monkeypatch) -> None:
    content, large = archive([*whole(), (ATTESTATION, b"1")]), "too large"
    limits = {"LARGEST_MANIFEST": (0, large), "LARGEST_ATTESTATION": (0, large)}
    for name, (limit, told) in {**limits, "MOST_FILES": (1, "too many files")}.items():
        with monkeypatch.context() as patch:
            patch.setattr(pack_archive, name, limit)
            assert told in broken(pack, content)
    with pack.open("wb") as file:
        file.truncate(pack_archive.LARGEST_PACK + 1)  # sparse: it takes no room
    refused(open_pack, pack, error=ReleaseRefused, match="too large for a pack")


def test_a_pack_that_is_none_or_missing_is_told(tmp_path: Path) -> None:
    for content in (b"", b"PK\3\4" * 300, b"\x1f\x8b" + bytes(600), b"x" * 5000, bytes(10240)):
        broken(tmp_path / "evidence.tar", content)
    os.mkfifo(tmp_path / "pipe")
    for name, told in (("none", "no such file"), ("", "cannot be read"), ("pipe", "not a regular")):
        refused(open_pack, tmp_path / name, match=told)


def test_a_pack_that_changes_after_it_was_opened_is_refused(pack: Path, tmp_path: Path) -> None:
    found: Any = open_pack(pack)
    pack.write_bytes(pack.read_bytes().replace(b"ready", b"READY"))
    (tmp_path / "new").mkdir()
    refused(found.extract, tmp_path / "new", error=ReleaseRefused, match="changed while it was")
    signed = pack_archive.with_attestation, found, b"{}", tmp_path / "signed.tar"
    refused(*signed, error=ReleaseRefused, match="a file was changed")
    pack.write_bytes(archive([("a", b"")]))
    refused(*signed, error=ReleaseRefused, match="a file is extra")
    assert not [*tmp_path.glob("*signed.tar*")]
    pack.write_bytes(archive([("../escaped", b"")]))
    refused(found.extract, tmp_path / "new", error=ReleaseRefused, match="leaves its folder")
    assert not (tmp_path / "escaped").exists()


def test_the_published_schema_knows_every_field_and_role() -> None:
    published = Path(__file__).parents[2] / "docs/reference/evidence_manifest.schema.json"
    schema, written = json.loads(published.read_text()), json.loads(TEXT)
    Draft202012Validator.check_schema(schema)
    assert not [*Draft202012Validator(schema).iter_errors(written)]
    assert written.keys() == schema["properties"].keys() == {*schema["required"]}
    line = schema["properties"]["files"]["items"]["properties"]
    assert line.keys() == written["files"][0].keys()
    assert line["role"]["enum"] == [*get_args(pack_archive.Role)]
