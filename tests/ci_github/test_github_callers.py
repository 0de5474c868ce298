"""The workflows that call perfgate's, executed: nightly, pull requests, release."""

import base64
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forked import session
from github_actions import Service, commit, git
from github_runner import Runner
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS, inherited

pytestmark = [pytest.mark.slow]

Make = Callable[..., Runner]
STANDINS = Path(__file__).parents[1] / "standins"
VARIABLES = {
    "PERFGATE_RUNNERS": json.dumps({"h200": ["self-hosted", "h200"]}),
    "PERFGATE_NIGHTLY_EXPRESSION": "h200 and latency and offline",
    "PERFGATE_PULL_REQUEST_EXPRESSION": "h200 and latency and offline",
    "PERFGATE_REHEARSAL_EXPRESSION": "h200 and latency and offline",
}


def test_a_night_on_a_runner_without_gpus_is_red(runner: Make) -> None:
    """Everything is skipped: a green run that measured nothing is what must never be."""
    run = runner(event=("schedule", {}), variables=VARIABLES).run("nightly.yml")
    row = run.job("gate/rows/h200-1-of-1")
    assert row.evaluated["runs-on"] == ["self-hosted", "h200"]
    assert row.evaluated["concurrency"] == {
        "group": "perfgate-gpu-h200-1-of-1",
        "cancel-in-progress": False,
    }
    gate = run.job("gate/collect")
    assert gate.result == "failure"
    assert "block: nightly, status 12" in gate.summary


def test_a_night_can_be_rehearsed_by_hand(runner: Make) -> None:
    run = runner(variables=VARIABLES).run(
        "nightly.yml", {"expression": "h200 and latency and offline", "rehearse": True}
    )
    assert run.result == "success", [job.log for job in run.jobs]


def _pull_request(service: Service, action: str, repository: str = "octo/gate") -> dict[str, Any]:
    """The event of a pull request whose branch went on after it was labelled."""
    head = git(service.repository, "rev-parse", "HEAD")
    (service.repository / "conftest.py").write_text("raise SystemExit('a later push')\n")
    commit(service.repository, "later")
    return {
        "action": action,
        "label": {"name": "perfgate"},
        "pull_request": {"number": 7, "head": {"sha": head, "repo": {"full_name": repository}}},
    }


def test_a_push_to_a_pull_request_is_rehearsed_and_no_more(runner: Make, service: Service) -> None:
    event = _pull_request(service, "synchronize", repository="eve/gate")
    run = runner(event=("pull_request", event), variables=VARIABLES).run("pull_request.yml")
    assert run.job("gpu").result == "skipped"
    assert run.result == "success", [job.log for job in run.jobs]
    assert "status 13" in run.job("rehearsal/collect").summary


def test_a_label_measures_the_commit_that_it_was_put_on(runner: Make, service: Service) -> None:
    event = _pull_request(service, "labeled")
    run = runner(event=("pull_request", event), variables=VARIABLES).run("pull_request.yml")
    assert run.job("rehearsal").result == "skipped"
    assert run.job("gpu/matrix").evaluated["environment"] == "perfgate-gpu"
    row = run.job("gpu/rows/h200-1-of-1")
    assert row.evaluated["runs-on"] == ["self-hosted", "h200"]
    assert "a later push" not in row.log
    assert "block: pull-request, status 12" in run.job("gpu/collect").summary


@pytest.mark.parametrize(
    ("label", "repository"), [("perfgate", "eve/gate"), ("documentation", "octo/gate")]
)
def test_no_fork_and_no_other_label_reaches_a_gpu(
    runner: Make, service: Service, label: str, repository: str
) -> None:
    event = _pull_request(service, "labeled", repository)
    event["label"]["name"] = label
    run = runner(event=("pull_request", event), variables=VARIABLES).run("pull_request.yml")
    assert [job.result for job in run.jobs] == ["skipped", "skipped"]


def test_a_release_that_judged_nothing_is_blocked(runner: Make) -> None:
    run = runner(variables=VARIABLES).run(
        "release.yml",
        {"expression": "h200 and latency and offline", "engine-image": "example.org/engine:1"},
    )
    assert run.job("gate/matrix").evaluated["environment"] == "perfgate-release"
    assert run.result == "failure"
    assert "block: release, status 12" in run.job("gate/collect").summary


def test_a_rehearsed_release_never_passes(runner: Make, service: Service) -> None:
    """Nor is anything packed, or the key used: the policy's check refuses what is synthetic."""
    policy = service.repository / "release.yaml"
    policy.write_text(
        "schema_version: 1\nrelease: a rehearsal\nbuild: {engine: tensorrt-llm}\n"
        "required: [{name: nights, select: h200 and latency and offline}]\n"
    )
    service.commit = commit(service.repository, "A policy")
    words = {"expression": "h200 and latency and offline", "options": "--rehearse"}
    github = runner(variables=VARIABLES, secrets={"PERFGATE_RELEASE_KEY": "no key at all"})
    run = github.run("release.yml", {**words, "policy": "release.yaml"})
    assert run.result == "failure"
    assert "block: release, status 13" in run.job("gate/collect").summary
    evidence = run.job("evidence")
    assert evidence.evaluated["environment"] == "perfgate-release"
    assert evidence.result == "failure"
    assert "block: release, status 21" in evidence.summary, evidence.log
    assert not service.artifact("perfgate-release").exists()
    assert not list(service.repository.parent.rglob("perfgate-release-key"))


