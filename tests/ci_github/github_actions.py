"""Stand-ins for the actions of GitHub that the workflows use: their documented inputs, by copying.

Each takes its inputs as texts, and what the job has; it returns its outputs.
"""

import fnmatch
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

Outputs = dict[str, str]
_ADA = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")


def git(repository: Path, *words: str) -> str:
    """What git prints."""
    called = ("git", "-C", repository, *_ADA, *words)
    return subprocess.run(called, check=True, capture_output=True, text=True).stdout.strip()


def commit(repository: Path, message: str, *files: str) -> str:
    """Commit these files, or all that is there; the commit's name."""
    git(repository, "add", *(files or ("--all",)))
    git(repository, "commit", "--quiet", "--message", message)
    return git(repository, "rev-parse", "HEAD")


class ActionFailed(Exception):
    """The action would have ended its step as a failure."""


@dataclass
class Service:
    """What GitHub keeps beside the runners: the repository and artifacts.

    Attributes:
        repository: a git repository.
        commit: what the event is about.
        store: a folder for artifacts.
        retention: artifact → days.
        run_id: the number of the runs that happen here.
    """

    repository: Path
    commit: str
    store: Path
    retention: dict[str, str] = field(default_factory=dict)
    run_id: str = "4242"

    def artifact(self, name: str, run_id: str = "") -> Path:
        """The folder of an artifact, of this run or of an earlier one."""
        earlier = "" if run_id == self.run_id else run_id
        return self.store / f"artifacts{earlier}" / name


def _checkout(given: Mapping[str, str], workspace: Path, service: Service) -> Outputs:
    _known(given, "ref", "persist-credentials")
    assert given["persist-credentials"] == "false" or "token" in given
    asked = given.get("ref") or service.commit
    git(service.repository, "clone", "--quiet", "--no-checkout", ".", str(workspace))
    git(workspace, "checkout", "--quiet", asked)
    return {"commit": asked}


def _setup_python(given: Mapping[str, str], workspace: Path, service: Service) -> Outputs:
    """The machine's own Python is the one; what names the lock file must be right."""
    _known(given, "python-version", "cache", "cache-dependency-path")
    if not (workspace / given["cache-dependency-path"]).is_file():
        raise ActionFailed(f"no file matched {given['cache-dependency-path']}")
    return {}


def _upload(given: Mapping[str, str], workspace: Path, service: Service) -> Outputs:
    _known(given, "name", "path", "if-no-files-found", "overwrite", "retention-days")
    name = given["name"]
    if not name or re.search(r'[":<>|*?\r\n\\/]', name):
        raise ActionFailed(f"the artifact name is not valid: {name}")
    source = workspace / given["path"]
    files = [
        one
        for one in sorted(source.rglob("*"))
        if one.is_file() and not any(part[0] == "." for part in one.relative_to(source).parts)
    ]
    if not files:
        assert given["if-no-files-found"] == "error"
        raise ActionFailed(f"no files were found: {given['path']}")
    target = service.artifact(name)
    if target.exists():
        if given.get("overwrite") != "true":
            raise ActionFailed(f"an artifact of this name is there already: {name}")
        shutil.rmtree(target)
    for one in files:
        copy = target / one.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(one, copy)  # an artifact keeps no rights
    service.retention[name] = given["retention-days"]
    return {}


def _download(given: Mapping[str, str], workspace: Path, service: Service) -> Outputs:
    _known(given, "name", "pattern", "path", "run-id", "github-token")
    if given.get("run-id"):
        assert "github-token" in given
    folder = service.artifact("", given.get("run-id", ""))
    there = sorted(one.name for one in folder.iterdir()) if folder.is_dir() else []
    if "name" in given:
        if given["name"] not in there:
            raise ActionFailed(f"no artifact {given['name']}")
        shutil.copytree(folder / given["name"], workspace / given["path"])
        return {}
    for name in fnmatch.filter(there, given["pattern"]):
        shutil.copytree(folder / name, workspace / given["path"] / name)
    return {}


def _known(given: Mapping[str, str], *names: str) -> None:
    unknown = given.keys() - set(names)
    assert not unknown, f"inputs that the stand-in does not know: {unknown}"


ACTIONS: dict[str, Callable[[Mapping[str, str], Path, Service], Outputs]] = {
    "actions/checkout": _checkout,
    "actions/setup-python": _setup_python,
    "actions/upload-artifact": _upload,
    "actions/download-artifact": _download,
}
