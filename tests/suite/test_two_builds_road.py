"""The whole road with two builds, and through containers: a slower build is judged beside the one
that its baseline recorded, which is a prefix, or an image.

The engine's program exists in the image alone, as TensorRT-LLM does on a machine without it.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from checkouts import Finished, Suite, make_suite, wait_until
from docker_host import IMAGE, DockerHost, docker_host
from road_words import GIVEN_BAND, POINT, STANDINS, STORED

from perfgate.core.programs.programs import PROGRAM_PREFIX

pytestmark = pytest.mark.slow

VARIABLE = f"{PROGRAM_PREFIX}STAND_IN_ENGINE"
OLD, NEW = "7.1", "7.2"
ABBA = [("new", NEW)] * 2 + [("baseline_control", OLD)] * 2 + [("new", NEW)]


def engine(version: str, *more: str) -> str:
    """A program of the engine as a shell script; with ``--threads 1`` it is at half speed."""
    call = (sys.executable, f"{STANDINS}/standin_server.py", '"$@"', *more)
    return f'[ "$1" = --version ] && echo {version} && exit\nexec {" ".join(call)}\n'


def prefix(folder: Path, text: str) -> Path:
    program = folder / "bin/stand-in-engine"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{text}")
    program.chmod(0o755)
    return folder


def builds(done: Finished) -> list[tuple[str, str]]:
    return [(line["role"], line["engine"]["version"]) for line in done.measured]


@pytest.fixture
def boxed(tmp_path: Path) -> Suite:
    """A checkout with an engine of which there can be several."""
    suite = make_suite(tmp_path / "suite", "boxed_standin")
    suite.edit(("name: stand-in,", "name: stand-in-boxed,"), *GIVEN_BAND)
    return suite


def test_the_recorded_prefix_is_the_control(boxed: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    boxed.edit(STORED)
    old = prefix(boxed.folder / "old", engine(OLD))
    monkeypatch.setenv(VARIABLE, str(old / "bin/stand-in-engine"))
    boxed.promote(boxed.run(*POINT).folder, OLD)
    new = prefix(boxed.folder / "new", engine(NEW, "--threads", "1"))
    monkeypatch.setenv(VARIABLE, str(new / "bin/stand-in-engine"))
    done = boxed.run(*POINT)
    done.require(1, {"c1": "REGRESSION"})
    assert builds(done) == ABBA
    sources = [line["source"]["prefix"] for line in done.measured]
    assert sources == [str(one) for one in (new, new, old, old, new)]
    assert boxed.wait_until_empty() == []
    moved = old.rename(old.with_name("moved"))
    gone = boxed.run(*POINT)
    assert {role for role, _ in builds(gone)} == {"new"}
    assert f"no folder {old}" in gone.output
    named = boxed.run(*POINT, "--control", str(moved))
    assert builds(named) == ABBA, named.output
    assert f"--control={moved}" in named.output, "the line to run it again names it"


SITE = f"""\
schema_version: 1
docker:
  image: {IMAGE}
  user: null
  cache: null
  pass_on: [PERFGATE_HOME, PERFGATE_STANDIN_COUNTER, PERFGATE_STANDIN_FAULT, MY_TOKEN]
"""
IN_DOCKER = ("--launcher", "docker", *POINT)


@pytest.fixture
def host(boxed: Suite, monkeypatch: pytest.MonkeyPatch) -> Iterator[DockerHost]:
    """The machine with an image that the checkout's engine is in; nothing of it is left."""
    (boxed.folder / "site.yaml").write_text(SITE)
    monkeypatch.setenv("MY_TOKEN", "my_secret")
    with docker_host() as host:
        host.image(stand_in_engine=engine(OLD))
        for name, value in host.environment.items():
            monkeypatch.setenv(name, value)
        yield host


def nothing_is_left(suite: Suite, host: DockerHost) -> None:
    wait_until(lambda: not host.containers)
    assert suite.wait_until_empty() == []


def test_in_docker_the_version_is_that_of_the_image(boxed: Suite, host: DockerHost) -> None:
    done = boxed.run(*IN_DOCKER)
    done.require(0, {"c1": "PASS"})
    assert {version for _, version in builds(done)} == {OLD}
    assert {line["facts"]["docker"]["image"] for line in done.measured} == {IMAGE}
    # The secret has reached the container, and nothing that is written.
    assert all(run["env"]["MY_TOKEN"] == "my_secret" for run in host.runs)
    written = [file for file in done.folder.rglob("*") if file.is_file()]
    assert not any(b"my_secret" in file.read_bytes() for file in written)
    nothing_is_left(boxed, host)
    host.stop()
    starts = boxed.starts
    done = boxed.run(*IN_DOCKER)
    assert (done.status != 0, boxed.starts) == (True, starts)
    assert "Cannot connect to the Docker daemon" in done.output


def test_the_baselines_image_is_the_control_by_its_digest(boxed: Suite, host: DockerHost) -> None:
    boxed.edit(STORED)
    boxed.promote(boxed.run(*IN_DOCKER).folder, OLD)
    old = IMAGE.partition(":")[0] + "@sha256:" + "cd" * 32
    host.image(old, stand_in_engine=engine(OLD))
    host.image(stand_in_engine=engine(NEW, "--threads", "1"))
    done = boxed.run(*IN_DOCKER)
    done.require(1, {"c1": "REGRESSION"})
    images = [line["facts"]["docker"]["image"] for line in done.measured]
    assert images == [IMAGE, IMAGE, old, old, IMAGE]
    nothing_is_left(boxed, host)
