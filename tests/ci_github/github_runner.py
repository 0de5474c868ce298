"""Runs workflow files as GitHub documents it: jobs by their needs, matrix rows, steps in order.

Expressions are evaluated by GitHub's own library, `run:` steps by bash as the runner calls it,
actions by stand-ins (github_actions). Every job has a workspace and an environment of its own.
"""

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from github_actions import ACTIONS, ActionFailed, Service, git
from github_expressions import Expressions

Plain = dict[str, Any]
_COMMAND = re.compile(r"::(error|warning|notice)(?: [^:]*)?::(.*)")


@dataclass
class Job:
    """How a job, or one row of it, ended."""

    id: str
    result: str
    outputs: dict[str, str] = field(default_factory=dict)
    log: str = ""
    summary: str = ""
    annotations: list[tuple[str, str]] = field(default_factory=list)
    evaluated: Plain = field(default_factory=dict)
    is_group: bool = False  # of jobs that are listed by themselves


@dataclass
class Run:
    """How a workflow ended: its jobs in order, those of called workflows as `caller/job`."""

    jobs: list[Job] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)

    @property
    def result(self) -> str:
        """As GitHub concludes a workflow."""
        results = {job.result for job in self.jobs}
        return next((one for one in ("failure", "cancelled") if one in results), "success")

    def job(self, name: str) -> Job:
        """The only job of that name."""
        (found,) = [job for job in self.jobs if job.id == name]
        return found


