"""The numbered steps of a how-to page, for tests that follow them from nothing.

A step is known by its bold title. What it does is taken from its text: the names of variables, the
commands and the values that stand there. So a title that nobody knows, or a step that is missing or
names less, is an error where the page is followed.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from documented_set import documented_suite

from perfgate.rehearsal import fake_files
from perfgate.scenarios.selection import select_marked

ROOT = Path(__file__).parents[1]
PROGRAMS = Path(sys.executable).parent
_STEP = re.compile(r"^\d+\. \*\*(?P<title>[^*]+?)[.:]?\*\*(?P<text>.*(?:\n(?:   .*|))*)", re.M)
_NUMBERS = {"two": 2, "three": 3, "four": 4}
# Checks that pass on any machine where the page was followed.
_OF_THIS_MACHINE = frozenset({"model", "dataset", "evaluators"})


def steps_of(page: str) -> dict[str, str]:
    """Title → text of each step of ``docs/how-to/PAGE``, in order."""
    text = (ROOT / "docs" / "how-to" / page).read_text(encoding="utf-8")
    found = {
        step["title"]: re.sub("(?m)^   ", "", step["text"]).strip() for step in _STEP.finditer(text)
    }
    assert found, f"{page} has no numbered steps"
    return found


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of one language in a step."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```", text, re.M | re.S)
    return [textwrap.dedent(block) for _, block in found]


@dataclass
class Newcomer:
    """Somebody who does what a page says, and has made up models and data sets where it names them.

    Attributes:
        folder: where everything is.
        environment: the variables that the page has had set so far.
    """

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def follow(self, steps: dict[str, str]) -> None:
        """Do each step in order, by the method that has its title."""
        for title, text in steps.items():
            getattr(self, "_" + re.sub(r"\W+", "_", title.lower()))(text)
        # A rehearsal needs neither, a machine with GPUs both.
        assert {"PERFGATE_MODELS", "PERFGATE_DATASETS"} <= self.environment.keys()

    def _install_perfgate(self, text: str) -> None:
        """It is the tests' own; the lines are tried where the wheel is."""
        assert "perfgate" in text

    def _models_and_data_sets(self, text: str) -> None:
        self.set_variables(text)
        if "perfgate doctor" in text:
            self.look(text)

    def _controls(self, text: str) -> None:
        """What a rehearsal starts has no place of its own."""
        assert "can be started" in text or "--control" in text

    @property
    def repository(self) -> Path:
        return self.folder / "gate"

    def perfgate(self, *words: str, status: int = 0) -> str:
        """What the command prints, in the gate repository."""
        done = subprocess.run(
            [str(PROGRAMS / "perfgate"), *words],
            cwd=self.repository if self.repository.is_dir() else self.folder,
            env={**clean_environment(), **self.environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    def lay_out(self, text: str) -> None:
        """Do the step's ``perfgate init``."""
        (words,) = re.findall(r"^ *perfgate (init [^&\n]+)", text, re.M)
        self.perfgate(*words.split())
        assert self.repository.is_dir()

    def set_variables(self, text: str) -> None:
        """Set those that a step names, each to a folder that is made up."""
        for name in re.findall(r"`(PERFGATE_[A-Z]+)`", text):
            self.environment[name] = str(self.folder / name.lower())

    def prepare(self, expression: str) -> None:
        """Put models and data sets of the selected scenarios into the folders named so far."""
        suite = documented_suite()
        scenarios = select_marked(suite.scenarios, expression, suite.markers)
        for name, made in (
            ("PERFGATE_MODELS", fake_files.models),
            ("PERFGATE_DATASETS", fake_files.datasets),
        ):
            if name in self.environment:
                made(Path(self.environment[name]), scenarios)

    def look(self, text: str) -> None:
        """Do the step's ``perfgate doctor -m``: GPUs and the engine alone may lack here."""
        (expression,) = re.findall(r'perfgate doctor -m "([^"]+)"', text)
        self.prepare(expression)
        told = json.loads(self.perfgate("doctor", "-m", expression, "--format", "json", status=1))
        lacking = {
            (check["name"], check["found"])
            for checks in told["checks"].values()
            for check in checks
            if check["name"] in _OF_THIS_MACHINE and check["outcome"] != "ok"
        }
        assert not lacking

    def accept(self, output: str) -> None:
        """Promote what the last night's log says is enough, as it says it."""
        lines = re.findall(r"enough for a baseline: perfgate (baseline promote .*) --by", output)
        assert lines, "the log names nothing to promote"
        for line in dict.fromkeys(lines):
            self.perfgate(*shlex.split(line), "--by", "Ada", "--reason", "the first")


def nights_of(text: str) -> int:
    """How many nights a step requires."""
    (word,) = re.findall(r"(\w+) nights\s+are\s+required", text)
    return _NUMBERS[word.lower()]


def clean_environment() -> dict[str, str]:
    """This process's environment without anything of perfgate's."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PERFGATE_")}


def require_all_judged(report: Mapping[str, object]) -> None:
    """Check that every selected test of a merged report has a verdict from numbers."""
    results = report["results"]
    assert isinstance(results, list)
    assert results
    judged = ("PASS", "IMPROVEMENT", "REGRESSION", "INCONCLUSIVE")
    assert not [one["name"] for one in results if one["verdict"] not in judged]
