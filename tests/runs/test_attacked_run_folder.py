"""Attacks on a run folder: links, foreign owners, special files, edited records."""

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from plain_records import record, recorded

from perfgate.core.errors import InputError
from perfgate.core.files.durable_files import append_line
from perfgate.runs.progress import Progress
from perfgate.runs.progress_view import ProgressView
from perfgate.runs.record import SCHEMA_VERSION, as_line
from perfgate.runs.run_folder import RunFolder, now

FILES = ("run.json", "records.jsonl", "progress.jsonl", "summary.md", "run.lock", "workers.lock")
PRECIOUS = "precious\n"
NOBODY = 65534

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a file away")


@pytest.fixture
def ended(tmp_path: Path) -> Path:
    """The folder of a run that has ended, with every file that a session writes."""
    run = RunFolder.create(tmp_path / "runs" / "one", {"started": "now", "synthetic": True})
    run.join()
    run.begin_group("small-serve")
    run.record(record("selected", {"tests": ["t"]}))
    run.record(record("verdict", {"test": "t", "verdict": "ERROR", "synthetic": True}))
    run.write_summary("# whole\n")
    Progress(run.path / "progress.jsonl", "small-serve").note("begun")
    run.close()
    assert set(FILES) < {one.name for one in run.path.iterdir()}
    return run.path


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    file = tmp_path / "elsewhere" / "foreign"
    file.parent.mkdir()
    file.write_text(PRECIOUS)
    return file


def edit(path: Path, change: Callable[[str], str]) -> None:
    before = path.read_text()
    path.write_text(change(before))
    assert path.read_text() != before


def refused(path: Path) -> str:
    with pytest.raises(InputError) as told:
        RunFolder.reopen(path)
    assert told.value.hint is not None
    return str(told.value)


def link(file: Path, foreign: Path) -> None:
    file.replace(foreign)
    file.symlink_to(foreign)


def fifo(file: Path, _: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def give_away(file: Path, _: Path) -> None:
    os.chown(file, NOBODY, NOBODY)


def open_to_all(file: Path, _: Path) -> None:
    file.chmod(0o777)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    ("attack", "shown"),
    [
        (link, "found: a symbolic link to '"),
        (fifo, "found: a FIFO\n"),
        pytest.param(give_away, f"(uid {NOBODY})", marks=root_only),
        (open_to_all, "may write to it (mode 0777)"),
    ],
)
def test_a_run_with_an_attacked_file_is_not_gone_on_with_and_nobody_waits(
    ended: Path, foreign: Path, name: str, attack: Callable[[Path, Path], None], shown: str
) -> None:
    attack(ended / name, foreign)
    content = foreign.read_text()
    text = refused(ended)
    assert text.startswith(f"{ended / name}: ")
    assert shown in text
    assert (ended / name).is_symlink() == (attack is link)
    assert foreign.read_text() == content


class TestLinks:
    @pytest.mark.parametrize("name", FILES)
    def test_one_that_is_put_there_while_the_run_is_held_is_not_written_through(
        self, ended: Path, foreign: Path, name: str
    ) -> None:
        run = RunFolder.reopen(ended)
        (ended / name).unlink()
        (ended / name).symlink_to(foreign)
        for write in (
            lambda: run.record(record("verdict")),
            lambda: run.write_summary("# other\n"),
            lambda: Progress(ended / "progress.jsonl", "small-serve").note("other"),
            lambda: RunFolder(ended).join(),
            lambda: run.begin_group("small-serve"),
        ):
            try:
                write()
            except InputError as error:
                assert error.file == ended / name  # noqa: PT017 - not all of them meet it
        run.close()
        assert foreign.read_text() == PRECIOUS

    def test_the_folder_of_a_group_is_never_one(self, ended: Path, foreign: Path) -> None:
        run = RunFolder.reopen(ended)
        for target in (foreign.parent, Path("nowhere")):
            (ended / target.name).symlink_to(target)
            with pytest.raises(InputError, match=f"{target.name}: not a folder"):
                run.begin_group(target.name)
        run.close()
        assert [one.name for one in foreign.parent.iterdir()] == ["foreign"]

    @pytest.mark.parametrize("name", ["run.lock", "run.json"])
    def test_a_new_run_is_not_begun_in_what_others_prepared(
        self, tmp_path: Path, foreign: Path, name: str
    ) -> None:
        (tmp_path / "prepared").mkdir()
        (tmp_path / "prepared" / name).symlink_to(foreign)
        with pytest.raises(InputError):
            RunFolder.create(tmp_path / "prepared", {})
        assert foreign.read_text() == PRECIOUS


@pytest.mark.timeout(30)
def test_who_only_reads_does_not_wait_for_a_fifo_either(ended: Path, foreign: Path) -> None:
    for name, read in (
        ("records.jsonl", lambda: recorded(RunFolder(ended))),
        ("run.json", lambda: RunFolder(ended).facts()),
        ("progress.jsonl", lambda: ProgressView(ended / "progress.jsonl", from_now=True)),
    ):
        fifo(ended / name, foreign)
        with pytest.raises(InputError, match="found: a FIFO"):
            read()


