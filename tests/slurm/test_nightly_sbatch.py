"""ci/slurm/nightly.sbatch on a real Slurm: to its end, told that time runs out, cancelled."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from clusters import Cluster, eventually
from sizes import IS_NIGHTLY

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).parents[2] / "ci" / "slurm" / "nightly.sbatch"
LAID_OUT = "ci/nightly.sbatch"  # in the gate repository
PROGRAMS = Path(sys.executable).parent
# Two groups of a few starts each, with stand-ins for the engine.
EXPRESSION = "b200 and offline and weekly and not chunked_context"
REHEARSED = ("--rehearse", "--budget", "9h")
FINAL_S = 240.0


class Nightly:
    """A gate repository whose nightly is submitted."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self.folder, self.cluster = folder, cluster
        self.gate = folder / "gate"
        laid_out = (PROGRAMS / "perfgate", "init", self.gate, "--ci", "slurm")
        subprocess.run(laid_out, check=True, capture_output=True)
        (self.gate / "site.yaml").unlink(missing_ok=True)
        # In a batch job srun would listen at its node's address, which slurmd, on the same loopback
        # device, does not see its call come from: here it listens at all.
        conf = Path(cluster.env["SLURM_CONF"])
        client = folder / "client.conf"
        client.write_text(re.sub("(?m)^CommunicationParameters.*$", "", conf.read_text()))
        self.programs = folder / "programs"
        self.programs.mkdir()
        for name in ("pytest", "perfgate"):
            text = f'#!/bin/sh\nexport SLURM_CONF={client}\nexec {PROGRAMS / name} "$@"\n'
            (self.programs / name).write_text(text)
            (self.programs / name).chmod(0o755)

    def submit(self, *options: str, words: tuple[str, ...] = REHEARSED, **variables: str) -> str:
        """Hand it in; the job's id."""
        argv = ("sbatch", "--parsable", "--gres=gpu:8", *options, LAID_OUT, EXPRESSION, *words)
        env = {**self.cluster.env, "PERFGATE_HOME": str(self.folder / "home"), **variables}
        env["NIGHTLY_PROGRAMS"] = str(self.programs)
        done = subprocess.run(
            argv, cwd=self.gate, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def log(self, job: str) -> str:
        """What the job printed so far."""
        file = self.gate / f"perfgate-nightly-{job}.log"
        return file.read_text() if file.exists() else ""

    def until(self, look: Callable[[], object]) -> None:
        """Wait with the patience that a night needs."""
        deadline = os.times().elapsed + FINAL_S
        while not look():
            assert os.times().elapsed < deadline
            try:
                eventually(look)
            except AssertionError:
                continue

    def ended(self, job: str) -> dict[str, str]:
        """The job's facts when it will not run again."""
        self.until(lambda: self.cluster.job_state(job) not in ("PENDING", "RUNNING", "COMPLETING"))
        return self.cluster.job(job)

    def status(self, run: str) -> str:
        """What stands in the file of the run's status."""
        file = self.gate / "runs" / f"{run}.status"
        return file.read_text() if file.exists() else ""


@pytest.fixture
def nightly(tmp_path: Path, slurm: Cluster) -> Nightly:
    return Nightly(tmp_path, slurm)


def test_a_night_ends_in_the_runs_status_and_a_report(nightly: Nightly) -> None:
    job = nightly.submit("--time=30")
    facts = nightly.ended(job)
    log = nightly.log(job)
    assert facts["JobState"] == "FAILED", log
    assert facts["ExitCode"] == "13:0", log
    assert nightly.status(f"nightly-{job}") == "13\n"
    report = nightly.gate / "runs" / f"nightly-{job}.report"
    assert "synthetic" in (report / "report.md").read_text().lower()
    assert "going on with" not in log


def test_time_that_runs_out_requeues_the_job_which_goes_on_where_it_was(nightly: Nightly) -> None:
    """As `--signal=B:TERM@…` does it, which Slurm may send a minute early: here at a step."""
    job = nightly.submit("--time=30", NIGHTLY_ATTEMPTS="2")
    nightly.until(lambda: "step 2" in nightly.log(job))
    nightly.cluster.run(("scancel", "--batch", "--signal=TERM", job))
    nightly.until(lambda: "the job goes back into the queue" in nightly.log(job))
    nightly.until(lambda: "beginning 2 of 2" in nightly.log(job))
    facts = nightly.ended(job)
    log = nightly.log(job)
    assert facts["Restarts"] == "1"
    assert f"going on with runs/nightly-{job}" in log
    assert log.count("pytest ended with status") == 2
    assert log.index("pytest ended with status 2") < log.index("beginning 2 of 2")


def test_a_budget_that_is_the_jobs_time_begins_nothing_that_would_not_end(
    nightly: Nightly,
) -> None:
    settings = {"NIGHTLY_ATTEMPTS": "1", "NIGHTLY_LEAD_S": "1799"}
    job = nightly.submit("--time=30", words=("--rehearse",), **settings)
    nightly.ended(job)
    log = nightly.log(job)
    assert "of --budget 1s" in log
    assert nightly.status(f"nightly-{job}") == "12\n", log


@pytest.mark.nightly
@pytest.mark.skipif(
    not IS_NIGHTLY, reason="two nights long; on each push a requeued job is gone on with"
)
def test_a_job_that_is_cancelled_does_not_come_back_and_can_be_gone_on_with(
    nightly: Nightly,
) -> None:
    job = nightly.submit("--time=30")
    nightly.until(lambda: "step 2" in nightly.log(job))
    nightly.cluster.run(("scancel", "--full", job))
    assert nightly.ended(job)["JobState"] == "CANCELLED"
    log = nightly.log(job)
    assert "goes back into the queue" not in log
    second = nightly.submit("--time=30", NIGHTLY_RUN=f"nightly-{job}")
    facts = nightly.ended(second)
    assert facts["ExitCode"] == "13:0", nightly.log(second)
    assert f"going on with runs/nightly-{job}" in nightly.log(second)
    assert nightly.status(f"nightly-{job}") == "13\n"


def test_no_expression_is_wrong_usage() -> None:
    done = subprocess.run(("bash", SCRIPT), capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert "usage: sbatch" in done.stderr


# The programs that the script calls in a job, for one whose run is over at once.
CALLED = {
    "squeue": "",
    "pytest": "mkdir -p runs/nightly-7; exit 12",
    "perfgate": """echo "$*" >>calls
case "$1 $2" in
  "baseline ready") printf "%s" "$ENOUGH" ;;
  "baseline promote") exit "$REFUSED" ;;
  report*) exit 12 ;;
esac""",
}
PROPOSED = (
    "baseline promote runs/nightly-7 --branch perfgate/baselines-nightly"
    " --scenario=one --scenario=two"
)


@pytest.mark.parametrize(
    ("settings", "change", "proposes", "said"),
    [
        ({}, "", True, ""),
        ({"ENOUGH": ""}, "", False, ""),
        ({"NIGHTLY_MODE": "gate"}, "", False, ""),
        ({"REFUSED": "2"}, "", True, f"for the reason above; by hand: perfgate {PROPOSED}"),
        ({}, "echo changed >tracked", False, f"not committed; by hand: perfgate {PROPOSED}"),
        ({}, "rm -r .git", False, "is not a git repository"),
    ],
)
def test_what_enough_nights_recorded_is_proposed_whatever_that_ends_in(
    settings: dict[str, str], change: str, proposes: bool, said: str, tmp_path: Path
) -> None:
    gate, programs = tmp_path / "gate", tmp_path / "programs"
    programs.mkdir()
    for name, text in CALLED.items():
        (programs / name).write_text(f"#!/bin/bash\n{text}\n")
        (programs / name).chmod(0o755)
    commit = "-c user.name=Ada -c user.email=ada@example.org commit --quiet --message=gate"
    made = f"git init --quiet {gate} && cd {gate} && echo as it was >tracked && git add tracked && "
    made += f"git {commit} && touch untracked && {change or ':'}"
    subprocess.run(("bash", "-c", made), check=True)
    done = subprocess.run(
        ("bash", SCRIPT, "b200"),
        cwd=gate,
        env={
            "PATH": f"{programs}:{os.environ['PATH']}",
            "GIT_CEILING_DIRECTORIES": str(tmp_path),
            "SLURM_JOB_ID": "7",
            "SLURM_SUBMIT_DIR": str(gate),
            "NIGHTLY_MODE": "auto",
            "ENOUGH": "one\ntwo\n",
            "REFUSED": "0",
            **settings,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 12, done.stderr
    assert (gate / "runs" / "nightly-7.status").read_text() == "12\n"
    assert (PROPOSED in (gate / "calls").read_text().splitlines()) == proposes
    assert said in done.stdout
    assert ("no proposal" in done.stdout) == bool(said)


def test_the_script_is_clean() -> None:
    subprocess.run((PROGRAMS / "shellcheck", SCRIPT), check=True)
