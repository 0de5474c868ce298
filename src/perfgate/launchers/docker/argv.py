"""The argv of `docker run`, from a command, the site and the start. Pure; nothing is started."""

import getpass
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfgate.core.command import Command
from perfgate.core.errors import InputError
from perfgate.launchers.local.job import MARK
from perfgate.launchers.site import DockerSite
from perfgate.machine.nvml import VISIBLE
from perfgate.plan.container import DockerRun, with_mounts

HOST_NETWORK = "host"
LOOPBACK = "127.0.0.1"
ROOT_HOME = "/root"
HOME = "/perfgate-home"  # of a user whom the image does not know: empty, in memory, writable
ME = "me"


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