class TestOwners:
    @root_only
    def test_the_folder_of_another_user_is_refused_with_who_that_is(self, ended: Path) -> None:
        os.chown(ended, NOBODY, NOBODY)
        text = refused(ended)
        assert text.startswith("--resume: ")
        assert re.search(rf"{ended}: it belongs to .*\(uid {NOBODY}\)(.|\n)*cp -r", text)
        given = ended.parent / "given"
        given.mkdir()
        os.chown(given, NOBODY, NOBODY)
        with pytest.raises(InputError, match=rf"--run-dir: .*\n.*\(uid {NOBODY}\)"):
            RunFolder.create(given, {})
        assert list(given.iterdir()) == []

    def test_a_folder_that_everybody_may_write_to_is_refused(self, ended: Path) -> None:
        ended.chmod(0o777)
        text = refused(ended)
        assert f"found: {ended}: " in text
        assert "may write to it (mode 0777)" in text

    @root_only
    def test_a_device_is_refused_and_a_file_system_that_maps_this_user_is_no_attack(
        self, ended: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for one in (ended, *ended.iterdir()):
            os.chown(one, NOBODY, NOBODY)
        monkeypatch.setattr("perfgate.runs.run_folder._owner_of_new_files", lambda _: NOBODY)
        RunFolder.reopen(ended).close()
        (ended / "run.lock").chmod(0o666)
        assert "others may write to it" in refused(ended)
        (ended / "records.jsonl").unlink()
        os.mknod(ended / "records.jsonl", stat.S_IFCHR | 0o600, os.makedev(1, 5))
        assert "found: a device\n" in refused(ended)


CHECKSUM = r"records\.jsonl:\d: (.|\n)*checksum is not(.|\n)*measure again in a new run folder"
ONCE, TWICE = '"verdict": "ERROR"', '"verdict": "ERROR", "verdict": "PASS"'


class TestEditedRecords:
    @pytest.mark.parametrize(
        ("name", "change", "told"),
        [
            *(
                ("records.jsonl", change, CHECKSUM)
                for change in (
                    lambda text: text.replace('"ERROR"', '"PASS"'),
                    lambda text: text.replace('"synthetic": true', '"synthetic": false'),
                    lambda text: "".join(reversed(text.splitlines(keepends=True))),
                    lambda text: text.split("\n", 1)[1],
                    lambda text: text + text,
                    lambda text: text + '{"record": "verdict", "test": "t", "verdict": "PASS"}\n',
                    lambda text: text.replace('"checksum": "', '"checksum": "0'),
                )
            ),
            ("records.jsonl", lambda text: text.replace(ONCE, TWICE), r"records\.jsonl:2: "),
            # Seen by all of its records.
            ("run.json", lambda text: text.replace(": true", ": false"), "line after run\\.json"),
        ],
    )
    def test_a_changed_moved_removed_or_added_line_is_seen(
        self, ended: Path, name: str, change: Callable[[str], str], told: str
    ) -> None:
        edit(ended / name, change)
        for is_short in (False, True):
            with pytest.raises(InputError, match=told):
                RunFolder(ended).records(is_short=is_short)

    @pytest.mark.parametrize(
        ("change", "told"),
        [
            ({"synthetic": False}, "synthetic: (.|\n)*run.json says that it was a rehearsal"),
            ({"schema_version": SCHEMA_VERSION + 1}, "schema_version: "),
            ({"injected": [1]}, r"injected\[0\]: "),
            ({"record": "unheard-of"}, "record: "),
        ],
    )
    def test_right_checksums_do_not_make_a_wrong_line_right(
        self, ended: Path, change: dict[str, object], told: str
    ) -> None:
        line = {**as_line(record("verdict", synthetic=True), now()), **change}
        append_line(ended / "records.jsonl", line, base=ended / "run.json")
        for is_short in (False, True):
            with pytest.raises(InputError, match=rf"records\.jsonl:3: {told}"):
                RunFolder(ended).records(is_short=is_short)

    def test_nothing_is_appended_behind_a_line_of_others(self, ended: Path) -> None:
        edit(ended / "records.jsonl", lambda text: text + '{"record": "verdict"}\n')
        before = (ended / "records.jsonl").read_bytes()
        with pytest.raises(InputError, match="the last line has no checksum"):
            RunFolder(ended).record(record("verdict"))
        assert (ended / "records.jsonl").read_bytes() == before

    def test_a_line_cut_by_a_kill_breaks_no_chain(self, ended: Path) -> None:
        records = ended / "records.jsonl"
        whole = records.read_bytes()
        for cut in range(1, len(whole.splitlines()[1]) + 1, 7):
            records.write_bytes(whole[:-cut])
            RunFolder(ended).record(record("verdict", starts=cut, synthetic=True))
            *_, last = recorded(RunFolder(ended))
            assert last["starts"] == cut
