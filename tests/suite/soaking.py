"""What the soak tests measure: many tiny scenarios, in sessions that go on with one run.

And what must stand in the records of each.
"""

import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from plain_records import recorded

from perfgate.runs.run_folder import RunFolder

HEAD = """
schema_version: 1
markers: {standin: played by the stand-ins of the tests}
defaults:
  source: {document: tests/standins, section: soak}
  hardware: {gpu: none, gpus: 0, nodes: 1}
  model: {name: made-up, precision: none}
  engine: {name: stand-in, settings: {cpu_threads: 2, max_seq_len: 1024}}
  workload: {client: stand-in, dataset: synthetic, isl: 16, osl: 16, requests_per_concurrency: 1}
  limits: {start_s: 20, silence_s: 20, total_s: 60}
  markers: [standin]
scenarios:
"""
# Few starts each: most have no baseline, which one start tells; some measure themselves.
QUIET = "disturbance: {others_cpu: 1, steal: 1, cpu_clock: 0}"
STORED = f"gate: {{metrics: [output_throughput], reference: stored, {QUIET}}}"
ITSELF = (
    "gate: {metrics: [output_throughput], reference: self, reference_starts: 3, max_starts: 4,"
    f" noise: measured, {QUIET}}}"
)
ACCURACY = "accuracy: [{evaluator: stand-in, task: sums, fewshot: 0}]"


def scenarios(count: int) -> str:
    """So many scenarios: of one test each, but some of four."""
    text = HEAD
    for number in range(count):
        many = number % 6 == 0
        text += f"  - id: soak-{number:02}\n    title: One of many\n"
        text += f"    workload: {{concurrency: {[1, 2] if many else [1]}}}\n"
        text += f"    {ITSELF if number % 6 == 3 else STORED}\n"
        text += f"    {ACCURACY}\n" if many else ""
    return text


def verdicts_of(count: int) -> int:
    """How many tests these scenarios are: two points and accuracy, or one point."""
    return sum(3 if number % 6 == 0 else 1 for number in range(count))


# Exit statuses of a session that ended by itself, each test judged; none is a regression.
ENDED = (0, 10, 11)


@contextmanager
def begun_or_resumed(
    argv: Sequence[str], run: Path, environment: Mapping[str, str], log: Path
) -> Iterator["subprocess.Popen[str]"]:
    """A session in the folder above the run, which it begins or goes on with; killed in the end."""
    is_run = (run / "run.json").exists()
    if not is_run:
        shutil.rmtree(run, ignore_errors=True)  # killed before it was a run
    where = ("--resume" if is_run else "--run-dir", str(run))
    with log.open("w") as out:
        session = subprocess.Popen(
            [*argv, "-q", *where, "-n", "2", "-m", "standin", "perf_tests"],
            cwd=run.parent,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            yield session
        finally:
            session.kill()
            session.wait()


def finished(run: Path) -> set[str]:
    """The scenarios of a run with the record of a group."""
    if not (run / "run.json").exists():
        return set()
    return {line["scenario"] for line in recorded(RunFolder(run), "group")}


def judged_once(run: Path, count: int) -> str:
    """The records in words; an AssertionError unless each group and each test has just one."""
    records = recorded(RunFolder(run))
    groups = Counter(one["scenario"] for one in records if one["record"] == "group")
    verdicts = Counter(one["test"] for one in records if one["record"] == "verdict")
    reached = Counter(one["verdict"] for one in records if one["record"] == "verdict")
    assert set(groups.values()) == {1}, groups
    assert len(groups) == count
    assert set(verdicts.values()) == {1}, verdicts
    assert len(verdicts) == verdicts_of(count)
    assert not [one for one in records if one["record"] == "skipped"]
    return f"{len(groups)} groups, {len(verdicts)} verdicts {dict(reached)}"
