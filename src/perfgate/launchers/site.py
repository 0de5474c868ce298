"""Site: what is true of a place and not of a scenario: hosts, partition, container, commands.

Read from ``site.yaml`` in the checkout, or the file that PERFGATE_SITE names; without one, the
defaults below hold. The fields: docs/how-to/slurm.md, docs/how-to/docker.md, docs/how-to/mpirun.md;
those of a start: docs/how-to/preflight.md; those of locks: docs/how-to/preflight.md.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.core.files.paths import found_in_repository
from perfgate.core.plain import from_plain
from perfgate.scenarios.schema import read_schema
from perfgate.scenarios.yaml_document import read_document

VARIABLE = "PERFGATE_SITE"
SCHEMA = Path(__file__).with_name("site.schema.json")


@dataclass(frozen=True)
class SlurmContainer:
    """The container of engine programs, as the pyxis plugin takes it."""

    image: str
    mounts: tuple[str, ...] = ()


@dataclass(frozen=True)
class SlurmSite:
    """How jobs are asked for; None leaves it to Slurm.

    Attributes:
        partition, account, qos, constraint, reservation, nodelist: as sbatch takes them.
        gres: GPUs of a node, with ``{gpus}`` for their number and ``{gpu}`` for the scenario's
            GPU name; only asked for where a scenario needs GPUs.
        exclusive: whether nobody else may use the nodes: anything else disturbs a measurement.
        memory: of each node; "0" is all of it.
        segment: nodes that must be close together, as ``--segment`` takes it.
        options: further options of sbatch.
        step_options: further options of srun.
        container: the container of engine programs; None: none.
        clients: "beside": load clients run on the server's node; "login": where perfgate runs.
        listen: where the server listens: see `launchers.nodes.placement`.
        time_margin_s: added to what the scenario's limits allow.
        most_time_s: never ask for more than this; None: no such limit.
        pending_limit_s: longest time that a job may wait for its nodes.
        lost_after_s: a job whose perfgate gives no sign of life for so long ends by itself.
    """

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    reservation: str | None = None
    nodelist: str | None = None
    gres: str = "gpu:{gpus}"
    exclusive: bool = True
    memory: str | None = "0"
    segment: int | None = None
    options: tuple[str, ...] = ()
    step_options: tuple[str, ...] = ()
    container: SlurmContainer | None = None
    clients: str = "beside"
    listen: str | None = None
    time_margin_s: float = 300.0
    most_time_s: float | None = None
    pending_limit_s: float = 4 * 3600.0
    lost_after_s: float = 180.0


@dataclass(frozen=True)
class DockerSite:
    """How the engine's programs are run in containers; docs/how-to/docker.md.

    Attributes:
        image: image of every scenario; None: the release image of the engine's version, or the
            one that the scenario's document names.
        gpus: the GPUs of a start that leases none, as ``--gpus`` takes them.
        ipc: as ``--ipc`` takes it; None leaves it to Docker.
        network: ``host``, or a network whose ports are published on this machine's loopback device.
        user: as ``--user`` takes it; "me": the person that runs perfgate; None: the image's own.
        cache: folder that is mounted as the image's ``~/.cache``; None: nothing is.
        mounts: further mounts, ``SOURCE:TARGET[:ro]``.
        pass_on: environment variables that are handed on from here, by name.
        options: further options of ``docker run``.
        pull_s: longest time that the image may take to arrive.
    """

    image: str | None = None
    gpus: str = "all"
    ipc: str | None = "host"
    network: str = "host"
    user: str | None = "me"
    cache: str | None = "~/.cache"
    mounts: tuple[str, ...] = ()
    pass_on: tuple[str, ...] = ("HF_TOKEN", "HF_HUB_OFFLINE")
    options: tuple[str, ...] = ()
    pull_s: float = 3600.0


@dataclass(frozen=True)
class MpirunSite:
    """How Open MPI reaches the nodes; docs/how-to/mpirun.md.

    Attributes:
        hosts: the nodes in order, the server's first; empty: those of PERFGATE_HOSTS.
        ssh_port: port of their SSH daemons; None: the scenario's, else ssh's own default.
        rsh_agent: the program that reaches them, with its options, as plm_rsh_agent takes it.
        mca: further MCA parameters, name → value.
        pass_on: environment variables that are handed on from here, by name.
        options: further options of mpirun, each with its value after a blank.
        clients: "beside": load clients run on the server's node; "here": where perfgate runs.
        listen: where the server listens: see `launchers.nodes.placement`.
        pending_limit_s: longest time that a start may wait for hosts that others measure on.
    """

    hosts: tuple[str, ...] = ()
    ssh_port: int | None = None
    rsh_agent: str | None = None
    mca: Mapping[str, str] = field(default_factory=dict)
    pass_on: tuple[str, ...] = ("HF_HOME", "HF_TOKEN", "HF_HUB_OFFLINE", "LD_LIBRARY_PATH", "PATH")
    options: tuple[str, ...] = ()
    clients: str = "here"
    listen: str | None = None
    pending_limit_s: float = 4 * 3600.0


@dataclass(frozen=True)
class Site:
    """All of the site, one part for each launcher that needs one.

    Attributes:
        slurm, docker, mpirun: see there.
        before: commands that run on this machine before each fresh start, in order.
        after: those that run after it, however it ended.
        command_timeout_s: longest time of each. nvidia-smi takes tens of seconds where it must
            first load the driver of eight GPUs; a command that waits for a password never ends.
        share_cpu: whether scenarios without a GPU run beside others; docs/how-to/preflight.md.
        wait_for_gpus_s: how long a start waits for GPUs, or the CPU, that others use.
        file: where it was read from.
    """

    slurm: SlurmSite = SlurmSite()
    docker: DockerSite = DockerSite()
    mpirun: MpirunSite = field(default_factory=MpirunSite)
    before: tuple[tuple[str, ...], ...] = ()
    after: tuple[tuple[str, ...], ...] = ()
    command_timeout_s: float = 60.0
    share_cpu: bool = False
    wait_for_gpus_s: float = 8 * 3600.0  # a whole node waits for a night's worth of smaller starts
    file: Path | None = field(default=None, compare=False)


def load_site(path: Path | None = None) -> Site:
    """The site's settings.

    Args:
        path: the file; None: PERFGATE_SITE, else ``site.yaml`` in the checkout, which may be
            missing.

    Raises:
        SeveralInputErrors: all that is wrong with the file.
        InputError: it was found, not named, and could be another user's.
    """
    setting = os.environ.get(VARIABLE)
    file = path or (Path(setting).absolute() if setting else found_in_repository("site.yaml"))
    if path is None and setting and not file.is_file():
        missing = InputError(
            "no such file",
            field=VARIABLE,
            found=file,
            expected="a site file",
            hint="begin with site.example.yaml, or unset it",
        )
        raise SeveralInputErrors([missing])
    if path is None and not file.exists():
        return Site()
    document, errors = read_document(
        file,
        expected="schema_version, and any of slurm, docker, mpirun, before, after, "
        "command_timeout_s, share_cpu, wait_for_gpus_s",
        hint="begin with site.example.yaml, or delete the file",
    )
    if document is not None and not errors:  # what the reader refused would be told a second time
        schema = read_schema(SCHEMA, described=True, one_line=True)
        errors = [document.error(problem) for problem in schema.problems(document.value)]
    if errors or document is None:
        raise SeveralInputErrors(sorted(errors, key=lambda error: error.line or 0))
    return replace(from_plain(Site, document.value), file=file)
