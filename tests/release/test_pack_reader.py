"""A pack is what was packed, to the byte, or it is refused with the name of what is wrong."""

import io
import os
import stat
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import made_packs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfgate.core.errors import InputError
from perfgate.release import pack_entries, pack_reader
from perfgate.release.pack_archive import END, entry_head, padding
from perfgate.release.pack_layout import MANIFEST, SUMMARY, TEST_RESULT, Manifest
from perfgate.release.pack_manifest import manifest_text, seconds_of
from perfgate.release.pack_reader import open_pack, with_attestations
from perfgate.release.pack_writer import Ingredient
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus

Files = list[tuple[str, bytes]]
TIME = seconds_of(made_packs.manifest())


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    return made_packs.write(tmp_path / "evidence.tar")


def archive(files: Iterable[tuple[str, bytes]], time: int = TIME) -> bytes:
    """An archive of the files in this order."""
    return (
        b"".join(
            entry_head(path, len(content), time) + content + padding(len(content))
            for path, content in files
        )
        + END
    )


def whole(manifest: Manifest | None = None) -> Files:
    """Paths and contents of the small pack, with another manifest if given."""
    text = manifest_text(manifest or made_packs.manifest()).encode()
    files = {one.path: one.source for one in made_packs.FILES if isinstance(one.source, bytes)}
    return sorted({**files, MANIFEST: text}.items())


def refused(path: Path, content: bytes, status: ReleaseStatus = ReleaseStatus.BROKEN_PACK) -> str:
    """What a pack of this content is refused with."""
    path.write_bytes(content)
    with pytest.raises(ReleaseRefused) as caught:
        open_pack(path)
    assert caught.value.status == status
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_a_pack_holds_what_was_packed(pack: Path) -> None:
    found = open_pack(pack)
    assert found.manifest == made_packs.manifest()
    assert found.read("runs/a/records.jsonl") == b"{}\n" * 200
    assert [one.path for one in found.files("log")] == ["runs/a/empty.out", made_packs.LONG]
    assert len(found.files()) == len(made_packs.FILES)
    assert not found.attestations
    assert archive(whole()) == pack.read_bytes()


def test_tar_reads_it_too(pack: Path) -> None:
    with tarfile.open(pack) as found:
        members = found.getmembers()
        assert [one.name for one in members] == [path for path, _ in whole()]
        assert {(one.uid, one.gid, one.uname, one.gname) for one in members} == {(0, 0, "", "")}
        assert {one.mtime for one in members} == {TIME}
        assert {one.mode for one in members if one.name.endswith(".sh")} == {0o755}
        read = found.extractfile(made_packs.LONG)
        assert read is not None
        assert read.read() == b"ready\n"


def test_it_is_extracted_whole_into_a_new_folder(pack: Path, tmp_path: Path) -> None:
    with_attestations(pack, {SUMMARY: b"{}"})
    mask = os.umask(0)
    try:
        folder = open_pack(pack).extracted(tmp_path / "new" / "folder")
    finally:
        os.umask(mask)
    found = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert found == {**dict(whole()), SUMMARY: b"{}"}
    assert stat.S_IMODE((folder / "runs/a/records.jsonl").stat().st_mode) == 0o644
    assert stat.S_IMODE((folder / "reproduce/a-c1.sh").stat().st_mode) == 0o755
    assert {stat.S_IMODE(one.stat().st_mode) for one in (folder, folder / "runs/a")} == {0o755}
    with pytest.raises(InputError, match="something already"):
        open_pack(pack).extracted(folder)


def test_long_paths_are_read_as_they_were_written(tmp_path: Path) -> None:
    names = ["w" * length for length in range(76, 102)]
    names += ["/".join(["y" * 190] * 4 + ["z" * length]) for length in range(170, 215)]
    files = [Ingredient(f"runs/a/{one}", "log", b"") for one in names]
    pack = open_pack(made_packs.write(tmp_path / "evidence.tar", [*made_packs.FILES, *files]))
    assert {one.path for one in files} <= {one.path for one in pack.files("log")}


def test_attestations_are_added_and_replaced_and_nothing_else_changes(pack: Path) -> None:
    before = pack.read_bytes()
    digest = with_attestations(pack, {TEST_RESULT: b"1"})
    assert digest == open_pack(pack).manifest_sha256
    with_attestations(pack, {SUMMARY: b"2"})
    with_attestations(pack, {TEST_RESULT: b"3"})
    found = open_pack(pack)
    assert found.attestations == {SUMMARY: b"2", TEST_RESULT: b"3"}
    assert found.manifest_sha256 == digest
    assert pack.read_bytes()[-len(before) :] == before
    assert [*pack.parent.iterdir()] == [pack]


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.data())
def test_no_byte_can_change(pack: Path, data: st.DataObject) -> None:
    content = bytearray(archive(whole()))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    pack.write_bytes(content)
    with pytest.raises(ReleaseRefused) as caught:
        open_pack(pack)
    assert caught.value.status in (ReleaseStatus.BROKEN_PACK, ReleaseStatus.OTHER_VERSION)


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.data())
def test_no_pack_is_cut(pack: Path, data: st.DataObject) -> None:
    content = archive(whole())
    assert "fix:" in refused(pack, content[: data.draw(st.integers(0, len(content) - 1))])


