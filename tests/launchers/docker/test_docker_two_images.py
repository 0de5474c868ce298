"""Two images of one scenario in one session: neither is ever taken for the other."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from building import SCENARIO
from docker_host import IMAGE, DockerHost, docker_host

from perfgate.core.command import Command
from perfgate.core.installation import Installation
from perfgate.core.locations import Locations
from perfgate.core.programs import TRTLLM_BENCH
from perfgate.launchers.base import PlacementRequest
from perfgate.launchers.docker import container_query
from perfgate.launchers.docker.argv import ContainerIdentity, ContainerSettings, run_words
from perfgate.launchers.docker.launcher import DockerLauncher
from perfgate.launchers.site import DockerSite
from perfgate.scenarios.scenario import Hardware

CPU = replace(SCENARIO, hardware=Hardware("none", 0, 1))
SITE = DockerSite(image=IMAGE, user=None, cache=None, pass_on=())
DIGEST = "nvcr.io/nvidia/tensorrt-llm/release@sha256:" + "cd" * 32


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[DockerHost]:
    """A machine with two images, whose trtllm-bench are of two releases."""
    container_query._have.cache_clear()
    monkeypatch.setenv("PERFGATE_HOME", str(tmp_path / "home"))
    with docker_host(real=shutil.which("docker") is not None) as host:
        for name, value in host.environment.items():
            monkeypatch.setenv(name, value)
        host.image(trtllm_bench="echo 2.0.0")
        host.image(DIGEST, trtllm_bench="echo 1.0.0")
        yield host
        assert host.containers == []


def started(by: DockerLauncher, folder: Path) -> tuple[str, str]:
    """The image on record of a start, and what trtllm-bench says in its container."""
    with by.placed(PlacementRequest(CPU, folder, 60, lambda _: None)) as placement:
        with placement.start(Command(("trtllm-bench",)), folder, "server") as job:
            assert job.wait(total_s=60).status == 0
        return placement.facts["docker"]["image"], job.stdout.read_text().splitlines()[-1]


def answered(by: DockerLauncher) -> str:
    where = by.locations(Locations(), CPU, None)
    return where.ask((*where.find(TRTLLM_BENCH), "--version"), 60, of_engine=True).stdout.strip()


@pytest.mark.slow
def test_questions_and_starts_in_turn_reach_their_own_image(
    host: DockerHost, tmp_path: Path
) -> None:
    tested = DockerLauncher(SITE)
    control = tested.with_image(DIGEST)
    assert (answered(tested), answered(control)) == ("2.0.0", "1.0.0")
    assert started(tested, tmp_path / "tested") == (IMAGE, "2.0.0")
    assert started(control, tmp_path / "control") == (DIGEST, "1.0.0")
    assert answered(tested) == "2.0.0"


def test_a_folder_in_an_image_is_where_its_programs_are_called() -> None:
    launched = DockerLauncher(SITE).with_image(DIGEST)
    where = replace(launched.locations(Locations(), CPU, None), build=Installation("/opt/old"))
    argv = where.find(TRTLLM_BENCH)
    box = ContainerSettings(DIGEST, SITE, has_gpus=False)
    words = run_words(box, Command((*argv, "--version")), ContainerIdentity("one"), {})
    assert words[-3:] == (DIGEST, "/opt/old/bin/trtllm-bench", "--version")
    assert where.engine_environment == {}
