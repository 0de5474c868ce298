"""The site's commands on the road: what a SIGKILL of perfgate leaves undone, the guard does."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sessions import untraced
from test_road import Suite, _wait_for, _wait_until, suite

__all__ = ["suite"]

pytestmark = pytest.mark.slow

NOTE = "import sys; open(sys.argv[1], 'a').write(sys.argv[2])"


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["main", "worker"])
def test_after_runs_when_perfgate_is_killed(suite: Suite, workers: tuple[str, ...]) -> None:
    notes = suite.folder / "notes"
    note = [sys.executable, "-I", "-S", "-c", NOTE, str(notes)]
    calls = {"before": [[*note, "b"]], "after": [[*note, "a"], [*note, "A"]]}
    (suite.folder / "site.yaml").write_text(json.dumps({"schema_version": 1, **calls}))
    session = subprocess.Popen(
        suite.command("perf_tests/test_accuracy.py", *workers),
        cwd=suite.folder,
        env={**untraced(suite.environment), "PERFGATE_STANDIN_FAULT": "never-ready"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(suite.folder / "starts")
        assert notes.read_text() == "b"
        session.send_signal(signal.SIGKILL)
        session.wait(60)
    finally:
        session.kill()
        session.wait()
    _wait_until(lambda: notes.read_text() == "baA")
    assert suite.wait_until_empty() == []
    (facts,) = map(_json, suite.folder.glob("run/run.json"))
    assert facts["site_commands"].keys() == {"before", "after"}


def _json(file: Path) -> dict:
    return json.loads(file.read_text())
