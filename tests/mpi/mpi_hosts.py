"""What the tests of mpirun share: a launcher for the cluster's hosts, and what is left on them."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
from clusters import Cluster

from perfgate.core.files.paths import repository
from perfgate.core.programs.command import Command
from perfgate.launchers.base import Job, Placement, PlacementRequest
from perfgate.launchers.mpirun.launcher import MpirunLauncher
from perfgate.launchers.site import MpirunSite
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.scenario import Hardware, Launch, Scenario

PORT = 2233
# Open MPI waits a second for ranks that it asked to end, even where they have ended.
QUICKLY = {"odls_base_sigkill_timeout": "0"}
SITE = MpirunSite(hosts=("n1", "n2"), ssh_port=PORT, mca=QUICKLY)
PROGRAMS = Path(__file__).parent / "programs"
_DAEMONS = {"munged", "slurmctld", "slurmd", "slurmscriptd", "sshd"}


def local_scenario() -> Scenario:
    """The embedded default: one server without GPUs."""
    (found,) = load_scenarios(repository() / "scenarios" / "local" / "smollm2.yaml")
    return found


def two_hosts(by: str = "mpirun", **fields: object) -> Scenario:
    """Two hosts of two pretended GPUs each, as a document that launches it by that program."""
    launch = Launch(by, **fields)  # type: ignore[arg-type]
    return replace(local_scenario(), hardware=Hardware("H200", 4, 2), launch=launch)


def request(scenario: Scenario, folder: Path, told: list[str] | None = None) -> PlacementRequest:
    """A fresh start of the scenario; `told` is filled with what is told."""
    return PlacementRequest(scenario, folder, 60.0, [].append if told is None else told.append)


@contextmanager
def placed(
    folder: Path,
    scenario: Scenario | None = None,
    told: list[str] | None = None,
    **site: Any,
) -> Iterator[Placement]:
    """A fresh start, of the embedded default unless another is given, with changes to the site."""
    asked = request(scenario or local_scenario(), folder, told)
    with MpirunLauncher(replace(SITE, **site)).placed(asked) as placement:
        yield placement


@contextmanager
def started(folder: Path, command: Command, **site: Any) -> Iterator[tuple[Placement, Job]]:
    """A program on the first host, as of the embedded default."""
    with placed(folder, **site) as placement, placement.start(command, folder, "job") as job:
        yield placement, job


def host_names(placement: Placement) -> list[str]:
    """The hosts that it has."""
    return list(placement.facts["mpirun"]["hosts"])  # type: ignore[index,call-overload,arg-type]


def python(code: str) -> Command:
    return Command((sys.executable, "-c", code))


def hosted(cluster: Cluster, name: str = "") -> list[psutil.Process]:
    """What somebody started on the hosts over ssh and that still lives, of that name if given."""
    found = []
    for process in psutil.process_iter():
        try:
            is_ours = process.environ().get("CI_SLURM_STATE") == str(cluster.state)
            lives = process.status() != psutil.STATUS_ZOMBIE
            called = process.name()
            if is_ours and lives and called not in _DAEMONS and name in ("", called):
                found.append(process)
        except psutil.Error:
            continue
    return found


def in_words(processes: Sequence[psutil.Process]) -> list[str]:
    """What is left, for a test's message."""
    words = []
    for one in processes:
        try:
            words.append(f"{one.pid} {' '.join(one.cmdline())}")
        except psutil.Error:
            continue
    return words


def orteds(cluster: Cluster, host: str) -> list[psutil.Process]:
    """Open MPI's daemons on a host."""
    return [one for one in hosted(cluster, "orted") if _is_on(one, cluster.nodes[host])]


def on_host(cluster: Cluster, host: str) -> list[psutil.Process]:
    """What runs on a host, ranks included."""
    return [one for one in hosted(cluster) if _is_on(one, cluster.nodes[host])]


def _is_on(process: psutil.Process, address: str) -> bool:
    """Whether it came over an ssh connection to that address."""
    try:
        return process.environ().get("SSH_CONNECTION", "").split()[2:3] == [address]
    except psutil.Error:
        return False
