import errno
import fcntl
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from building import machine
from msgspec import structs
from plain_records import record, recorded
from power_cut import Disk, steps_of
from tables import each

from perfgate.baselines.gate_repo import git_state
from perfgate.core.errors import InputError, RunError
from perfgate.runs.record import SelectedRecord, SkippedRecord, VerdictRecord
from perfgate.runs.run_folder import RunFolder, now, session_facts

HOLD = """
import sys
from pathlib import Path
from perfgate.runs.run_folder import RunFolder
RunFolder.create(Path(sys.argv[1]), {})
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunFolder]:
    folder = RunFolder.create(tmp_path / "runs" / "one", {"started": "now"})
    yield folder
    folder.close()


class TestRunFolder:
    def test_facts_are_on_disk_at_once(self, run: RunFolder) -> None:
        facts = {"schema_version": 4, "id": "one", "started": "now"}
        assert json.loads((run.path / "run.json").read_text()) == facts
        assert RunFolder(run.path).facts() == facts

    def test_records_by_kind_in_order(self, run: RunFolder) -> None:
        for kind, test in (("verdict", "1"), ("skipped", "2"), ("verdict", "3")):
            run.record(record(kind, test=test))
        assert [line["test"] for line in recorded(run)] == ["1", "2", "3"]
        assert [one.test for one in run.records_of(VerdictRecord)] == ["1", "3"]
        assert run.records_of(SelectedRecord) == []
        (line,) = RunFolder(run.path).records_of(SkippedRecord)
        assert "" < line.at <= now()
        assert line == structs.replace(record("skipped", test="2"), at=line.at)

    def test_a_folder_that_holds_a_run_is_never_reused(self, run: RunFolder) -> None:
        run.record(record("verdict", test="1"))
        run.close()
        with pytest.raises(InputError, match="--run-dir: the folder already holds a run") as caught:
            RunFolder.create(run.path, {})
        assert caught.value.found == run.path
        assert len(recorded(run)) == 1
        (run.path / "run.json").unlink()
        RunFolder.create(run.path, {}).close()  # nobody holds it any more

    def test_a_folder_that_another_process_holds_is_refused_until_it_ends(
        self, tmp_path: Path
    ) -> None:
        path = tmp_path / "one"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], **pipes) as holder:
            assert holder.stdout.readline() == b"held\n"
            (path / "run.json").unlink()
            with pytest.raises(InputError, match="another run is writing to this folder"):
                RunFolder.create(path, {})
            holder.stdin.close()
        RunFolder.create(path, {}).close()

    def test_a_file_is_no_folder(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        for path in (tmp_path / "file", tmp_path / "file" / "below"):
            with pytest.raises(InputError, match="--run-dir: cannot be a run folder") as caught:
                RunFolder.create(path, {})
            assert caught.value.found == path

    def test_outlasts_a_power_cut_from_its_first_record_on(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "runs" / "one"
        with Disk(tmp_path, monkeypatch) as disk:
            run = RunFolder.create(path, {})
            assert disk.possible(path / "run.json") == {(path / "run.json").read_bytes()}
            run.record(record("selected", {"tests": ["a"]}))
            lines = (path / "records.jsonl").read_bytes()
            assert disk.possible(path / "records.jsonl") == {lines}
            run.close()

    def test_killed_at_any_moment_of_its_making_it_is_a_run_or_none(self, tmp_path: Path) -> None:
        left = [
            folder / "one" for folder in steps_of(tmp_path, "RunFolder.create(folder / 'one', {})")
        ]
        are_runs = [(path / "run.json").exists() for path in left]
        assert are_runs == sorted(are_runs)
        assert set(are_runs) == {False, True}
        for path, is_run in zip(left, are_runs, strict=True):
            run = RunFolder.reopen(path) if is_run else RunFolder.create(path, {})
            run.record(record("selected", {"tests": ["a"]}))
            assert recorded(run)[-1]["tests"] == ["a"]
            run.close()

    @each("number", [errno.ENOLCK, errno.EROFS, errno.EACCES, errno.ENOSPC])
    def test_a_folder_that_cannot_be_written_is_told(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
    ) -> None:
        def fail(*_: object) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(fcntl, "flock", fail)
        with pytest.raises(RunError, match=f"cannot write .*one: {os.strerror(number)}") as caught:
            RunFolder.create(tmp_path / "one", {})
        assert ("another one with --run-dir" in caught.value.hint) == (number == errno.ENOLCK)
        assert list((tmp_path / "one").iterdir()) == [tmp_path / "one" / "run.lock"]

    @each(
        ("content", "problem"),
        [
            ('{"schema_version": 3}', "run written by an older perfgate"),
            ('{"schema_version": 5}', "run written by a newer perfgate"),
            ("{}", "run of an unknown schema version"),
            ("[]", "run of an unknown schema version"),
        ],
    )
    def test_a_run_of_another_schema_version_is_refused(
        self, run: RunFolder, content: str, problem: str
    ) -> None:
        (run.path / "run.json").write_text(content)
        with pytest.raises(InputError, match=problem):
            run.facts()


def test_facts_keep_what_the_meaning_depends_on_and_no_secret_and_bytes_that_are_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = {"PERFGATE_PROGRAM_AIPERF": os.fsdecode(b"/opt/\xff"), "CUDA_VISIBLE_DEVICES": "0,1"}
    for name, value in {**kept, "HF_TOKEN": "hf_x", "UNRELATED": "1"}.items():
        monkeypatch.setenv(name, value)

    given = ["pytest", "--api-key=k1", os.fsdecode(b"\xfe")]
    facts = session_facts(machine("NVIDIA H200"), given, git_state(tmp_path))
    RunFolder.create(tmp_path / "one", facts).close()
    read: dict[str, Any] = RunFolder(tmp_path / "one").facts()
    assert read["arguments"] == ["pytest", "--api-key=***", given[2]]
    assert kept.items() <= read["environment"].items()
    assert not {"HF_TOKEN", "UNRELATED"} & read["environment"].keys()
    assert read["git"] == {"commit": None, "dirty": None}
    assert read["versions"].keys() == {"perfgate", "pytest", "pytest-benchmark"}
    assert read["versions"]["pytest"] == pytest.__version__
    assert read["machine"]["gpus"][0]["name"] == "NVIDIA H200"
    assert "hf_x" not in json.dumps(read)


def test_git_tells_the_commit_and_whether_anything_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*words: str) -> str:
        call = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c", *words]
        return subprocess.run(call, check=True, capture_output=True, text=True).stdout.strip()

    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "one")
    commit = git("rev-parse", "HEAD")
    assert git_state(tmp_path) == {"commit": commit, "dirty": False}
    (tmp_path / "file").touch()  # not yet added
    assert git_state(tmp_path) == {"commit": commit, "dirty": True}
    git("add", "file")
    git("commit", "-qm", "two")
    (tmp_path / "file").write_text("two")
    assert git_state(tmp_path)["dirty"] is True
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_state(tmp_path) == {"commit": None, "dirty": None}, "without git nothing is known"


class TestResuming:
    def test_a_run_is_held_again_and_goes_on_where_it_was(self, run: RunFolder) -> None:
        run.record(record("verdict", test="1"))
        run.close()
        again = RunFolder.reopen(run.path)
        again.record(record("verdict", test="2"))
        assert [line["test"] for line in recorded(again, "verdict")] == ["1", "2"]
        with pytest.raises(InputError, match="--resume: another run is writing to this folder"):
            RunFolder.reopen(run.path)
        again.close()
        RunFolder.reopen(run.path).close()

    @pytest.mark.timeout(30)
    def test_workers_of_a_killed_session_do_not_wait_for_each_other_but_a_resumed_one_for_all(
        self, run: RunFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("perfgate.runs.run_folder._WORKERS_END_S", 0.0)
        run.close()
        first, second = RunFolder(run.path), RunFolder(run.path)
        for worker in (first, second):
            worker.join()
        first.close()
        with pytest.raises(InputError, match="workers of the previous session are still writing"):
            RunFolder.reopen(run.path)
        monkeypatch.setattr("perfgate.runs.run_folder._WORKERS_END_S", 60.0)
        ending = threading.Timer(0.3, second.close)
        ending.start()
        RunFolder.reopen(run.path).close()
        ending.join()

    def test_what_an_ended_process_left_of_a_group_is_moved_aside(self, run: RunFolder) -> None:
        worker = RunFolder(run.path)
        worker.begin_group("small-serve")
        (run.path / "small-serve" / "start-1-new").mkdir()
        worker.record(record("measurement", {"scenario": "small-serve"}))
        worker.close()
        for number in (1, 2):
            run.begin_group("small-serve")
            assert list((run.path / "small-serve").iterdir()) == []
            aside = run.path / f"small-serve.broken-{number}"
            assert aside.is_dir()
            run.close()
        assert (run.path / "small-serve.broken-1" / "start-1-new").is_dir()
        assert recorded(run, "measurement") == []

    def test_two_workers_never_measure_one_group(self, run: RunFolder) -> None:
        worker = RunFolder(run.path)
        worker.begin_group("small-serve")
        with pytest.raises(InputError, match="another worker of this session measures small-serve"):
            run.begin_group("small-serve")
        assert not (run.path / "small-serve.broken-1").exists()
        worker.close()