def changed(path: str, content: bytes) -> Files:
    return [(one, content if one == path else old) for one, old in whole()]


@pytest.mark.parametrize(
    ("files", "told"),
    [
        pytest.param(
            changed("runs/a/records.jsonl", b"{}\n" * 199 + b"{0\n"),
            "a file was changed since it was packed",
            id="changed",
        ),
        pytest.param(whole()[1:], "a file is missing", id="missing"),
        pytest.param([one for one in whole() if one[0] != MANIFEST], "no manifest.json", id="none"),
        pytest.param([], "no manifest.json", id="empty"),
        pytest.param([*whole(), ("runs/b/run.json", b"")], "a file is extra", id="extra"),
        pytest.param([whole()[0], *whole()], "in the pack twice", id="twice"),
        pytest.param(whole()[::-1], "not sorted", id="unsorted"),
        pytest.param([*whole(), ("runs/../../up", b"")], "leaves its folder", id="up"),
        pytest.param([("/etc/passwd", b""), *whole()], "an absolute path", id="absolute"),
        pytest.param([("a//b", b""), *whole()], "an empty part", id="empty-part"),
        pytest.param([("a\\b", b""), *whole()], "backslash", id="backslash"),
        pytest.param([("a\n", b""), *whole()], "cannot be seen", id="line-end"),
        pytest.param([("a\u202eb", b""), *whole()], "cannot be seen", id="turned"),
        pytest.param([("a\u0301", b""), *whole()], "composed form", id="decomposed"),
        pytest.param([("a" * 256, b""), *whole()], "longer than 255 bytes", id="long"),
        pytest.param([*whole(), ("runs/a/é" + "/x" * 600, b"")], "too long", id="long-path"),
        pytest.param(
            sorted([*whole(), ("runs/a/records.jsonl/x", b"")]), "one on some systems", id="within"
        ),
        pytest.param([("Policy/x", b""), *whole()], "'Policy' and 'policy'", id="case-of-folder"),
        pytest.param(
            sorted([*whole(), ("runs/a/EMPTY.out", b"")]), "one on some systems", id="case"
        ),
        pytest.param(
            sorted([*whole(), ("runs/a/\ufb01le", b""), ("runs/a/file", b"")]),
            "one on some systems",
            id="unicode",
        ),
        pytest.param([("attestations/x.json", b""), *whole()], "unknown name", id="attestation"),
    ],
)
def test_what_is_not_as_it_was_packed_is_named(pack: Path, files: Files, told: str) -> None:
    assert told in refused(pack, archive(files))


def with_member(info: tarfile.TarInfo, content: bytes = b"") -> bytes:
    """The small pack with an entry before it that Python's tarfile writes."""
    info.mtime = TIME
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as file:
        file.addfile(info, io.BytesIO(content))
        end = file.offset
    return made.getvalue()[:end] + archive(whole())


def link(kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo("a")
    info.type, info.linkname = kind, "/etc/passwd"
    return info


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (tarfile.SYMTYPE, "a symbolic link"),
        (tarfile.LNKTYPE, "a hard link"),
        (tarfile.CHRTYPE, "a device"),
        (tarfile.FIFOTYPE, "a FIFO"),
        (tarfile.DIRTYPE, "a folder"),
        (tarfile.GNUTYPE_SPARSE, "a sparse file"),
        (tarfile.GNUTYPE_LONGNAME, "a long name"),
        (b"Z", "of an unknown kind"),
    ],
)
def test_only_regular_files_are_in_a_pack(pack: Path, kind: bytes, told: str) -> None:
    assert told in refused(pack, with_member(link(kind)))


@pytest.mark.parametrize("field", ["uid", "mode", "uname"])
def test_owner_rights_and_time_are_the_same_for_all(pack: Path, field: str) -> None:
    info = tarfile.TarInfo("a")
    content = with_member(info)
    setattr(info, field, "eve" if field == "uname" else 0o777)
    changed_head = info.tobuf(tarfile.USTAR_FORMAT)
    told = refused(pack, changed_head + content[512:])
    assert "head of a file is not as" in told
    assert "another time" in refused(pack, entry_head("a", 0, TIME + 1) + archive(whole()))


