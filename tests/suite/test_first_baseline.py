"""A first baseline, as a person makes one: a session a night with --record, then one promotion."""

import json
import shlex
from pathlib import Path

import pytest
from checkouts import ACCURACY, NAMED, Finished, Suite, copied

pytestmark = pytest.mark.slow

CANDIDATE = "home/candidates/cpu/standin-serve/1.0.json"


def said(output: str) -> str:
    """The line on the candidate."""
    (line,) = [one for one in output.splitlines() if one.startswith("standin-serve: ")]
    return line


@pytest.fixture
def recorded(without_baseline: tuple[Suite, Finished], tmp_path: Path) -> Suite:
    """A checkout in which one session has recorded."""
    return copied(without_baseline[0], tmp_path / "suite")


def test_three_sessions_make_a_baseline_and_each_says_what_is_missing(
    without_baseline: tuple[Suite, Finished], recorded: Suite
) -> None:
    lines = [said(without_baseline[1].output)]
    for _ in range(2):
        done = recorded.run(ACCURACY, "--record")
        assert done.status == 0, done.output
        lines.append(said(done.output))
        assert lines[-1] in (done.folder / "summary.md").read_text()
    again = f"{ACCURACY} --record, on another night or node"
    assert lines[0].startswith("standin-serve: 1 of 3 sessions; two more: pytest ")
    assert lines[1].startswith("standin-serve: 2 of 3 sessions; one more: pytest ")
    assert lines[1].endswith(again)
    assert "--run-dir" not in lines[1]
    assert lines[2].startswith("standin-serve: 3 sessions, enough for a baseline: ")
    # The line is the command, but for who and why.
    words = shlex.split(lines[2].partition("baseline: ")[2])
    words[words.index("NAME")], words[words.index("WHY")] = "Ada", "the first three nights"
    promoted = recorded.perfgate(*words[1:])
    assert promoted.returncode == 0, promoted.stderr
    assert "are asked for" not in promoted.stdout
    (file,) = (recorded.folder / "baselines").glob("cpu/*/*.json")
    (entry,) = json.loads(file.read_text())["entries"].values()
    assert len({run["run"] for run in entry["runs"]}) == 3
    assert len(list((recorded.folder / "baselines" / "questions").glob("*/*.json"))) == 1
    judged = recorded.run(ACCURACY, "--gate")
    assert (judged.status, judged.verdicts) == (0, {"sums": "PASS"}), judged.output
    assert "are asked for" not in (judged.folder / "summary.md").read_text()


def test_a_baseline_of_one_session_judges_and_says_that_it_is_small(recorded: Suite) -> None:
    promoted = recorded.perfgate("baseline", "promote", CANDIDATE, *NAMED)
    assert promoted.returncode == 0, promoted.stderr
    small = "baseline of 1 session; 3 are asked for"
    assert small in promoted.stdout
    done = recorded.run(ACCURACY, "--gate")
    assert (done.status, done.verdicts) == (0, {"sums": "PASS"}), done.output
    assert small in (done.folder / "summary.md").read_text()
    # A candidate that cannot be used is told, and nothing is green.
    candidate = recorded.folder / CANDIDATE
    candidate.write_text(candidate.read_text().replace('"count": ', '"count": 1'))
    done = recorded.run(ACCURACY, "--record")
    assert done.status == 16, done.output
    assert "delete the candidate and record its runs again" in done.output
