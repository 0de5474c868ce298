"""The whole road with two builds: a slower one is judged beside the one that its baseline recorded.

The builds are two prefixes here, or two images; programs and processes are the stand-ins'.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker_host import IMAGE, DockerHost, docker_host
from test_gate_road import promote
from test_road import STANDINS, Finished, Suite, make_suite

from perfgate.core.programs import PROGRAM_PREFIX

pytestmark = pytest.mark.slow

VARIABLE = f"{PROGRAM_PREFIX}STAND_IN_ENGINE"
SERVING = "perf_tests/test_serving.py"
OLD, NEW = "7.1", "7.2"
MOVED = IMAGE.replace("1.0.0", "nightly")
DIGEST = "@sha256:" + "cd" * 32


def engine(version: str, *, slow: bool) -> str:
    """A program of an engine, as a shell script; the slow one is at half speed."""
    more = "--threads 1" if slow else ""
    return (
        f'[ "$1" = --version ] && echo {version} && exit\n'
        f'exec {sys.executable} {STANDINS}/standin_server.py "$@" {more}\n'
    )


def prefix(folder: Path, text: str) -> Path:
    program = folder / "bin/stand-in-engine"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{text}")
    program.chmod(0o755)
    return folder


@pytest.fixture
def checkout(tmp_path: Path) -> Suite:
    """A checkout with an engine of which there can be several."""
    made = make_suite(tmp_path)
    made.edit(
        lambda text: (
            text.replace("name: stand-in,", "name: stand-in-boxed,")
            .replace("reference: self", "reference: stored")
            .replace("noise: measured", "bands: {output_throughput: 0.25}")
            .replace("reference_starts: 4", "reference_starts: 1")
        )
    )
    conftest = made.folder / "conftest.py"
    conftest.write_text(conftest.read_text().replace("'standin'", "'standin', 'boxed_standin'"))
    return made


def builds(done: Finished, probe: str = "c1") -> list[tuple[str, str]]:
    return [
        (line["role"], line["engine"]["version"])
        for line in done.records("measurement")
        if line["probe"] == probe
    ]


ABBA = [
    *[("new", NEW), ("new", NEW)],
    *[("baseline_control", OLD), ("baseline_control", OLD)],
    ("new", NEW),
]


def test_the_recorded_prefix_is_started_beside_the_slower_one_also_where_it_has_moved(
    checkout: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = prefix(checkout.folder / "old", engine(OLD, slow=False))
    monkeypatch.setenv(VARIABLE, str(old / "bin/stand-in-engine"))
    promote(checkout, checkout.run(SERVING, "-k", "c1"), OLD)
    new = prefix(checkout.folder / "new", engine(NEW, slow=True))
    monkeypatch.setenv(VARIABLE, str(new / "bin/stand-in-engine"))
    done = checkout.run(SERVING, "-k", "c1")
    assert builds(done) == ABBA, done.output
    assert (done.verdicts, done.status) == ({"c1": "REGRESSION"}, 1), done.output
    sources = [line["source"]["prefix"] for line in done.records("measurement")]
    assert sources == [str(one) for one in (new, new, old, old, new)]
    assert checkout.wait_until_empty() == []
    moved = old.rename(old.with_name("moved"))
    gone = checkout.run(SERVING, "-k", "c1")
    assert {role for role, _ in builds(gone)} == {"new"}
    assert f"no folder {old}" in gone.output
    named = checkout.run(SERVING, "-k", "c1", "--control", str(moved))
    assert builds(named) == ABBA, named.output
    assert f"--control={moved}" in named.output, "the line to run it again names it"


class TestImages:
    @pytest.fixture
    def host(self, checkout: Suite, monkeypatch: pytest.MonkeyPatch) -> Iterator[DockerHost]:
        (checkout.folder / "site.yaml").write_text(
            f"schema_version: 1\ndocker:\n  image: {MOVED}\n  user: null\n  cache: null\n"
            "  pass_on: [PERFGATE_HOME, PERFGATE_STANDIN_COUNTER]\n"
        )
        with docker_host() as host:
            for name, value in host.environment.items():
                monkeypatch.setenv(name, value)
            yield host

    def test_a_tag_that_moved_still_starts_the_old_image_by_its_digest(
        self, checkout: Suite, host: DockerHost
    ) -> None:
        host.image(MOVED, stand_in_engine=engine(OLD, slow=False))
        first = checkout.run(SERVING, "-k", "c1", "--launcher", "docker")
        promote(checkout, first, OLD)
        (measured,) = first.records("measurement")
        assert measured["source"]["image"] == MOVED
        host.image(MOVED.partition(":")[0] + DIGEST, stand_in_engine=engine(OLD, slow=False))
        host.image(MOVED, stand_in_engine=engine(NEW, slow=True))
        done = checkout.run(SERVING, "-k", "c1", "--launcher", "docker")
        assert builds(done) == ABBA, done.output
        assert done.verdicts == {"c1": "REGRESSION"}
        images = [line["facts"]["docker"]["image"] for line in done.records("measurement")]
        old = MOVED.partition(":")[0] + DIGEST
        assert images == [MOVED, MOVED, old, old, MOVED]
        assert host.containers == []
