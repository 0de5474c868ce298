"""Words that sessions of the roads share: which tests, with which options, of which scenarios."""

from pathlib import Path

from sessions import BENCHMARK, XDIST

ROOT = Path(__file__).parents[2]
STANDINS = ROOT / "tests" / "standins"
PLUGINS = (*XDIST, *BENCHMARK)
PATIENCE_S = 180  # how long to wait for what must happen; a crowded machine is slow
ACCURACY = "perf_tests/test_accuracy.py"
SERVING = "perf_tests/test_serving.py"
POINT = (SERVING, "-k", "c1")
SWEEP = (SERVING, "perf_tests/test_sweep.py")
SLOWER = ("--inject", "engine.settings.cpu_threads=1")
BROKEN = ("--inject", "accuracy.temperature=9")
METRIC = "accuracy:sums:exact_match:strict-match"
NAMED = ("--by", "Ada", "--reason", "as it was")
OFFLINE = "h200-r1-fp8-max-throughput"
# Scenarios of resumed runs.
FIRST, SECOND = "a-first", "b-second"

# Edits of the stand-ins' scenario.
# A band that is given instead of one that is measured: the fewest starts decide.
GIVEN_BAND = (
    ("noise: measured", "bands: {output_throughput: 0.25}"),
    ("reference_starts: 4", "reference_starts: 1"),
)
STORED = ("reference: self", "reference: stored")
