"""A session's budget of time on the road: what is not begun, and who is told."""

import pytest
from resuming import FIRST, SECOND, Road

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


def test_what_does_not_fit_is_not_begun_and_told(road: Road) -> None:
    done = road.begin_here("--budget", "1s", "--gate", "-rs", "-n", "1")
    assert (done.status, road.checkout.starts) == (12, 0), done.output
    skipped = road.records("skipped")
    assert [line["why"] for line in skipped] == ["budget", "budget"]
    assert "limits say at most 20 s" in str(skipped[0]["reason"])
    assert "of --budget 1s are left" in str(skipped[0]["reason"])
    assert "## Not run for lack of time" in (road.folder / "summary.md").read_text()
    road.require_one_record_a_group()


def test_what_was_not_begun_is_run_when_the_run_is_resumed(road: Road) -> None:
    road.checkout.add_to_conftest(ONE_START)
    first = road.begin_here("--budget", "4h")
    assert first.status == 0, first.output
    assert "nothing was judged" in first.output
    assert [line["name"] for line in road.records("skipped")] == [f"{SECOND}-sums"]
    road.require_one_record_a_group(FIRST)
    done = road.finish_here()
    assert done.status == 0, done.output
    road.require_one_record_a_group(FIRST, SECOND)
    assert road.records("skipped") == []
