"""A gate repository with GitHub's files, as `perfgate init --ci github` makes it."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_gh import SCRIPT, Gh
from github_actions import Service, commit, git
from github_expressions import Expressions, node
from github_runner import Runner
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS

from perfgate.cli.main import main

Make = Callable[..., Runner]


@pytest.fixture(scope="session")
def gate_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository with one commit."""
    folder = tmp_path_factory.mktemp("gate") / "gate"
    assert main(["init", str(folder), "--ci", "github"]) == 0
    git(folder, "init", "--quiet", "--initial-branch", "main")
    commit(folder, "A gate")
    return folder


@pytest.fixture(scope="session")
def expressions() -> Iterator[Expressions]:
    """GitHub's evaluator; skips where node is missing, fails where it is required."""
    if node() is None:
        if os.environ.get("PERFGATE_REQUIRE_PIPELINES") == "1":
            pytest.fail("no node, or no packages of ci/pipelines: ci/pipelines/node.sh")
        pytest.skip("needs node and the packages of ci/pipelines: ci/pipelines/node.sh")
    found = Expressions()
    yield found
    found.close()


@pytest.fixture
def service(gate_repository: Path, tmp_path: Path) -> Service:
    """What GitHub keeps, with a clone of the gate repository of this test's own."""
    clone = tmp_path / "gate"
    git(gate_repository, "clone", "--quiet", ".", str(clone))
    return Service(clone, git(clone, "rev-parse", "HEAD"), tmp_path / "store")


@pytest.fixture
def runner(service: Service, expressions: Expressions, tmp_path: Path) -> Make:
    """Makes runners whose machines hold perfgate already, in the environment of the tests."""

    def make(**more: Any) -> Runner:
        machine = {
            "PERFGATE_PYTHON": sys.executable,
            "PERFGATE_LEASES": os.environ["PERFGATE_LEASES"],
            **ONLY_NEEDED_PLUGINS,
            "PYTEST_ADDOPTS": " ".join(BENCHMARK),
            **more.pop("machine", {}),
        }
        return Runner(service, tmp_path, expressions, machine=machine, **more)

    return make


@pytest.fixture
def gh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gh:
    """The only `gh` of the machine."""
    folder = tmp_path / "gh-bin"
    folder.mkdir()
    found = Gh(tmp_path / "gh")
    found.folder.mkdir()
    (found.folder / "open").touch()
    found.answers("head", "octo/gate")
    (folder / "gh").write_text(SCRIPT.replace("FOLDER", str(found.folder)))
    (folder / "gh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return found
