"""The Slurm of ci/slurm: what tests and CI rely on, from the first start to the last process."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from clusters import (
    SCRIPTS,
    Cluster,
    client_environment,
    down,
    eventually,
    lives,
    processes_below,
    running,
    sockets_below,
    up,
)
from sizes import sized

pytestmark = pytest.mark.slow

EATER = "python3 -c 'import time; eaten = bytearray(6 * 10**8); time.sleep(30)'"


@pytest.fixture
def state() -> Iterator[Path]:
    """A folder for a cluster that the test itself starts and ends."""
    state = Path(tempfile.mkdtemp(prefix="pgs", dir="/var/tmp"))
    yield state
    down(state, "--purge")
    shutil.rmtree(state, ignore_errors=True)


def daemons(slurm: Cluster) -> dict[str, int]:
    """The processes of the cluster's own, by the name of their pid file."""
    files = (slurm.state / "run").glob("*.pid")
    return {file.stem: int(file.read_text()) for file in files}


class TestUp:
    def test_again_changes_nothing(self, slurm: Cluster) -> None:
        before = daemons(slurm)
        done = up(slurm.state, SLURM_WITH_SSHD="1")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("up already: 4 nodes")
        assert daemons(slurm) == before
        assert set(before) == {"munged", "slurmctld"} | {
            f"{daemon}.{node}" for daemon in ("slurmd", "sshd") for node in slurm.nodes
        }

    def test_mends_what_is_broken(self, slurm: Cluster) -> None:
        before = daemons(slurm)
        slurm.run(("scontrol", "update", "NodeName=n4", "State=DRAIN", "Reason=test"))
        for name in ("slurmd.n3", "munged", "sshd.n1"):
            os.kill(before[name], signal.SIGKILL)
        assert up(slurm.state, SLURM_WITH_SSHD="1").returncode == 0
        after = daemons(slurm)
        changed = {name for name in before if before[name] != after[name]}
        assert changed == {"slurmd.n3", "munged", "sshd.n1"}
        assert slurm.run(("srun", "-N4", "true")).returncode == 0

    def test_says_that_it_cannot(self, state: Path) -> None:
        nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        # A checkout can lie in a folder that is closed to other users: a copy that anyone reads.
        scripts = shutil.copytree(SCRIPTS, state / "scripts")
        state.chmod(0o755)
        done = subprocess.run(
            (*nobody, scripts / "up.sh", state), capture_output=True, text=True, check=False
        )
        assert done.returncode == 3
        assert "must run as root" in done.stderr

    def test_keeps_off_a_folder_that_is_not_its_own(self, state: Path) -> None:
        (state / "letter").write_text("dear")
        assert up(state).returncode == 2
        assert down(state, "--purge").returncode == 0
        assert [path.name for path in state.iterdir()] == ["letter"]


def test_nothing_of_it_listens_beyond_the_loopback_device(slurm: Cluster) -> None:
    job = slurm.submit("sleep 60", "-N2")
    slurm.wait_for(job, "RUNNING")
    with subprocess.Popen(
        ("srun", f"--jobid={job}", "--overlap", "-N2", "sleep", "60"), env=dict(slurm.env)
    ) as step:
        eventually(lambda: len(slurm.run(("squeue", "-h", "-s", "-j", job)).stdout.split("\n")) > 2)
        ours = {
            int(line.split()[0])
            for line in processes_below(slurm.state)
            if line.split()[0].isdigit()
        }
        listening = {
            (psutil.Process(one.pid).name(), one.laddr.ip)
            for one in psutil.net_connections("tcp")
            if one.status == psutil.CONN_LISTEN and one.pid in ours
        }
        step.kill()
    slurm.run(("scancel", job))
    assert {"slurmctld", "slurmd", "sshd", "srun"} <= {name for name, _ in listening}
    assert {name for name, address in listening if not address.startswith("127.")} == set()


INSTALLS = """\
for word; do case $word in DPkg::Path=*) path=${word#*=} ;; esac; done
PATH=$path
command -v invoke-rc.d > found
command -v deb-systemd-invoke >> found
invoke-rc.d munge start
echo $? >> found
exec /bin/sleep 60
"""


