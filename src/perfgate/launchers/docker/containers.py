"""Containers: the words of `docker run`, short calls of Docker's program, and DockerJob.

Labels tell perfgate's containers, and those whose perfgate process has ended.
"""

import getpass
import json
import math
import os
import re
import socket
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from perfgate.core.errors import InputError, MissingProgram, RunError
from perfgate.core.files import json_text
from perfgate.core.files.remembered import toml_beside
from perfgate.core.programs.command import Command
from perfgate.core.programs.program_query import Answer, NoStatus, ask_here
from perfgate.core.programs.programs import DOCKER
from perfgate.core.programs.raw_log import end_of
from perfgate.launchers.base import Exit
from perfgate.launchers.local.job import MARK, LocalJob, OuterJob, alive, signal_of
from perfgate.launchers.site import DockerSite
from perfgate.machine.conditions.processes import began, lives, pid_namespace
from perfgate.machine.nvml import VISIBLE
from perfgate.plan.container import DockerRun, with_mounts

HOST_NETWORK = "host"
LOOPBACK = "127.0.0.1"
ROOT_HOME = "/root"
HOME = "/perfgate-home"  # of a user whom the image does not know: empty, in memory, writable
ME = "me"
HOST = "perfgate.host"
START = "perfgate.start"
OWNER = "perfgate.owner"
CALL_S = 30.0
REMOVE_S = 60.0  # a program that holds much GPU memory takes its time to go
_DAEMON = "docker: "  # what docker run puts before an error of its own, and of no program
LOOK_S = 10.0
_TAIL = 64 * 1024  # bytes of a log that are searched for what Docker itself says
DAEMON_FAILED = 125  # also where it went away, and may have left the program running
_NOT_STARTED = (DAEMON_FAILED, 126, 127)  # of docker run; a program may end with them, too

_MESSAGES: list[dict[str, str]] = toml_beside(__file__, "messages")["message"]


@dataclass(frozen=True)
class ContainerSettings:
    """What all containers of one scenario have in common.

    Attributes:
        image: their image.
        site: how this place runs containers.
        has_gpus: whether the scenario computes on GPUs.
        folders: mounted under their own paths.
    """

    image: str
    site: DockerSite
    has_gpus: bool
    folders: tuple[Path, ...] = ()


def run_words(
    box: ContainerSettings,
    command: Command,
    name: str,
    environ: Mapping[str, str],
    *,
    labels: Sequence[str] = (),
    network: str = HOST_NETWORK,
    port: int | None = None,
    greeted: bool = True,
) -> tuple[str, ...]:
    """The words of `docker run` that run `command`, without Docker's program itself.

    Variables are named and not written: Docker takes their values from its own environment, where
    `handed_to_docker` puts them. Only constants of perfgate's own are written.

    Args:
        box: what all containers have in common.
        command: named as in the container; with its working folder, if it needs one.
        name: the container's.
        environ: the environment here.
        labels: options that mark it.
        network: as ``--network`` takes it.
        port: published on this machine's loopback device; None: none is.
        greeted: whether the image's entry point runs first: it sets up libraries, and greets on
            standard output.

    Raises:
        InputError: a folder that cannot be mounted.
    """
    site = box.site
    visible = command.env.get(VISIBLE) or environ.get(VISIBLE)
    ours = ["--init", "--pull", "never", *labels]
    given: dict[str, str | None] = {}
    if not _is_root(site):
        ours += ["--tmpfs", f"{HOME}:rw,exec,nosuid,mode=1777"]
        given = {"HOME": HOME, "USER": _me(), "LOGNAME": _me()}
    if not box.has_gpus:
        # The images say "all", which counts where the NVIDIA runtime is Docker's default.
        given["NVIDIA_VISIBLE_DEVICES"] = "void"
    handed = handed_to_docker(command)
    named = [*handed, *(one for one in site.pass_on if one in environ and one not in given), MARK]
    run = DockerRun(
        box.image,
        name,
        gpus=gpus_word(visible, site) if box.has_gpus else None,
        ipc=site.ipc,
        network=network,
        user=f"{os.getuid()}:{os.getgid()}" if site.user == ME else site.user,
        workdir=None if command.cwd is None else str(command.cwd),
        ports=() if port is None else (f"{LOOPBACK}:{port}:{port}",),
        mounts=_mounts(box, command.cwd),
        variables={**given, **dict.fromkeys(named)},
        options=(*ours, *site.options),
    )
    return run.words(command, greeted=greeted)


def gpus_word(visible: str | None, site: DockerSite) -> str:
    """The value of ``--gpus``.

    Docker reads it as a line of CSV: with a comma in it, the list of devices needs quotes, which
    are part of the argument (Container Toolkit, "GPU Enumeration").

    Args:
        visible: the devices as CUDA_VISIBLE_DEVICES names them: UUIDs, of MIG too, or numbers.
        site: what holds where nobody names any.
    """
    if not visible:
        return site.gpus
    word = f"device={visible}"
    return f'"{word}"' if "," in visible else word


