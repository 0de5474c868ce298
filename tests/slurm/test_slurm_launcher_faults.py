"""Slurm's own daemons killed while something runs, and what comes of it. Nothing is left."""

import os
import signal
import time
from pathlib import Path

import pytest
from clusters import Cluster, eventually, lives, up
from roads import ONE_PROBE, PATIENCE_S, Road
from starts import nodes_of, nothing_is_left, python

from perfgate.core.errors import RunError
from perfgate.launchers.base import PlacementRequest
from perfgate.launchers.slurm import calls as slurm_calls
from perfgate.launchers.slurm.launcher import SlurmLauncher

pytestmark = pytest.mark.slow


def kill(cluster: Cluster, daemon: str) -> None:
    """SIGKILL the daemon of that pid file."""
    pid = int((cluster.state / "run" / f"{daemon}.pid").read_text())
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not lives(pid))


def fix(cluster: Cluster) -> None:
    """Start again what was killed, with the settings that the cluster was made with."""
    done = up(cluster.state, **cluster.settings)
    assert done.returncode == 0, done.stderr


def test_a_node_whose_daemon_is_killed_is_told_and_the_start_made_elsewhere(
    road: Road, slurm: Cluster
) -> None:
    try:
        with road.session(*ONE_PROBE, fault="client-hangs-once") as session:
            road.until_loaded()
            lost = slurm.run(("squeue", "-h", "-o", "%N")).stdout.strip()
            kill(slurm, f"slurmd.{lost}")
            output, _ = session.communicate(timeout=PATIENCE_S)
    finally:
        fix(slurm)
    assert session.returncode == 0, output
    assert road.verdicts() == {"c1": "PASS"}, output
    records = (road.folder / "run" / "records.jsonl").read_text()
    assert "node_failed: " in records
    assert lost in records
    measured = [line["facts"]["slurm"]["nodes"] for line in road.records("measurement")]
    assert all(lost not in nodes for nodes in measured)


def test_a_step_that_a_lost_node_does_not_begin_is_told(
    start_request: PlacementRequest, slurm: Cluster
) -> None:
    with SlurmLauncher().placed(start_request) as placement:
        (node,) = nodes_of(placement)
        kill(slurm, f"slurmd.{node}")
        try:
            with pytest.raises(RunError, match=f"programs cannot be started on {node}") as caught:
                placement.free_port()
        finally:
            fix(slurm)
    assert caught.value.failure == "node_failed"
    nothing_is_left(slurm, start_request.folder)


def test_a_run_goes_on_when_the_controller_is_killed_and_comes_back(
    start_request: PlacementRequest, slurm: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "gate"
    waits = (
        "import pathlib, time\nprint('ready', flush=True)\n"
        f"while not pathlib.Path({str(gate)!r}).exists(): time.sleep(0.05)\n"
    )
    with (
        SlurmLauncher().placed(start_request) as placement,
        placement.start(python(waits), start_request.folder, "client") as job,
    ):
        eventually(lambda: "ready" in job.stdout.read_text())
        _wait_until_saved(slurm)
        with monkeypatch.context() as impatient:
            impatient.setattr(slurm_calls, "UNREACHABLE_S", 0.0)
            kill(slurm, "slurmctld")
            try:
                with pytest.raises(RunError) as lost:
                    placement.require()
                with placement.start(python("pass"), start_request.folder, "next") as step:
                    assert step.wait(total_s=60).status == 1
                assert job.poll() is None
            finally:
                fix(slurm)
        assert lost.value.failure == "slurm_unreachable"
        met = RunError("client_failed", "it failed", evidence=step.tail())
        assert placement.explained(met).failure == "slurm_unreachable"
        placement.require()
        assert job.cpu_seconds() >= 0
        gate.touch()
        assert job.wait(total_s=60).status == 0
        assert placement.free_port() > 0
    nothing_is_left(slurm, start_request.folder)


def _wait_until_saved(cluster: Cluster) -> None:
    """A controller that is killed forgets what it has not saved; it saves what has changed."""
    (job,) = cluster.run(("squeue", "-h", "-t", "RUNNING", "-o", "%i")).stdout.split()
    now = time.time()
    assert cluster.run(("scontrol", "update", f"JobId={job}", "Comment=save")).returncode == 0
    saved = cluster.state / "state" / "job_state"
    eventually(lambda: saved.exists() and saved.stat().st_mtime > now)
