"""Full, read-only and missing folders on the whole road: one message, one status, whole records.

16: the session could not begin, or something it had to say could not be written; 11: a test failed
for it. Small file systems are mounted in a mount namespace of the session's own, and end with it.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from checkouts import ACCURACY, PLUGINS, ROOT, Suite
from rehearsing import environment
from sessions import untraced
from sizes import sized

# In it two tests, one fresh start; half a MiB.
SMALL = ("-k", "b200-r1-fp4-min-latency")
WORSE = ("--rehearse-fault", "slow:30%")
STEP = 20  # KiB
PASSES_FROM = 700  # KiB; somewhat above what the rehearsal takes
# Nothing can be written, the first record can, all can.
TRANSITIONS = (0, 460, PASSES_FROM)

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Ended:
    """A session that has ended, and a copy of its run folder."""

    status: int
    output: str
    kept: Path

    @property
    def records(self) -> list[dict[str, object]]:
        """Its records, each of which must be whole."""
        file = self.kept / "records.jsonl"
        text = file.read_text() if file.exists() else ""
        assert not text or text.endswith("\n")
        return [json.loads(line) for line in text.splitlines()]

    def require_told(self, message: str) -> None:
        """What happened is told, and nothing of Python's or pytest's inside but a program's log."""
        assert message in self.output, self.output
        own = [line for line in self.output.splitlines() if not line.startswith("  | ")]
        for inside in ("Traceback", "INTERNALERROR", "OSError", "internal error", "exception"):
            assert not [line for line in own if inside in line], self.output


def rehearse(tmp_path: Path, before: str, *options: str, **more: str) -> Ended:
    """One rehearsal with its run in ``run``, after lines of shell that mount something there."""
    if subprocess.run(("unshare", "-m", "true"), check=False, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small file system (unshare -m)")
    (tmp_path / "run").mkdir()
    call = [sys.executable, "-m", "pytest", *PLUGINS, "-q", "--rootdir", str(ROOT)]
    call += ["-c", str(ROOT / "pyproject.toml"), str(ROOT / "perf_tests"), "--rehearse"]
    script = f'{before}\n"$@"; status=$?; cp -r run kept; exit $status'
    done = subprocess.run(
        ("unshare", "-m", "sh", "-c", script, "sh", *call, "--run-dir=run", *SMALL, *options),
        cwd=tmp_path,
        env=untraced(environment(tmp_path, PERFGATE_ROOT=str(ROOT), **more)),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    return Ended(done.returncode, done.stdout + done.stderr, tmp_path / "kept")


def mounted(folder: str, kib: int) -> str:
    """The line that makes `folder` a file system of so many KiB."""
    if kib:
        return f"mount -t tmpfs -o mode=0700,size={kib}k none {folder}"
    return f"mount -t tmpfs -o mode=0700,size=4k none {folder}; echo full > {folder}/.full"


@pytest.mark.nightly
@pytest.mark.parametrize("kib", sized(TRANSITIONS, tuple(range(0, PASSES_FROM + STEP, STEP))))
def test_a_run_folder_on_a_full_disk(tmp_path: Path, kib: int) -> None:
    done = rehearse(tmp_path, mounted("run", kib))
    lines = done.records
    if kib == PASSES_FROM:
        assert done.status == 13, done.output
    if done.status == 13:
        assert [one["verdict"] for one in lines if one["record"] == "verdict"] == ["PASS"] * 2
        return
    done.require_told("No space left on device")
    assert done.status == (11 if any(one["record"] == "selected" for one in lines) else 16)
    verdicts = {one["verdict"] for one in lines if one["record"] == "verdict"}
    assert verdicts <= {"ERROR"} or "this is on no record" in done.output
    assert not [path for path in done.kept.rglob(".*") if path.name != ".full"]


def test_a_run_folder_on_a_full_disk_with_workers(tmp_path: Path) -> None:
    done = rehearse(tmp_path, mounted("run", 520), "-n", "2")
    done.require_told("No space left on device")
    assert done.status == 11, done.output


@pytest.mark.parametrize(
    ("report", "fault", "status"),
    [("--benchmark-json", (), 16), ("--junitxml", WORSE, 1)],
)
def test_a_report_that_cannot_be_written_takes_nothing_with_it(
    tmp_path: Path, report: str, fault: tuple[str, ...], status: int
) -> None:
    done = rehearse(tmp_path, ":", f"{report}=/dev/full", *fault)
    assert done.status == status, done.output
    done.require_told("a report of pytest or a plugin is lost: disk_full: cannot write a file")
    assert f"exit status {status}:" in done.output
    assert "**Exit status" in (done.kept / "summary.md").read_text()


def test_a_read_only_run_folder(tmp_path: Path) -> None:
    done = rehearse(tmp_path, "mount -t tmpfs -o mode=0700,ro none run")
    done.require_told("unwritable: cannot write ")
    assert "Read-only file system" in done.output
    assert done.status == 16, done.output


def test_a_run_needs_no_other_folder_and_the_umask_says_who_may_read_it(tmp_path: Path) -> None:
    before = [
        *("umask 027; rmdir run; mkdir full home stores", mounted("full", 0)),
        *("mount -t tmpfs -o ro none home", mounted("stores", 0)),
    ]
    folders = {"TMPDIR": "full", "HOME": "home", "PERFGATE_HOME": "stores"}
    more = {name: str(tmp_path / folder) for name, folder in folders.items()}
    done = rehearse(tmp_path, "\n".join(before), **more)
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
    done = rehearse(tmp_path, before)
    assert done.status == 4, done.output
    assert "ERROR: No usable temporary directory found in" in done.output


FULL_FROM_THE_VERDICT_ON = """
from perfgate.core.errors import RunError
from perfgate.runs.run_folder import RunFolder

whole = RunFolder.record

def full(self, given, *more):
    if type(given).__name__ == "VerdictRecord":
        raise RunError("disk_full", "cannot write records.jsonl: No space left on device")
    return whole(self, given, *more)

RunFolder.record = full
"""


def test_a_verdict_that_cannot_be_recorded_is_told_by_its_test(with_baseline: Suite) -> None:
    with_baseline.add_to_conftest(FULL_FROM_THE_VERDICT_ON)
    done = with_baseline.run(ACCURACY)
    told = Ended(done.status, done.output, done.folder)
    told.require_told("this is on no record: disk_full: cannot write")
    assert "PASS: standin-serve-sums" in done.output
    assert done.status == 11, done.output
