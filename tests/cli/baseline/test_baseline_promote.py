"""`perfgate baseline promote` in real git repositories: what tests/data/cli cannot hold."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from worlds import World, night

from perfgate.baselines import read
from perfgate.cli.main import main

SCENARIO = "h200-serve"
HARDWARE = "1xH200"
_WHO = {
    f"GIT_{role}_{what}": text
    for role in ("AUTHOR", "COMMITTER")
    for what, text in (("NAME", "Ada"), ("EMAIL", "ada@example.com"))
}
Capture = pytest.CaptureFixture[str]


def git(folder: Path, *words: str, **settings: Any) -> str:
    """What git prints."""
    done = subprocess.run(
        ("git", "-C", folder, *words), check=False, capture_output=True, text=True, **settings
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def suite(two_scenarios: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A gate repository in git, with a scenario for one H200 and no baseline."""
    for name, text in {**_WHO, "GIT_CONFIG_GLOBAL": os.devnull}.items():
        monkeypatch.setenv(name, text)
    root = two_scenarios.parent
    (root / "baselines" / "README.md").write_text("What people accepted.\n")
    git(root, "init", "--quiet", "--initial-branch", "main")
    commit(root, "A suite")
    return root


def commit(root: Path, message: str) -> None:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", message)


def propose(run: Path, *words: str, into: str = "--branch=new") -> int:
    """Promote for review."""
    return main(["baseline", "promote", str(run), *words, into])


def run(folder: Path, name: str, *words: str, commit: str = "a" * 40) -> Path:
    """A run of the scenario."""
    night(World(folder, pytest.MonkeyPatch(), f"commit: {commit}"), name, *words)
    return folder / name


def test_a_patch_goes_through_git_am_in_another_clone(suite: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(tmp_path, "clone", "--quiet", str(suite), str(other))
    # What would end the message, name another author or be a comment, if it began a line.
    reason = "# [why]\n---\nFrom: Eve <eve@example.com>\ndiff --git a/x b/x\n-- >8 --\n`$(id)`"
    patch = tmp_path / "one.patch"
    git(suite, "config", "diff.noprefix", "true")
    git(suite, "config", "format.attach", "true")
    made = run(tmp_path, "one")
    assert propose(made, "--reason", reason, "--by=--Grace", into=f"--patch={patch}") == 0
    assert git(suite, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert git(suite, "status", "--porcelain", "--ignored") == ""
    git(other, "am", "--quiet", str(patch))
    assert git(other, "log", "-1", "--format=%an") == "Ada"
    message = git(other, "log", "-1", "--format=%B")
    assert "Reason: # [why] --- From: Eve" in message
    assert message.endswith("Accepted-by: --Grace")
    found = read(other / "baselines" / HARDWARE / SCENARIO / f"{'a' * 40}.json")
    assert "`$(id)`" in found.reason


def test_a_pull_request_says_what_the_commit_says(suite: Path, tmp_path: Path) -> None:
    assert propose(run(tmp_path, "one"), into="--branch=first") == 0
    git(suite, "merge", "--quiet", "--ff-only", "first")
    text = tmp_path / "body.md"
    slower = run(tmp_path, "four", "900", "REGRESSION", commit="b" * 40)
    assert propose(slower, "--reason", "\n```\n@all <b>checked</b>", "--body", str(text)) == 0
    outside, message, end = re.split(r"^````*\n", text.read_text(), flags=re.MULTILINE)
    assert "**This accepts a loss:**" in outside
    assert "-10.0 %" in outside
    assert "@all" not in outside
    assert "Reason: ``` @all <b>checked</b>\n" in message
    assert message.strip() == git(suite, "log", "-1", "--format=%B", "new")
    assert end == ""
    stored = git(suite, "show", f"new:baselines/{HARDWARE}/{SCENARIO}/{'b' * 40}.json")
    assert json.loads(stored)["accepted"]["change"] == "regression"


def test_a_branch_of_two_lines_and_a_link_among_the_baselines_are_refused(
    suite: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert propose(run(tmp_path, "one"), into="--branch=a\nb") == 2
    assert "not a valid branch name" in capsys.readouterr().err
    (suite / "baselines" / HARDWARE).symlink_to(tmp_path)
    commit(suite, "A link")
    (suite / "baselines" / HARDWARE).unlink()
    assert propose(run(tmp_path, "one")) == 2
    assert "no regular file" in capsys.readouterr().err
