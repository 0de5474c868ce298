"""The rule of interleaved starts in numpy says what the gate says, case by case."""

from collections import Counter

import numpy as np

from perfgate.core.metrics import lookup
from perfgate.core.verdict import Verdict
from perfgate.judging.rules import scale
from perfgate.judging.rules import sequential as many
from perfgate.judging.rules.interleaved import (
    InterleavedDecision,
    OwnLevel,
    decide,
    own_level,
    rule_for,
)
from perfgate.judging.rules.simulated_interleaved import interleaved

METRIC = lookup("output_throughput")
ROWS = 60
CODES = {
    Verdict.INCONCLUSIVE: many.INCONCLUSIVE,
    Verdict.PASS: many.PASS,
    Verdict.IMPROVEMENT: many.PASS,
    Verdict.REGRESSION: many.REGRESSION,
}


def test_every_verdict_and_count_of_starts_is_the_gates() -> None:
    seen: Counter[tuple[Verdict, bool]] = Counter()
    for seed in range(40):
        draw = np.random.default_rng([9, seed])
        most, count = int(draw.integers(4, 9)), int(draw.integers(3, 9))
        sigma, rule = float(draw.uniform(0.01, 0.15)), rule_for(most)
        declared = scale.margin(METRIC, float(draw.uniform(0.02, 0.2)))
        widest = scale.margin(METRIC, rule.widest)
        references = sigma * draw.standard_normal((ROWS, count))
        new = sigma * draw.standard_normal((ROWS, most))
        new += draw.choice([0.0, 0.1, 0.3, 0.6], (ROWS, 1)) + draw.uniform(-0.1, 0.1, (ROWS, 1))
        found = interleaved(references, new, declared, widest, rule)
        for row in range(ROWS):
            level = own_level(references[row].tolist(), (), rule)
            forced = level.forced_margin(rule)
            margin, noisy = max(declared, forced), forced > widest
            assert abs(found.margins[row] - margin) < 1e-9
            one = looked(level, new[row].tolist(), margin, rule, noisy)
            seen[one.verdict, noisy] += 1
            assert found.verdicts.codes[row] == CODES[one.verdict]
            assert found.verdicts.new[row] == one.new
    assert min(seen.values()) > 10, seen
    assert {verdict for verdict, _ in seen} == set(CODES)


def looked(
    level: OwnLevel, new: list[float], margin: float, rule, noisy: bool
) -> InterleavedDecision:
    """As a campaign asks: at each look, until no further start is wanted."""
    for count in rule.looks:
        found = decide(level, new[:count], margin, rule, too_noisy=noisy)
        if not found.needs_more:
            return found
    return found
