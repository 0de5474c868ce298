"""The warden: nothing outlives perfgate, whoever of the family is killed, and whenever."""

import json
import os
import signal
import time
import uuid
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from subprocess import Popen, TimeoutExpired

import psutil
import pytest
from sizes import sized
from witnesses import (
    HIDERS,
    eventually,
    everybody,
    kill_at_once,
    living,
    program,
    roll_in,
    running,
    signed,
    wardens,
)

from perfgate.launchers.local import job as local_job

pytestmark = pytest.mark.slow

TOLD = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass
class Family:
    """A driver (it stands for pytest), its wardens and programs, each with a roll to sign."""

    driver: Popen[str]
    mark: str
    rolls: dict

    def wardens(self, which: str) -> list[psutil.Process]:
        """Of each program the outer warden, or the inner one."""
        found, count = wardens(self.mark), len(self.rolls)
        return found[:count] if which == "outer" else found[count:]


@contextmanager
def family(folder, *names, then="wait", ready=True, gone=True):
    """A driver of the programs `names`, when all are there; all are gone after the block."""
    mark = uuid.uuid4().hex
    with ExitStack() as stack:
        rolls = {}
        for name in names:
            (folder / name).mkdir()
            rolls[name] = stack.enter_context(roll_in(folder / name))
        jobs = json.dumps({name: program(name, roll) for name, roll in rolls.items()})
        call = program("driver", folder / "run", then, jobs)
        driver = stack.enter_context(running(call, mark, os.environ))
        them = Family(driver, mark, rolls)
        if ready:
            eventually(lambda: all(living(roll) == HIDERS[name] for name, roll in rolls.items()))
        yield them
        if gone:
            # The driver ends too, and all that has signed a roll.
            eventually(lambda: not everybody(mark) and not any(map(living, rolls.values())))


@pytest.mark.nightly
@pytest.mark.parametrize("number", sized((signal.SIGKILL, signal.SIGINT), (signal.SIGKILL, *TOLD)))
def test_nothing_outlives_a_killed_driver(tmp_path, number: int) -> None:
    with family(tmp_path, *HIDERS) as them:
        them.driver.send_signal(number)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "delay_s", sized((0, 0.02, 0.06), (0, 0.005, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1))
)
def test_nothing_outlives_a_driver_killed_while_it_starts_the_program(tmp_path, delay_s):
    with family(tmp_path, "deaf", ready=False) as them:
        assert them.driver.stdout.readline() == "starting\n"
        time.sleep(delay_s)
        them.driver.kill()


def test_nothing_outlives_a_driver_killed_while_it_stops_the_program(tmp_path) -> None:
    with family(tmp_path, "deaf", then="stop") as them:
        log = tmp_path / "run" / "deaf.out"
        eventually(lambda: "heard SIGTERM" in log.read_text())
        assert len(everybody(them.mark)) == 5  # driver, wardens, program, child
        them.driver.kill()


@pytest.mark.parametrize("then", ["fail", "forget", "exit at once"])
def test_nothing_outlives_a_driver_that_ends_by_itself(tmp_path, then: str) -> None:
    with family(tmp_path, "scrubbed", then=then, ready=False) as them:
        eventually(lambda: them.driver.poll() is not None)


def test_a_forked_copy_of_the_driver_does_not_keep_the_program_alive(tmp_path) -> None:
    with family(tmp_path, "deaf", then="fork", gone=False) as them:
        children = psutil.Process(them.driver.pid).children
        copies = eventually(lambda: [c for c in children() if "driver.py" in " ".join(c.cmdline())])
        them.driver.kill()
        eventually(lambda: [one.pid for one in everybody(them.mark)] == [copies[0].pid])
        assert living(them.rolls["deaf"]) == []


@pytest.mark.parametrize("is_alone", [True, False], ids=["alone", "with the driver"])
@pytest.mark.parametrize("which", ["outer", "inner"])
def test_nothing_outlives_killed_wardens(tmp_path, which: str, is_alone: bool) -> None:
    with family(tmp_path, *HIDERS) as them:
        victims = them.wardens(which)
        assert len(victims) == len(HIDERS)
        if not is_alone:
            victims.append(psutil.Process(them.driver.pid))
        kill_at_once(*victims)


def test_nothing_outlives_a_driver_and_the_process_group_of_its_warden(tmp_path) -> None:
    with family(tmp_path, "scrubbed") as them:
        (outer,) = them.wardens("outer")
        os.killpg(outer.pid, signal.SIGKILL)
        them.driver.kill()


def test_the_program_itself_dies_with_driver_and_both_wardens(tmp_path) -> None:
    with family(tmp_path, "deaf", gone=False) as them:
        kill_at_once(psutil.Process(them.driver.pid), *wardens(them.mark))
        eventually(lambda: signed(them.rolls["deaf"]) is None)


def test_the_job_of_a_killed_warden_is_lost(start_hider, roll):
    job = start_hider("scrubbed")
    job._wardens[-1].kill()
    assert job.wait().reason == "lost"
    assert living(roll) == []


@pytest.mark.parametrize("name", HIDERS)
def test_the_job_kills_what_it_knows_when_both_wardens_are_killed(start_hider, roll, name):
    job = start_hider(name)
    job.processes()
    kill_at_once(*job._wardens)
    ended = job.wait()
    assert (ended.status, ended.reason) == (None, "lost")
    assert living(roll) == []


def test_a_warden_that_does_not_answer_is_killed_by_stop(start_hider, roll, monkeypatch):
    monkeypatch.setattr(local_job, "WARDEN_S", 1.0)
    job = start_hider("scrubbed")
    for one in job._wardens:
        one.suspend()
    assert job.stop(grace_s=0).reason == "lost"
    assert living(roll) == []


def test_a_warden_told_to_end_ends_the_program_first(start_hider, roll):
    job = start_hider("deaf")
    for number in (signal.SIGINT, signal.SIGHUP):
        job._wardens[0].send_signal(number)
    assert job.poll() is None
    job._wardens[0].terminate()
    assert job.wait().reason == "stopped"
    assert living(roll) == []


def test_a_warden_that_hangs_in_the_kernel_is_given_up(start, monkeypatch):
    job = start("true")
    job.wait()

    def never(timeout: float | None = None) -> int:
        assert timeout is not None, "it would be waited for without a limit"
        raise TimeoutExpired("warden", timeout)

    monkeypatch.setattr(job._warden, "wait", never)
    job.abandon()
