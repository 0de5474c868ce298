"""GitLab's files as text: GitLab's schema, every script through shellcheck, what a job may do."""

import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml
from gitlab_executor import INCLUDED, JOBS, ROOT, job_of, job_script
from marked_processes import ended_by
from tables import each

from perfgate.campaign.shards import read_matrix
from perfgate.cli.main import main
from perfgate.core.errors import InputError
from perfgate.runs.exit_status import Action, Event, decision

HOSTILE = "b200 and not '$(touch planted)'; `touch planted` \"$HOME\" $[[ inputs.x ]]"
ROW = {
    "name": "b200-1-of-2",
    "gpu": "b200",
    "gpus": 8,
    "nodes": 1,
    "hours": 1.0,
    "hours_known": True,
    "expression": "(throughput) and b200",
    "shard": "1/2",
    "timeout_minutes": 90,
    "scenarios": ["b200-one"],
}
MATRIX = {"include": [ROW, {**ROW, "name": "b200-2-of-2", "shard": "2/2"}]}


def included() -> dict[str, Any]:
    """The jobs of the file; its inputs as the texts that they are."""
    _, jobs = yaml.safe_load_all(INCLUDED.read_text())
    plain: dict[str, Any] = jobs
    return plain


def test_the_pages_first_pipeline_fits_what_init_lays_out(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "gitlab.md").read_text()
    (block,) = re.findall(r"^   ```yaml\n(.*?)^   ```", page, re.DOTALL | re.MULTILINE)
    (file,) = yaml.safe_load(textwrap.dedent(block))["include"]
    assert main(["init", str(tmp_path / "gate"), "--ci", "gitlab"]) == 0
    spec, _ = yaml.safe_load_all((tmp_path / "gate" / file["local"]).read_text())
    assert file["inputs"].keys() <= spec["spec"]["inputs"].keys()
    assert (tmp_path / "gate" / file["inputs"]["requirements"]).is_file()


def programs_in(folder: Path, **scripts: str) -> str:
    """A folder of programs, each a script of sh."""
    programs = folder / "programs"
    programs.mkdir()
    for name, script in scripts.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    return str(programs)


def child(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *words: str, matrix: object = MATRIX
) -> str:
    """What `perfgate ci gitlab` prints."""
    file = tmp_path / "matrix.json"
    file.write_text(json.dumps(matrix))
    capsys.readouterr()
    status = main(["ci", "gitlab", "--matrix", str(file), "--event", "nightly", *words])
    assert status == 0, capsys.readouterr().err
    return capsys.readouterr().out


def scripts(jobs: dict[str, Any]) -> list[str]:
    """All script blocks of the jobs."""
    found = []
    for job in jobs.values():
        if isinstance(job, dict):
            for part in ("before_script", "script", "after_script"):
                found += job.get(part, [])
    return found


def validated(*files: Path) -> subprocess.CompletedProcess[str]:
    """GitLab's own schema, as check-jsonschema brings it."""
    program = Path(sys.executable).parent / "check-jsonschema"
    return subprocess.run(
        (program, "--builtin-schema", "vendor.gitlab-ci", *files),
        capture_output=True,
        text=True,
        check=False,
    )


def test_all_files_are_what_gitlab_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--mode", "auto", "--requirements", "gate.txt", "--image", "a/b:1@sha256:0f")
    text = child(tmp_path, capsys, *words)
    (tmp_path / "child.yml").write_text(text)
    plain = included()
    plain["perfgate-matrix"].update(tags=["a"], image="b")  # inputs, which are lists and names
    plain["perfgate-measure"]["trigger"]["strategy"] = "depend"
    (tmp_path / "included.yml").write_text(yaml.safe_dump(plain))
    for name in JOBS:
        job = {**job_of(name), "tags": ["a"], "image": "b", "stage": "test"}
        needed = {one: {"script": ["true"], "stage": "test"} for one in job.get("needs", ())}
        (tmp_path / f"{name}.yml").write_text(yaml.safe_dump({**needed, name: job}))
    files = [*tmp_path.glob("*.yml")]
    assert len(files) == 2 + len(JOBS)
    done = validated(*files)
    assert done.returncode == 0, done.stdout
    broken = yaml.safe_load(text)
    broken["perfgate-report"]["artifacts"]["when"] = "sometimes"
    (tmp_path / "broken.yml").write_text(yaml.safe_dump(broken))
    assert validated(tmp_path / "broken.yml").returncode == 1


