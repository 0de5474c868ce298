"""GitHub's workflows, executed: every step, from the matrix to the decision, in rehearsal."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from github_actions import Service, commit
from github_runner import Job, Runner
from sizes import IS_NIGHTLY

ROOT = Path(__file__).parents[2]

EXPRESSION = "h200 and nightly and offline"  # documented speeds, in two shards
ONE_SPEED = {"expression": "h200 and latency and offline", "shards": 1}
ANSWERS = "h200 and mtp and smoke"  # in two shards, each over soon
ROWS = ("h200-1-of-2", "h200-2-of-2")
pytestmark = [pytest.mark.slow]

Make = Callable[..., Runner]


def _said(job: Job) -> str:
    return f"{job.id}: {job.result}\n{job.log}\n{job.annotations}"


def _inputs(**more: object) -> dict[str, object]:
    return {
        "event": "rehearsal",
        "rehearse": True,
        "expression": EXPRESSION,
        "shards": 2,
        "requirement": "perfgate",
        **more,
    }


def test_a_rehearsal_of_two_shards_to_the_decision(runner: Make) -> None:
    github = runner()
    run = github.run("perfgate.yml", _inputs())
    assert [job.id for job in run.jobs] == ["matrix", *(f"rows/{one}" for one in ROWS), "collect"]
    assert run.result == "success", [_said(job) for job in run.jobs]
    assert run.outputs == {"status": "13", "enough": ""}
    for row in ROWS:
        job = run.job(f"rows/{row}")
        assert "pass: rehearsal, status 13" in job.log
        assert job.evaluated["timeout-minutes"] > 0
        assert job.evaluated["runs-on"] == "ubuntu-24.04"
        kept = {one.name for one in github.service.artifact(f"perfgate-run-{row}").iterdir()}
        assert kept >= {"run.json", "records.jsonl", "summary.md"}
        assert "rehearsal" not in kept
    gate = run.job("collect")
    assert "pass: rehearsal, status 13" in gate.summary
    report = github.service.artifact("perfgate-report")
    assert {one.name for one in report.iterdir()} >= {"report.json", "report.md", "junit.xml"}
    assert (report / "report.md").read_text() in gate.summary
    assert "h200-r1-fp8-min-latency" in gate.summary
    assert github.service.retention["perfgate-report"] == "90"


def test_a_regression_is_red_on_its_row_and_at_the_gate(runner: Make) -> None:
    run = runner().run("perfgate.yml", _inputs(options="--rehearse-fault slow:40%", **ONE_SPEED))
    assert run.result == "failure"
    assert run.outputs == {"status": "1", "enough": ""}
    assert run.job("matrix").result == "success"
    assert run.job("rows/h200-1-of-1").result == "failure"
    gate = run.job("collect")
    assert gate.result == "failure"
    assert "block: rehearsal, status 1: a regression is proved" in gate.summary
    assert any(
        level == "error" and "regression" in text.lower() for level, text in gate.annotations
    )


def test_a_lost_shard_is_named_and_claims_nothing(runner: Make) -> None:
    github = runner(lost=(ROWS[1],))
    run = github.run("perfgate.yml", _inputs(expression=ANSWERS))
    assert run.job(f"rows/{ROWS[0]}").result == "success"
    gate = run.job("collect")
    assert gate.result == "failure"
    assert run.outputs == {"status": "", "enough": ""}
    assert "Nothing is claimed of the build" in gate.summary
    assert ROWS[1] in gate.summary
    assert not github.service.artifact("perfgate-report").exists()


def test_a_cancelled_row_ends_in_order_and_its_run_is_kept(runner: Make) -> None:
    github = runner(cancel={ROWS[0]: "runs/*/progress.jsonl"})
    run = github.run("perfgate.yml", _inputs())
    row = run.job(f"rows/{ROWS[0]}")
    assert row.result == "cancelled", _said(row)
    assert "block: rehearsal, status 2: interrupted" in row.log
    kept = github.service.artifact(f"perfgate-run-{ROWS[0]}")
    assert (kept / "records.jsonl").is_file()
    assert run.job(f"rows/{ROWS[1]}").result == "cancelled"
    gate = run.job("collect")
    assert gate.result == "failure"
    assert "the GPU jobs ended as: cancelled" in gate.summary


def test_an_expression_that_selects_nothing_is_red(runner: Make) -> None:
    run = runner().run("perfgate.yml", _inputs(expression="b200 and local"))
    assert run.job("matrix").result == "failure"
    assert run.job("collect").result == "failure"
    assert "Nothing is claimed of the build" in run.job("collect").summary


def test_a_pool_without_a_runner_is_named(runner: Make) -> None:
    run = runner().run("perfgate.yml", _inputs(rehearse=False, event="nightly", runners="{}"))
    (found,) = [text for _, text in run.job("matrix").annotations]
    assert "no labels for: h200" in found


def test_text_from_outside_is_never_a_command(runner: Make, tmp_path: Path) -> None:
    """An input that is a shell command, and an expression that is none, change nothing."""
    bad = f"b200; touch {tmp_path}/owned; $(touch {tmp_path}/owned) `touch {tmp_path}/owned`"
    run = runner().run("perfgate.yml", _inputs(expression=bad, options=bad))
    assert run.result == "failure"
    assert not (tmp_path / "owned").exists()


@pytest.mark.nightly
@pytest.mark.skipif(
    not IS_NIGHTLY or os.environ.get("PERFGATE_REQUIRE_PIPELINES") != "1",
    reason="installs perfgate three times, from an index; on each push wheel.sh installs it",
)
def test_perfgate_is_installed_as_jobs_install_it(
    runner: Make, service: Service, tmp_path: Path
) -> None:
    """A wheel that the repository holds, what it imports by hash, and nothing of this checkout."""
    build = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    wheels = service.repository / "wheels"
    subprocess.run((*build, "--wheel-dir", wheels, ROOT), check=True)
    (wheel,) = wheels.iterdir()
    service.commit = commit(service.repository, "A wheel")
    github = runner()
    del github.machine["PERFGATE_PYTHON"]
    run = github.run("perfgate.yml", _inputs(requirement=f"wheels/{wheel.name}", shards=1))
    assert run.result == "success", [_said(job) for job in run.jobs]
    assert run.outputs == {"status": "13", "enough": ""}
    assert str(ROOT) not in "".join(job.log for job in run.jobs)