def handed_to_docker(command: Command) -> dict[str, str]:
    """The variables that are named on the command line and taken from Docker's environment.

    The GPUs that the container gets are the ones that it may use, whatever their names inside.
    """
    return {name: value for name, value in command.env.items() if name != VISIBLE}


def _is_root(site: DockerSite) -> bool:
    """Whether the container's user has the image's own home."""
    if site.user == ME:
        return os.getuid() == 0
    return site.user is None or site.user.partition(":")[0] in ("0", "root")


def _mounts(box: ContainerSettings, cwd: Path | None) -> list[str]:
    site, ours = box.site, []
    if site.cache is not None:
        home = ROOT_HOME if _is_root(site) else HOME
        ours.append(f"{_mountable(Path(site.cache).expanduser().absolute())}:{home}/.cache")
    folders = {*box.folders, *([cwd] if cwd is not None else [])}
    outermost = [one for one in (*box.folders, cwd) if one and not folders & {*one.parents}]
    return with_mounts(site.mounts, [*ours, *(f"{_mountable(one)}:{one}" for one in outermost)])


def _mountable(folder: Path) -> Path:
    if ":" in str(folder):
        raise InputError(
            "Docker cannot mount this folder",
            found=folder,
            expected="a path without a colon",
            hint="choose another folder, e.g. with --run-dir",
        )
    return folder


def _me() -> str:
    """The person's name; without one, programs that look for it fail in an image that has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "perfgate"


def docker(*words: str) -> tuple[str, ...]:
    """An argv of Docker's program.

    Raises:
        MissingProgram: it is not here.
    """
    return (*DOCKER.find(), *words)


def call(words: Sequence[str], seconds: float = CALL_S) -> str:
    """Standard output of a short call.

    Raises:
        RunError: it failed, or there was no answer in time.
        MissingProgram: Docker is not here.
    """
    answer = ask_here(docker(*words), seconds)
    if not answer.is_good:
        raise trouble(f"docker {words[0]} failed", answer)
    return answer.stdout


def trouble(message: str, answer: Answer) -> RunError:
    """The error that an answer of Docker's program stands for."""
    if answer.cause is NoStatus.TOO_LONG:
        hint = "the Docker daemon does not answer: try `docker version`, look at its log"
        return RunError("config_error", f"{message}: {answer.why}", hint=hint)
    return refused(message, answer.why or answer.stderr or answer.stdout)


def refused(message: str, said: str, otherwise: str | None = None) -> RunError:
    """The error that Docker's own words stand for: the first message that fits.

    Args:
        message: what happened.
        said: the words.
        otherwise: the next step where the words name none; None: that of the failure's class.
    """
    lines = tuple(line.strip() for line in said.splitlines() if line.strip())[-4:]
    fitting = (one for one in _MESSAGES if re.search(one["pattern"], said, re.IGNORECASE))
    known = next(fitting, {"failure": "config_error"})
    hint = known.get("next_step", otherwise)
    return RunError(known["failure"], message, evidence=lines, hint=hint)


def not_started(status: int | None, error_log: str) -> str:
    """What `docker run` said when it could not start the program; empty: it did start it."""
    if status not in _NOT_STARTED:
        return ""
    said = [line for line in error_log.splitlines() if line.startswith(_DAEMON)]
    return said[-1] if said else ""


def server_version() -> str:
    """The daemon's version, which only a daemon that answers tells.

    Raises:
        RunError, MissingProgram: as `call`.
    """
    return call(("version", "--format", "{{.Server.Version}}")).strip()


def remove(names: Sequence[str], seconds: float = REMOVE_S) -> None:
    """End and remove containers; those that are gone already are no error.

    Raises:
        RunError, MissingProgram: as `call`.
    """
    if not names:
        return
    answer = ask_here(docker("rm", "--force", "--volumes", *names), seconds)
    # An older docker fails for a name that is gone; so does one that is being removed.
    known = re.compile(r"no such container|already in progress", re.IGNORECASE)
    lines = [line for line in answer.stderr.splitlines() if line.strip()]
    if answer.is_good or (not answer.why and lines and all(map(known.search, lines))):
        return
    raise trouble("docker rm failed", answer)


def labels(start: str) -> tuple[str, ...]:
    """Options of `docker run` that mark a container of this process.

    Args:
        start: what tells the containers of one fresh start from all others.
    """
    pid = os.getpid()
    owner = {"pid": pid, "began": began(pid) or 0, "namespace": pid_namespace(), "boot": _boot()}
    marks = {HOST: socket.gethostname(), START: start, OWNER: json.dumps(owner)}
    return tuple(word for name, value in marks.items() for word in ("--label", f"{name}={value}"))


def new_name(name: str = "asked") -> str:
    """A name that no other container has."""
    return f"perfgate-{name}-{uuid.uuid4().hex[:12]}"


def of_start(start: str) -> tuple[str, ...]:
    """Names of the containers of one fresh start, whatever their state."""
    listed = call(("ps", "--all", "--filter", f"label={START}={start}", "--format", "{{.Names}}"))
    return tuple(listed.split())


