"""GitLab's jobs that propose baselines, their scripts executed up to a real push."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from gitlab_executor import CURL, ROOT, job_script

from perfgate.cli.main import main

PERFGATE = """#!/bin/sh
printf '%s\\n' "$@" >ARGUMENTS
git branch "perfgate/baselines-5"
"""


_GIT = ("git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org")
# What a night calls: it makes the branch that it is asked for.
NIGHTLY = """#!/bin/sh
[ "$2" != ready ] || { printf '%s' "$ENOUGH"; exit 0; }
printf '%s\\n' "$@" >ARGUMENTS
env | grep -c SECRET >>ARGUMENTS
while [ "$1" != --branch ]; do shift; done
git branch "$2"
"""


def _repositories(folder: Path) -> tuple[Path, Path]:
    """A gate repository and its remote, which notes the options of the last push."""
    gate, remote = folder / "gate", folder / "remote.git"
    for words in (
        ("init", "--quiet", "--bare", str(remote)),
        ("-C", str(remote), "config", "receive.advertisePushOptions", "true"),
        ("init", "--quiet", "--initial-branch=main", str(gate)),
        ("-C", str(gate), "commit", "--quiet", "--allow-empty", "--message=gate"),
    ):
        subprocess.run((*_GIT, *words), check=True)
    hook = remote / "hooks" / "post-receive"
    hook.write_text('#!/bin/sh\nenv | grep ^GIT_PUSH_OPTION_ | sort >"$GIT_DIR/options"\n')
    hook.chmod(0o755)
    return gate, remote


def _branches(remote: Path) -> list[str]:
    listed = ("git", "-C", remote, "branch", "--list")
    return subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split()


def _programs(folder: Path, **programs: str) -> Path:
    """A folder of programs; the file that they note their arguments in is `arguments`."""
    (folder / "bin").mkdir()
    for name, text in programs.items():
        (folder / "bin" / name).write_text(text.replace("ARGUMENTS", str(folder / "arguments")))
        (folder / "bin" / name).chmod(0o755)
    return folder / "bin"


@pytest.mark.parametrize("jobs", ["17", "17; touch planted", "-x"])
def test_the_branch_is_pushed_with_a_merge_request(tmp_path: Path, jobs: str) -> None:
    gate, remote = _repositories(tmp_path)
    run = tmp_path / "runs" / "one"
    run.mkdir(parents=True)
    (run / "run.json").write_text("{}")
    archive = shutil.make_archive(str(tmp_path / "artifacts"), "zip", tmp_path, "runs")
    _programs(tmp_path, curl=CURL.replace("ZIP", archive), perfgate=PERFGATE)
    environment = {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "GATE_PROPOSE": jobs,
        "GATE_REASON": "the $(first) `numbers`",
        "GATE_MODULES": "standin",
        "GATE_PROGRAMS": str(tmp_path / "bin"),
        "GATE_REQUIREMENTS": "",
        "GATE_PUSH_URL": str(remote),
        "GITLAB_USER_NAME": "Ada; touch planted",
        "GITLAB_USER_EMAIL": "ada@example.org",
        "CI_PIPELINE_ID": "5",
        "CI_COMMIT_REF_NAME": "main",
        **dict.fromkeys(("CI_JOB_TOKEN", "CI_API_V4_URL", "CI_PROJECT_ID", "CI_PROJECT_URL"), "x"),
    }
    done = subprocess.run(
        ("bash", "-c", job_script("perfgate-baseline")),
        cwd=gate,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    branches = _branches(remote)
    assert not list(tmp_path.rglob("planted"))
    if jobs != "17":
        assert done.returncode == 2, done.stderr
        assert "not the number of a job" in done.stderr
        assert branches == []
        return
    assert done.returncode == 0, done.stderr
    assert branches == ["perfgate/baselines-5"]
    said = (tmp_path / "arguments").read_text().splitlines()
    assert said[:3] == ["baseline", "propose", "perfgate-proposal/runs/17/runs/one"]
    assert "--by=Ada; touch planted" in said
    assert "--reason=the $(first) `numbers`" in said
    options = (remote / "options").read_text()
    assert "merge_request.create" in options
    assert "merge_request.target=main" in options


def test_git_gets_the_token_from_the_variable_alone() -> None:
    script = job_script("perfgate-baseline")
    (helper,) = re.findall(r"^credentials='(.*)'$", script, re.M)
    options = ("-c", "credential.helper=", "-c", f"credential.helper={helper}")
    done = subprocess.run(
        ("git", *options, "credential", "fill"),
        input="protocol=https\nhost=gitlab.example.org\n\n",
        env={"PATH": os.environ["PATH"], "PERFGATE_PUSH_TOKEN": "a$b"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "username=perfgate\npassword=a$b\n" in done.stdout
    child = (ROOT / "src/perfgate/cli/templates/gitlab_child.yml").read_text()
    assert f"credentials='{helper.replace('PERFGATE_PUSH_TOKEN', 'GATE_TOKEN')}'" in child


ROW = {
    **{"name": "b200-1-of-1", "gpu": "b200", "gpus": 8, "nodes": 1, "expression": "b200"},
    **{"shard": "1/1", "hours": 1.0, "hours_known": True, "timeout_minutes": 90},
    "scenarios": ["b200-one"],
}


@pytest.mark.parametrize(
    ("enough", "token", "open_already", "said"),
    [
        ("one\ntwo\n", "SECRET", False, "proposed: branch perfgate/baselines-nightly"),
        ("", "SECRET", False, "no scenario completed the sessions"),
        ("one\n", "", False, "PERFGATE_PUSH_TOKEN is not set"),
        ("one\n", "SECRET", True, "the branch perfgate/baselines-nightly is there already"),
    ],
)
def test_a_night_proposes_what_it_completed(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    enough: str,
    token: str,
    open_already: bool,
    said: str,
) -> None:
    gate, remote = _repositories(tmp_path)
    matrix = tmp_path / "matrix.json"
    matrix.write_text(json.dumps({"include": [ROW]}))
    words = ("--matrix", str(matrix), "--event", "nightly", "--mode", "auto")
    assert main(["ci", "gitlab", *words, "--programs", str(tmp_path / "bin")]) == 0
    job = yaml.safe_load(capsys.readouterr().out)["perfgate-propose"]
    _programs(tmp_path, perfgate=NIGHTLY)
    (gate / "perfgate-runs" / "b200-1-of-1-17").mkdir(parents=True)
    if open_already:
        to = "HEAD:refs/heads/perfgate/baselines-nightly"
        subprocess.run((*_GIT, "-C", gate, "push", "--quiet", remote, to), check=True)
    done = subprocess.run(
        ("sh", "-ec", job["script"][0]),
        cwd=gate,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "ENOUGH": enough,
            "PERFGATE_PUSH_TOKEN": token,
            "GATE_PUSH_URL": str(remote),
            "GITLAB_USER_EMAIL": "ada@example.org",
            "CI_JOB_ID": "19",
            "CI_PIPELINE_ID": "5",
            "CI_COMMIT_REF_NAME": "main",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
    proposes = said.startswith("proposed")
    assert _branches(remote) == ["perfgate/baselines-nightly"] * (proposes or open_already)
    assert (tmp_path / "arguments").exists() == proposes
    if proposes:
        *words, secrets = (tmp_path / "arguments").read_text().splitlines()
        assert words == [
            *("baseline", "propose", "perfgate-runs/b200-1-of-1-17"),
            *("--scenario=one", "--scenario=two", "--branch", "perfgate/baselines-19"),
            *("--by", "the merge of the proposal of pipeline 5"),
            *("--body", "perfgate-proposal/body.md"),
        ]
        assert secrets == "0"
        options = (remote / "options").read_text()
        assert "merge_request.create" in options
        assert "merge_request.target=main" in options
