"""A session that a test starts is a session of its own, whoever runs the test."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS, inherited

SIGNALS = """
import signal

def test_it():
    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
"""


def test_it_takes_itself_for_no_worker_and_goes_on_ignoring_what_its_caller_ignores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["perfgate.suite.plugin"]\n')
    (tmp_path / "test_signals.py").write_text(SIGNALS)
    call = [sys.executable, "-m", "pytest", *BENCHMARK, f"--rootdir={tmp_path}", str(tmp_path)]
    environment = inherited() | ONLY_NEEDED_PLUGINS
    assert "PYTEST_XDIST_WORKER" not in environment
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        done = subprocess.run(call, cwd=tmp_path, env=environment, capture_output=True, check=False)
    finally:
        signal.signal(signal.SIGINT, before)
    assert done.returncode == 0, done.stdout
