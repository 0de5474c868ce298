"""GitLab's pipeline, executed: matrix, shards, merge, reports, exit status, with stand-ins."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from gitlab_executor import PROGRAMS, Ended, GateRepository, require_executor

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
    words: tuple[object, ...] = (perfgate, "matrix", "-m", EXPRESSION, "--shards", "2")
    printed = subprocess.run(
        words, cwd=gate.folder, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    matrix.write_text(printed)
    words = (perfgate, "gitlab", "child", "--matrix", matrix, "--event", "nightly")
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


def test_all_shards_lost_is_no_report_either(tmp_path: Path) -> None:
    gate = GateRepository.made(tmp_path / "gate", INPUTS)
    child = child_of(gate, "--rehearse")
    for job in ("b200-1-of-2", "b200-2-of-2"):
        child[job]["script"] = ["exit 1"]
    ended = run_child(gate, child)
    assert ended.end_of("perfgate-report") == ("FAIL", 2), ended.output


@pytest.mark.parametrize(
    ("variables", "jobs"),
    [
        ({"CI_PIPELINE_SOURCE": "schedule", "CI_COMMIT_REF_PROTECTED": "true"}, True),
        ({"CI_PIPELINE_SOURCE": "schedule", "CI_COMMIT_REF_PROTECTED": "false"}, False),
        ({"CI_PIPELINE_SOURCE": "push", "CI_COMMIT_REF_PROTECTED": "true"}, False),
        ({"CI_PIPELINE_SOURCE": "web", "CI_COMMIT_REF_PROTECTED": "true"}, True),
        *(
            ({"CI_PIPELINE_SOURCE": "web", "CI_COMMIT_REF_PROTECTED": "true", name: "17"}, False)
            for name in ("GATE_PROPOSE", "GATE_RELEASE")
        ),
        (
            {
                "CI_PIPELINE_SOURCE": "push",
                "CI_COMMIT_REF_PROTECTED": "true",
                "CI_COMMIT_TAG": "v1.2",
            },
            True,
        ),
        (
            {
                "CI_PIPELINE_SOURCE": "merge_request_event",
                "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "7",
                "CI_MERGE_REQUEST_PROJECT_ID": "7",
                "CI_MERGE_REQUEST_LABELS": "bug,perfgate",
            },
            True,
        ),
        (
            {
                "CI_PIPELINE_SOURCE": "merge_request_event",
                "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "7",
                "CI_MERGE_REQUEST_PROJECT_ID": "7",
                "CI_MERGE_REQUEST_LABELS": "not-perfgate",
                "CI_COMMIT_REF_PROTECTED": "true",
            },
            False,
        ),
        (
            {
                "CI_PIPELINE_SOURCE": "merge_request_event",
                "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "8",
                "CI_MERGE_REQUEST_PROJECT_ID": "7",
                "CI_MERGE_REQUEST_LABELS": "perfgate",
                "CI_COMMIT_REF_PROTECTED": "true",
            },
            False,
        ),
    ],
    ids=[
        *("nightly", "unprotected", "push", "by hand", "proposal", "release"),
        *("tag", "label", "other label", "fork"),
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
    told = {"CI_PIPELINE_SOURCE": "schedule", "CI_COMMIT_REF_PROTECTED": "true"}
    ended = gate.run(variables={**told, **dict.fromkeys(names, hostile)})
    assert ended.status == 1, ended.output
    assert "$(touch planted)" in ended.output
    assert not list(tmp_path.rglob("planted"))