def remove_orphans() -> tuple[str, ...]:
    """Remove the containers of this machine whose perfgate process has ended; their names.

    Raises:
        RunError, MissingProgram: Docker does not answer.
    """
    shape = '{{.Names}}\t{{.Label "' + OWNER + '"}}'
    here = f"label={HOST}={socket.gethostname()}"
    listed = call(("ps", "--all", "--filter", here, "--format", shape))
    rows = (line.partition("\t") for line in listed.splitlines())
    orphans = tuple(name for name, _, owner in rows if _is_gone(owner))
    remove(orphans)
    return orphans


class DockerJob(OuterJob):
    """A started container.

    Its processes are children of Docker's daemon. They are found by the number that Docker gives,
    where that is a process of this machine that belongs to the container; else nothing is known of
    them.

    Args:
        run: the `docker run`, under its wardens.
        container: the container's name.
        published: the port that Docker has on this machine for it; None: it uses the network here.
    """

    def __init__(self, run: LocalJob, container: str, published: int | None = None) -> None:
        super().__init__(run)
        self.container = container
        self._published = published
        self._main: psutil.Process | None = None

    @property
    def could_not_start(self) -> str:
        """What Docker said when it could not start the program; empty: it did."""
        ended = self._outer.poll()
        return not_started(ended.status, end_of(self.stderr, _TAIL)) if ended else ""

    def keep_evidence(self, why: str) -> None:
        """As in `Job`, of `docker run` and of the container's processes."""
        self._outer.keep_evidence(why, self.processes())

    def _stopped(self, grace_s: float) -> Exit:
        """As in `OuterJob`: `docker run` hands SIGTERM on; what has not ended by it is removed."""
        try:
            return self._outer.stop(grace_s)
        finally:
            self._remove()

    def processes(self) -> Sequence[psutil.Process]:
        """Those in the container, its init first; none where they cannot be known."""
        main = self._found()
        with suppress(psutil.NoSuchProcess):
            if main is not None:
                return [one for one in (main, *main.children(recursive=True)) if alive(one)]
        return ()

    def cpu_seconds(self) -> float:
        """As in `Job`; NaN where the container's processes are not seen from here."""
        return math.nan if self._found() is None else super().cpu_seconds()

    def listens(self, port: int) -> bool:
        """As in `Job`.

        A published port is Docker's for as long as the container runs. Where another user's sockets
        cannot be looked into, a running container is believed: nothing answered at the port before.
        """
        seen = () if self._published == port else self.processes()
        if seen and all(map(_may_see_sockets, seen)):
            return super().listens(port)
        return self._inspected("{{.State.Running}}") == "true"

    def _found(self) -> psutil.Process | None:
        """The first process in the container, as this machine numbers it; looked up once."""
        if self._main is not None and self._main.is_running():
            return self._main
        identity, _, number = self._inspected("{{.Id}} {{.State.Pid}}").partition(" ")
        with suppress(ValueError, psutil.Error):
            process = psutil.Process(int(number)) if int(number or 0) > 0 else None
            if process is not None and self._is_ours(process, identity):
                self._main = process
                return process
        return None

    def _is_ours(self, process: psutil.Process, identity: str) -> bool:
        """Whether the process is in the container: the number may be another machine's."""
        with suppress(OSError):
            if identity in Path(f"/proc/{process.pid}/cgroup").read_text():
                return True
        with suppress(psutil.Error, OSError):
            return self._outer.mark in process.environ().get(MARK, "").split("/")
        return False

    def _inspected(self, shape: str) -> str:
        """What Docker tells of the container; empty where it tells nothing."""
        words = ("container", "inspect", "--format", shape, self.container)
        try:
            return call(words, LOOK_S).strip()
        except (RunError, MissingProgram):
            return ""

    def _concluded(self, ended: Exit) -> Exit:
        """The end of `docker run` as that of the program; the container is gone by then."""
        status = ended.status
        if ended.reason == "exited" and (status is None or status < 0):
            # Something killed docker run itself: the container is left, and its end unknown.
            self._remove()
            return replace(ended, status=None, reason="lost")
        if ended.reason == "lost" or status == DAEMON_FAILED:
            self._remove()
        if (number := signal_of(status)) is not None:
            status = -number
        reason = ended.reason if self._why is None or ended.reason != "stopped" else self._why
        return replace(ended, status=status, reason=reason)

    def _remove(self) -> None:
        """End the container for certain; where Docker does not answer, the next run does it."""
        with suppress(RunError, MissingProgram):
            remove([self.container])


def _may_see_sockets(process: psutil.Process) -> bool:
    try:
        process.net_connections(kind="tcp")
    except psutil.Error as error:
        return isinstance(error, psutil.NoSuchProcess)
    return True


def _is_gone(label: str) -> bool:
    """Whether a container's owner is known to have ended.

    Its number tells it from others in its own pid namespace, with its start in clock ticks, on the
    machine as it was then started: one of another namespace cannot be seen.
    """
    try:
        owner = json_text.parse_object(label)
        if owner["boot"] != _boot():
            return True
        is_seen = owner["namespace"] == pid_namespace()
        return is_seen and not lives(owner["pid"], owner["began"])
    except (KeyError, TypeError, ValueError):  # somebody else's label of the same name
        return False


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
