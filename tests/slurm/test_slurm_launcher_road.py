"""The stand-in road through a real Slurm: a verdict from nodes, and nothing left however it ends.

The nodes' processes are this machine's, so that what is left of them can be seen from here.
"""

import os
import signal

import psutil
import pytest
from clusters import eventually
from roads import ONE_PROBE, PATIENCE_S, PROBES, Road
from sizes import IS_NIGHTLY, sized
from starts import allocation

pytestmark = pytest.mark.slow


def test_from_a_login_node_to_a_verdict(road: Road) -> None:
    status, output = road.run()
    assert status == 0, output
    assert road.verdicts() == dict.fromkeys(PROBES, "PASS"), output
    placed = [line["facts"]["slurm"] for line in road.records("measurement")]
    assert all(one["own_job"] for one in placed)
    # A job for each fresh start.
    assert len({one["job"] for one in placed}) == road.starts
    # The server's CPU time is read on its node.
    assert road.measured()
    assert all(line["metrics"]["server_cpu_s_per_1k_tokens"] > 0 for line in road.measured())


def test_inside_an_allocation_to_a_verdict(road: Road) -> None:
    salloc = ("salloc", "--quiet", "-N1", "--nodelist=n3", "--exclusive", "--mem=0")
    status, output = road.run(*ONE_PROBE, before=salloc)
    assert status == 0, output
    assert road.verdicts() == {"c1": "PASS"}, output
    placed = [line["facts"]["slurm"] for line in road.records("measurement")]
    assert {(one["own_job"], *one["nodes"]) for one in placed} == {(False, "n3")}
    assert len({one["job"] for one in placed}) == 1


# The session takes SIGTERM for SIGINT (tests/suite/test_faults.py).
@pytest.mark.nightly
@pytest.mark.parametrize(
    "sent",
    sized([signal.SIGKILL, signal.SIGTERM], [signal.SIGKILL, signal.SIGTERM, signal.SIGINT]),
)
def test_a_session_that_is_ended_leaves_no_job_no_step_no_process(
    road: Road, sent: signal.Signals
) -> None:
    with road.session(fault="client-hangs") as session:
        road.until_loaded()
        assert len(road.jobs()) == 1
        assert {line.split()[1] for line in road.steps()} >= {"server", "client"}
        session.send_signal(sent)
        session.communicate(timeout=PATIENCE_S)


def test_sessions_in_one_allocation_have_nodes_of_their_own_and_leave_nothing_when_killed(
    road: Road,
) -> None:
    slurm = road.cluster
    with allocation(slurm, "-N2") as job:
        inside = ("env", f"SLURM_JOB_ID={job}")
        with (
            road.session(before=inside, fault="client-hangs", run="one") as one,
            road.session(before=inside, fault="client-hangs", run="two") as two,
        ):
            nodes = slurm.job(job)["NodeList"]
            both = set(slurm.run(("scontrol", "show", "hostnames", nodes)).stdout.split())
            eventually(lambda: _nodes_of_steps(road, "client") == both)
            for session in (one, two):
                session.kill()
                session.communicate(timeout=PATIENCE_S)
        eventually(lambda: {line.split()[1] for line in road.steps()} <= {"batch"})
        eventually(lambda: not road.processes())
        assert slurm.job_state(job) == "RUNNING"


def _nodes_of_steps(road: Road, name: str) -> set[str]:
    """Nodes that have a step of that name."""
    lines = road.cluster.run(("squeue", "-h", "-s", "-o", "%j %N")).stdout.splitlines()
    return {line.split()[1] for line in lines if line.split()[0] == name}


def test_a_job_ends_by_itself_when_nobody_is_left_to_cancel_it(road: Road) -> None:
    road.site("lost_after_s: 3")
    with road.session(fault="client-hangs") as session:
        road.until_loaded()
        # As when the login node is switched off: session, wardens, guard, srun, all at once.
        family = [one.pid for one in psutil.Process(session.pid).children(recursive=True)]
        family.append(session.pid)
        for pid in family:
            os.kill(pid, signal.SIGSTOP)
        for pid in family:
            os.kill(pid, signal.SIGKILL)
        session.communicate(timeout=PATIENCE_S)


def test_a_cancelled_job_is_told_as_such_and_not_tried_again(road: Road) -> None:
    with road.session(*ONE_PROBE, fault="client-hangs") as session:
        road.until_loaded()
        before = road.starts
        road.cluster.run(("scancel", road.job_id()))
        output, _ = session.communicate(timeout=PATIENCE_S)
    assert road.failures() == {"job_cancelled"}, output
    assert "it was cancelled, and not by perfgate" in output
    assert road.starts == before


def test_a_node_that_fails_under_load_is_told_as_such(road: Road) -> None:
    road.site("nodelist: n4")
    with road.session(*ONE_PROBE, fault="client-hangs") as session:
        road.until_loaded()
        road.cluster.run(("scontrol", "update", "NodeName=n4", "State=DOWN", "Reason=test"))
        output, _ = session.communicate(timeout=PATIENCE_S)
    road.cluster.resume("n4")
    assert road.failures() == {"node_failed"}, output
    # Made again elsewhere, if there were another node (test_slurm_launcher_faults.py has one): the
    # site's file asks for this one.
    assert "n4 failed in this session" in output


def test_a_job_over_its_time_is_told_as_such(road: Road) -> None:
    file = road.folder / "scenarios" / "standin.yaml"
    limits = "silence_s: 90, total_s: 90"
    file.write_text(file.read_text().replace("silence_s: 20, total_s: 60", limits))
    with road.session(*ONE_PROBE, fault="client-hangs") as session:
        road.until_loaded()
        soon = f"JobId={road.job_id()}"
        road.cluster.run(("scontrol", "update", soon, "EndTime=now+1"))
        output, _ = session.communicate(timeout=PATIENCE_S)
    assert road.failures() == {"job_time_limit"}, output


def test_a_job_that_never_starts_ends_with_slurms_reason(road: Road) -> None:
    slurm = road.cluster
    road.site("nodelist: n1\npending_limit_s: 2")
    other = slurm.submit("sleep 100", "--nodelist=n1", "--exclusive")
    slurm.wait_for(other, "RUNNING")
    try:
        _, output = road.run(*ONE_PROBE)
    finally:
        slurm.run(("scancel", other))
        slurm.wait_for(other)
    assert road.failures() == {"pending_too_long"}, output
    assert "Slurm's reason: Resources" in output or "Slurm's reason: Priority" in output, output
    assert road.starts == 0


def test_what_slurm_refuses_is_told_in_its_words(road: Road) -> None:
    road.site("partition: no-such")
    _, output = road.run(*ONE_PROBE)
    assert road.failures() == {"config_error"}, output
    assert "invalid partition specified: no-such" in output


@pytest.mark.nightly
@pytest.mark.skipif(
    not IS_NIGHTLY, reason="two whole roads; on each push two sessions share an allocation"
)
def test_two_sessions_at_once(road: Road) -> None:
    with road.session(run="one") as one, road.session(run="two") as two:
        outputs = [session.communicate(timeout=PATIENCE_S)[0] for session in (one, two)]
    assert (one.returncode, two.returncode) == (0, 0), "\n".join(outputs)
    for run in ("one", "two"):
        assert set(road.verdicts(run)) == PROBES
