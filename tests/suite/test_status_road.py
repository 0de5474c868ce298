"""Exit statuses on the road: bugs, failures of others, and output that cannot be written."""

import json
import shutil
import signal
import sys

import pytest
from checkouts import Finished, Suite, run_alone, wait_until
from road_words import ACCURACY
from tables import each

Words = tuple[str, ...]
pytestmark = pytest.mark.slow

WORSE = ("--inject", "accuracy.temperature=2")
MADE_UP = 'raise TypeError("made up")'
FULL = 'raise errors.RunError("disk_full", "cannot write it: No space left on device")'


def test_a_bug_of_a_worker_while_measuring_is_15(with_baseline: Suite) -> None:
    with_baseline.change_at("perfgate.campaign.campaigns", "Campaigns.outcome", MADE_UP)
    done = with_baseline.run(ACCURACY, "-n", "1")
    done.require(15, None, "exit status 15: perfgate itself failed")


RUN = "perfgate.suite.session_run"
AT_THE_END = (RUN, "summary", MADE_UP, "given[1] is not None")
SUMMARY = ("perfgate.runs.run_folder", "RunFolder.write_summary", FULL)
JUDGED = 'any(type(one).__name__ == "VerdictRecord" for one in given[0].records())'
TRACEBACK = "TypeError: made up; the traceback follows"
NO_SUMMARY = "the run could not be summed up: disk_full: cannot write it"


@pytest.mark.parametrize(
    ("change", "options", "status", "told"),
    [
        (AT_THE_END, (), 15, TRACEBACK),
        ((*SUMMARY, JUDGED), (), 16, NO_SUMMARY),
        ((*SUMMARY, JUDGED), WORSE, 1, NO_SUMMARY),
        # The page of a session.
        ((RUN, "write_formats", FULL), ("--html",), 16, "could not be written: disk_full: "),
        ((RUN, "write_formats", MADE_UP), ("--html",), 16, "a bug of perfgate:\nTraceback"),
    ],
    ids=["bug", "full", "full of a worse build", "no page", "page's bug"],
)
def test_what_fails_at_the_end_is_no_regression_and_takes_no_verdict_with_it(
    with_baseline: Suite, change: Words, options: Words, status: int, told: str
) -> None:
    with_baseline.change_at(*change)
    done = with_baseline.run(ACCURACY, *options)
    done.require(status, None, told)
    assert ("Traceback" in done.output) is (MADE_UP in change)


def test_failures_of_other_plugins_and_tests_are_no_regression(with_baseline: Suite) -> None:
    (with_baseline.folder / "test_mine.py").write_text("def test_mine():\n    assert False\n")
    done = with_baseline.run(ACCURACY, "test_mine.py")
    done.require(11, {"sums": "PASS"})
    with (with_baseline.folder / "conftest.py").open("a") as file:
        file.write(f"def pytest_sessionfinish():\n    {MADE_UP}\n")
    with_baseline.run(ACCURACY).require(3, None, TRACEBACK)


@each(
    ("redirected", "options", "status", "variables"),
    [
        ("> /dev/full", (), 16, {"PYTHONUNBUFFERED": "1"}),
        ("<&- >&- 2>&-", WORSE, 1, {}),
        ("2> /dev/full", WORSE, 1, {"PYTHONIOENCODING": "ascii"}),
    ],
)
def test_output_that_cannot_be_written_is_no_verdict_and_loses_no_record(
    with_baseline: Suite, redirected: str, options: Words, status: int, variables: dict[str, str]
) -> None:
    """What each stream does then, also one whose reader left: tests/core/test_output_stream.py."""
    shutil.rmtree(with_baseline.run_folder, ignore_errors=True)
    call = ("bash", "-c", f'"$@" {redirected}', "-", *with_baseline.command(ACCURACY, *options))
    done = run_alone(call, with_baseline.folder, with_baseline.environment | variables)
    run = Finished(done.returncode, done.stderr, with_baseline.run_folder)
    run.require(status, {"sums": "REGRESSION" if options == WORSE else "PASS"})
    assert "Traceback" not in done.stderr
    assert "**Exit status" in run.summary
    if redirected == "> /dev/full":
        assert "perfgate: standard output cannot be written" in done.stderr
    if variables.get("PYTHONIOENCODING"):
        assert (done.stdout.isascii(), "\\u2026" in done.stdout) == (True, True)


NOTE = "import sys; open(sys.argv[1], 'a').write(sys.argv[2])"


def test_the_guard_runs_the_sites_commands_once_after_a_kill(suite: Suite) -> None:
    notes = suite.folder / "notes"
    note = [sys.executable, "-I", "-S", "-c", NOTE, str(notes)]
    calls = {"before": [[*note, "b"]], "after": [[*note, "a"], [*note, "A"]]}
    (suite.folder / "site.yaml").write_text(json.dumps({"schema_version": 1, **calls}))
    with suite.begun(ACCURACY, "-n", "1", PERFGATE_STANDIN_FAULT="never-ready") as session:
        wait_until((suite.folder / "starts").exists)
        assert notes.read_text() == "b"
        session.send_signal(signal.SIGKILL)
        session.wait(60)
    wait_until(lambda: notes.read_text() == "baA")
    assert suite.wait_until_empty() == []
    facts = json.loads((suite.run_folder / "run.json").read_text())
    assert facts["site_commands"].keys() == {"before", "after"}
