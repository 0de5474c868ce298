"""Blocks of load in turns: what their verdicts are worth, simulated, and sessions on this machine.

`python benchmarks/blocks.py simulate [CASES]` judges made-up sessions by the gate's own test. Per
spread of a start's difference and true loss: the share of each verdict, the smallest loss that a
session says it could show (median and 90th percentile), starts.

`python benchmarks/blocks.py sessions COUNT [--slowed PERCENT]` runs sessions of the embedded
default without its accuracy (`make setup-local` first), and prints a line for each point: seconds
of the session, change, smallest loss, verdict, noise.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from perfgate.core.metrics import lookup
from perfgate.judging.rules import scale
from perfgate.judging.rules.noise import WIDEST_BAND
from perfgate.judging.rules.paired import Effect, blocks_rule, paired_test

MOST = 6
ROOT = Path(__file__).parents[1]


def simulate(cases: int) -> None:
    """Print the table."""
    random = np.random.default_rng(5)
    metric = lookup("output_throughput")
    band = scale.declared_band(metric, None)
    effect = Effect.below_band(scale.margin(metric, band), scale.margin(metric, WIDEST_BAND))
    print("spread  loss  REGRESSION    PASS  undecided  smallest loss (90 %)  starts")
    for spread in (0.01, 0.02, 0.03, 0.04, 0.06, 0.1):
        for loss in (0.0, 0.05, 0.1, 0.15, 0.3):
            losses = random.normal(-np.log(1 - loss), spread, (cases, MOST))
            seen = paired_test(np.zeros(MOST), losses, effect, blocks_rule(MOST))
            failed, passed = seen.fails.mean(), seen.holds.mean()
            usual, high = (scale.band(metric, one) for one in np.quantile(seen.upper, (0.5, 0.9)))
            print(
                f"{spread:6.0%} {loss:5.0%} {failed:11.3%} {passed:7.2%}"
                f" {1 - failed - passed:10.2%} {usual:12.1%} ({high:.1%}) {seen.starts.mean():7.2f}"
            )


def sessions(count: int, slowed: int) -> None:
    """Run sessions of the embedded default and print what each gave."""
    words = ["perf_tests/test_serving.py", "-m", "local", "-q"]
    if slowed:
        words += ["--inject", f"engine.settings.slowed_percent={slowed}"]
    for _ in range(count):
        with tempfile.TemporaryDirectory() as folder:
            run, began = Path(folder) / "run", time.monotonic()
            environment = {**os.environ, "PERFGATE_HOME": f"{folder}/home"}
            call = [sys.executable, "-m", "pytest", *words, f"--run-dir={run}"]
            subprocess.run(call, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=False)
            seconds = time.monotonic() - began
            lines = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
        for line in (one for one in lines if one["record"] == "verdict"):
            for one in line["judgements"]:
                if one["metric"] == "output_throughput":
                    shown = {name: one[name] for name in ("verdict", "change", "band", "runs_used")}
                    print(f"{seconds:6.0f} s", line["name"], shown, *line["notes"], flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("simulate").add_argument("cases", type=int, nargs="?", default=100_000)
    runs = verbs.add_parser("sessions")
    runs.add_argument("count", type=int)
    runs.add_argument("--slowed", type=int, default=0)
    told = parser.parse_args()
    simulate(told.cases) if told.verb == "simulate" else sessions(told.count, told.slowed)