class Runner:
    """One workflow run.

    Args:
        service: repository and artifacts.
        folder: for workspaces.
        expressions: the evaluator.
        event: the contexts `github.event_name` and `github.event`.
        variables: of the repository (`vars`).
        secrets: of the repository.
        machine: environment variables of all runners.
        lost: names of matrix rows whose runner is lost before it does anything.
        cancel: names of matrix rows → file in their workspace that, once it is there, lets somebody
            cancel the run.
    """

    def __init__(
        self,
        service: Service,
        folder: Path,
        expressions: Expressions,
        *,
        event: tuple[str, Plain] = ("workflow_dispatch", {}),
        variables: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
        machine: Mapping[str, str] | None = None,
        lost: tuple[str, ...] = (),
        cancel: Mapping[str, str] | None = None,
    ) -> None:
        self.service = service
        self.folder = folder
        self.evaluator = expressions
        self.variables = dict(variables or {})
        self.secrets = dict(secrets or {})
        self.machine = dict(machine or {})
        self.lost = lost
        self.cancel = dict(cancel or {})
        self.cancelled = False
        self.github: Plain = {
            "event_name": event[0],
            "event": event[1] or {"repository": {"default_branch": "main"}},
            "repository": "octo/gate",
            "server_url": "https://github.com",
            "actor": "octocat",
            "run_id": service.run_id,
            "run_attempt": "1",
            "ref_name": "main",
            "token": "",
        }

    def run(self, workflow: str, inputs: Plain | None = None, prefix: str = "") -> Run:
        """Run a workflow file of the repository's commit to its end."""
        source = self._read(f".github/workflows/{workflow}")
        trigger = source[True]  # YAML 1.1 reads `on` so
        dispatched = None if prefix else trigger.get("workflow_dispatch")
        declared = (dispatched or trigger.get("workflow_call") or {}).get("inputs", {})
        contexts: Plain = {
            "github": self.github,
            "vars": self.variables,
            "secrets": self.secrets,
        }
        asked = prefix or inputs is not None or self.github["event_name"] == "workflow_dispatch"
        contexts["inputs"] = self._inputs(declared if asked else {}, inputs or {}, contexts)
        run = Run()
        ended: dict[str, Job] = {}
        for name in _in_order(source["jobs"]):
            job = source["jobs"][name]
            ended[name] = self._job(f"{prefix}{name}", job, ended, contexts, run)
            if ended[name] not in run.jobs and not ended[name].is_group:
                run.jobs.append(ended[name])
        called = (trigger.get("workflow_call") or {}).get("outputs", {})
        results = {
            name: {"outputs": job.outputs, "result": job.result} for name, job in ended.items()
        }
        run.outputs = {
            name: self.evaluator.text(one["value"], {**contexts, "jobs": results})
            for name, one in called.items()
        }
        return run

    def _read(self, path: str) -> Plain:
        shown = git(self.service.repository, "show", f"{self.service.commit}:{path}")
        found: Plain = yaml.safe_load(shown)
        return found

    def _inputs(self, declared: Plain, given: Plain, contexts: Plain) -> Plain:
        unknown = given.keys() - declared.keys()
        assert not unknown, f"inputs that the workflow does not declare: {unknown}"
        found = {}
        for name, one in declared.items():
            assert name in given or not one.get("required"), f"required input: {name}"
            value = given.get(name, self.evaluator.value(one.get("default"), contexts))
            kind = {"boolean": bool, "number": (int, float)}.get(one.get("type", "string"), str)
            empty = {bool: False, str: ""}.get(kind, 0) if value is None else value  # type: ignore[call-overload]
            assert isinstance(empty, kind), f"{name}: {empty!r} is no {one.get('type')}"
            found[name] = empty
        return found

    def _job(self, name: str, job: Plain, ended: Mapping[str, Job], above: Plain, run: Run) -> Job:
        needs = job.get("needs", [])
        needed = {one: ended[one] for one in ([needs] if isinstance(needs, str) else needs)}
        contexts = {
            **above,
            "needs": {
                one: {"result": job.result, "outputs": job.outputs} for one, job in needed.items()
            },
        }
        status = _status_of([one.result for one in needed.values()])
        if self.cancelled:
            status = "cancelled"
        if not self.evaluator.holds(job.get("if"), contexts, status):
            return Job(name, "cancelled" if self.cancelled else "skipped")
        if "uses" in job:
            return self._called(name, job, contexts, run)
        if "strategy" not in job:
            return self._row(name, job, contexts)
        matrix = self.evaluator.value(job["strategy"]["matrix"], contexts)
        rows = []
        for row in matrix["include"]:
            contexts["matrix"] = row
            title = self.evaluator.text(job["name"], contexts)
            if self.cancelled:
                rows.append(Job(f"{name}/{title}", "cancelled"))
            elif title in self.lost:
                rows.append(Job(f"{name}/{title}", "failure"))
            else:
                rows.append(self._row(f"{name}/{title}", job, dict(contexts), title))
        assert rows, "GitHub fails a job whose matrix has no row"
        run.jobs += rows
        results = {one.result for one in rows}
        worst = next((one for one in ("failure", "cancelled") if one in results), "success")
        return Job(name, worst, is_group=True)

    def _called(self, name: str, job: Plain, contexts: Plain, run: Run) -> Job:
        workflow = job["uses"].removeprefix("./.github/workflows/")
        assert workflow != job["uses"]
        given = self.evaluator.value(job.get("with", {}), contexts)
        kept = self.secrets
        self.secrets = self.evaluator.value(job.get("secrets", {}), contexts)
        inner = self.run(workflow, given, prefix=f"{name}/")
        self.secrets = kept
        run.jobs += inner.jobs
        return Job(name, inner.result, inner.outputs, is_group=True)

    def _row(self, name: str, job: Plain, contexts: Plain, title: str = "") -> Job:
        place = self.folder / str(uuid.uuid4())
        workspace, temp = place / "work", place / "temp"
        workspace.mkdir(parents=True)
        temp.mkdir()
        contexts |= {
            "runner": {"environment": "github-hosted", "os": "Linux", "temp": str(temp)},
            "job": {"status": "success"},
            "steps": {},
            "strategy": {},
        }
        environment = self.evaluator.value(job.get("env", {}), contexts)
        contexts["env"] = environment
        done = Job(name, "success")
        done.evaluated = {
            key: self.evaluator.value(job.get(key), contexts)
            for key in ("runs-on", "timeout-minutes", "environment", "concurrency")
        }
        assert done.evaluated["runs-on"], "no label: GitHub would not start the job"
        _Steps(self, done, contexts, workspace, temp, title).run(job["steps"])
        done.outputs = {
            key: self.evaluator.text(one, contexts) for key, one in job.get("outputs", {}).items()
        }
        return done


