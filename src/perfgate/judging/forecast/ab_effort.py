"""A/B effort: how many starts an A/B will take and what it will find, by simulating its own rule.

Pure, and the same for the same seed. One metric; noise of the starts as engines have it (statistics
§1, "heavy": the prior noise holds, and 3.5 % of the starts are far off).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from perfgate.judging.forecast.noise_scenarios import starts
from perfgate.judging.rules.ab import AB_RULE, AbNoise, AbRule, decide

TRIALS = 1000
EFFECTS = (0.0, 0.5, 1.0, 2.0)
_SEED = (15, 10)


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
    noise: AbNoise,
    margin: float,
    *,
    effects: Sequence[float] = EFFECTS,
    trials: int = TRIALS,
    rule: AbRule = AB_RULE,
) -> tuple[AbEffort, ...]:
    """What an A/B of one metric comes to at each effect.

    A machine that measures its own noise is as noisy as its prior here.

    Args:
        noise: of one start on the log scale; starts are drawn with it.
        margin: the band on the log scale.
        effects: true losses of B in bands.
        trials: simulated comparisons for each; the standard error of a probability is at most
            0.5 / √trials.
        rule: the constants.
    """
    # In prior sigmas, so that metrics with one ratio of band and noise share a simulation.
    unit = noise if noise.measured else replace(noise, sigma=1.0)
    return _expected(unit, round(margin / noise.sigma, 6), tuple(effects), trials, rule)


@cache
def _expected(
    noise: AbNoise, margin: float, effects: tuple[float, ...], trials: int, rule: AbRule
) -> tuple[AbEffort, ...]:
    """`expected_ab` with the margin in prior sigmas."""
    pairs = rule.pairs
    drawn = starts(np.random.default_rng(_SEED), "heavy", trials, 1, [2 * pairs])[:, 0]
    order = np.array([0, 1, 1, 0] * pairs)[: 2 * pairs]
    a = (drawn[:, order == 0] * noise.sigma).tolist()
    b = drawn[:, order == 1].astype(float) * noise.sigma
    band = margin * noise.sigma
    found = []
    for effect in effects:
        looks = [
            decide(ours, theirs, band, noise, rule)
            for ours, theirs in zip(a, (b + effect * band).tolist(), strict=True)
        ]
        answers = [one.answer for one in looks]
        used = 2 * float(np.mean([one.pairs for one in looks]))
        worse, no_worse = answers.count("worse"), answers.count("no worse")
        found.append(AbEffort(effect, worse / trials, no_worse / trials, used))
    return tuple(found)