def test_packages_are_installed_without_a_daemon_and_without_a_file_of_the_machine(
    tmp_path: Path,
) -> None:
    """apt-get is played; killed in the middle it leaves nothing, as only its own dpkg was told."""
    policy = Path("/usr/sbin/policy-rc.d")
    before = policy.read_bytes() if policy.exists() else None
    for name, body in {"apt-get": INSTALLS, "dpkg-query": "exit 1\n"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\ncd {tmp_path}\n{body}")
        (tmp_path / name).chmod(0o755)
    with subprocess.Popen(
        (SCRIPTS / "packages.sh", tmp_path / "log", "munge"),
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        start_new_session=True,
    ) as running:
        found = tmp_path / "found"
        eventually(lambda: found.exists() and found.read_text().endswith("0\n"))
        os.killpg(running.pid, signal.SIGKILL)
    played = [SCRIPTS / "no-daemons" / name for name in ("invoke-rc.d", "deb-systemd-invoke")]
    assert found.read_text().split() == [*map(str, played), "0"]
    assert (policy.read_bytes() if policy.exists() else None) == before


def test_what_a_job_leaves_behind_ends_with_it(slurm: Cluster) -> None:
    stray = "setsid sleep 1234 </dev/null >/dev/null 2>&1 & echo $!"
    facts = slurm.wait_for(slurm.submit(stray))
    pid = int(Path(facts["StdOut"]).read_text())
    eventually(lambda: not lives(pid))


def test_out_of_memory_with_cgroups_beside_another_cluster(slurm: Cluster) -> None:
    if not os.access("/sys/fs/cgroup/memory/tasks", os.W_OK):
        pytest.skip("needs a writable cgroup v1")
    with running(SLURM_WITH_CGROUP="1", SLURM_WITH_NODES="1") as other:
        facts = other.wait_for(other.submit(EATER, "--mem=100"))
        assert (facts["JobState"], facts["ExitCode"]) == ("OUT_OF_MEMORY", "0:125")
        assert slurm.run(("srun", "-N4", "true")).returncode == 0


class TestDown:
    # Without host names of their own, which is rare, processes are known by other marks.
    @pytest.mark.nightly
    @pytest.mark.parametrize("uts", sized(["1"], ["1", "0"]))
    def test_leaves_nothing(self, state: Path, uts: str) -> None:
        done = up(state, SLURM_WITH_SSHD="1", SLURM_WITH_NODES="2", SLURM_WITH_UTS=uts)
        if done.returncode == 3:
            pytest.skip(done.stderr)
        assert done.returncode == 0, done.stderr
        cluster = Cluster(state, client_environment(state), {})
        pids = state / "tmp" / "pids"
        bare = "env -i " if uts == "1" else ""  # a process that no environment gives away
        stray = f"{bare}setsid sleep 1234 </dev/null >/dev/null 2>&1 & echo $! >> {pids}"
        cluster.wait_for(cluster.submit(f"{stray}; sleep 60"), "RUNNING")
        over_ssh = ("ssh", "-F", state / "etc" / "ssh_config", "-p", "2233", "n2", stray)
        assert cluster.run(over_ssh).returncode == 0
        waiting = subprocess.Popen(
            ("srun", "-N1", "sleep", "60"), env=cluster.env, stderr=subprocess.DEVNULL
        )
        eventually(lambda: pids.exists() and len(pids.read_text().split()) == 2)
        strays = [int(pid) for pid in pids.read_text().split()]
        assert all(map(lives, strays))
        assert sockets_below(state)

        assert down(state).returncode == 0
        assert waiting.wait(timeout=60) != 0
        assert not any(map(lives, strays))
        assert processes_below(state) == []
        assert sockets_below(state) == []
        assert not list(state.rglob("*.pid"))
        assert down(state, "--purge").returncode == 0
        assert not state.exists()
        assert down(state, "--purge").returncode == 0

    # On each push the later of two moments, when there is more to end.
    @pytest.mark.nightly
    @pytest.mark.parametrize(
        "file", sized(["run/slurmctld.pid"], ["etc/munge.key", "run/slurmctld.pid"])
    )
    def test_after_a_start_that_was_killed(self, state: Path, file: str) -> None:
        quiet = subprocess.DEVNULL
        with subprocess.Popen((SCRIPTS / "up.sh", state), stdout=quiet, stderr=quiet) as starting:
            eventually(lambda: starting.poll() is not None or (state / file).exists())
            starting.kill()
        assert down(state, "--purge").returncode == 0
        assert processes_below(state) == []
        assert not state.exists()


class TestWith:
    def test_gives_the_commands_exit_status_and_leaves_nothing(self) -> None:
        before = set(Path("/var/tmp").glob("pgs*"))
        script = "hostname && srun -N2 true && dirname $(dirname $SLURM_CONF) && exit 5"
        done = subprocess.run(
            (SCRIPTS / "with.sh", "sh", "-c", script), capture_output=True, text=True, check=False
        )
        if done.returncode == 3:
            pytest.skip(done.stderr)
        assert done.returncode == 5, done.stderr
        *_, host, state = done.stdout.split()
        assert host == "login"
        assert not Path(state).exists()
        assert processes_below(Path(state)) == []
        assert Path(state) not in before

    # Both go one way through the script: CI sends the second.
    @pytest.mark.nightly
    @pytest.mark.parametrize(
        ("sent", "status"),
        sized([("SIGTERM", 143)], [("SIGINT", 130), ("SIGTERM", 143)]),
    )
    def test_passes_a_signal_on_and_leaves_nothing(
        self, tmp_path: Path, sent: str, status: int
    ) -> None:
        said = tmp_path / "said"
        heeding = f"trap 'echo heard >> {said}; exit' INT TERM"
        script = f"{heeding}; echo $SLURM_CONF > {said}; while :; do sleep 0.2; done"
        with subprocess.Popen(
            (SCRIPTS / "with.sh", "sh", "-c", script),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as running:
            eventually(lambda: running.poll() is not None or (said.exists() and said.read_text()))
            if running.poll() == 3:
                pytest.skip(running.stderr.read().decode())
            running.send_signal(getattr(signal, sent))
            running.communicate(timeout=60)
        assert running.returncode == status
        conf, heard = said.read_text().split()
        assert heard == "heard"
        assert not Path(conf).parents[1].exists()
        assert processes_below(Path(conf).parents[1]) == []
