"""docs/how-to/gitlab.md, followed step by step in a rehearsal: from nothing to a judged night.

Beside each rehearsed night of step 7 another one measures a mock engine: a rehearsal proposes
nothing.
"""

import json
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from gitlab_executor import PROGRAMS, Ended, GateRepository, require_executor
from measuring_mocks import EXPRESSION, SCENARIO, add_scenario, install
from page_steps import Newcomer, blocks, nights_of, require_all_judged, steps_of
from sizes import sized

pytestmark = [pytest.mark.slow]
STEPS = steps_of("gitlab.md")
# Steps that a rehearsal on this machine reaches a judged night without.
NOTHING_FOLLOWS = ("Install perfgate", "Try it", "Runner", "Controls", "Every night")


@pytest.fixture(scope="module", autouse=True)
def _executor() -> None:
    require_executor()


@dataclass
class Follower(Newcomer):
    """Who follows GitLab's page; mocks play the engine all along."""

    inputs: dict[str, Any] = field(default_factory=dict)
    ended: Ended = field(default_factory=lambda: Ended(0, ""))
    token: str = ""

    def _repository(self, text: str) -> None:
        self.lay_out(text)
        assert "leave `requirements` out" in text
        self.inputs["programs"] = str(PROGRAMS)

    def _pipeline(self, text: str) -> None:
        (block,) = blocks(text, "yaml")
        (file,) = yaml.safe_load(block)["include"]
        self.inputs = {**file["inputs"], **self.inputs}
        del self.inputs["requirements"]

    def _try_it(self, text: str) -> None:
        (status,) = re.findall(r"status (\d+)", text)
        self._run()
        assert f"status {status}:" in self.ended.output

    def _runner(self, text: str) -> None:
        """The machine of this test; what its containers need is written for another."""
        assert "shm_size" in text

    def _first_numbers(self, text: str) -> None:
        (mode,) = re.findall(r"`mode: (\w+)`", text)
        self.inputs |= {"mode": mode, "options": "--rehearse"}
        (self.token,) = re.findall(r"`(PERFGATE_\w+_TOKEN)`", text)
        self.set_variables(text)
        subprocess.run(("git", "init", "--quiet", "--bare", self._remote), check=True)
        config = ("config", "receive.advertisePushOptions", "true")
        subprocess.run(("git", "-C", self._remote, *config), check=True)
        self.environment |= {**install(self.folder), "GATE_PUSH_URL": str(self._remote)}
        add_scenario(self.repository)
        rehearsed, measured = self.inputs, {"expression": EXPRESSION, "options": "", "tags": "cpu"}
        for _ in range(nights_of(text)):
            assert not self._proposed()
            self.inputs = {**rehearsed, **measured}
            self._run()
            self.inputs = rehearsed
            self._run()

    @property
    def _remote(self) -> Path:
        return self.folder / "remote.git"

    def _proposed(self) -> list[str]:
        """The branches that were pushed."""
        listed = ("git", "-C", self._remote, "branch", "--list")
        return subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split()

    def _accept_them(self, text: str) -> None:
        (branch,) = re.findall(r"request\s+of\s+the\s+branch `([^`]+)`", text)
        assert self._proposed() == [branch]
        for words in (
            ("fetch", "--quiet", str(self._remote), branch),
            ("checkout", "--quiet", "FETCH_HEAD", "--", "baselines"),
        ):
            subprocess.run(("git", "-C", self.repository, *words), check=True)
        assert list((self.repository / "baselines").glob(f"cpu/{SCENARIO}/*.json"))
        self.accept(self.ended.output)

    def _every_night(self, text: str) -> None:
        del self.inputs["mode"]
        self.inputs["options"] = "--rehearse --gate"
        self._run()
        report = self.repository / "perfgate-report" / "report.json"
        require_all_judged(json.loads(report.read_text()))

    def _run(self) -> None:
        """Commit all, and have a pipeline run that finds nothing of those before it."""
        for left in ("perfgate-runs", "perfgate-report", ".gitlab-ci-local"):
            shutil.rmtree(self.repository / left, ignore_errors=True)
        include = {"local": "ci/gitlab/perfgate.gitlab-ci.yml", "inputs": self.inputs}
        (self.repository / ".gitlab-ci.yml").write_text(yaml.safe_dump({"include": [include]}))
        # Where gitlab-ci-local looks for the project's variables: in the folder that is its HOME.
        variables = self.folder / ".gitlab-ci-local" / "variables.yml"
        variables.parent.mkdir(exist_ok=True)
        # A child pipeline has no variable that `run` names: its branch would not be protected.
        known = {**self.environment, "CI_COMMIT_REF_PROTECTED": "true"}
        texts = {
            name: {"type": "variable", "values": {"*": value}} for name, value in known.items()
        }
        if self.token:  # of the job's environment alone
            texts[self.token] = {"type": "variable", "values": {"perfgate-baseline": "made up"}}
        variables.write_text(yaml.safe_dump({"global": texts}))
        self.ended = GateRepository.committed(self.repository).run()
        assert self.ended.end_of("perfgate-report") == ("PASS", 0), self.ended.output


def test_from_nothing_to_a_night_with_every_test_judged(tmp_path: Path) -> None:
    Follower(tmp_path).follow(STEPS)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "title",
    sized(
        ["Pipeline"],
        [title for title in STEPS if title not in NOTHING_FOLLOWS],
    ),
)
def test_without_one_of_its_steps_it_leads_nowhere(title: str, tmp_path: Path) -> None:
    left = {name: text for name, text in STEPS.items() if name != title}
    with pytest.raises((AssertionError, KeyError, ValueError, FileNotFoundError)):
        Follower(tmp_path).follow(left)
