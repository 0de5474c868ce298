"""Start effort: how many fresh starts a gate will take, its controls included, by simulation.

Pure, and the same each time. Metrics of one probe share the noise of its starts as engines show it
(`forecast.noise_scenarios.CORRELATION`); probes of one start are taken as independent, which
errs towards more starts.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from perfgate.core.metrics import Metric
from perfgate.judging.forecast.noise_scenarios import starts
from perfgate.judging.forecast.power import SCENARIO, Design, Odds, odds_of, verdicts
from perfgate.judging.rules.accuracy import MOST_EVALUATIONS
from perfgate.judging.rules.documented import MOST_STARTS
from perfgate.judging.rules.interleaved import rule_for
from perfgate.judging.rules.paired import Effect, paired_test
from perfgate.judging.rules.scores import Score
from perfgate.judging.rules.simulated_answers import outcomes
from perfgate.judging.rules.simulated_references import (
    ReferenceOdds,
    documented_score_odds,
    documented_speed_odds,
)
from perfgate.judging.rules.simulated_verdicts import (
    INCONCLUSIVE,
    PASS,
    REGRESSION,
    Floats,
    Verdicts,
    together,
)

# Share of a fixed set of questions whose answers differ between two evaluations of one build. In
# public nightly results of DeepSeek-R1, Kimi, GLM and others 1 to 8 % did.
CHANGED_ANSWERS = 0.04

# What the document's machine and this one are taken to differ by (statistics §7).
BETWEEN_MACHINES = 0.03

_INTERLEAVED_TRIALS = 10_000
_INTERLEAVED_SEED = 9


@dataclass(frozen=True)
class SpeedTest:
    """A performance metric against a baseline.

    Attributes:
        design: what is simulated.
        column: which of the correlated metrics of a probe it is.
    """

    design: Design
    column: int = 0

    @property
    def most(self) -> int:
        """Fresh starts of the build under test, at most."""
        return verdicts(self.design, 0.0, self.column).looks[-1][0]


@dataclass(frozen=True)
class DocumentedTest:
    """A performance metric against a documented value.

    Attributes:
        margin: the tolerance on the log scale.
        sigma: noise of one start on that scale.
        allowed: fresh starts, at most.
    """

    margin: float
    sigma: float
    allowed: int

    @property
    def most(self) -> int:
        """Fresh starts of the build under test, at most."""
        return min(self.allowed, MOST_STARTS)


@dataclass(frozen=True)
class ScoreTest:
    """An accuracy against a documented score.

    Attributes:
        reference: the score; as many questions are asked now as its error stands for.
        margin: the drop that counts, absolute.
        most: evaluations of the build under test, at most.
    """

    reference: Score
    margin: float
    most: int = MOST_EVALUATIONS


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
class InterleavedTest:
    """A performance metric against references that take turns with the new build (statistics §9).

    Attributes:
        declared: the declared band on the log scale; the noise may force a wider one.
        widest: the band from which on the machine is too noisy, on that scale.
        sigma: noise of one start on that scale.
        references: their fresh starts.
        most: fresh starts of the build under test, at most.
    """

    declared: float
    widest: float
    sigma: float
    references: int
    most: int


AnyTest = InterleavedTest | SpeedTest | AnswersTest | DocumentedTest | ScoreTest


@dataclass(frozen=True)
class StartCounts:
    """The distribution of the starts that something takes.

    Attributes:
        new: shares with 1, 2, … fresh starts of the build under test.
        controls: shares with 0, 1, … controls.
        lost: the share that ends in REGRESSION.
    """

    new: tuple[float, ...] = (1.0,)
    controls: tuple[float, ...] = (1.0,)
    lost: float = 0.0

    @property
    def mean_new(self) -> float:
        """Mean fresh starts of the build under test."""
        return sum(share * number for number, share in enumerate(self.new, start=1))

    @property
    def mean_controls(self) -> float:
        """Mean controls."""
        return sum(share * number for number, share in enumerate(self.controls))

    @property
    def most(self) -> int:
        """Starts of both, at most."""
        return len(self.new) + len(self.controls) - 1

    def at_worst(self) -> "StartCounts":
        """As many of both as there can be."""
        new, controls = (0.0,) * (len(self.new) - 1), (0.0,) * (len(self.controls) - 1)
        return StartCounts((*new, 1.0), (*controls, 1.0), self.lost)


def column_of(metric: Metric) -> int:
    """Which of the correlated metrics of a probe stands for this one: throughput, time per output
    token, time to first token."""
    if metric.family.name.startswith("ttft"):
        return 2
    return 0 if metric.direction == "higher" else 1


def of_probe(tests: Sequence[AnyTest], *, slower: bool) -> StartCounts:
    """The starts that one probe takes; one where nothing is judged.

    Args:
        tests: one per metric that is judged.
        slower: whether the build loses just the band of every `SpeedTest`; else it is unchanged.
    """
    by_rule: dict[tuple[tuple[int, int], ...], list[Verdicts]] = {}
    others = [StartCounts()]
    for test in tests:
        if isinstance(test, SpeedTest):
            found = verdicts(test.design, 1.0 if slower else 0.0, test.column)
            by_rule.setdefault(found.looks, []).append(found)
        else:
            others.append(_of_reference(test, slower=slower))
    return slowest([*(_counts(together(found)) for found in by_rule.values()), *others])


def slowest(many: Sequence[StartCounts]) -> StartCounts:
    """What takes as many starts as the slowest of `many`, which are independent of each other."""
    kept = math.prod(1 - one.lost for one in many)
    return StartCounts(
        _largest([one.new for one in many]), _largest([one.controls for one in many]), 1 - kept
    )


def _largest(many: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    """The distribution of the largest of independent counts."""
    longest = max(map(len, many))
    below = np.ones(longest)
    for one in many:
        reached = np.cumsum(one)
        below *= np.concatenate([reached, np.ones(longest - len(one))])
    return tuple(float(share) for share in np.diff(below, prepend=0.0))


def _counts(found: Verdicts) -> StartCounts:
    most_new, most_controls = found.looks[-1]
    new = np.bincount(found.new, minlength=most_new + 1)[1:] / len(found.codes)
    controls = np.bincount(found.controls, minlength=most_controls + 1) / len(found.codes)
    return StartCounts(tuple(new), tuple(controls), found.share(REGRESSION))


def _of_reference(
    test: AnswersTest | DocumentedTest | ScoreTest | InterleavedTest, *, slower: bool
) -> StartCounts:
    """The starts of a test that no control stands beside; accuracies are taken as unchanged."""
    if isinstance(test, AnswersTest):
        key = test.questions, test.changed, test.base_runs, test.margin, 0.0
        answers = outcomes(*key)
        found = np.bincount(answers.at, minlength=test.most + 1)[1:]
        return StartCounts(tuple(map(float, found / found.sum())), lost=answers.found_share)
    loss = 1.0 if slower else 0.0
    if isinstance(test, InterleavedTest):
        return _counts(_interleaved(test, loss)[0])
    odds = score_odds(test, 0.0) if isinstance(test, ScoreTest) else documented_odds(test, loss)
    return StartCounts(odds.starts, lost=odds.below)


def interleaved_margin(test: InterleavedTest) -> float:
    """The band of the middle run, on the log scale: the declared one, or what the noise forces."""
    return float(np.median(_interleaved(test, 0.0)[1]))


def interleaved_odds(test: InterleavedTest, loss: float) -> Odds:
    """How often each verdict at a true loss of so many of the middle run's bands."""
    return odds_of(_interleaved(test, loss)[0], loss)


