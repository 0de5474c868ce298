"""Many groups in a row while something of the session is killed again and again: nothing is left,
and after enough resumed sessions every group has been measured, recorded and judged once.

PERFGATE_SOAK says how many groups (4 on each push, 50 in `make nightly`), PERFGATE_SOAK_SEED which
kills.
"""

import fcntl
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from checkouts import PLUGINS
from killing import Killer
from leftovers import Watched, watched
from sizes import sized
from soaking import ENDED, begun_or_resumed, finished, judged_once, scenarios

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

GROUPS = int(os.environ.get("PERFGATE_SOAK") or sized(4, 50))
SEED = int(os.environ.get("PERFGATE_SOAK_SEED", "1"))
KILLS = GROUPS * 2 // 3
SESSIONS = KILLS + 4  # each kill can cost a session; then one that is left in peace, and some luck
PATIENCE_S = 120 + 10 * GROUPS


@pytest.fixture
def soaked(tmp_path: Path) -> Iterator[Watched]:
    with watched(tmp_path) as suite:
        (suite.folder / "scenarios" / "standin.yaml").write_text(scenarios(GROUPS))
        yield suite


def test_soak(soaked: Watched, tmp_path: Path) -> None:
    killer = Killer(SEED, KILLS)
    run = soaked.folder / "run"
    began = time.monotonic()
    statuses: list[int] = []
    found: Counter[str] = Counter()
    while len(finished(run)) < GROUPS or statuses[-1] not in ENDED:
        log = tmp_path / f"session-{len(statuses) + 1}.log"
        argv = [sys.executable, "-m", "pytest", *PLUGINS]
        with begun_or_resumed(argv, run, soaked.environment, log) as session:
            killer.accompany(session, soaked.processes, PATIENCE_S)
        statuses.append(session.returncode)
        left = soaked.left()
        # Where everything was killed nobody lives who could remove it; and a server that is killed
        # in its first half second may not have been looked at.
        if killer.has_killed_everything or killer.has_killed_a_server:
            beyond = left.pop("shared memory")
            found["shared memory that nobody could have known of"] += len(beyond)
            for memory in soaked.memories():
                memory.unlink()
        found.update({kind: len(ones) for kind, ones in left.items()})
        told = f"session {len(statuses)} ended in {session.returncode}\n{log.read_text()[-4000:]}"
        assert not any(left.values()), f"{left}\n{killer.told()}\n{told}"
        assert session.returncode not in (1, pytest.ExitCode.USAGE_ERROR), told
        assert len(statuses) <= SESSIONS, told
    print(
        f"soak: seed {SEED}, {judged_once(run, GROUPS)}, {killer.told()}, "
        f"{len(statuses)} sessions that ended in {statuses}, {time.monotonic() - began:.0f} s; "
        f"left behind: {dict(found)}"
    )
    assert sum(killer.done.values()) >= KILLS // 2


def test_the_checks_see_what_is_left(soaked: Watched) -> None:
    """A soak that finds nothing shows nothing unless its checks would find something."""
    server = soaked.folder / "run" / "soak-00" / "start-1-new" / "server.sh"
    server.parent.mkdir(parents=True)
    lock = soaked.leases / "cpu.lock"
    for file in (lock, soaked.temporary / "asked", Path("/dev/shm") / f"{soaked.memory}1"):
        file.touch()
    assert {kind for kind, ones in soaked.has().items() if ones} == {
        "shared memory",
        "temporary files",
    }
    code = "import socket, sys, time; s = socket.create_server(('127.0.0.1', 0)); "
    code += "print(s.getsockname()[1], flush=True); time.sleep(60)  # standin"
    call = [sys.executable, "-c", code]
    with (
        subprocess.Popen(call, env=soaked.environment, stdout=subprocess.PIPE, text=True) as left,
        lock.open() as held,
    ):
        try:
            assert left.stdout is not None
            port = left.stdout.readline().strip()
            server.write_text(f"python standin_server.py --port {port}\n")
            fcntl.flock(held, fcntl.LOCK_EX)
            there = soaked.has()
        finally:
            left.kill()
    assert all(there.values()), there
    assert there["ports"] == [port]
