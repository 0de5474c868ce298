"""The reference table of the gate: inputs with the verdict that must come out, and a simulation.

It names what is wrong; the mutants of `test_gate_mutations` show that it notices slips of the pen.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from perfgate.core.errors import InputError
from perfgate.gate import performance, sweep
from perfgate.gate.rule import Rule
from perfgate.gate.verdict import Verdict

SPEED, TIME = "output_throughput", "tpot_median_ms"

PASS, REGRESSION = Verdict.PASS, Verdict.REGRESSION
IMPROVEMENT, INCONCLUSIVE = Verdict.IMPROVEMENT, Verdict.INCONCLUSIVE
REFUSED = "refused"

# Five equal values of five sessions: sigma = 0.0042258, nu = 14; SE of one run is 0.0046291, of two
# 0.0038960. U lies t(0.975) = 2.14479 SE above the loss, L lies t(0.995) = 2.97684 SE below. The
# band of 2 % is 0.0202027.
FLAT = [1000.0] * 5

RULE = Rule()
LOOSE = Rule(alpha=0.05)


@dataclass(frozen=True)
class Row:
    """One comparison and what must come out: the verdict and the runs it rests on."""

    name: str
    new: Sequence[float]
    expected: Verdict | str
    used: int = 0
    metric: str = SPEED
    baseline: Sequence[float] = tuple(FLAT)
    rule: Rule = RULE
    widen: bool = False

    def outcome(self) -> tuple[Verdict | str, int]:
        try:
            judged = performance.judge_performance(
                self.metric,
                self.baseline,
                self.new,
                rule=self.rule,
                widen=self.widen,
            )
        except InputError:
            return REFUSED, 0
        return judged.verdict, judged.runs_used


ROWS = (
    Row("half the speed", [500, 500], REGRESSION, 2),
    Row("twice the speed", [2000, 2000], IMPROVEMENT, 2),
    Row("twice the time", [2000, 2000], REGRESSION, 2, TIME),
    Row("half the time", [500, 500], IMPROVEMENT, 2, TIME),
    Row("unchanged", [1000], PASS, 1),
    Row("half a band lost", [990], PASS, 1),  # U = 0.01998
    Row("a little more lost", [989.5], INCONCLUSIVE, 1),  # U = 0.02048; with t of the normal 0.0188
    Row("a small loss is real", [989.5, 987.05], PASS, 2),  # L = 0.0002, U = 0.02015
    Row("suspicious once", [985], INCONCLUSIVE, 1),
    Row("suspicious twice", [985, 985], REGRESSION, 2),
    Row("not confirmed", [960, 998], INCONCLUSIVE, 2),
    Row("first start an accident", [960, 1003, 1003], PASS, 3),  # U = 0.0182; ± of one run 0.0215
    Row("confirmed late", [960, 990, 982], REGRESSION, 3),
    Row("never decided", [900, 1008, 995, 1000, 998, 1000, 1000, 1000], INCONCLUSIVE, 5),
    Row("improved once", [1015, 1000], PASS, 1),
    # alpha 0.001, beta 0.2: L = d - 3.787 SE, U = d + 0.868 SE, SE of two runs = 0.0035355
    Row("alpha is for losses", [989, 989, 989], PASS, 1, rule=Rule(alpha=0.001, beta=0.2)),
    Row("beta is for passing", [990], INCONCLUSIVE, 1, rule=Rule(alpha=0.2, beta=0.001)),
    # one baseline run: SE = 0.005·sqrt(2), U = 0.00501 + 2.228·SE = 0.02077
    Row("a baseline of one run is uncertain", [995], INCONCLUSIVE, 1, baseline=[1000]),
    # with the outlier pulled in the centre is 998 to 1000 and sigma small
    Row("an outlying baseline", [960, 960], REGRESSION, 2, baseline=[1000, 1001, 999, 1000, 500]),
    Row("a scattered baseline", [975, 975], INCONCLUSIVE, 2,
        baseline=[960, 980, 1000, 1020, 1040]),
    Row("a widened band", [975], PASS, 1, baseline=[960, 980, 1000, 1020, 1040], widen=True),
    Row("a widened band and half", [500, 500], REGRESSION, 2,
        baseline=[960, 980, 1000, 1020, 1040], widen=True),
    Row("another unit", [1.0, 1.0], REFUSED),
    Row("a broken number", [1000, math.nan], REFUSED),
    Row("nothing measured", [], REFUSED),
)  # fmt: skip


def curve_of_unsteady_points() -> Verdict:
    """Four points that are 0.6 % down together at one start: one value, not four."""
    down = [value * 0.994 for value in (10.0, 100.0, 1000.0, 5000.0)]
    return sweep.judge_sweep(SPEED, [[10.0, 100.0, 1000.0, 5000.0]] * 5, [down]).verdict


@cache
def _draws() -> tuple[list[list[float]], list[list[float]]]:
    random = np.random.default_rng(41)
    base = 1000 * np.exp(0.005 * random.standard_normal((1500, 10)))
    new = 1000 * np.exp(0.005 * random.standard_normal((1500, 5)))
    return base.tolist(), new.tolist()


def false_alarms() -> float:
    """Per cent of unchanged builds called a REGRESSION: ten baseline runs, a band of two sigma,
    alpha 0.05.
    """
    base, new = _draws()
    verdicts = [
        performance.judge_performance(SPEED, before, now, band=0.01, rule=LOOSE).verdict
        for before, now in zip(base, new, strict=True)
    ]
    return 100 * verdicts.count(REGRESSION) / len(verdicts)


def check_reference_table(*, simulate: bool = True) -> list[str]:
    """Names of the checks that fail; empty for the gate as it should be."""
    wrong = [row.name for row in ROWS if row.outcome() != (row.expected, row.used)]
    if curve_of_unsteady_points() != PASS:
        wrong.append("points of one start are one value")
    # without confirmation about twice as many
    if simulate and not 2 <= false_alarms() <= 4:
        wrong.append("simulated false alarms")
    return wrong