def test_shellcheck_finds_nothing_in_a_job_of_a_file_of_its_own(tmp_path: Path) -> None:
    for name in JOBS:
        (tmp_path / f"{name}.sh").write_text(f"#!/usr/bin/env bash\n{job_script(name)}")
    shellcheck = (Path(sys.executable).with_name("shellcheck"), *tmp_path.glob("*.sh"))
    done = subprocess.run(shellcheck, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_shellcheck_finds_nothing_in_any_script(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    matrix = {"include": [{**ROW, "expression": HOSTILE}]}
    text = child(tmp_path, capsys, "--requirements", "g.txt", "--mode", "auto", matrix=matrix)
    blocks = {*scripts(included()), *scripts(yaml.safe_load(text))}
    assert len(blocks) == 5
    for block in blocks:
        done = subprocess.run(
            (Path(sys.executable).with_name("shellcheck"), "--shell=sh", "-"),
            input=block,
            capture_output=True,
            text=True,
        )
        # SC2016: what came from outside is in single quotes so that nothing in it expands.
        left = [line for line in done.stdout.splitlines() if "SC2016" not in line]
        assert not any("SC" in line for line in left), done.stdout + block


@each("event", list(Event))
def test_what_only_warns_is_what_the_table_says(
    event: Event, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--options=--rehearse",) if event is Event.REHEARSAL else ("--event", event)
    job = yaml.safe_load(child(tmp_path, capsys, *words))["perfgate-report"]
    allowed = job["allow_failure"]["exit_codes"] if job["allow_failure"] else []
    for status in range(256):
        assert (status in allowed) == (decision(event, status).action is Action.WARN)
    assert 0 not in allowed
    assert f"decision --event {event} " in job["script"][0]


def test_a_job_with_gpus_is_alone_in_its_place_and_outlives_perfgates_limits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--tags", "gpu {gpu}", "--options=--launcher slurm -k 'a b'")
    plain = yaml.safe_load(child(tmp_path, capsys, *words))
    first, second = plain["b200-1-of-2"], plain["b200-2-of-2"]
    assert (first["resource_group"], second["resource_group"]) == (
        "perfgate-b200-1",
        "perfgate-b200-2",
    )
    assert first["tags"] == ["gpu", "b200"]
    script, after = (
        int(first["variables"][name].removesuffix("m"))
        for name in ("RUNNER_SCRIPT_TIMEOUT", "RUNNER_AFTER_SCRIPT_TIMEOUT")
    )
    assert script == ROW["timeout_minutes"]
    assert int(first["timeout"].removesuffix(" minutes")) > script + after
    assert first["interruptible"] is False
    assert first["artifacts"]["when"] == "always"
    last = first["script"][0].splitlines()[-1]
    assert shlex.split(last)[1:] == [
        *("-m", "(throughput) and b200", "--shard", "1/2", "--gate", "--launcher", "slurm"),
        *("-k", "a b", "--run-dir", "perfgate-runs/b200-1-of-2-$CI_JOB_ID"),
    ]


@each(
    "mode, measures, report",
    [
        ("gate", ["--gate"], "--gate --matrix"),
        ("record", ["--record"], "report perfgate-runs/* --matrix"),
        ("auto", ["--gate", "--record"], "--gate --matrix"),
    ],
)
def test_what_a_night_does(
    mode: str,
    measures: list[str],
    report: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plain = yaml.safe_load(child(tmp_path, capsys, "--mode", mode))
    words = shlex.split(plain["b200-1-of-2"]["script"][0].splitlines()[-1])
    assert words[words.index("1/2") + 1 : words.index("--run-dir")] == measures
    assert report in plain["perfgate-report"]["script"][0]
    rehearsed = child(tmp_path, capsys, "--mode", mode, "--options=--rehearse")
    assert ("--gate" in rehearsed) == (mode == "auto"), "of what is real it has no baseline"
    assert ("--record" in rehearsed) == (mode != "gate")


@each(
    "words, proposes",
    [
        (("--mode", "record"), True),
        (("--mode", "auto"), True),
        (("--mode", "gate"), False),
        (("--mode", "auto", "--event", "pull-request"), False),
        (("--mode", "auto", "--options=--rehearse"), False),
    ],
)
def test_a_night_that_records_proposes_on_a_protected_branch_alone(
    words: tuple[str, ...],
    proposes: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plain = yaml.safe_load(child(tmp_path, capsys, *words))
    with_token = [name for name, job in plain.items() if "environment" in job]
    assert with_token == (["perfgate-propose"] if proposes else [])
    if proposes:
        job = plain["perfgate-propose"]
        assert job["environment"] == {"name": "perfgate-baseline", "action": "access"}
        protected = '$CI_COMMIT_BRANCH && $CI_COMMIT_REF_PROTECTED == "true"'
        assert job["rules"] == [{"if": protected, "when": "always"}]
        assert job["allow_failure"] is True
        assert plain["stages"][-1] == job["stage"]


def test_a_job_with_gpus_has_no_key_of_other_jobs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    programs = programs_in(tmp_path, pytest="env")
    plain = yaml.safe_load(child(tmp_path, capsys, "--programs", programs))
    keys = {"PERFGATE_PUSH_TOKEN": "a", "PERFGATE_RELEASE_KEY": "b"}
    done = subprocess.run(
        ("sh", "-ec", plain["b200-1-of-2"]["script"][0]),
        cwd=tmp_path,
        env={**os.environ, **keys, "CI_JOB_ID": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "CI_JOB_ID=1" in done.stdout
    assert not [name for name in keys if name in done.stdout]
    scopes = {name: job_of(name).get("environment") for name in JOBS}
    assert scopes == {
        "perfgate-baseline": {"name": "perfgate-baseline", "action": "access"},
        "perfgate-release": None,
        "perfgate-release-sign": {"name": "perfgate-release", "action": "access"},
    }


def test_a_job_that_is_started_again_leaves_one_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the same folder, as on a runner with a shell, where the first try left half a run."""
    leaves = 'for last; do :; done\nmkdir "$last" && echo x >"$last/records"'
    plain = yaml.safe_load(
        child(tmp_path, capsys, "--programs", programs_in(tmp_path, pytest=leaves))
    )
    script = plain["b200-1-of-2"]["script"][0]
    for job in ("11", "12"):
        subprocess.run(
            ("sh", "-ec", script), cwd=tmp_path, env={**os.environ, "CI_JOB_ID": job}, check=True
        )
    kept = [one.name for one in (tmp_path / "perfgate-runs").iterdir()]
    assert kept == ["b200-1-of-2-12"]


@pytest.mark.parametrize("enough", ["", "one"])
def test_a_night_that_recorded_enough_gives_the_address_that_proposes_it(
    enough: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ready = f'"baseline ready") echo "{enough}" ;;'
    answers = f'case "$1 $2" in {ready} "ci decision") echo pass: ;; esac'
    words = ("--mode", "auto", "--programs", programs_in(tmp_path, perfgate=answers))
    for job in ("17", "18"):
        (tmp_path / "perfgate-runs" / f"b200-1-of-2-{job}").mkdir(parents=True)
    script = yaml.safe_load(child(tmp_path, capsys, *words))["perfgate-report"]["script"][0]
    project = "https://gitlab.example.org/performance/gate"
    done = subprocess.run(
        ("sh", "-ec", script),
        cwd=tmp_path,
        env={**os.environ, "CI_PROJECT_URL": project, "CI_COMMIT_REF_NAME": "main"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    address = f"{project}/-/pipelines/new?ref=main&var[GATE_PROPOSE]=17%2018\n"
    assert (address in done.stdout) == bool(enough)


def test_nothing_of_an_expression_is_obeyed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    matrix = {"include": [{**ROW, "expression": HOSTILE}]}
    programs = programs_in(
        tmp_path, **dict.fromkeys(("pytest", "perfgate"), r'printf "<%s>\n" "$@"')
    )
    plain = yaml.safe_load(child(tmp_path, capsys, "--programs", programs, matrix=matrix))
    for job in ("b200-1-of-2", "perfgate-report"):
        done = subprocess.run(
            ("sh", "-ec", plain[job]["script"][0]),
            cwd=tmp_path,
            env={**os.environ, "CI_JOB_ID": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (f"<{HOSTILE}>" in done.stdout) == (job != "perfgate-report")
    assert json.loads((tmp_path / "perfgate-matrix.json").read_text()) == matrix
    assert not (tmp_path / "planted").exists()


@each(
    "matrix",
    [
        [],
        {"include": []},
        {"include": [{**ROW, "name": "../x"}]},
        {"include": [{**ROW, "shard": "0/2"}]},
        {"include": [{**ROW, "expression": "a\nb"}]},
        {"include": [{**ROW, "timeout_minutes": True}]},
        {"include": [{**ROW, "timeout_minutes": 10**7}]},
        {"include": [ROW, ROW]},
        {"include": ["b200"]},
    ],
)
def test_what_is_no_matrix_becomes_no_pipeline(matrix: object) -> None:
    with pytest.raises(InputError):
        read_matrix(json.dumps(matrix).encode(), Path("matrix.json"))


@each(
    "words",
    [
        ("--mode", "auto", "--event", "release"),
        ("--tags", "a$(b)"),
        ("--image", "a b"),
        ("--options=-k 'a",),
        ("--report-tags=[x",),
    ],
)
def test_settings_that_are_none_are_refused(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "matrix.json"
    file.write_text(json.dumps(MATRIX))
    assert main(["ci", "gitlab", "--matrix", str(file), "--event", "nightly", *words]) == 2
    assert capsys.readouterr().out == ""


def test_the_clean_up_ends_what_this_job_started_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (clean_up,) = yaml.safe_load(child(tmp_path, capsys))["b200-1-of-2"]["after_script"]
    marks = {
        "ours": {"CI_JOB_ID": "77", "PERFGATE_LAUNCH": "a"},
        "other job": {"CI_JOB_ID": "78", "PERFGATE_LAUNCH": "b"},
        "not perfgate": {"CI_JOB_ID": "77"},
        "longer number": {"CI_JOB_ID": "770", "PERFGATE_LAUNCH": "c"},
    }
    assert ended_by(("sh", "-c", clean_up), {"CI_JOB_ID": "77"}, marks) == {"ours"}