class _Steps:
    """The steps of one job, in order."""

    def __init__(
        self, runner: Runner, job: Job, contexts: Plain, workspace: Path, temp: Path, title: str
    ) -> None:
        self.runner, self.job, self.contexts = runner, job, contexts
        self.workspace, self.temp, self.title = workspace, temp, title
        self.path: list[str] = []
        self.exported: dict[str, str] = {}
        self.cancelled = False

    def run(self, steps: list[Plain]) -> None:
        """All steps of a job."""
        self._each(steps, self.contexts, {})

    def _each(self, steps: list[Plain], contexts: Plain, above: Mapping[str, str]) -> None:
        for step in steps:
            evaluator = self.runner.evaluator
            if not evaluator.holds(step.get("if"), contexts, self.job.result):
                outcome, outputs = "skipped", {}
            else:
                environment = {
                    **above,
                    **{
                        key: evaluator.text(one, contexts)
                        for key, one in step.get("env", {}).items()
                    },
                }
                outcome, outputs = self._step(step, contexts, environment)
            if "id" in step:
                contexts["steps"][step["id"]] = {"outcome": outcome, "outputs": outputs}
            if outcome in ("failure", "cancelled") and self.job.result == "success":
                self.job.result = outcome

    def _step(
        self, step: Plain, contexts: Plain, environment: Mapping[str, str]
    ) -> tuple[str, dict[str, str]]:
        if "run" in step:
            return self._shell(step, contexts, environment)
        given = {
            key: self.runner.evaluator.text(one, contexts)
            for key, one in step.get("with", {}).items()
        }
        if step["uses"].startswith("./"):
            return self._composite(step["uses"], given, contexts, environment)
        name, _, pin = step["uses"].partition("@")
        assert re.fullmatch("[0-9a-f]{40}", pin), "not pinned"
        try:
            outputs = ACTIONS[name](given, self.workspace, self.runner.service)
        except ActionFailed as failed:
            self.job.annotations.append(("error", str(failed)))
            return "failure", {}
        return "success", outputs

    def _composite(
        self, folder: str, given: Plain, contexts: Plain, environment: Mapping[str, str]
    ) -> tuple[str, dict[str, str]]:
        action = yaml.safe_load((self.workspace / folder / "action.yml").read_text())
        unknown = given.keys() - action["inputs"].keys()
        assert not unknown, f"inputs that the action does not declare: {unknown}"
        inputs = {
            key: given.get(key, one.get("default", "")) for key, one in action["inputs"].items()
        }
        inner = {**contexts, "inputs": inputs, "steps": {}}
        before = self.job.result
        place = {"GITHUB_ACTION_PATH": str(self.workspace / folder)}
        self._each(action["runs"]["steps"], inner, {**environment, **place})
        outputs = {
            key: self.runner.evaluator.text(one["value"], inner)
            for key, one in action.get("outputs", {}).items()
        }
        failed = self.job.result != before
        return (self.job.result if failed else "success"), outputs

    def _shell(
        self, step: Plain, contexts: Plain, environment: Mapping[str, str]
    ) -> tuple[str, dict[str, str]]:
        evaluator = self.runner.evaluator
        script = self.temp / f"{uuid.uuid4()}.sh"
        script.write_text(evaluator.text(step["run"], contexts))
        files = {
            name: self.temp / f"{name}-{uuid.uuid4()}"
            for name in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")
        }
        for one in files.values():
            one.touch()
        # As documented: without `shell:` it is `bash -e`, with `shell: bash` the longer line.
        bash = ["bash", "-e", str(script)]
        if step.get("shell") == "bash":
            bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
        log = self.temp / "log"
        with log.open("w") as written:
            process = subprocess.Popen(
                bash,
                cwd=self.workspace,
                env=self._environment(environment, files),
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            status = self._wait(process)
        said = log.read_text()
        self.job.log += said
        self._commands(said)
        self.job.summary += files["GITHUB_STEP_SUMMARY"].read_text()
        self.exported |= _pairs(files["GITHUB_ENV"].read_text())
        self.path = files["GITHUB_PATH"].read_text().splitlines() + self.path
        outcome = "success" if status == 0 else "failure"
        if self.cancelled and status != 0:
            outcome = "cancelled"
        return outcome, _pairs(files["GITHUB_OUTPUT"].read_text())

    def _environment(
        self, environment: Mapping[str, str], files: Mapping[str, Path]
    ) -> dict[str, str]:
        github = self.runner.github
        system = os.environ.get("PATH", os.defpath).split(os.pathsep)
        own = str(Path(sys.executable).parent)  # no perfgate, but what the action puts there
        return {
            "HOME": os.environ["HOME"],
            "LANG": "C.UTF-8",
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_REPOSITORY": github["repository"],
            "GITHUB_RUN_ID": github["run_id"],
            "GITHUB_RUN_ATTEMPT": github["run_attempt"],
            "GITHUB_EVENT_NAME": github["event_name"],
            "GITHUB_ACTOR": github["actor"],
            "GITHUB_SERVER_URL": github["server_url"],
            "RUNNER_TEMP": str(self.temp),
            "RUNNER_OS": "Linux",
            **self.runner.machine,
            **{name: str(one) for name, one in files.items()},
            **{key: str(one) for key, one in self.contexts["env"].items()},
            **self.exported,
            **environment,
            "PATH": os.pathsep.join([*self.path, *(one for one in system if one != own)]),
        }

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        """Wait for a step; in one that is to be cancelled, end it as the runner does."""
        awaited = self.runner.cancel.get(self.title)
        if awaited is None:
            return process.wait(timeout=900)
        deadline = time.monotonic() + 300
        while process.poll() is None and not list(self.workspace.glob(awaited)):
            assert time.monotonic() < deadline, "never came so far that it could be cancelled"
            time.sleep(0.05)
        if process.poll() is not None:
            return process.returncode
        del self.runner.cancel[self.title]
        self.runner.cancelled = self.cancelled = True
        # To the step's own process alone: SIGINT, then SIGTERM, then SIGKILL to all. GitHub waits
        # 7.5 s and 2.5 s; on a crowded machine a session takes longer to end.
        for number in (signal.SIGINT, signal.SIGTERM):
            process.send_signal(number)
            try:
                return process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                continue
        os.killpg(process.pid, signal.SIGKILL)
        return process.wait()

    def _commands(self, said: str) -> None:
        """What the log tells the runner, but between a pair of lines that stop it."""
        stopped: str | None = None
        for line in said.splitlines():
            if stopped is not None:
                stopped = None if line == f"::{stopped}::" else stopped
            elif line.startswith("::stop-commands::"):
                stopped = line.removeprefix("::stop-commands::")
            elif found := _COMMAND.match(line):
                self.job.annotations.append((found[1], found[2]))
        assert stopped is None, "commands were never taken up again"


def _pairs(text: str) -> dict[str, str]:
    """What a step wrote as NAME=value or NAME<<MARK."""
    found = {}
    lines = iter(text.splitlines())
    for line in lines:
        name, sign, value = line.partition("=")
        if not sign or "<<" in name:
            name, _, mark = line.partition("<<")
            value = "\n".join(iter(lambda: next(lines), mark))
        found[name] = value
    return found


def _status_of(results: list[str]) -> str:
    if "failure" in results:
        return "failure"
    return next((one for one in ("cancelled", "skipped") if one in results), "success")


def _in_order(jobs: Plain) -> list[str]:
    """The jobs so that each comes after those that it needs."""
    order: list[str] = []

    def take(name: str) -> None:
        needs = jobs[name].get("needs", [])
        for one in [needs] if isinstance(needs, str) else needs:
            take(one)
        if name not in order:
            order.append(name)

    for name in jobs:
        take(name)
    return order
