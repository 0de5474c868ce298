"""The workflows that call perfgate's, executed: nightly, pull requests, release."""

import base64
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fake_gh import Gh
from forked import session
from github_actions import Service, commit, git
from github_runner import Run, Runner
from measuring_mocks import EXPRESSION, STANDINS, add_scenario, install
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS, inherited

pytestmark = [pytest.mark.slow]

Make = Callable[..., Runner]
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
    add_scenario(service.repository)
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


@pytest.mark.usefixtures("measured")
def test_a_baseline_is_proposed_with_its_evidence(runner: Make, service: Service, gh: Gh) -> None:
    github = runner(
        machine={"PYTHONPATH": str(STANDINS)}, variables={"PERFGATE_MODULES": "standin"}
    )
    run = github.run("baseline_update.yml", {"run-id": "77", "reason": "the $(first) `numbers`"})
    assert run.result == "success", [(job.log, job.annotations) for job in run.jobs]
    branch = "perfgate/baselines-77-4242"
    shown = git(service.repository, "diff", "--stat", f"{service.commit}..{branch}")
    assert "baselines/cpu/standin-serve/aaa.json" in shown
    assert shown.count("|") == shown.count("baselines/")
    assert f"pr create --head {branch} --title Baselines of run 77" in gh.calls[-1]
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
    runner: Make, service: Service, gh: Gh, monkeypatch: pytest.MonkeyPatch
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
        'echo proposed=true >>"$GITHUB_OUTPUT"\n'
    )
    service.commit = commit(service.repository, "bad")
    run = runner().run("baseline_update.yml", {"run-id": "77", "reason": "none"})
    assert run.job("evidence").result == "success", run.job("evidence").log
    job = run.job("pull-request")
    assert job.result == "failure"
    assert ("error", "the proposal changes something that is no baseline") in job.annotations
    assert not [call for call in gh.calls if call.startswith("pr ")]


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize(
    ("head", "run_id"),
    [("eve/gate", "77"), ("", "77"), ("octo/gate", "77/../../../eve/gate/runs/1")],
)
def test_the_run_of_a_fork_proposes_nothing(
    runner: Make, service: Service, gh: Gh, tmp_path: Path, head: str, run_id: str
) -> None:
    """Its artifacts look as good as any: they are not even downloaded."""
    gh.answers("head", head)
    run = runner().run("baseline_update.yml", {"run-id": run_id, "reason": "mine are better"})
    assert [(job.id, job.result) for job in run.jobs] == [
        ("evidence", "failure"),
        ("pull-request", "skipped"),
    ]
    (annotation,) = run.job("evidence").annotations
    told = "octo/gate alone" if run_id == "77" else "not the number of a workflow run"
    assert told in annotation[1]
    assert not list(tmp_path.glob("*/work/collected"))
    assert not service.artifact("perfgate-proposal").exists()
    assert [call.split()[0] for call in gh.calls] in ([], ["api"])


@pytest.mark.usefixtures("measured")
def test_no_pull_request_reaches_the_job_that_writes(runner: Make, gh: Gh) -> None:
    """Whichever workflow of a pull request calls it."""
    event = {"pull_request": {"number": 7, "head": {"repo": {"full_name": "eve/gate"}}}}
    run = runner(event=("pull_request", event)).run("baseline_update.yml", {"run-id": "77"})
    assert [job.result for job in run.jobs] == ["skipped", "skipped"]
    assert gh.calls == []


@dataclass
class Nights:
    """Nights that measure a mock engine, one after the other."""

    make: Make
    service: Service
    machine: dict[str, str]

    def next(self, event: tuple[str, dict[str, Any]] = ("schedule", {}), **github: str) -> Run:
        """One more; what it measured is in no baseline."""
        shutil.rmtree(self.service.store, ignore_errors=True)
        variables = {
            "PERFGATE_RUNNERS": json.dumps({"none": ["self-hosted"]}),
            "PERFGATE_NIGHTLY_EXPRESSION": EXPRESSION,
            "PERFGATE_NIGHTLY_MODE": "auto",
        }
        runner = self.make(event=event, variables=variables, machine=self.machine)
        runner.github |= github
        return runner.run("nightly.yml")


@pytest.fixture
def nights(runner: Make, service: Service, tmp_path: Path) -> Nights:
    """The first two of the nights that a baseline requires are over."""
    add_scenario(service.repository)
    service.commit = commit(service.repository, "A scenario")
    machine = {**install(tmp_path), "PERFGATE_HOME": str(tmp_path / "home")}
    found = Nights(runner, service, machine)
    for _ in range(2):
        run = found.next()
        assert run.result == "success", [(job.id, job.log) for job in run.jobs]
        assert run.job("propose").result == "skipped"
    return found


def test_the_third_night_of_the_default_branch_proposes_what_it_completed_once(
    nights: Nights, service: Service, gh: Gh
) -> None:
    event = {"repository": {"default_branch": "main"}}
    run = nights.next(("workflow_dispatch", event), ref_name="feature")
    assert run.job("propose").result == "skipped"
    assert "By hand: `gh workflow run" in run.job("gate/collect").summary
    assert gh.calls == []

    gh.answers("forbidden", "GraphQL: GitHub Actions is not permitted to create pull requests")
    run = nights.next()
    assert run.result == "success", "settings of the organisation fail no night"
    ((level, said),) = run.job("propose/pull-request").annotations
    assert level == "warning"
    command = "gh pr create --repo octo/gate --head perfgate/baselines-nightly"
    assert f"{command} --title 'Baselines of run 4242' --body ''" in said
    branch = "perfgate/baselines-nightly"
    left = git(service.repository, "rev-parse", branch)

    gh.answers("open", "https://github.com/octo/gate/pull/8")
    run = nights.next()
    ((level, said),) = run.job("propose/pull-request").annotations
    assert (level, said.split()[-1]) == ("notice", "https://github.com/octo/gate/pull/8")
    assert git(service.repository, "rev-parse", branch) == left

    gh.answers("open", "")
    gh.answers("forbidden", "")
    before = len(gh.calls)
    run = nights.next()
    assert run.result == "success", [(job.id, job.log, job.annotations) for job in run.jobs]
    assert git(service.repository, "rev-parse", branch) != left
    create = [call for call in gh.calls[before:] if call.startswith("pr create")]
    assert [call.partition(" --body-file")[0] for call in create] == [
        f"pr create --head {branch} --title Baselines of run 4242"
    ]
    message = git(service.repository, "log", "-1", "--format=%B", branch)
    assert "Baseline standin-serve on cpu: stand-in 1.0" in message
    assert "Accepted-by: the merge of the proposal of run 4242" in message
    assert "octocat" not in git(service.repository, "show", branch)
    # Once it is merged, a night is compared with it, and proposes nothing.
    git(service.repository, "merge", "--quiet", branch)
    service.commit = git(service.repository, "rev-parse", "HEAD")
    run = nights.next()
    assert run.job("propose").result == "skipped"
    assert "compared with: stand-in 1.0" in run.job("gate/collect").summary
