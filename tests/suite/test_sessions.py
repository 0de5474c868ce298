"""A session that a test starts is a session of its own, whoever runs the test."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS, inherited


def test_it_does_not_take_itself_for_the_worker_that_started_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-x")
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    monkeypatch.setenv("KEPT", "yes")
    assert not [name for name in inherited() if name.startswith("PYTEST_")]
    assert inherited()["SLURM_JOB_ID"] == "12"
    assert "SLURM_JOB_ID" not in inherited("OMPI_", "SLURM")
    assert inherited("SLURM")["KEPT"] == "yes"


SIGNALS = """
import signal

def test_it():
    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
"""


def test_it_goes_on_ignoring_what_its_caller_ignores(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["perfgate.suite.plugin"]\n')
    (tmp_path / "test_signals.py").write_text(SIGNALS)
    call = [sys.executable, "-m", "pytest", *BENCHMARK, f"--rootdir={tmp_path}", str(tmp_path)]
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        done = subprocess.run(
            call,
            cwd=tmp_path,
            env=inherited() | ONLY_NEEDED_PLUGINS,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert done.returncode == 0, done.stdout
