"""The image that a scenario's engine is in: which one, fetched in time, and asked."""

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from perfgate.core import json_text
from perfgate.core.command import Command
from perfgate.core.errors import InputError, RunError
from perfgate.core.measurement import Json
from perfgate.core.program_query import Answer, NoStatus, ask_here
from perfgate.engines.base import EngineBuild, engine
from perfgate.launchers.docker.argv import ContainerSettings, run_words
from perfgate.launchers.docker.containers import (
    CALL_S,
    DAEMON_FAILED,
    docker,
    labels,
    meaning,
    new_name,
    not_started,
    remove,
    trouble,
)
from perfgate.launchers.local.launcher import started
from perfgate.launchers.site import DockerSite
from perfgate.plan.container import container_of
from perfgate.scenarios.scenario import Scenario

ENDED_S = 2.0
STARTED_S = 60.0  # beyond the program's own time: Docker makes a container first
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
    with started(docker("pull", image), "pull") as job:
        tell(f"pulling {image}")
        told = time.monotonic()

        def progress() -> None:
            nonlocal told
            if time.monotonic() - told >= TELL_EVERY_S:
                told = time.monotonic()
                said = _LAYER.findall(job.stdout.read_text(errors="replace"))
                layers = sum(one.startswith("Pulling fs layer") for one in said)
                here = sum(one.startswith(_LAYER_IS_HERE) for one in said)
                tell(f"pulling {image}: {here} of {max(layers, here)} layers are here")

        ended = job.wait(total_s=within_s, watch=progress)
        said = job.tail(8)
    if ended.reason == "total":
        raise RunError(
            "config_error",
            f"the image {image} was not pulled in {within_s:g} s",
            evidence=said[-3:],
            hint="pull it by hand, or raise docker.pull_s in site.yaml",
        )
    if ended.status != 0:
        failure, hint = meaning("\n".join(said))
        raise RunError(
            failure,
            f"the image {image} could not be pulled",
            evidence=said[-4:],
            hint=hint or "pull it by hand: docker pull " + image,
        )


@dataclass(frozen=True)
class DockerQuery:
    """The image of a scenario, each question in a container of its own. See `ContainerQuery`."""

    box: ContainerSettings

    def ask(self, argv: tuple[str, ...], seconds: float) -> Answer:
        """As in `ContainerQuery`; the image is pulled first where it is not here."""
        _have(self.box)
        name = new_name()
        words = run_words(
            self.box, Command(argv), name, os.environ, labels=labels(name), greeted=False
        )
        with started(docker(*words), "asked") as job:
            ended = None
            try:
                ended = job.until(seconds + STARTED_S)
            finally:
                if ended is None:
                    job.stop(ENDED_S)
                    remove([name])
            if ended is None:
                why = f"no answer from {argv[0]} within {seconds:g} s"
                return Answer(None, why=why, cause=NoStatus.TOO_LONG)
            output, errors = (log.read_text(errors="replace") for log in (job.stdout, job.stderr))
        answer = Answer(ended.status, output, errors)
        if ended.status == DAEMON_FAILED and not_started(ended.status, answer.stderr):
            raise trouble(f"no container of {self.box.image} could be started", answer)
        return answer


@lru_cache(maxsize=16)
def _have(box: ContainerSettings) -> None:
    fetched(box.image, box.site, lambda _: None)  # before a start nobody is told of anything
