"""A first baseline, as a person makes one: a session a night with --record, then one promotion."""

import json
import shlex
import subprocess
import time
from pathlib import Path

import pytest
from test_road import Finished, Suite, copied, suite, without_baseline  # noqa: F401

pytestmark = pytest.mark.slow

ACCURACY = "perf_tests/test_accuracy.py"


def said(done: Finished) -> str:
    """The line on the candidate."""
    (line,) = [one for one in done.output.splitlines() if one.startswith("standin-serve: ")]
    return line


def test_three_sessions_make_a_baseline_and_each_says_what_is_missing(
    suite: Suite,  # noqa: F811
) -> None:
    lines = []
    for _ in range(3):
        done = suite.run(ACCURACY, "--record")
        assert done.status == 0, done.output
        assert said(done) in (done.folder / "summary.md").read_text()
        lines.append(said(done))
    again = f"{ACCURACY} --record, on another night or node"
    assert lines[0].startswith("standin-serve: 1 of 3 sessions; two more: pytest ")
    assert lines[1].startswith("standin-serve: 2 of 3 sessions; one more: pytest ")
    assert all(line.endswith(again) and "--run-dir" not in line for line in lines[:2])
    assert lines[2].startswith("standin-serve: 3 sessions, enough for a baseline: ")
    # The line is the command, but for who and why.
    words = shlex.split(lines[2].partition("baseline: ")[2])
    words[words.index("NAME")], words[words.index("WHY")] = "Ada", "the first three nights"
    promoted = suite.perfgate(*words[1:])
    assert promoted.returncode == 0, promoted.stderr
    assert "are asked for" not in promoted.stdout
    (file,) = (suite.folder / "baselines").glob("cpu/*/*.json")
    (entry,) = json.loads(file.read_text())["entries"].values()
    assert len({run["run"] for run in entry["runs"]}) == 3
    assert len(list((suite.folder / "baselines" / "questions").glob("*/*.json"))) == 1
    judged = suite.run(ACCURACY, "--gate")
    assert (judged.status, judged.verdicts) == (0, {"sums": "PASS"}), judged.output
    assert "are asked for" not in (judged.folder / "summary.md").read_text()


@pytest.fixture
def recorded(without_baseline: tuple[Suite, Finished], tmp_path: Path) -> Suite:  # noqa: F811
    """A checkout in which one session has recorded."""
    return copied(without_baseline[0], tmp_path)


def test_a_baseline_of_one_session_judges_and_says_that_it_is_small(recorded: Suite) -> None:
    candidate = recorded.folder / "home/candidates/cpu/standin-serve/1.0.json"
    promoted = recorded.perfgate(
        "baseline", "promote", str(candidate), "--by", "Ada", "--reason", "x"
    )
    assert promoted.returncode == 0, promoted.stderr
    small = "baseline of 1 session; 3 are asked for"
    assert small in promoted.stdout
    done = recorded.run(ACCURACY, "--gate")
    assert (done.status, done.verdicts) == (0, {"sums": "PASS"}), done.output
    assert small in (done.folder / "summary.md").read_text()


def test_two_sessions_that_record_at_once_both_count(suite: Suite) -> None:  # noqa: F811
    runs = [suite.folder / "runs" / name for name in ("one", "two")]
    sessions = []
    for run in runs:
        sessions.append(
            subprocess.Popen(
                [*suite.command(ACCURACY, "--record"), "--run-dir", str(run)],
                cwd=suite.folder,
                env=suite.environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
        # The stand-in's answers are equal, and two measurements of one second would be a copy.
        time.sleep(1.5)
    told = [session.communicate(timeout=180)[0] for session in sessions]
    assert [session.returncode for session in sessions] == [0, 0], told
    assert sorted(line[:26] for one in told for line in one.splitlines() if " of 3 " in line) == [
        "standin-serve: 1 of 3 sess",
        "standin-serve: 2 of 3 sess",
    ]
    (file,) = (suite.folder / "home" / "candidates").glob("cpu/*/*.json")
    (entry,) = json.loads(file.read_text())["entries"].values()
    assert {run["run"] for run in entry["runs"]} == {"one", "two"}


def test_an_unusable_candidate_is_told_and_nothing_is_green(recorded: Suite) -> None:
    candidate = recorded.folder / "home/candidates/cpu/standin-serve/1.0.json"
    candidate.write_text(candidate.read_text().replace('"count": ', '"count": 1'))
    done = recorded.run(ACCURACY, "--record")
    assert done.status == 16, done.output
    assert "delete the candidate and record its runs again" in done.output
