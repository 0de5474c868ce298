"""Many groups in a row through Slurm while something is killed or cancelled again and again: no
job, step or process is left, and every group is recorded and judged once in the end.

PERFGATE_SOAK_SEED says which kills.
"""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from clusters import eventually
from roads import Road
from sessions import BENCHMARK, XDIST
from sizes import sized

sys.path.insert(0, str(Path(__file__).parents[1] / "suite"))

from soaking import ENDED, KINDS, Killer, begun_or_resumed, finished, judged_once, scenarios

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

# On each push the soak of tests/suite kills the same kinds of processes more often.
GROUPS = sized(4, 10)
SEED = int(os.environ.get("PERFGATE_SOAK_SEED", "1"))
KILLS = sized(4, 10)
SESSIONS = KILLS + 4  # each kill can cost a session; then one that is left in peace, and some luck
PATIENCE_S = 300


@dataclass
class Soaked(Road):
    """A checkout of many scenarios."""

    @property
    def run_folder(self) -> Path:
        return self.folder / "run"

    def next_session(self, log: Path) -> AbstractContextManager["subprocess.Popen[str]"]:
        """One that begins the run, or goes on with it."""
        plugins = (*XDIST, *BENCHMARK)
        argv = [*self.login, sys.executable, "-m", "pytest", *plugins, "--launcher", "slurm"]
        return begun_or_resumed(argv, self.run_folder, self.environment, log)

    def all_processes(self) -> list[psutil.Process]:
        """Those of its sessions and steps, on whatever node; a worker's title hides what it is."""
        found = []
        for process in psutil.process_iter():
            try:
                ended = process.status() == psutil.STATUS_ZOMBIE
                home = process.environ().get("PERFGATE_HOME") == str(self.folder / "home")
                here = Path(process.cwd()).is_relative_to(self.folder)
            except (psutil.Error, OSError):
                continue
            if not ended and (home or here) and process.pid != os.getpid():
                found.append(process)
        return found

    def cancel(self, what: Callable[[], list[str]], draw: random.Random) -> bool:
        """Cancel a job, or a step, drawn from those that `what` lists; False if there is none."""
        there = what()
        if there:
            self.cluster.run(("scancel", draw.choice(there).split()[0]))
        return bool(there)


@pytest.fixture
def soaked(road: Road) -> Soaked:
    (road.folder / "scenarios" / "standin.yaml").write_text(scenarios(GROUPS))
    road.site("lost_after_s: 3")
    return Soaked(road.folder, road.cluster)


def test_soak(soaked: Soaked, tmp_path: Path) -> None:
    killer = Killer(SEED, KILLS, kinds=(*KINDS, "srun", "guard"))
    killer.extra["job scancel"] = lambda draw: soaked.cancel(soaked.jobs, draw)
    killer.extra["step scancel"] = lambda draw: soaked.cancel(soaked.steps, draw)
    began = time.monotonic()
    statuses: list[int] = []
    while len(finished(soaked.run_folder)) < GROUPS or statuses[-1] not in ENDED:
        log = tmp_path / f"session-{len(statuses) + 1}.log"
        with soaked.next_session(log) as session:
            killer.accompany(session, soaked.all_processes, PATIENCE_S)
        statuses.append(session.returncode)
        told = f"session {len(statuses)} ended in {session.returncode}\n{log.read_text()[-4000:]}"
        eventually(lambda: not soaked.jobs())
        eventually(lambda: not soaked.steps())
        eventually(lambda: not soaked.all_processes())
        assert session.returncode != pytest.ExitCode.USAGE_ERROR, told
        assert len(statuses) <= SESSIONS, told
    print(
        f"soak through Slurm: seed {SEED}, {judged_once(soaked.run_folder, GROUPS)}, "
        f"{killer.told()}, {len(statuses)} sessions that ended in {statuses}, "
        f"{time.monotonic() - began:.0f} s; no job, step or process left"
    )
    assert sum(killer.done.values()) >= sized(1, 3)
