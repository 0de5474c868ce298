"""The release tables: which version falls into which range, and what the ranges differ in."""

from pathlib import Path

import pytest
from tables import each

from perfgate.core.errors import InputError
from perfgate.engines.tensorrt_llm.table import SERVE, TABLES, VARIABLE, release


@each(
    ("version", "since"),
    [
        ("0.19.0", "0.19.0rc0"),
        ("1.0.0rc1", "0.21.0rc0"),
        ("1.0.0rc2", "1.0.0rc2"),
        ("1.0", "1.0.0rc4"),
        ("1.0.3", "1.0.0rc4"),
        ("1.1.0rc2.post1", "1.1.0rc0"),
        ("1.3.0rc10", "1.3.0rc0"),
        ("1.3.0rc11", "1.3.0rc11"),
        ("1.3.7", "1.3.0rc24"),
        ("1.4.0rc0", "1.4.0rc0"),
        ("2.0.0", "1.4.0rc0"),
        ("1.0.0+abc123", "1.0.0rc4"),
        ("v1.0.0", "1.0.0rc4"),
    ],
)
def test_a_version_falls_into_its_range(version: str, since: str) -> None:
    assert release(version).since == since
    assert release(version).version == version


def test_what_is_too_old_is_refused() -> None:
    for asked in (release, TABLES.uncovered):
        with pytest.raises(InputError, match=r"(?s)too old.*found: 0\.18\.2.*: 0\.19\.0rc0 or"):
            asked("0.18.2")


@each("version", ["", "main", "1.0.x"])
def test_what_is_no_version_is_refused(version: str) -> None:
    for asked in (release, TABLES.uncovered):
        with pytest.raises(InputError, match=r"(?s)not a version.*--engine-version"):
            asked(version)


def test_a_build_of_a_release_is_that_release() -> None:
    assert TABLES.same("1.0", "1.0.0+cu129")
    assert not TABLES.same("1.0.0", "1.0.0rc6")


def first_table(folder: Path) -> Path:
    source = TABLES.folder / "0.19.0rc0.yaml"
    (folder / source.name).write_text(source.read_text())
    return folder


class TestFiles:
    """What a range's file may say."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return first_table(tmp_path)

    def test_a_later_file_is_what_changed(self, folder: Path) -> None:
        (folder / "0.20.0.yaml").write_text(
            "programs: {trtllm-serve: {host: null, tp: --gpus, new: {name: --new, flag: true}}}\n"
            "mtp_zero: false\n"
        )
        before, after = TABLES.read(folder)
        assert (before.since, after.since) == ("0.19.0rc0", "0.20.0")
        assert set(before.options(SERVE)) ^ set(after.options(SERVE)) == {"host", "new"}
        assert after.options(SERVE)["new"].flag
        assert (before.options(SERVE)["tp"].name, after.options(SERVE)["tp"].name) == (
            "--tp_size",
            "--gpus",
        )
        assert before.mtp_zero
        assert not after.mtp_zero
        assert after.spelling == before.spelling

    @each(
        "changes",
        [
            "no_such_field: 1",
            "spelling: {no_such_setting: [a]}",
            "programs: {trtllm-serve: {host: {no_such_fact: true}}}",
            "programs: {trtllm-serve: [host]}",
            "programs: [trtllm-serve]",
            "programs: {trtllm-serve: {backend: {choices: {pytorch: true}}}}",
            "- a list",
            "spelling: {overlap: null}",
            "defaults: {trtllm-serve: {cuda_graphs: sometimes}}",
        ],
    )
    def test_what_a_table_does_not_have_is_refused(self, tmp_path: Path, changes: str) -> None:
        folder = first_table(tmp_path)
        (folder / "0.20.0.yaml").write_text(changes)
        with pytest.raises(InputError, match=r"0\.20\.0\.yaml: not a table"):
            TABLES.read(folder)

    def test_only_what_is_there_can_be_taken_away(self, folder: Path) -> None:
        (folder / "0.20.0.yaml").write_text("programs: {trtllm-serve: {no_such_one: null}}")
        with pytest.raises(InputError, match=r"null for 'no_such_one', which the range before"):
            TABLES.read(folder)

    def test_a_file_is_named_after_a_release(self, folder: Path) -> None:
        (folder / "newest.yaml").write_text("")
        with pytest.raises(InputError, match="not a version of TensorRT-LLM"):
            TABLES.read(folder)

    def test_a_release_has_one_file(self, folder: Path, tmp_path: Path) -> None:
        more = tmp_path / "more"
        more.mkdir()
        (more / "0.19.0rc0.yaml").write_text("")
        with pytest.raises(InputError, match=r"more/0\.19\.0rc0\.yaml: not a table"):
            TABLES.read(folder, more)

    def test_a_folder_of_ones_own_must_be_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(VARIABLE, "/no/such/folder")
        with pytest.raises(InputError, match=f"{VARIABLE}: no such folder"):
            TABLES.all()


@each("version", ["0.19.0", "1.3.0rc23", "1.3.7", "1.3.0+abc", "1.4.0rc0", "1.4.7"])
def test_a_release_within_the_tables_is_covered(version: str) -> None:
    assert TABLES.uncovered(version) is None


@each("version", ["1.5.0rc0", "1.5.0.dev2", "2.0", "99"])
def test_a_later_release_is_told_with_the_table_that_is_used(version: str) -> None:
    told = TABLES.uncovered(version)
    assert told is not None
    assert f"TensorRT-LLM {version}: the newest one is used, of {release(version).since} " in told
