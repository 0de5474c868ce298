"""GitLab's jobs on this machine: gitlab-ci-local runs a gate repository's pipeline for real.

Each job has a folder of its own and gets the artifacts of those before it. Not as on GitLab: no
server, so no retries, resource groups, time limits and reports; its own exit status knows neither
child pipelines nor `allow_failure: exit_codes`, which what it prints of a job does.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
INCLUDED = ROOT / "ci" / "gitlab" / "perfgate.gitlab-ci.yml"
PROGRAMS = Path(sys.executable).parent
REQUIRED = os.environ.get("PERFGATE_REQUIRE_PIPELINES") == "1"
_MODULES = ROOT / "ci" / "pipelines" / "node_modules"
_NODE = _MODULES / ".bin" / "node"
_EXECUTOR = _MODULES / "gitlab-ci-local" / "dist" / "index.js"
_PATIENCE_S = 600

# gitlab-ci-local brings a job's folder back to the commit before after_script, and so deletes what
# the script left before it looks for artifacts. A runner does not.
_RSYNC = """\
#!/bin/bash
words=()
for word in "$@"; do
  case $word in --delete | --delete-excluded) ;; *) words+=("$word") ;; esac
done
exec RSYNC "${words[@]}"
"""
SCHEDULE = {"CI_PIPELINE_SOURCE": "schedule", "CI_COMMIT_REF_PROTECTED": "true"}


# Brings the artifacts of a job, which are at ZIP.
CURL = """#!/bin/sh
while [ "$1" != --output ]; do shift; done
cp ZIP "$2"
"""


# The jobs in files of their own.
JOBS = {
    "perfgate-baseline": "perfgate_baseline",
    "perfgate-release": "perfgate_release",
    "perfgate-release-sign": "perfgate_release",
}


def job_of(name: str) -> dict[str, Any]:
    """A job of a file of its own, as plain values."""
    file = ROOT / "ci" / "gitlab" / f"{JOBS[name]}.gitlab-ci.yml"
    _, jobs = yaml.safe_load_all(file.read_text())
    found: dict[str, Any] = jobs[name]
    return found


def job_script(name: str) -> str:
    """Its script; its inputs stand in variables alone."""
    job = job_of(name)
    text = "\n".join([*job.get("before_script", ()), *job["script"]])
    assert "$[[" not in text
    return text


def require_executor() -> None:
    """Skip, or fail, where gitlab-ci-local cannot run."""
    missing = [str(one.relative_to(ROOT)) for one in (_NODE, _EXECUTOR) if not one.exists()]
    missing += [program for program in ("git", "rsync") if shutil.which(program) is None]
    if missing:
        reason = f"no {', '.join(missing)}: ci/pipelines/node.sh, apt-get install git rsync"
        (pytest.fail if REQUIRED else pytest.skip)(reason)


@dataclass(frozen=True)
class Ended:
    """A pipeline that was run.

    Attributes:
        status: of gitlab-ci-local.
        output: of all jobs, each line with its job's name.
    """

    status: int
    output: str

    def end_of(self, job: str) -> tuple[str, int]:
        """How a job ended for GitLab, PASS, WARN or FAIL, and its exit status."""
        line = re.compile(
            rf"{re.escape(job)} +finished in [\w. ]+?(?:  ?(WARN|FAIL) (\d+) *)?$", re.M
        )
        (found,) = line.finditer(self.output)
        return found[1] or "PASS", int(found[2] or 0)


@dataclass(frozen=True)
class GateRepository:
    """A gate repository under git, with a pipeline."""

    folder: Path

    @classmethod
    def made(cls, folder: Path, inputs: Mapping[str, object]) -> "GateRepository":
        """One with `perfgate init`, that includes the file with these inputs."""
        laid_out = (PROGRAMS / "perfgate", "init", folder, "--ci", "gitlab")
        subprocess.run(laid_out, check=True, capture_output=True)
        local = str(INCLUDED.relative_to(ROOT))
        include = {"include": [{"local": local, "inputs": dict(inputs)}]}
        (folder / ".gitlab-ci.yml").write_text(yaml.safe_dump(include))
        return cls.committed(folder)

    @classmethod
    def committed(cls, folder: Path) -> "GateRepository":
        """A folder with a pipeline, all of it committed on the default branch."""
        if (folder / ".git").is_dir():
            shutil.rmtree(folder / ".git")
        git = ("git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        for words in (
            ("init", "--quiet", "--initial-branch=main"),
            ("remote", "add", "origin", "git@gitlab.example.org:performance/gate.git"),
            ("add", "--all"),
            ("commit", "--quiet", "--message=gate"),
            ("update-ref", "refs/remotes/origin/main", "HEAD"),
            ("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main"),
        ):
            subprocess.run((*git, *words), cwd=folder, check=True, capture_output=True)
        return cls(folder)

    def run(self, *words: str, variables: Mapping[str, str] = SCHEDULE) -> Ended:
        """Run gitlab-ci-local with further words."""
        beside = self.folder.parent
        shim = beside / "bin" / "rsync"
        shim.parent.mkdir(exist_ok=True)
        shim.write_text(_RSYNC.replace("RSYNC", shutil.which("rsync") or "rsync"))
        shim.chmod(0o755)
        done = subprocess.run(
            (
                *(_NODE, _EXECUTOR, "--force-shell-executor", "--shell-isolation", "--no-color"),
                *("--ignore-predefined-vars", ",".join(variables)),
                *(word for pair in variables.items() for word in ("--variable", "=".join(pair))),
                *words,
            ),
            cwd=self.folder,
            env={"PATH": f"{shim.parent}:{os.environ['PATH']}", "HOME": str(beside)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
        return Ended(done.returncode, done.stdout)
