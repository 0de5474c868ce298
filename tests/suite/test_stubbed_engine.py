"""An engine with stand-ins in it: what it says of speed is synthetic, and nothing is made of it."""

import forked
import pytest
from checkouts import GIVEN_BAND, POINT, STORED, Suite

pytestmark = pytest.mark.slow


def test_its_numbers_are_synthetic_and_make_no_baseline(suite: Suite) -> None:
    stubbed = ("name: stand-in,", "name: stand-in, stubbed: its kernels,")
    suite.edit(stubbed, STORED, *GIVEN_BAND)
    done = suite.run(*POINT)
    assert set(done.verdicts.values()) == {"NO_BASELINE"}, done.output
    assert done.status == 13, done.output
    assert "synthetic NO_BASELINE" in done.output
    for kind in ("measurement", "verdict", "group"):
        assert {line["synthetic"] for line in done.records(kind)} == {True}, kind
    status, told = forked.outcome(suite.perfgate("baseline", "record", str(done.folder)))
    assert status != 0
    assert "synthetic" in told
