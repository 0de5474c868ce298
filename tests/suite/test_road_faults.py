"""Faults on the whole road: programs that fail, and a small disk."""

import os
import subprocess

import pytest
from checkouts import POINT, Suite
from resuming import copies

pytestmark = pytest.mark.slow

FAULTS = {
    "die-at-start": "model_file",
    "wrong-model": "start_timeout",
    "never-ready": "start_timeout",
    "die-on-load": "server_died",
    "client-fails": "client_failed",
    "client-hangs": "hang",
    "failed-requests": "incomplete",
    "zeros": "incomplete",
    "cut": "truncated_output",
    "no-result": "no_metrics",
}


def test_a_fault_is_an_error_with_its_class_never_a_number(suite: Suite) -> None:
    copies(suite, *FAULTS)
    suite.edit(("start_s: 20, silence_s: 20", "start_s: 3, silence_s: 3"))
    done = suite.run(*POINT, fault="as-the-scenario")
    assert done.status == 11, done.output
    verdicts = done.records("verdict")
    assert {line["verdict"] for line in verdicts} == {"ERROR"}
    assert {line["scenario"]: line["error"]["error_class"] for line in verdicts} == FAULTS
    assert done.output.count("next step:") == len(FAULTS)
    assert suite.wait_until_empty() == []


def test_a_crash_fails_what_needed_the_server_and_is_told_once(suite: Suite) -> None:
    done = suite.run("--self-reference", "stored", fault="die-after-load")
    assert done.status == 11, done.output
    told = {line["probe"]: line["error"] for line in done.records("verdict")}
    assert {error["error_class"] for error in told.values()} == {"server_died"}
    assert "right after a measurement" in told["c1"]["message"]
    for probe in ("c2", "sums"):  # the sweep has c1's own words
        assert told[probe]["message"].startswith("not measured, as c1 failed before it")
    assert len(list(done.folder.rglob("server.sh"))) == 1
    assert suite.wait_until_empty() == []


def test_a_small_disk_is_told_before_anything_starts(suite: Suite) -> None:
    folder = suite.folder / "small"
    folder.mkdir()
    call = ["mount", "-t", "tmpfs", "-o", "mode=0700,size=100m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(call, check=False, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small file system")
    try:
        done = suite.run(f"--run-dir={folder}", *POINT)
        assert done.status == 11, done.output
        assert "run folder: 100 MiB free" in done.output
        assert not list(folder.rglob("server.sh"))
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
