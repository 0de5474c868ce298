"""A real Slurm for tests: ci/slurm/up.sh in a folder of its own, ended in every case."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from sessions import inherited
from witnesses import eventually as eventually

SCRIPTS = Path(__file__).parents[2] / "ci" / "slurm"
CANNOT = 3  # exit status of up.sh: this machine cannot have a Slurm
# Only then are packages installed, and is a Slurm that does not start a failure.
REQUIRED = os.environ.get("PERFGATE_REQUIRE_SLURM") == "1"
INSTALLING_S = 900.0  # packages from a slow mirror
FINAL = {
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY"),
    *("PREEMPTED", "TIMEOUT"),
}


@dataclass(frozen=True)
class Cluster:
    """A running cluster."""

    state: Path
    env: Mapping[str, str]
    """The whole environment of its clients."""
    nodes: Mapping[str, str]
    """Name of each node, and its address; only nodes and `login` know the names as host names."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """What `up.sh` was told."""

    @property
    def login(self) -> tuple[str, ...]:
        """What to put before an argv so that it runs as on the login node."""
        return (str(SCRIPTS / "login.sh"), str(self.state))

    def run(self, argv: Sequence[str], timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run a client here; no exit status is an error."""
        return subprocess.run(
            argv,
            env=dict(self.env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def submit(self, script: str, *options: str) -> str:
        """Hand in a batch script that is not requeued; the id of its job."""
        file = self.state / "tmp" / f"batch-{time.monotonic_ns()}.sh"
        file.write_text(f"#!/bin/sh\n{script}\n")
        output = f"--output={file}.%j.out"
        argv = ("sbatch", "--parsable", "--no-requeue", output, *options, str(file))
        done = self.run(argv)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def job(self, job: str) -> dict[str, str]:
        """What scontrol knows of a job."""
        done = self.run(("scontrol", "show", "job", job, "-o"))
        assert done.returncode == 0, done.stderr
        return dict(word.split("=", 1) for word in done.stdout.split() if "=" in word)

    def job_state(self, job: str) -> str:
        """PENDING, RUNNING, COMPLETED, …"""
        return self.job(job)["JobState"]

    def wait_for(self, job: str, *states: str) -> dict[str, str]:
        """Wait until the job is in one of the states, or in any final one; what is known then."""

        def look() -> dict[str, str] | None:
            facts = self.job(job)
            return facts if facts["JobState"] in (FINAL | set(states)) else None

        return eventually(look)

    def resume(self, node: str) -> None:
        """Put a node that is down or drained back into service."""

        def idle() -> bool:
            self.run(("scontrol", "update", f"NodeName={node}", "State=RESUME"))
            return self.run(("sinfo", "-h", "-n", node, "-o", "%T")).stdout.strip() == "idle"

        eventually(idle)


def lives(pid: int) -> bool:
    """Is there a process with this number that is no zombie?"""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def processes_below(state: Path) -> list[str]:
    """Living processes that name the folder in what they run, know or have open; this one not."""
    found = []
    for process in psutil.process_iter():
        try:
            words = [*process.cmdline(), *process.environ().values(), process.cwd()]
            words += [file.path for file in process.open_files()]
            mounts = Path(f"/proc/{process.pid}/mountinfo").read_text()
            status = process.status()
        except (psutil.Error, OSError):
            continue
        if process.pid == os.getpid() or status == psutil.STATUS_ZOMBIE:
            continue
        if str(state) in mounts or any(str(state) in word for word in words):
            found.append(f"{process.pid} {' '.join(process.cmdline())}")
    return found


def sockets_below(*folders: Path) -> list[str]:
    """Unix sockets of any process whose path is below one of the folders."""
    lines = Path("/proc/net/unix").read_text().splitlines()[1:]
    paths = [line.split()[7] for line in lines if len(line.split()) > 7]
    return [path for path in paths if any(path.startswith(f"{folder}/") for folder in folders)]


def up(state: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Call up.sh with these settings and no others."""
    rest = {name: value for name, value in os.environ.items() if "SLURM" not in name}
    if not REQUIRED:
        rest["SLURM_WITH_INSTALL"] = "0"
    return subprocess.run(
        (SCRIPTS / "up.sh", state),
        env=rest | settings,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=INSTALLING_S,
        check=False,
    )


def down(state: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Call down.sh."""
    argv = (SCRIPTS / "down.sh", state, *options)
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)


def client_environment(state: Path) -> dict[str, str]:
    """What a session inherits, with env.sh, without Slurm and Open MPI of its own."""
    rest = inherited("SLURM", "SBATCH", "SALLOC", "SRUN", "OMPI_", "PMIX_")
    shown = subprocess.run(
        ("sh", "-c", '. "$1" && env -0', "sh", state / "env.sh"),
        env=rest,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    pairs = (line.partition("=") for line in shown.split("\0") if line)
    return {name: value for name, _, value in pairs}


def node_addresses(state: Path) -> dict[str, str]:
    """Name and address of each node, from the nodes' own hosts file."""
    known = {path.name for path in (state / "spool").iterdir()}
    lines = (line.split() for line in (state / "etc" / "hosts").read_text().splitlines())
    return {words[1]: words[0] for words in lines if len(words) == 2 and words[1] in known}


@contextmanager
def running(**settings: str) -> Iterator[Cluster]:
    """A cluster with these settings of up.sh, in a folder of its own; nothing is left of it.

    Where this machine cannot have one the test is skipped, saying why; it fails where
    PERFGATE_REQUIRE_SLURM=1 says that there must be one.
    """
    state = Path(tempfile.mkdtemp(prefix="pgs", dir="/var/tmp"))
    try:
        done = up(state, **settings)
        if done.returncode == CANNOT:
            reason = (done.stderr.strip().splitlines() or ["up.sh gave no reason"])[-1]
            (pytest.fail if REQUIRED else pytest.skip)(reason)
        assert done.returncode == 0, done.stderr
        yield Cluster(state, client_environment(state), node_addresses(state), settings)
    finally:
        ended = down(state, "--purge")
        left = processes_below(state) + sockets_below(state)
        existed = state.exists()
        shutil.rmtree(state, ignore_errors=True)
        assert ended.returncode == 0, ended.stderr
        assert not left
        assert not existed, "down.sh --purge left the folder"
