"""Many groups in a row while something of the session is killed again and again: nothing is left,
and after enough resumed sessions every group has been measured, recorded and judged once.

PERFGATE_SOAK says how many groups (5 on each push, 50 in `make nightly`), PERFGATE_SOAK_SEED which
kills.
"""

import fcntl
import os
import re
import socket
import subprocess
import sys
import time
from collections import Counter
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from killing import Killer
from sessions import is_held, untraced
from sizes import sized
from soaking import ENDED, begun_or_resumed, finished, judged_once, scenarios
from test_road import PLUGINS, Suite, make_suite

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

GROUPS = int(os.environ.get("PERFGATE_SOAK") or sized(5, 50))
SEED = int(os.environ.get("PERFGATE_SOAK_SEED", "1"))
KILLS = GROUPS * 2 // 3
SESSIONS = KILLS + 4  # each kill can cost a session; then one that is left in peace, and some luck
PATIENCE_S = 120 + 10 * GROUPS


@dataclass
class Soaked(Suite):
    """A checkout whose servers are families with shared memory, and whose folders are its own."""

    @property
    def environment(self) -> dict[str, str]:
        return untraced(super().environment) | {
            "PERFGATE_LEASES": str(self.leases),
            "PERFGATE_STANDIN_MEMORY": self.memory,
            "TMPDIR": str(self.temporary),
        }

    @property
    def leases(self) -> Path:
        return self.folder / "leases"

    @property
    def temporary(self) -> Path:
        return self.folder / "temporary"

    @property
    def memory(self) -> str:
        """What the names of its files in /dev/shm begin with."""
        return f"perfgate-{self.folder.name}-{os.getpid()}-"

    @property
    def run_folder(self) -> Path:
        return self.folder / "run"

    def next_session(self, log: Path) -> AbstractContextManager["subprocess.Popen[str]"]:
        """One that begins the run, or goes on with it."""
        argv = [sys.executable, "-m", "pytest", *PLUGINS]
        return begun_or_resumed(argv, self.run_folder, self.environment, log)

    def ports(self) -> set[int]:
        """The ports that its servers were told to listen on."""
        calls = (path.read_text() for path in self.run_folder.rglob("server.sh"))
        return {int(port) for call in calls for port in re.findall(r"--port\s+(\d+)", call)}

    def leftovers(self) -> dict[str, list[str]]:
        """All that a session could leave, by kind; waits for what is still ending."""
        return {
            "processes": [" ".join(_words(one)) for one in self.wait_until_empty()],
            "ports": [str(port) for port in self._listening()],
            "leases": [lock.name for lock in self.leases.iterdir() if is_held(lock)],
            "shared memory": [one.name for one in self.memories()],
            "temporary files": [
                one.name
                for one in self.temporary.iterdir()
                if not one.name.startswith("pytest-of-")  # pytest removes all but the last three
            ],
        }

    def memories(self) -> list[Path]:
        return list(Path("/dev/shm").glob(f"{self.memory}*"))

    def _listening(self) -> set[int]:
        """Its ports on which something still listens, be it of an unknown process."""
        ours = self.ports()
        return {
            one.laddr.port
            for one in psutil.net_connections("tcp")
            if one.status == psutil.CONN_LISTEN
            and one.laddr.port in ours
            and (one.pid is None or "standin" in " ".join(_words(psutil.Process(one.pid))))
        }


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@pytest.fixture
def soaked(tmp_path: Path) -> Soaked:
    suite = Soaked(make_suite(tmp_path).folder)
    (tmp_path / "scenarios" / "standin.yaml").write_text(scenarios(GROUPS))
    plugins = ["perfgate.suite.plugin", "standin", "standin_family"]
    (tmp_path / "conftest.py").write_text(f"pytest_plugins = {plugins!r}\n")
    suite.leases.mkdir()
    suite.temporary.mkdir()
    return suite


def test_soak(soaked: Soaked, tmp_path: Path) -> None:
    killer = Killer(SEED, KILLS)
    began = time.monotonic()
    statuses: list[int] = []
    found: Counter[str] = Counter()
    while len(finished(soaked.run_folder)) < GROUPS or statuses[-1] not in ENDED:
        log = tmp_path / f"session-{len(statuses) + 1}.log"
        with soaked.next_session(log) as session:
            killer.accompany(session, soaked.processes, PATIENCE_S)
        statuses.append(session.returncode)
        left = soaked.leftovers()
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
        f"soak: seed {SEED}, {judged_once(soaked.run_folder, GROUPS)}, {killer.told()}, "
        f"{len(statuses)} sessions that ended in {statuses}, {time.monotonic() - began:.0f} s; "
        f"left behind: {dict(found)}"
    )
    assert sum(killer.done.values()) >= KILLS // 2


def test_the_checks_see_what_is_left(soaked: Soaked) -> None:
    """A soak that finds nothing shows nothing unless its checks would find something."""
    lock = soaked.leases / "cpu.lock"
    lock.touch()
    memory = Path("/dev/shm") / f"{soaked.memory}1"
    server = soaked.run_folder / "soak-00" / "start-1-new" / "server.sh"
    server.parent.mkdir(parents=True)
    with socket.socket() as listening, lock.open() as held:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        fcntl.flock(held, fcntl.LOCK_EX)
        memory.touch()
        (soaked.temporary / "asked").touch()
        call = [sys.executable, "-c", "import time; time.sleep(60)"]
        left = subprocess.Popen(call, env=soaked.environment)
        try:
            server.write_text(f"python standin_server.py --port {port}\n")
            assert left.pid in [one.pid for one in soaked.processes()]
            assert is_held(lock)
            assert soaked.ports() == {port}
            assert soaked.memories() == [memory]
        finally:
            left.kill()
            left.wait()
            memory.unlink()
    assert not is_held(lock)
