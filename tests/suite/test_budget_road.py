"""A session's budget of time on the road: what is not begun, and who is told."""

from pathlib import Path

import pytest
from test_gate_road import SERVING, SLOWER, promoted, stored
from test_resume_road import ACCURACY, FIRST, SECOND, Road, road, two
from test_road import Suite, suite

__all__ = ["promoted", "road", "stored", "suite", "two"]

pytestmark = pytest.mark.slow

# In place of the clock: all the time of the world until the first start, none from then on.
ONE_START = """
import os
from pathlib import Path
from perfgate.campaign.budget import Budget

def left_s(self):
    return 0.0 if Path(os.environ["PERFGATE_STANDIN_COUNTER"]).exists() else 3600.0

Budget.left_s = left_s
"""


def allow_one_start(checkout: Suite) -> None:
    (checkout.folder / "starts").unlink(missing_ok=True)
    with (checkout.folder / "conftest.py").open("a") as file:
        file.write(ONE_START)


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_what_does_not_fit_is_not_begun_and_told(road: Road, workers: tuple[str, ...]) -> None:
    done = road.end(road.begin("--budget", "1s", "--gate", "-rs", *workers))
    assert done.status == 12, done.output
    assert not (road.checkout.folder / "starts").exists()
    skipped = road.records("skipped")
    assert [line["why"] for line in skipped] == ["budget", "budget"]
    assert "limits say at most 20 s" in str(skipped[0]["reason"])
    assert "of --budget 1s are left" in str(skipped[0]["reason"])
    assert "## Not run for lack of time" in (road.folder / "summary.md").read_text()
    road.require_one_record_a_group()


def test_what_was_not_begun_is_run_when_the_run_is_resumed(road: Road) -> None:
    allow_one_start(road.checkout)
    first = road.end(road.begin("--budget", "4h"))
    assert first.status == 0, first.output
    assert "1 of 2 selected tests got no verdict" in first.output or "nothing was judged" in (
        first.output
    )
    assert [line["name"] for line in road.records("skipped")] == [f"{SECOND}-sums"]
    road.require_one_record_a_group(FIRST)
    done = road.finish()
    assert done.status == 0, done.output
    road.require_one_record_a_group(FIRST, SECOND)
    assert road.records("skipped") == []


def test_the_gate_asks_for_no_more_starts_beyond_it(stored: Suite) -> None:
    allow_one_start(stored)
    done = stored.run(*SERVING, "--engine-commit", "bbb", "--budget", "4h", *SLOWER)
    assert done.status == 10, done.output
    assert set(done.verdicts.values()) == {"INCONCLUSIVE"}
    assert "no more starts: --budget 4h is nearly used up" in done.output
    assert {line["start"] for line in done.records("measurement")} == {1}


def test_a_wrong_span_is_wrong_usage_before_anything_starts(suite: Suite) -> None:
    done = suite.run(ACCURACY, "--budget", "tomorrow")
    assert done.status == 4, done.output
    assert "--budget: not a duration" in done.output
    assert not Path(suite.folder / "starts").exists()


def test_without_need_of_it_a_budget_changes_nothing(suite: Suite) -> None:
    done = suite.run(ACCURACY, "--budget", "2h30m")
    assert done.verdicts == {"sums": "NO_BASELINE"}, done.output