@lru_cache(maxsize=256)
def _interleaved(test: InterleavedTest, loss: float) -> tuple[Verdicts, Floats]:
    """What becomes of each trial, and the band that its noise forced, on the log scale."""
    draw = np.random.default_rng([_INTERLEAVED_SEED, test.references, test.most])
    noise = test.sigma * starts(
        draw, SCENARIO, _INTERLEAVED_TRIALS, 1, [test.references + test.most]
    )[:, 0].astype(np.float64)
    lost = loss * interleaved_margin(test) if loss else 0.0
    references, new = noise[:, : test.references], noise[:, test.references :] + lost
    rule, effect = rule_for(test.most), Effect.below_band(test.declared, test.widest)
    found = paired_test(references, new, effect, rule)
    codes = np.select([found.fails, found.holds], [REGRESSION, PASS], INCONCLUSIVE)
    looks = tuple((starts, 0) for starts in rule.looks)
    at = np.searchsorted(rule.looks, found.starts)
    return Verdicts(codes.astype(np.int8), at.astype(np.int8), looks), found.upper


@lru_cache(maxsize=256)
def documented_odds(test: DocumentedTest, loss: float) -> ReferenceOdds:
    """How often each verdict at a true loss of so many tolerances."""
    return documented_speed_odds(
        test.margin,
        test.sigma,
        loss * test.margin,
        machines=BETWEEN_MACHINES,
        most=test.most,
    )


@lru_cache(maxsize=256)
def score_odds(test: ScoreTest, drop: float) -> ReferenceOdds:
    """How often each verdict at a true drop of so many margins."""
    questions = max(1, round(test.reference.questions or 1))
    return documented_score_odds(test.reference, questions, test.margin, drop * test.margin)


@dataclass(frozen=True)
class Effort:
    """What a scenario is expected to take.

    Attributes:
        starts: the campaign's own: as many as its slowest probe.
        of_probe: probe label → those that measure it.
    """

    starts: StartCounts
    of_probe: Mapping[str, StartCounts]

    @property
    def mean(self) -> float:
        """Mean starts of both builds."""
        return self.starts.mean_new + self.starts.mean_controls

    def at_worst(self) -> "Effort":
        """All starts that the tests can ask for."""
        of_probe = {label: one.at_worst() for label, one in self.of_probe.items()}
        return Effort(self.starts.at_worst(), of_probe)

    def times(self, label: str) -> float:
        """How often a probe is measured, controls included."""
        found = self.of_probe[label]
        return found.mean_new + found.mean_controls


def expected(tests: Mapping[str, Sequence[AnyTest]], *, slower: bool) -> Effort:
    """The expected effort of one scenario's campaign: a start serves every probe still open.

    Args:
        tests: probe label → what is judged of it.
        slower: whether the build loses one band of everything; else it is unchanged.
    """
    counts = {label: of_probe(judged, slower=slower) for label, judged in tests.items()}
    return Effort(slowest([StartCounts(), *counts.values()]), counts)
