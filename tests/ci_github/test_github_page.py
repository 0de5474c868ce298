"""docs/how-to/github.md, followed step by step in a rehearsal: from nothing to a judged night.

Beside each rehearsed night of step 7 another one measures a mock engine: a rehearsal proposes
nothing.
"""

import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CalledProcessError

import pytest
from fake_gh import Gh
from github_actions import Service, commit, git
from github_expressions import Expressions
from github_runner import Run, Runner
from measuring_mocks import EXPRESSION, SCENARIO, add_scenario, install
from page_steps import Newcomer, nights_of, require_all_judged, steps_of
from sizes import sized

pytestmark = [pytest.mark.slow]
STEPS = steps_of("github.md")
_ROW = re.compile(r"^\| (`PERFGATE_[^|]+?) +\| ([^|]+?) +\|", re.M)


@dataclass
class Follower(Newcomer):
    """Who follows GitHub's page; mocks play the engine all along."""

    expressions: Expressions = field(kw_only=True)
    gh: Gh = field(kw_only=True)
    variables: dict[str, str] = field(default_factory=dict)
    run: Run = field(default_factory=Run)
    nights: int = 0

    def _repository(self, text: str) -> None:
        self.lay_out(text)
        assert "Commit everything" in text
        git(self.repository, "init", "--quiet", "--initial-branch", "main")
        commit(self.repository, "A gate")

    def _variables(self, text: str) -> None:
        """Those of the table, with its examples; folders are made up."""
        for names, examples in _ROW.findall(text):
            values = re.findall(r"`([^`]+)`", examples)
            self.variables |= dict(zip(re.findall(r"`(\w+)`", names), values, strict=False))
        for name in ("PERFGATE_MODELS", "PERFGATE_DATASETS"):
            if name in self.variables:
                self.set_variables(f"`{name}`")
                self.variables[name] = self.environment[name]
        del self.variables["PERFGATE_NIGHTLY_MODE"], self.variables["PERFGATE_REQUIREMENT"]

    def _try_it_without_a_gpu(self, text: str) -> None:
        (status,) = re.findall(r"\bstatus (\d+)", text)
        self._night()
        assert f"status {status}:" in self.run.job("gate/collect").summary

    def _runner(self, text: str) -> None:
        assert "`PERFGATE_RUNNERS`" in text

    def _first_numbers(self, text: str) -> None:
        (mode,) = re.findall(r"with the mode `(\w+)`", text)
        self.set_variables(text)
        self.environment |= install(self.folder)
        # The runner of this test has neither GPU nor label; a reader's has what the table set.
        assert {"PERFGATE_RUNNERS", "PERFGATE_NIGHTLY_EXPRESSION"} <= self.variables.keys()
        self.variables |= {
            "PERFGATE_RUNNERS": json.dumps({"none": ["self-hosted"]}),
            "PERFGATE_PYTHON": sys.executable,
        }
        add_scenario(self.repository)
        commit(self.repository, "A scenario")
        for _ in range(nights_of(text)):
            assert not self._opened()
            self._night(mode=mode, expression=EXPRESSION, rehearse=False)
            self._night(mode=mode)

    def _opened(self) -> list[str]:
        """The branches whose pull request was opened."""
        return re.findall(r"^pr create --head (\S+)", "\n".join(self.gh.calls), re.M)

    def _accept_them(self, text: str) -> None:
        assert "#update-a-baseline" in text
        (branch,) = re.findall(r"pull request of the branch `([^`]+)`", text)
        assert self._opened() == [branch]
        git(self.repository, "merge", "--quiet", branch)
        assert list((self.repository / "baselines").glob(f"cpu/{SCENARIO}/*.json"))
        self.accept("".join(job.log for job in self.run.jobs))

    def _every_night(self, text: str) -> None:
        store = self._night(mode="auto")
        require_all_judged(json.loads((store / "perfgate-report" / "report.json").read_text()))

    def _night(self, **inputs: object) -> Path:
        """Run the nightly by hand; the folder of its artifacts."""
        self.nights += 1
        place = self.folder / f"night-{self.nights}"
        place.mkdir()
        head = git(self.repository, "rev-parse", "HEAD")
        service = Service(self.repository, head, place / "store")
        machine = {**self.environment, "PERFGATE_PYTHON": sys.executable}
        runner = Runner(service, place, self.expressions, variables=self.variables, machine=machine)
        self.run = runner.run("nightly.yml", {"rehearse": True, **inputs})
        assert self.run.result == "success", [(job.id, job.log) for job in self.run.jobs]
        return service.artifact("")


def test_from_nothing_to_a_night_with_every_test_judged(
    tmp_path: Path, expressions: Expressions, gh: Gh
) -> None:
    Follower(tmp_path, expressions=expressions, gh=gh).follow(STEPS)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "title",
    sized(
        ["Repository"],
        ["Repository", "Variables", "Models and data sets", "First numbers", "Accept them"],
    ),
)
def test_without_one_of_its_steps_it_leads_nowhere(
    title: str, tmp_path: Path, expressions: Expressions, gh: Gh
) -> None:
    left = {name: text for name, text in STEPS.items() if name != title}
    with pytest.raises((AssertionError, KeyError, FileNotFoundError, CalledProcessError)):
        Follower(tmp_path, expressions=expressions, gh=gh).follow(left)
