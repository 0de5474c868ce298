"""What the tests of the local launcher share."""

import pytest
from witnesses import HIDERS, eventually, living, program, roll_in

from perfgate.core.programs.command import Command
from perfgate.launchers.local.job import LocalJob, marked
from perfgate.launchers.local.launcher import LocalLauncher


@pytest.fixture
def roll(tmp_path):
    """Where misbehaving programs sign that they have started."""
    with roll_in(tmp_path) as roll:
        yield roll


@pytest.fixture
def start(tmp_path):
    """Starts a command in `tmp_path/run`; what has ended has left nothing, the rest is stopped."""
    jobs: list[LocalJob] = []

    def start(*argv: str, name: str = "job", **fields: object) -> LocalJob:
        job = LocalLauncher(1.0).start(Command(argv, **fields), tmp_path / "run", name)
        jobs.append(job)
        return job

    yield start
    left = [process for job in jobs if job.poll() for process in marked(job.mark)]
    for job in jobs:
        job.stop(0.3)
    assert left == []


@pytest.fixture
def start_hider(start, roll):
    """Starts a program that is hard to end, and waits until all of it is there."""

    def start_hider(name: str) -> LocalJob:
        job = start(*program(name, roll))
        eventually(lambda: living(roll) == HIDERS[name])
        return job

    return start_hider
