"""The whole life of a baseline, rehearsed: recorded, promoted, compared with; and apart."""

import subprocess
import sys
from pathlib import Path

import pytest
from sessions import inherited
from test_rehearsal import OFFLINE, ROOT, rehearse

pytestmark = pytest.mark.slow


def perfgate(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**inherited("PERFGATE_"), "PERFGATE_HOME": str(tmp_path / "home")}
    argv = [sys.executable, "-m", "perfgate", "baseline", *words]
    return subprocess.run(
        argv, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_rehearsal_is_compared_with_the_baseline_of_an_earlier_one(tmp_path: Path) -> None:
    selected = ("-k", OFFLINE)
    runs = []
    for number in (1, 2):
        done = rehearse(tmp_path, *selected, traced=False)
        assert done.status == 13, done.output
        runs.append(str(done.folder.rename(tmp_path / f"run-{number}")))
    refused = perfgate(tmp_path, "record", *runs)
    assert refused.returncode == 2, refused.stdout
    assert "its numbers are synthetic" in refused.stderr
    recorded = perfgate(tmp_path, "record", "--rehearsal", *runs)
    assert recorded.returncode == 0, recorded.stderr
    (candidate,) = (tmp_path / "home" / "rehearsal" / "candidates").rglob("*.json")
    named = ("--by", "Ada", "--reason", "the first one")
    refused = perfgate(tmp_path, "promote", str(candidate), *named)
    assert refused.returncode == 2, refused.stdout
    promoted = perfgate(tmp_path, "promote", "--rehearsal", str(candidate), *named)
    assert promoted.returncode == 0, promoted.stderr

    again = rehearse(tmp_path, *selected, traced=False)
    assert set(again.verdicts.values()) == {"PASS"}, again.output
    assert again.status == 13
    assert "compared with: a rehearsal of tensorrt-llm" in again.output
    assert all(line["synthetic"] for line in again.records("verdict"))
    again.folder.rename(tmp_path / "run-3")
    slow = rehearse(tmp_path, *selected, "--rehearse-fault", "slow:8%", traced=False)
    assert set(slow.verdicts.values()) == {"REGRESSION"}, slow.output
    assert slow.status == 1
