"""GitLab's pipeline, executed: matrix, shards, merge, reports, exit status, with stand-ins."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from gitlab_executor import PROGRAMS, Ended, GateRepository, require_executor
from tables import each

pytestmark = pytest.mark.slow
EXPRESSION = "b200 and offline and weekly"
INPUTS = {
    "expression": EXPRESSION,
    "shards": 2,
    "control_tags": ["small", "cpu"],
    "programs": str(PROGRAMS),
    "options": "--rehearse",
}


@pytest.fixture(scope="module", autouse=True)
def _executor() -> None:
    require_executor()


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> tuple[GateRepository, Ended]:
    """The whole pipeline with nothing wrong, run once; what it printed."""
    gate = GateRepository.made(tmp_path_factory.mktemp("gitlab") / "gate", INPUTS)
    ended = gate.run()
    assert ended.status == 0, ended.output
    return gate, ended


def test_the_whole_pipeline_ends_in_one_report_of_both_shards(
    parent: tuple[GateRepository, Ended],
) -> None:
    gate, ended = parent
    output = ended.output
    assert ended.end_of("b200-1-of-2") == ("WARN", 13)
    assert ended.end_of("perfgate-report") == ("PASS", 0)
    report = gate.folder / "perfgate-report"
    assert "shard 1/2, exit status 13" in output
    assert "shard 2/2, exit status 13" in output
    assert "pass: rehearsal, status 13:" in output
    assert (report / "junit.xml").read_text().count("<testcase ") == 11
    assert "synthetic" in (report / "report.md").read_text().lower()


def test_the_child_pipeline_is_that_of_the_matrix(parent: tuple[GateRepository, Ended]) -> None:
    child = yaml.safe_load((parent[0].folder / "perfgate-child.yml").read_text())
    assert {"b200-1-of-2", "b200-2-of-2", "perfgate-report"} <= child.keys()
    assert child["perfgate-report"]["tags"] == ["small", "cpu"]
    assert child["b200-2-of-2"]["tags"] == ["b200"]


def child_of(gate: GateRepository, options: str) -> dict[str, Any]:
    """The child pipeline with these options, as plain values."""
    perfgate = PROGRAMS / "perfgate"
    matrix = gate.folder / "matrix.json"
    words: tuple[object, ...] = (perfgate, "ci", "matrix", "-m", EXPRESSION, "--shards", "2")
    printed = subprocess.run(
        words, cwd=gate.folder, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    matrix.write_text(printed)
    words = (perfgate, "ci", "gitlab", "--matrix", matrix, "--event", "nightly")
    words = (*words, "--programs", PROGRAMS, f"--options={options}")
    text = subprocess.run(
        words, cwd=gate.folder, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    plain: dict[str, Any] = yaml.safe_load(text)
    return plain


def run_child(gate: GateRepository, child: dict[str, Any]) -> Ended:
    """Run it as a pipeline of its own."""
    (gate.folder / "child.yml").write_text(yaml.safe_dump(child, sort_keys=False))
    return gate.run("--file", "child.yml")


def test_a_regression_ends_the_pipeline_red(tmp_path: Path) -> None:
    gate = GateRepository.made(tmp_path / "gate", INPUTS)
    ended = run_child(gate, child_of(gate, "--rehearse-fault slow:30%"))
    assert ended.end_of("perfgate-report") == ("FAIL", 1), ended.output
    assert "block: rehearsal, status 1: a regression is proved" in ended.output
    assert "REGRESSION" in (gate.folder / "perfgate-report" / "report.md").read_text()


def test_a_lost_shard_is_named_and_ends_the_pipeline_red(tmp_path: Path) -> None:
    gate = GateRepository.made(tmp_path / "gate", INPUTS)
    child = child_of(gate, "--rehearse")
    child["b200-2-of-2"]["script"] = ["exit 1"]  # as where a node is lost: no artifact at all
    ended = run_child(gate, child)
    assert ended.end_of("b200-2-of-2") == ("WARN", 1)
    assert ended.end_of("perfgate-report") == ("FAIL", 2), ended.output
    assert "b200-2-of-2" in ended.output.partition("> perfgate: ")[2], ended.output
    assert not (gate.folder / "perfgate-report").exists()


def pipeline(source: str, **more: str) -> dict[str, str]:
    return {"CI_PIPELINE_SOURCE": source, "CI_COMMIT_REF_PROTECTED": "true", **more}


def merge_request(labels: str, project: str = "7") -> dict[str, str]:
    projects = {"SOURCE_PROJECT_ID": project, "PROJECT_ID": "7", "LABELS": labels}
    named = {f"CI_MERGE_REQUEST_{name}": value for name, value in projects.items()}
    return pipeline("merge_request_event", **named)


@each(
    "variables, jobs",
    [
        (pipeline("schedule"), True),
        (pipeline("schedule", CI_COMMIT_REF_PROTECTED="false"), False),
        (pipeline("push"), False),
        (pipeline("push", CI_COMMIT_TAG="v1.2"), True),
        (pipeline("web"), True),
        (pipeline("web", GATE_PROPOSE="17"), False),
        (pipeline("web", GATE_RELEASE="17"), False),
        (merge_request("bug,perfgate"), True),
        (merge_request("not-perfgate"), False),
        (merge_request("perfgate", project="8"), False),
    ],
)
def test_what_measures_and_what_never_does(
    variables: dict[str, str], jobs: bool, parent: tuple[GateRepository, Ended]
) -> None:
    listed = parent[0].run("--list", variables=variables).output
    assert ("perfgate-matrix" in listed) == jobs, listed
    assert ("perfgate-measure" in listed) == jobs, listed


def test_what_came_from_outside_stays_a_word(tmp_path: Path) -> None:
    hostile = "$(touch planted) `touch planted` \"; touch planted; ' ; touch planted"
    inputs = {**INPUTS, "expression": "b200 and $(touch planted)", "options": ""}
    gate = GateRepository.made(tmp_path / "gate", inputs)
    names = ("CI_COMMIT_REF_NAME", "CI_COMMIT_MESSAGE", "CI_MERGE_REQUEST_TITLE")
    ended = gate.run(variables=pipeline("schedule", **dict.fromkeys(names, hostile)))
    assert ended.status == 1, ended.output
    assert "$(touch planted)" in ended.output
    assert not list(tmp_path.rglob("planted"))