@pytest.fixture
def measured(service: Service, tmp_path: Path) -> Path:
    """A run folder with numbers that a program really gave, of a stand-in engine."""
    text = (STANDINS / "standin.yaml").read_text()
    text = text.replace("reference: self", "reference: stored")
    text = text.replace("reference_starts: 4", "reference_starts: 1")
    text = text.replace("noise: measured", "bands: {output_throughput: 0.25}")
    scenarios = service.repository / "scenarios"
    (scenarios / "standin.yaml").write_text(text)
    (service.repository / "conftest.py").write_text(
        'pytest_plugins = ["perfgate.suite.plugin", "standin"]\n'
    )
    environment = {
        **inherited("PERFGATE_"),
        **ONLY_NEEDED_PLUGINS,
        "PYTHONPATH": str(STANDINS),
        "PERFGATE_STANDIN_COUNTER": str(tmp_path / "starts"),
        "PERFGATE_LEASES": os.environ["PERFGATE_LEASES"],
    }
    folder = service.artifact("perfgate-run-cpu", run_id="77")
    folder.parent.mkdir(parents=True)
    words = ["perf_tests/test_serving.py", "perf_tests/test_sweep.py", "-m", "standin", "--record"]
    words = [*BENCHMARK, *words, "--engine-commit", "aaa", "--run-dir", str(folder)]
    status, said = session(words, service.repository, environment)
    assert status == 0, said
    service.commit = commit(service.repository, "A scenario", "scenarios")
    return folder


@pytest.fixture
def gh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program `gh` that notes what it was asked for."""
    folder = tmp_path / "gh-bin"
    folder.mkdir()
    noted = tmp_path / "gh-calls"
    program = folder / "gh"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>{noted}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return noted


@pytest.mark.usefixtures("measured")
def test_a_baseline_is_proposed_with_its_evidence(runner: Make, service: Service, gh: Path) -> None:
    github = runner(
        machine={"PYTHONPATH": str(STANDINS)}, variables={"PERFGATE_MODULES": "standin"}
    )
    run = github.run("baseline_update.yml", {"run-id": "77", "reason": "the $(first) `numbers`"})
    assert run.result == "success", [(job.log, job.annotations) for job in run.jobs]
    branch = "perfgate/baselines-77-4242"
    shown = git(service.repository, "diff", "--stat", f"{service.commit}..{branch}")
    assert "baselines/cpu/standin-serve/aaa.json" in shown
    assert shown.count("|") == shown.count("baselines/")
    calls = gh.read_text()
    assert f"pr create --head {branch}" in calls
    body = (service.artifact("perfgate-proposal") / "body.md").read_text()
    assert "### `standin-serve` on `cpu`" in body
    assert "The runs ended in status 0." in body
    message = git(service.repository, "log", "-1", "--format=%B", branch)
    assert message.startswith("Baseline standin-serve on cpu: stand-in 1.0 aaa, the first")
    assert "Accepted-by: octocat" in message
    stored = git(service.repository, "show", f"{branch}:baselines/cpu/standin-serve/aaa.json")
    assert "the $(first) `numbers`" in stored
    assert "octocat" in stored


def test_a_proposal_that_changes_anything_else_opens_nothing(
    runner: Make, service: Service, gh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The patch is data of a job with fewer rights: what comes of it is checked."""
    script = service.repository / ".github/actions/perfgate/propose.sh"
    patch = base64.b64encode(b"--- /dev/null\n+++ b/perf_tests/owned.py\n@@ -0,0 +1 @@\n+1\n")
    mail = "\n".join(
        (
            f"From {'0' * 40} Mon Sep 17 00:00:00 2001",
            "From: Eve <e@x.org>",
            "Date: Mon, 23 Nov 2026 12:00:00 +0000",
            "Subject: Baseline",
            "Content-Transfer-Encoding: base64",
            f"\n{patch.decode()}\n",
        )
    )
    script.write_text(
        'set -e\nmkdir -p "$PROPOSAL"\necho body >"$PROPOSAL/body.md"\n'
        f'printf %s "{mail}" >"$PROPOSAL/baselines.patch"\n'
    )
    service.commit = commit(service.repository, "bad")
    run = runner().run("baseline_update.yml", {"run-id": "77", "reason": "none"})
    assert run.job("evidence").result == "success", run.job("evidence").log
    job = run.job("pull-request")
    assert job.result == "failure"
    assert ("error", "the proposal changes something that is no baseline") in job.annotations
    assert not gh.exists()
