"""GitLab's job that proposes baselines: its file, and its script executed up to a real push."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from gitlab_executor import CURL, job_script

PERFGATE = """#!/bin/sh
printf '%s\\n' "$@" >ARGUMENTS
git branch "perfgate/baselines-5"
"""


@pytest.mark.parametrize("jobs", ["17", "17; touch planted", "-x"])
def test_the_branch_is_pushed_with_a_merge_request(tmp_path: Path, jobs: str) -> None:
    git = ("git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    gate, remote = tmp_path / "gate", tmp_path / "remote.git"
    run = tmp_path / "runs" / "one"
    run.mkdir(parents=True)
    (run / "run.json").write_text("{}")
    archive = shutil.make_archive(str(tmp_path / "artifacts"), "zip", tmp_path, "runs")
    (tmp_path / "bin").mkdir()
    noted = tmp_path / "arguments"
    programs = {"curl": CURL.replace("ZIP", archive), "perfgate": PERFGATE}
    for name, text in programs.items():
        (tmp_path / "bin" / name).write_text(text.replace("ARGUMENTS", str(noted)))
        (tmp_path / "bin" / name).chmod(0o755)
    for words in (
        ("init", "--quiet", "--bare", str(remote)),
        ("-C", str(remote), "config", "receive.advertisePushOptions", "true"),
        ("init", "--quiet", "--initial-branch=main", str(gate)),
        ("-C", str(gate), "commit", "--quiet", "--allow-empty", "--message=gate"),
    ):
        subprocess.run((*git, *words), check=True)
    hook = remote / "hooks" / "post-receive"
    hook.write_text('#!/bin/sh\nenv | grep ^GIT_PUSH_OPTION_ | sort >"$GIT_DIR/options"\n')
    hook.chmod(0o755)
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
    branches = subprocess.run(
        ("git", "-C", remote, "branch", "--list"), check=True, capture_output=True, text=True
    ).stdout.split()
    assert not list(tmp_path.rglob("planted"))
    if jobs != "17":
        assert done.returncode == 2, done.stderr
        assert "not the number of a job" in done.stderr
        assert branches == []
        return
    assert done.returncode == 0, done.stderr
    assert branches == ["perfgate/baselines-5"]
    said = noted.read_text().splitlines()
    assert said[:3] == ["baseline", "propose", "perfgate-proposal/runs/17/runs/one"]
    assert "--by=Ada; touch planted" in said
    assert "--reason=the $(first) `numbers`" in said
    options = (remote / "options").read_text()
    assert "merge_request.create" in options
    assert "merge_request.target=main" in options
