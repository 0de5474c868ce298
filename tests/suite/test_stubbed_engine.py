"""An engine with stand-ins in it: what it says of speed is synthetic, and nothing is made of it."""

import forked
import pytest
from test_road import Suite, suite  # noqa: F401

pytestmark = pytest.mark.slow


def test_its_numbers_are_synthetic_and_make_no_baseline(suite: Suite) -> None:  # noqa: F811
    suite.edit(
        lambda text: (
            text.replace("name: stand-in,", "name: stand-in, stubbed: its kernels,", 1)
            .replace("reference: self", "reference: stored")
            .replace("noise: measured", "bands: {output_throughput: 0.25}")
            .replace("reference_starts: 4", "reference_starts: 1")
        )
    )
    build = ("--engine-commit", "aaa", "--engine-version", "1.0")
    done = suite.run("perf_tests/test_serving.py", "-k", "c1", *build)
    assert set(done.verdicts.values()) == {"NO_BASELINE"}, done.output
    assert done.status == 13, done.output
    assert "synthetic NO_BASELINE" in done.output
    for kind in ("measurement", "verdict", "group"):
        assert {line["synthetic"] for line in done.records(kind)} == {True}, kind
    status, told = forked.outcome(suite.perfgate("baseline", "record", str(done.folder)))
    assert status != 0
    assert "synthetic" in told
