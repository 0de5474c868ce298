"""The whole road through containers, with stand-ins: from `--launcher docker` to a verdict.

The engine's program exists in the image alone, as TensorRT-LLM does on a machine without it.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from docker_host import IMAGE, DockerHost, docker_host
from sessions import untraced
from test_road import STANDINS, Finished, Suite, suite  # noqa: F401 - a fixture

pytestmark = pytest.mark.slow

PATIENCE_S = 60
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
OPTIONS = ("--launcher", "docker")


@pytest.fixture
def boxed(
    suite: Suite,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[tuple[Suite, DockerHost]]:
    """A checkout whose engine is in an image, and the machine with that image."""
    suite.edit(
        lambda text: (
            text.replace("name: stand-in,", "name: stand-in-boxed,")
            .replace("noise: measured", "bands: {output_throughput: 0.25}")
            .replace("reference_starts: 4", "reference_starts: 1")
        )
    )
    conftest = suite.folder / "conftest.py"
    conftest.write_text(conftest.read_text().replace("'standin'", "'standin', 'boxed_standin'"))
    (suite.folder / "site.yaml").write_text(SITE)
    monkeypatch.setenv("MY_TOKEN", "my_secret")
    with docker_host() as host:
        host.image(stand_in_engine=ENGINE)
        for name, value in host.environment.items():
            monkeypatch.setenv(name, value)
        yield suite, host


def nothing_is_left(suite: Suite, host: DockerHost) -> None:  # noqa: F811
    deadline = time.monotonic() + PATIENCE_S
    while host.containers and time.monotonic() < deadline:
        time.sleep(0.1)
    assert host.containers == []
    assert suite.wait_until_empty() == []


def failures(done: Finished) -> set[str]:
    return {line["error"]["class"] for line in done.records("verdict") if line["error"]}


def test_to_a_verdict_of_a_version_that_only_the_image_has(boxed: tuple[Suite, DockerHost]) -> None:
    suite, host = boxed  # noqa: F811
    done = suite.run(*OPTIONS, "-k", "c1")
    assert done.verdicts == {"c1": "PASS"}, done.output
    measured = done.records("measurement")
    assert {line["engine"]["version"] for line in measured} == {"7.1"}
    assert {line["facts"]["docker"]["image"] for line in measured} == {IMAGE}
    # The secret has reached the container, and nothing that is written.
    assert all(run["env"]["MY_TOKEN"] == "my_secret" for run in host.runs)
    written = [file for file in done.folder.rglob("*") if file.is_file()]
    assert not any(b"my_secret" in file.read_bytes() for file in written)
    nothing_is_left(suite, host)


def test_an_image_without_the_program_is_told(boxed: tuple[Suite, DockerHost]) -> None:
    suite, host = boxed  # noqa: F811
    host.image(stand_in_engine='[ "$1" = --version ] && echo 7.1 && rm "$0"')
    done = suite.run(*OPTIONS, "-k", "c1")
    assert failures(done) == {"config_error"}, done.output
    assert "executable file not found" in done.output
    nothing_is_left(suite, host)


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_a_session_that_is_ended_leaves_no_container(
    boxed: tuple[Suite, DockerHost], sent: signal.Signals
) -> None:
    suite, host = boxed  # noqa: F811
    with subprocess.Popen(
        suite.command(*OPTIONS, "-k", "c1"),
        cwd=suite.folder,
        env={**untraced(suite.environment), "PERFGATE_STANDIN_FAULT": "client-hangs"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as session:
        _wait_for_a_client(suite)
        assert len(host.containers) == 1
        os.kill(session.pid, sent)
        session.wait(PATIENCE_S)
    nothing_is_left(suite, host)


def _wait_for_a_client(suite: Suite) -> None:  # noqa: F811
    deadline = time.monotonic() + PATIENCE_S
    while not any("standin_client.py" in _call(process) for process in suite.processes()):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _call(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def test_a_daemon_that_is_not_there_is_told_before_anything_is_measured(
    boxed: tuple[Suite, DockerHost],
) -> None:
    suite, host = boxed  # noqa: F811
    host.stop()
    done = suite.run(*OPTIONS, "-k", "c1")
    assert done.status != 0
    assert "Cannot connect to the Docker daemon" in done.output
    assert not Path(suite.folder / "starts").exists()