def test_what_follows_the_end_is_refused(pack: Path) -> None:
    content = archive(whole())
    assert "follows the end" in refused(pack, content + bytes(512))
    assert "follows the end" in refused(pack, content + content)
    assert "a block of zeros among" in refused(pack, bytes(512) + content)
    assert "cut off" in refused(pack, content[:-512])


@pytest.mark.parametrize("content", [b"", b"PK\3\4" * 300, b"\x1f\x8b" + bytes(600), b"x" * 5000])
def test_what_is_no_tar_is_refused(pack: Path, content: bytes) -> None:
    refused(pack, content)


def versions() -> Iterator[tuple[Callable[[str], str], ReleaseStatus, str]]:
    broken = ReleaseStatus.BROKEN_PACK
    yield (
        lambda text: text.replace('"schema_version": 1', '"schema_version": 7'),
        ReleaseStatus.OTHER_VERSION,
        "written by perfgate 0.1.0",
    )
    yield lambda text: text.replace("engine 1.3", "engine 1.4"), broken, "was changed"
    yield lambda text: text.replace('"role": "log"', '"role": "junk"'), broken, "not as its schema"
    yield lambda text: text.replace('\n "', '\n  "'), broken, "not the text that perfgate writes"
    yield lambda text: text[:-9], broken, "is not JSON"
    yield lambda _: "[]", broken, "not as its schema"
    yield lambda _: "[" * 9999, broken, "nested too deep"


@pytest.mark.parametrize(("change", "status", "told"), [*versions()])
def test_a_manifest_that_is_another_is_refused(
    pack: Path, change: Callable[[str], str], status: ReleaseStatus, told: str
) -> None:
    text = change(manifest_text(made_packs.manifest()))
    files = [(path, text.encode() if path == MANIFEST else old) for path, old in whole()]
    assert told in refused(pack, archive(files), status)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda one: replace(one, files=one.files[::-1]), "unsorted"),
        (lambda one: replace(one, files=(*one.files, one.files[-1])), "one twice"),
        (lambda one: replace(one, files=one.files[:-1]), "a file is extra"),
        (lambda one: replace(one, ended="2026-11-23T01:00:01+00:00"), "another time"),
        (lambda one: replace(one, ended="2026-99-23T01:00:01+00:00"), "not whole"),
        (lambda one: replace(one, ended="1969-11-23T01:00:01+00:00"), "before 1970"),
        (
            lambda one: replace(one, files=(replace(one.files[0], path=MANIFEST), *one.files[1:])),
            "cannot list",
        ),
        (
            lambda one: replace(one, files=(replace(one.files[0], path=SUMMARY), *one.files[1:])),
            "cannot list",
        ),
        (
            lambda one: replace(one, files=(replace(one.files[0], path="../a"), *one.files[1:])),
            "leaves its folder",
        ),
    ],
)
def test_a_manifest_that_contradicts_itself_is_refused(
    pack: Path, change: Callable[[Manifest], Manifest], told: str
) -> None:
    assert told in refused(pack, archive(whole(change(made_packs.manifest()))))


def test_sizes_beyond_the_limits_are_refused_before_they_are_read(
    pack: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = archive(whole())
    with pytest.raises(ReleaseRefused, match="too large to be read"):
        open_pack(pack).read("runs/a/records.jsonl", 599)
    monkeypatch.setattr(pack_reader, "LARGEST_MANIFEST", 100)
    assert "manifest.json is too large" in refused(pack, content)
    monkeypatch.setattr(pack_entries, "MOST_FILES", 1)
    assert "too many files" in refused(pack, content)
    with pack.open("wb") as file:
        file.truncate(pack_entries.LARGEST_PACK + 1)  # sparse: it takes no room
    with pytest.raises(ReleaseRefused, match="too large for a pack"):
        open_pack(pack)


def test_a_pack_that_is_none_or_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        open_pack(tmp_path / "none.tar")
    with pytest.raises(InputError, match="cannot be read"):
        open_pack(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a regular file"):
        open_pack(tmp_path / "pipe")


def test_a_pack_that_changes_after_it_was_opened_is_refused(pack: Path, tmp_path: Path) -> None:
    found = open_pack(pack)
    pack.write_bytes(pack.read_bytes().replace(b"ready", b"READY"))
    with pytest.raises(ReleaseRefused, match="changed while it was read"):
        found.read(made_packs.LONG)
    with pytest.raises(ReleaseRefused, match="changed while it was read"):
        found.extracted(tmp_path / "new")


def test_attestations_have_two_names_and_a_limit(
    pack: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = pack.read_bytes()
    with pytest.raises(ReleaseRefused, match="unknown name"):
        with_attestations(pack, {"attestations/mine.json": b""})
    monkeypatch.setattr(pack_reader, "LARGEST_ATTESTATION", 3)
    with pytest.raises(ReleaseRefused, match="too large"):
        with_attestations(pack, {SUMMARY: b"1234"})
    assert pack.read_bytes() == before
