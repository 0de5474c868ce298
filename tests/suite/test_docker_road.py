"""The whole road through containers, with stand-ins: from `--launcher docker` to a verdict.

The engine's program exists in the image alone, as TensorRT-LLM does on a machine without it.
"""

import sys
import time
from collections.abc import Iterator

import pytest
from checkouts import (
    GIVEN_BAND,
    PATIENCE_S,
    POINT,
    STANDINS,
    STORED,
    Suite,
    with_plugins,
)
from docker_host import IMAGE, DockerHost, docker_host

pytestmark = pytest.mark.slow

SITE = f"""\
schema_version: 1
docker:
  image: {IMAGE}
  user: null
  cache: null
  pass_on: [PERFGATE_HOME, PERFGATE_STANDIN_COUNTER, PERFGATE_STANDIN_FAULT, MY_TOKEN]
"""
ENGINE = f"""\
[ "$1" = --version ] && echo 7.1 && exit
exec {sys.executable} {STANDINS}/standin_server.py "$@"
"""
OPTIONS = ("--launcher", "docker", *POINT)


@pytest.fixture
def host(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> Iterator[DockerHost]:
    """The machine with an image that the checkout's engine is in."""
    suite.edit(("name: stand-in,", "name: stand-in-boxed,"), *GIVEN_BAND)
    with_plugins(suite, "boxed_standin")
    (suite.folder / "site.yaml").write_text(SITE)
    monkeypatch.setenv("MY_TOKEN", "my_secret")
    with docker_host() as host:
        host.image(stand_in_engine=ENGINE)
        for name, value in host.environment.items():
            monkeypatch.setenv(name, value)
        yield host


def nothing_is_left(suite: Suite, host: DockerHost) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while host.containers and time.monotonic() < deadline:
        time.sleep(0.1)
    assert host.containers == []
    assert suite.wait_until_empty() == []


def test_to_a_verdict_of_a_version_that_only_the_image_has(suite: Suite, host: DockerHost) -> None:
    done = suite.run(*OPTIONS)
    assert done.verdicts == {"c1": "PASS"}, done.output
    measured = done.records("measurement")
    assert {line["engine"]["version"] for line in measured} == {"7.1"}
    assert {line["facts"]["docker"]["image"] for line in measured} == {IMAGE}
    # The secret has reached the container, and nothing that is written.
    assert all(run["env"]["MY_TOKEN"] == "my_secret" for run in host.runs)
    written = [file for file in done.folder.rglob("*") if file.is_file()]
    assert not any(b"my_secret" in file.read_bytes() for file in written)
    nothing_is_left(suite, host)
    host.stop()
    starts = suite.starts
    done = suite.run(*OPTIONS)
    assert (done.status != 0, suite.starts) == (True, starts)
    assert "Cannot connect to the Docker daemon" in done.output


def test_a_tag_that_moved_still_starts_the_baselines_image_by_its_digest(
    suite: Suite, host: DockerHost
) -> None:
    suite.edit(STORED)
    suite.promote(suite.run(*OPTIONS).folder, "7.1")
    old = IMAGE.partition(":")[0] + "@sha256:" + "cd" * 32
    host.image(old, stand_in_engine=ENGINE)
    host.image(stand_in_engine=ENGINE.replace("7.1", "7.2").replace('"$@"', '"$@" --threads 1'))
    done = suite.run(*OPTIONS)
    assert done.verdicts == {"c1": "REGRESSION"}, done.output
    images = [line["facts"]["docker"]["image"] for line in done.records("measurement")]
    assert images == [IMAGE, IMAGE, old, old, IMAGE]
    nothing_is_left(suite, host)
