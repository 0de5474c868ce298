"""Start effort: how many fresh starts a gate will take, by simulating its sequential rule.

Pure, and the same for the same seed. The rule is that of `perfgate.gate.sequential_test`, for all
trials at once; metrics of one start are drawn independently of each other, which errs towards more
starts.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from perfgate.gate.accuracy import MOST_EVALUATIONS
from perfgate.gate.baseline_level import BaselineLevel
from perfgate.gate.noise import t_quantile
from perfgate.gate.simulated_answers import decide_answers, draw_answers

TRIALS = 2000

# Share of a fixed set of questions whose answers differ between two evaluations of one build. In
# public nightly results of DeepSeek-R1, Kimi, GLM and others 1 to 8 % did.
CHANGED_ANSWERS = 0.04

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class SpeedTest:
    """A performance metric against a baseline or a documented value.

    Attributes:
        level: what new runs are compared with; trials are drawn with its noise.
        margin: the loss that counts, on the log scale.
    """

    level: BaselineLevel
    margin: float

    @property
    def most(self) -> int:
        """Fresh starts that it asks for, at most."""
        return self.level.rule.max_runs


@dataclass(frozen=True)
class AnswersTest:
    """An accuracy whose answers are compared question by question.

    Attributes:
        questions: how many are asked.
        margin: the drop that counts, absolute.
        base_runs: evaluations of the baseline.
        changed: share of the answers that differ between two evaluations of one build.
        most: evaluations of the build under test, at most.
    """

    questions: int
    margin: float
    base_runs: int = 1
    changed: float = CHANGED_ANSWERS
    most: int = MOST_EVALUATIONS


@dataclass(frozen=True)
class Decided:
    """What became of a test in each trial.

    Attributes:
        at: the fresh start after which no further one is asked for.
        lost: whether that was for a regression, which ends its probe whatever the others say.
    """

    at: Ints
    lost: NDArray[np.bool_]


def starts_of_probe(
    tests: Sequence[SpeedTest | AnswersTest],
    most: int,
    draw: Generator,
    *,
    slower: bool,
    trials: int = TRIALS,
) -> Ints:
    """The fresh starts that measure one probe, in each trial; 1 where nothing is judged.

    Args:
        tests: one per metric that is judged.
        most: fresh starts of the build, at most.
        draw: source of the random numbers.
        slower: whether the build loses just the margin of every `SpeedTest`; else it is unchanged.
        trials: how many are simulated.
    """
    longest = np.ones(trials, dtype=np.int64)
    regression = np.full(trials, most, dtype=np.int64)
    for test in tests:
        if isinstance(test, SpeedTest):
            decided = _speed(test, min(most, test.most), draw, slower=slower, trials=trials)
        else:
            decided = _answers(test, min(most, test.most), draw, trials)
        longest = np.maximum(longest, decided.at)
        regression = np.where(decided.lost, np.minimum(regression, decided.at), regression)
    return np.minimum(longest, regression)


def _speed(test: SpeedTest, most: int, draw: Generator, *, slower: bool, trials: int) -> Decided:
    level, sigma = test.level, test.level.noise.sigma
    loss = test.margin if slower else 0.0
    runs = loss + sigma * draw.standard_normal((trials, most))
    centre = sigma / math.sqrt(level.n_base) * draw.standard_normal(trials)
    return decide(test, runs - centre[:, np.newaxis])


def decide(test: SpeedTest, runs: Floats) -> Decided:
    """Look after each start, in order, and stop at the first look that decides.

    Args:
        test: what is judged.
        runs: losses against the baseline's centre, one row per trial, one column per fresh start.
    """
    trials, most = runs.shape
    level = test.level
    t_low = t_quantile(1 - level.rule.alpha, level.noise.dof)
    t_high = t_quantile(1 - level.rule.beta, level.noise.dof)
    errors = [level.standard_error(count) for count in range(1, most + 1)]
    at = np.full(trials, most, dtype=np.int64)
    lost = np.zeros(trials, dtype=np.bool_)
    open_ = np.ones(trials, dtype=np.bool_)
    for count, error in enumerate(errors, start=1):
        mean = runs[:, :count].mean(axis=1)
        passed = mean + t_high * error < test.margin
        regressed = np.zeros(trials, dtype=np.bool_)
        if count >= 2:
            later = runs[:, 1:count].mean(axis=1)
            regressed = (mean - t_low * error > 0) & (later - t_low * errors[count - 2] > 0)
        now = open_ & (passed | regressed)
        at[now] = count
        lost |= now & ~passed
        open_ &= ~now
    return Decided(at, lost)


def _answers(test: AnswersTest, most: int, draw: Generator, trials: int) -> Decided:
    """The evaluations of an unchanged build."""
    draws = draw_answers(test.questions, test.changed, test.base_runs, draw, trials)
    found = decide_answers(draws, test.margin, 0.0, most)
    return Decided(found.at, found.lost)


@dataclass(frozen=True)
class Effort:
    """What a scenario is expected to take: means over the trials.

    Attributes:
        starts: fresh starts of the build under test.
        of_probe: probe label → those that measure it.
    """

    starts: float
    of_probe: Mapping[str, float]


def expected(
    tests: Mapping[str, Sequence[SpeedTest | AnswersTest]],
    most: int,
    *,
    slower: bool,
    seed: Sequence[int] = (),
    trials: int = TRIALS,
) -> Effort:
    """The expected effort of one scenario's campaign.

    A start serves every probe that is still open, so the campaign makes as many as the slowest.

    Args:
        tests: probe label → what is judged of it.
        most: fresh starts of the build, at most.
        slower: whether the build loses one band of everything; else it is unchanged.
        seed: the same seed gives the same numbers.
        trials: how many are simulated.
    """
    draw = np.random.default_rng([*seed, int(slower)])
    of_probe = {
        label: starts_of_probe(judged, most, draw, slower=slower, trials=trials)
        for label, judged in tests.items()
    }
    longest = np.max([*of_probe.values(), np.ones(trials, dtype=np.int64)], axis=0)
    return Effort(
        float(longest.mean()), {label: float(used.mean()) for label, used in of_probe.items()}
    )
