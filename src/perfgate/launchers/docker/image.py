"""The image that a scenario's engine is in: which one, fetched in time, and what it is exactly."""

import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perfgate.core import json_text
from perfgate.core.command import Command
from perfgate.core.errors import InputError, RunError
from perfgate.core.measurement import Json
from perfgate.core.program_query import Answer, ask_here
from perfgate.engines.base import EngineBuild, engine
from perfgate.launchers.base import Job
from perfgate.launchers.docker.calls import CALL_S, docker, meaning, trouble
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.launchers.site import DockerSite
from perfgate.plan.container import container_of
from perfgate.scenarios.scenario import Scenario

TELL_EVERY_S = 30.0
_LAYER = re.compile(r"^[0-9a-f]{12}: (.*)$", re.MULTILINE)
_LAYER_IS_HERE = ("Pull complete", "Already exists")


def image_of(scenario: Scenario, site: DockerSite, version: str | None) -> str:
    """The image for a scenario: the site's, else that of the engine's release.

    Args:
        scenario: the scenario.
        site: may name an image for all.
        version: the release, as a person says it; None: the document's.

    Raises:
        InputError: its document launches ranks; or no image is known.
    """
    if scenario.launch is not None:
        raise InputError(
            "--launcher docker starts no ranks",
            file=scenario.file,
            field=f"{scenario.id}.launch.by",
            found=f"launched by {scenario.launch.by}",
            hint="use --launcher slurm, whose containers site.yaml names, or mpirun inside one",
        )
    if site.image is not None:
        return site.image
    version = version or scenario.source.engine_version
    if engine[scenario.engine.name].image is None or version is None:
        raise InputError(
            "no image is known for the engine",
            file=scenario.file,
            field=f"{scenario.id}.engine",
            found=f"{scenario.engine.name}, release unknown",
            expected="an engine with release containers and a release, or an image by name",
            hint="give --engine-version, or docker.image in site.yaml",
        )
    return container_of(scenario, EngineBuild(scenario.engine.name, version, version)).image


def fetched(image: str, site: DockerSite, tell: Callable[[str], None]) -> dict[str, Json]:
    """What the image is exactly; it is pulled first where it is not here.

    Args:
        image: its name.
        site: says how long pulling may take.
        tell: says how far it is.

    Raises:
        RunError: it cannot be had, or Docker does not answer.
        MissingProgram: Docker is not here.
    """
    found = _inspected(image)
    if found is None:
        _pull(image, site.pull_s, tell)
        found = _inspected(image)
    if found is None:
        raise RunError("config_error", f"the image {image} was pulled and is not here")
    digests = [str(one) for one in found.get("RepoDigests") or []]
    return {"image": image, "id": str(found.get("Id")), "digests": [*digests]}


def _inspected(image: str) -> dict[str, Any] | None:
    """What Docker knows of an image; None: it is not here."""
    answer = ask_here(docker("image", "inspect", image), CALL_S)
    if answer.is_good:
        try:
            (found,) = json_text.parse(answer.stdout)
        except ValueError as error:
            raise RunError("config_error", f"docker image inspect gave no JSON: {error}") from error
        return dict(found)
    if re.search(r"no such image", answer.stderr, re.IGNORECASE):
        return None
    raise trouble("docker image inspect failed", answer)


def _pull(image: str, within_s: float, tell: Callable[[str], None]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = Command(docker("pull", image))
        with LocalLauncher().start(command, Path(folder).resolve(), "pull") as job:
            tell(f"pulling {image}")
            ended = job.wait(total_s=within_s, watch=_PullProgress(job, image, tell))
            if ended.reason == "total":
                raise RunError(
                    "config_error",
                    f"the image {image} was not pulled in {within_s:g} s",
                    evidence=job.tail(3),
                    hint="pull it by hand, or raise docker.pull_s in site.yaml",
                )
            if ended.status != 0:
                said = Answer(ended.status, stderr="\n".join(job.tail(8)))
                failure, hint = meaning(said.stderr)
                raise RunError(
                    failure,
                    f"the image {image} could not be pulled",
                    evidence=job.tail(4),
                    hint=hint or "pull it by hand: docker pull " + image,
                )


class _PullProgress:
    """Says now and then how much of an image is here, by what `docker pull` writes."""

    def __init__(self, job: Job, image: str, tell: Callable[[str], None]) -> None:
        self._job = job
        self._image = image
        self._tell = tell
        self._told = time.monotonic()

    def __call__(self) -> None:
        if time.monotonic() - self._told < TELL_EVERY_S:
            return
        self._told = time.monotonic()
        said = _LAYER.findall(self._job.stdout.read_text(errors="replace"))
        layers = sum(one.startswith("Pulling fs layer") for one in said)
        here = sum(one.startswith(_LAYER_IS_HERE) for one in said)
        self._tell(f"pulling {self._image}: {here} of {max(layers, here)} layers are here")
