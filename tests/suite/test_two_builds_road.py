"""The whole road with two builds: a slower one is judged beside the one that its baseline recorded.

The builds are two prefixes; two images are in test_docker_road.py.
"""

import sys
from pathlib import Path

import pytest
from checkouts import GIVEN_BAND, POINT, STANDINS, STORED, Finished, Suite, with_plugins

from perfgate.core.programs import PROGRAM_PREFIX

pytestmark = pytest.mark.slow

VARIABLE = f"{PROGRAM_PREFIX}STAND_IN_ENGINE"
OLD, NEW = "7.1", "7.2"


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
def checkout(suite: Suite) -> Suite:
    """A checkout with an engine of which there can be several."""
    suite.edit(("name: stand-in,", "name: stand-in-boxed,"), STORED, *GIVEN_BAND)
    with_plugins(suite, "boxed_standin")
    return suite


def builds(done: Finished) -> list[tuple[str, str]]:
    return [(line["role"], line["engine"]["version"]) for line in done.records("measurement")]


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
    checkout.promote(checkout.run(*POINT).folder, OLD)
    new = prefix(checkout.folder / "new", engine(NEW, slow=True))
    monkeypatch.setenv(VARIABLE, str(new / "bin/stand-in-engine"))
    done = checkout.run(*POINT)
    assert builds(done) == ABBA, done.output
    assert (done.verdicts, done.status) == ({"c1": "REGRESSION"}, 1), done.output
    sources = [line["source"]["prefix"] for line in done.records("measurement")]
    assert sources == [str(one) for one in (new, new, old, old, new)]
    assert checkout.wait_until_empty() == []
    moved = old.rename(old.with_name("moved"))
    gone = checkout.run(*POINT)
    assert {role for role, _ in builds(gone)} == {"new"}
    assert f"no folder {old}" in gone.output
    named = checkout.run(*POINT, "--control", str(moved))
    assert builds(named) == ABBA, named.output
    assert f"--control={moved}" in named.output, "the line to run it again names it"
