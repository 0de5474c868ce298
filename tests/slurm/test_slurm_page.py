"""docs/how-to/slurm_nightly.md, followed on a real Slurm: from nothing to a judged night.

In a rehearsal: mocks play the engine, and no node has a GPU.
"""

import json
import re
import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from clusters import Cluster
from page_steps import Newcomer, blocks, nights_of, require_all_judged, steps_of
from sizes import IS_NIGHTLY
from test_nightly_sbatch import Nightly

pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly,
    pytest.mark.skipif(not IS_NIGHTLY, reason="five nights long: make nightly"),
]
STEPS = steps_of("slurm_nightly.md")
REHEARSED = ("--rehearse", "--budget", "9h")


@dataclass
class Follower(Newcomer):
    """Who follows Slurm's page."""

    cluster: Cluster = field(kw_only=True)
    nightly: Nightly = field(init=False)
    job: str = ""

    def _repository(self, text: str) -> None:
        assert "perfgate init /shared/gate --ci slurm" in text
        self.nightly = Nightly(self.folder, self.cluster)

    def _try_it_without_a_gpu(self, text: str) -> None:
        (status,) = re.findall(r"exit status (\d+)", text)
        self._submit(text)
        assert self.nightly.status(f"nightly-{self.job}") == f"{status}\n"

    def _site(self, text: str) -> None:
        """A rehearsal needs nothing of a site."""
        assert "`site.yaml`" in text

    def _check_a_node(self, text: str) -> None:
        self.look(text)

    def _first_numbers(self, text: str) -> None:
        self.environment |= dict(re.findall(r"export (NIGHTLY_\w+)=(\w+)", text))
        for _ in range(nights_of(text)):
            self._submit(text, *REHEARSED)

    def _accept_them(self, text: str) -> None:
        self.environment["PERFGATE_HOME"] = str(self.folder / "home")  # as the jobs have it
        self.accept(self.nightly.log(self.job))

    def _every_night(self, text: str) -> None:
        assert "the job of step 7" in text
        self._submit(STEPS["First numbers"], *REHEARSED, NIGHTLY_MODE="gate")
        report = self.repository / "runs" / f"nightly-{self.job}.report" / "report.json"
        require_all_judged(json.loads(report.read_text()))

    def _submit(self, text: str, *more: str, **variables: str) -> None:
        """Hand in the first job of a step's script; wait for its end."""
        (script,) = blocks(text, "sh")
        line = next(line for line in script.splitlines() if line.startswith("sbatch "))
        words = shlex.split(line)
        words = [words[0], "--parsable", *words[1:], *more]
        env = {
            **self.cluster.env,
            **{"PERFGATE_HOME": str(self.folder / "home")},
            **{"NIGHTLY_PROGRAMS": str(self.nightly.programs)},
            **self.environment,
            **variables,
        }
        done = subprocess.run(
            words, cwd=self.repository, env=env, capture_output=True, text=True, check=True
        )
        self.job = done.stdout.strip()
        facts = self.nightly.ended(self.job)
        assert facts["ExitCode"] == "13:0", self.nightly.log(self.job)


def test_from_nothing_to_a_night_with_every_test_judged(tmp_path: Path, slurm: Cluster) -> None:
    Follower(tmp_path, cluster=slurm).follow(STEPS)


def test_without_its_first_numbers_it_leads_nowhere(tmp_path: Path, slurm: Cluster) -> None:
    left = {name: text for name, text in STEPS.items() if name != "First numbers"}
    with pytest.raises(AssertionError):
        Follower(tmp_path, cluster=slurm).follow(left)
