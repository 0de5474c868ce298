"""Full, read-only and missing folders on the whole road: one message, one status, whole records.

16: the session could not begin, or something it had to say could not be written; 11: a test failed
for it. Small file systems are mounted in a mount namespace of the session's own, and end with it.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import forked
import pytest
from checkouts import NOTHING, Finished, Suite, Watched, rehearsal_environment, run_alone
from road_words import ACCURACY, PLUGINS, POINT, ROOT
from sizes import sized

# In it two tests, one fresh start; half a MiB.
SMALL = ("-k", "b200-r1-fp4-min-latency")
WORSE = ("--rehearse-fault", "slow:30%")
STEP = 20  # KiB
PASSES_FROM = 700  # KiB; somewhat above what the rehearsal takes
# Nothing can be written, the first record can.
TRANSITIONS = (0, 460)

pytestmark = pytest.mark.slow


def records(done: Finished, kind: str) -> list[dict[str, object]]:
    """Its records, each of which must be whole."""
    file = done.folder / "records.jsonl"
    if not file.exists():
        return []
    assert file.read_text()[-1:] in ("", "\n")
    return done.records(kind)


def require(done: Finished, status: int, *told: str) -> None:
    """It ended so and told this, and nothing of Python's or pytest's inside but a program's log."""
    done.require(status, None, *told)
    own = [line for line in done.output.splitlines() if not line.startswith("  | ")]
    for inside in ("Traceback", "INTERNALERROR", "OSError", "internal error", "exception"):
        assert not [line for line in own if inside in line], done.output


def run_there(
    folder: Path, before: str, call: Sequence[str], environment: Mapping[str, str]
) -> Finished:
    """A session with its run in ``run``, of which a copy is kept.

    Args:
        folder: where it runs.
        before: lines of shell that mount something there.
        call: the session.
        environment: its environment.
    """
    if subprocess.run(("unshare", "-m", "true"), check=False, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small file system (unshare -m)")
    (folder / "run").mkdir()
    script = f'{before}\n"$@"; status=$?; cp -r run kept; exit $status'
    done = run_alone(("unshare", "-m", "sh", "-c", script, "sh", *call), folder, environment)
    return Finished(*forked.outcome(done), folder / "kept")


def rehearse_there(tmp_path: Path, before: str, *options: str, **more: str) -> Finished:
    call = [sys.executable, "-m", "pytest", *PLUGINS, "-q", "--rootdir", str(ROOT), "--rehearse"]
    call += ["-c", str(ROOT / "pyproject.toml"), str(ROOT / "perf_tests"), "--run-dir=run"]
    environment = rehearsal_environment(tmp_path, PERFGATE_ROOT=str(ROOT), **more)
    return run_there(tmp_path, before, [*call, *SMALL, *options], environment)


def mounted(folder: str, kib: int) -> str:
    """The line that makes `folder` a file system of so many KiB."""
    filled = "" if kib else f"; echo full > {folder}/.full"
    return f"mount -t tmpfs -o mode=0700,size={kib or 4}k none {folder}{filled}"


@pytest.mark.nightly
@pytest.mark.parametrize("kib", sized(TRANSITIONS, tuple(range(0, PASSES_FROM + STEP, STEP))))
def test_a_run_folder_on_a_full_disk(tmp_path: Path, kib: int) -> None:
    done = rehearse_there(tmp_path, mounted("run", kib))
    verdicts = [one["verdict"] for one in records(done, "verdict")]
    if kib == PASSES_FROM or done.status == 13:
        require(done, 13)
        assert verdicts == ["PASS"] * 2
        return
    require(done, 11 if records(done, "selected") else 16, "No space left on device")
    assert set(verdicts) <= {"ERROR"} or "this is on no record" in done.output
    assert not [path for path in done.folder.rglob(".*") if path.name != ".full"]


def test_a_run_folder_on_a_full_disk_with_workers(tmp_path: Path) -> None:
    done = rehearse_there(tmp_path, mounted("run", 520), "-n", "1")
    require(done, 11, "No space left on device")


def test_a_log_that_fills_the_disk_is_told_and_the_records_stay_readable(watched: Watched) -> None:
    fault = {"PERFGATE_STANDIN_FAULT": "log-fills-disk"}
    fault["PERFGATE_STANDIN_DISK"] = str(watched.run_folder)
    environment = watched.environment | fault
    done = run_there(watched.folder, mounted("run", 2 << 20), watched.command(*POINT), environment)
    assert (done.status, "disk_full" in done.output) == (11, True), done.output
    assert records(done, "selected")
    assert watched.left() == NOTHING


@pytest.mark.parametrize(
    ("report", "fault", "status"), [("--benchmark-json", (), 16), ("--junitxml", WORSE, 1)]
)
def test_a_report_that_cannot_be_written_takes_nothing_with_it(
    tmp_path: Path, report: str, fault: tuple[str, ...], status: int
) -> None:
    done = rehearse_there(tmp_path, ":", f"{report}=/dev/full", *fault)
    lost = "a report of pytest or a plugin is lost: disk_full: cannot write a file"
    require(done, status, lost, f"exit status {status}:")
    assert "**Exit status" in done.summary


def test_a_read_only_run_folder(tmp_path: Path) -> None:
    done = rehearse_there(tmp_path, "mount -t tmpfs -o mode=0700,ro none run")
    require(done, 16, "unwritable: cannot write ", "Read-only file system")


def test_a_run_needs_no_other_folder_and_the_umask_says_who_may_read_it(tmp_path: Path) -> None:
    before = [
        *("umask 027; rmdir run; mkdir full home stores", mounted("full", 0)),
        *("mount -t tmpfs -o ro none home", mounted("stores", 0)),
    ]
    folders = {"TMPDIR": "full", "HOME": "home", "PERFGATE_HOME": "stores"}
    more = {name: str(tmp_path / folder) for name, folder in folders.items()}
    done = rehearse_there(tmp_path, "\n".join(before), **more)
    assert done.status == 13, done.output
    files = [path for path in (tmp_path / "run").rglob("*") if not path.is_symlink()]
    assert len(files) > 10
    assert [path for path in files if path.stat().st_mode & 0o027] == []
    assert all(os.access(path, os.X_OK) for path in files if path.suffix == ".sh")


def test_nowhere_to_put_a_temporary_file(tmp_path: Path) -> None:
    """pytest cannot begin without, and ended in 1 for it, which is a regression."""
    before = (
        "for one in /var/tmp /usr/tmp; do [ ! -d $one ] || mount -t tmpfs -o ro none $one; done"
    )
    # With it the working folder, which is where Python looks last.
    before += "; mount --bind /tmp /tmp; mount -o remount,ro,bind /tmp; cd ."
    if not tmp_path.is_relative_to("/tmp"):
        pytest.skip("needs its temporary folders in /tmp")
    done = rehearse_there(tmp_path, before)
    # Python tells of a file that pytest leaves open.
    done.require(4, None, "ERROR: No usable temporary directory found in")


def test_a_verdict_that_cannot_be_recorded_is_told_by_its_test(with_baseline: Suite) -> None:
    error = 'raise errors.RunError("disk_full", "cannot write records.jsonl: No space left")'
    is_verdict = 'type(given[1]).__name__ == "VerdictRecord"'
    with_baseline.change_at("perfgate.runs.run_folder", "RunFolder.record", error, is_verdict)
    done = with_baseline.run(ACCURACY)
    told = ("this is on no record: disk_full: cannot write", "PASS: standin-serve-sums")
    require(done, 11, *told)
