"""A/B effort: how many starts an A/B will take and what it will find, by simulating its own rule.

Pure, and the same for the same seed. One metric; noise of the starts as engines have it (statistics
§1, "heavy": the prior noise holds, and 3.5 % of the starts are far off).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perfgate.judging.forecast.noise_scenarios import starts
from perfgate.judging.rules.paired import Effect, PairedRule, paired_test

TRIALS = 1000
EFFECTS = (0.0, 0.5, 1.0, 2.0)
_SEED = (15, 10)
_ORDER = np.array([0, 1, 1, 0])


@dataclass(frozen=True)
class AbEffort:
    """What an A/B comes to at one true effect.

    Attributes:
        bands: the true loss of B, in bands.
        worse: probability of "B is worse".
        no_worse: of "B is no worse by the band".
        starts: expected starts of both builds together.
    """

    bands: float
    worse: float
    no_worse: float
    starts: float

    @property
    def undecided(self) -> float:
        """Probability that the allowed pairs decide neither."""
        return max(0.0, 1 - self.worse - self.no_worse)


def expected_ab(
    rule: PairedRule,
    margin: float,
    *,
    effects: Sequence[float] = EFFECTS,
    trials: int = TRIALS,
) -> tuple[AbEffort, ...]:
    """What an A/B of one metric comes to at each effect.

    A machine that measures its own noise is as noisy as its prior here.

    Args:
        rule: the constants; starts are drawn with its prior noise.
        margin: the band on the log scale.
        effects: true losses of B in bands.
        trials: simulated comparisons for each; the standard error of a probability is at most
            0.5 / √trials.
    """
    random = np.random.default_rng(_SEED)
    drawn = rule.sigma * starts(random, "heavy", trials, 1, [2 * rule.most])[:, 0].astype(float)
    is_b = np.resize(_ORDER, 2 * rule.most) == 1
    losses = margin * np.asarray(effects)[:, None, None]
    found = paired_test(drawn[:, ~is_b], drawn[:, is_b] + losses, Effect.below_band(margin), rule)
    columns = (found.fails.mean(axis=-1), found.holds.mean(axis=-1), found.starts.mean(axis=-1))
    return tuple(
        AbEffort(bands, float(worse), float(no_worse), 2 * float(pairs))
        for bands, worse, no_worse, pairs in zip(effects, *columns, strict=True)
    )
