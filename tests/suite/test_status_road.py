"""Exit statuses on the road: bugs, failures of others, and output that cannot be written."""

import shutil
import subprocess

import pytest
from checkouts import ACCURACY, Finished, Suite
from sessions import untraced
from tables import each

pytestmark = pytest.mark.slow

WORSE = ("--inject", "accuracy.temperature=2")
BUG_WHEN_MEASURED = """
from perfgate.campaign.campaigns import Campaigns

def outcome(self, probe):
    raise TypeError("made up")

Campaigns.outcome = outcome
"""
BUG_AT_THE_END = """
import perfgate.suite.run_end

def summary(*_):
    raise TypeError("made up")

perfgate.suite.run_end.summary = summary
"""
NO_ROOM_FOR_THE_SUMMARY = """
from perfgate.core.errors import RunError
from perfgate.runs.run_folder import RunFolder

whole = RunFolder.write_summary

def full(self, *given):
    if any(type(one).__name__ == "VerdictRecord" for one in self.records()):
        raise RunError("disk_full", "cannot write summary.md: No space left on device")
    return whole(self, *given)

RunFolder.write_summary = full
"""
ANOTHERS_FAILURE_AT_THE_END = """
def pytest_sessionfinish():
    raise TypeError("made up")
"""


@each("workers", [(), ("-n", "1")])
def test_a_bug_while_measuring_is_15(with_baseline: Suite, workers: tuple[str, ...]) -> None:
    with_baseline.add_to_conftest(BUG_WHEN_MEASURED)  # a second time it changes nothing
    done = with_baseline.run(ACCURACY, *workers)
    assert done.status == 15, done.output
    assert "exit status 15: perfgate itself failed" in done.output


TRACEBACK = "TypeError: made up; the traceback follows"
NO_SUMMARY = "the run could not be summed up: disk_full: cannot write summary.md"


@pytest.mark.parametrize(
    ("text", "options", "status", "told"),
    [
        (BUG_AT_THE_END, (), 15, TRACEBACK),
        (BUG_AT_THE_END, WORSE, 1, TRACEBACK),
        (ANOTHERS_FAILURE_AT_THE_END, (), 3, TRACEBACK),
        (NO_ROOM_FOR_THE_SUMMARY, (), 16, NO_SUMMARY),
        (NO_ROOM_FOR_THE_SUMMARY, WORSE, 1, NO_SUMMARY),
    ],
    ids=["bug", "bug of a worse build", "plugin", "full", "full of a worse build"],
)
def test_what_fails_at_the_end_is_no_regression_and_takes_no_verdict_with_it(
    with_baseline: Suite, text: str, options: tuple[str, ...], status: int, told: str
) -> None:
    with_baseline.add_to_conftest(text)
    done = with_baseline.run(ACCURACY, *options)
    assert done.status == status, done.output
    assert told in done.output
    assert ("Traceback" in done.output) is (told == TRACEBACK)


def test_the_failure_of_a_test_that_is_not_of_the_suite_is_no_regression(
    with_baseline: Suite,
) -> None:
    (with_baseline.folder / "test_mine.py").write_text("def test_mine():\n    assert False\n")
    done = with_baseline.run(ACCURACY, "test_mine.py")
    assert done.verdicts == {"sums": "PASS"}, done.output
    assert done.status == 11, done.output


UNBUFFERED = {"PYTHONUNBUFFERED": "1"}


@each(
    ("redirected", "options", "status", "variables"),
    [
        ("> /dev/full", (), 16, UNBUFFERED),
        ("> /dev/full", ("-n", "1"), 16, {}),
        ("> /dev/full 2> /dev/full", WORSE, 1, {}),
        ("<&- >&- 2>&-", (), 16, {}),
        ("| true; exit ${PIPESTATUS[0]}", (), 0, UNBUFFERED),
        ("", WORSE, 1, {"PYTHONIOENCODING": "ascii"}),
    ],
)
def test_output_that_cannot_be_written_is_no_verdict_and_loses_no_record(
    with_baseline: Suite,
    redirected: str,
    options: tuple[str, ...],
    status: int,
    variables: dict[str, str],
) -> None:
    shutil.rmtree(with_baseline.folder / "run", ignore_errors=True)
    done = subprocess.run(
        ["bash", "-c", f'"$@" {redirected}', "-", *with_baseline.command(ACCURACY, *options)],
        cwd=with_baseline.folder,
        env=untraced(with_baseline.environment) | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    run = Finished(done.returncode, done.stderr, with_baseline.folder / "run")
    assert run.verdicts == {"sums": "REGRESSION" if options == WORSE else "PASS"}
    assert "**Exit status" in (run.folder / "summary.md").read_text()
    if redirected == "> /dev/full":
        assert "perfgate: standard output cannot be written" in done.stderr
    if not redirected:
        assert done.stdout.isascii()
        assert "\\u2026" in done.stdout
