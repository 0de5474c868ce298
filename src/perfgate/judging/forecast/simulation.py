"""Simulation: how often each planned test ends in which verdict, and after how many starts.

Pure, and the same each time: the gate's own rules on drawn numbers (statistics §6), with one seed a
baseline size and the same draws for every band and loss. The starts are as noisy as published
nightlies (`REAL`); for an A/B the prior noise holds, and 3.5 % of the starts are far off (`HEAVY`).
What is compared with a document, and answers question by question, have draws of their own. It
loads numpy, so only what plans imports it.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product
from typing import Any, Literal

import numpy as np
from msgspec import Struct, field
from numpy.random import Generator

from perfgate.core.verdict import Rule
from perfgate.judging.rules import accuracy, documented
from perfgate.judging.rules import sequential as many
from perfgate.judging.rules.constants import ControlRule
from perfgate.judging.rules.noise import BETWEEN
from perfgate.judging.rules.paired import (
    Effect,
    Look,
    PairedRule,
    blocks_rule,
    paired_test,
    rule_for,
)
from perfgate.judging.rules.sequential import Floats

TRIALS = 20_000
FOUND = 0.95
"""A loss is found if it is a REGRESSION in 19 of 20 runs."""

BETWEEN_MACHINES = 0.03
"""What the document's machine and this one are taken to differ by (statistics §7)."""

CHANGED_ANSWERS = 0.04
"""Share of a fixed set of questions whose answers differ between two evaluations of one build: in
public nightly results of DeepSeek-R1, Kimi, GLM and others 1 to 8 % did."""

_SEED = 1
_TURNS_TRIALS, _TURNS_SEED = 10_000, 9
_AB_TRIALS, _AB_SEED = 1000, (15, 10)

LEAST_FOUND, _LEAST_PASSED = 0.93, 0.95
"""A margin can be used where a drop of just the margin is found at least so often, and a build that
lost nothing passes so often."""

# A question whose answer varies is answered right in 30 or in 70 % of evaluations: two evaluations
# then differ in 42 % of such questions.
_CHANCES, MOST_CHANGED = (0.3, 0.7), 0.42
_MOST_BASE = 10  # more evaluations of the baseline count as so many
_ANSWER_TRIALS, _ANSWER_SEED, _DOCUMENT_SEED = 12_000, 71, 72

_STEPS, _WIDEST = 1024, 4.0  # a loss that is not found at so many bands is not looked for
# Places of both builds' starts in a session of `IN_SESSION`.
_OF_NEW, _OF_CONTROLS = (0, 1, 4, 5), (2, 3, 6)
# Bands are rounded down to so many sigma, so that like metrics share their simulation.
_STEP = 0.02

# controlled: the baseline's build is started beside the new one; alone: it is not; unproved: it is
# not, and `gate.control: required` lets no loss count without it.
Control = Literal["controlled", "alone", "unproved"]


# Starts as noisy as engines are: model and figures in statistics §1. ------------------------------

# An event is 4 sigma large, and by an exponential of mean 2 larger.
EVENT_LEAST = 4.0
EVENT_MEAN_BEYOND = 2.0

# Metrics of one probe: throughput, time per output token, time to first token; then a second
# throughput, two more times between tokens, a second time to first token. The figures of the first
# three are from statistics §1. That two metrics of one kind have no more in common than a
# throughput and a time per output token is ours: the less they have, the more false alarms.
_OF_FIRST_TOKEN = np.array([False, False, True, False, False, False, True])
CORRELATION = np.where(_OF_FIRST_TOKEN[:, np.newaxis] == _OF_FIRST_TOKEN, 0.8, 0.4)
np.fill_diagonal(CORRELATION, 1.0)


# How often something makes a start, or a whole session, slower and faster than usual.
Events = tuple[float, float]


@dataclass(frozen=True)
class NoiseScenario:
    """One kind of noise.

    Attributes:
        core: standard deviation of a start without events, in prior sigmas.
        between: the share of its variance that all starts of a session have in common.
        of_starts: events of single starts.
        of_sessions: events of whole sessions.
        event_size: size of every event, in prior sigmas; None: 4 + Exp(2).
    """

    core: float
    between: float
    of_starts: Events = (0.0, 0.0)
    of_sessions: Events = (0.0, 0.0)
    event_size: float | None = None


REAL = NoiseScenario(0.75, 0.3, (0.025, 0.010), (0.020, 0.010))
HEAVY = replace(REAL, core=1.0)
# Of the difference of two starts that are up together: neighbours touch both (statistics §9).
BESIDE = NoiseScenario(1.0, 0.0)

# Starts of a new build's session: N1 N2 C1 C2 N3 N4 C3, and one more.
IN_SESSION = 8


def session_counts(n_base: int, sessions: int) -> list[int]:
    """How many of a baseline's starts are of each session, as even as can be."""
    return [n_base // sessions + (place < n_base % sessions) for place in range(sessions)]


def starts(
    rng: Generator, kind: NoiseScenario, trials: int, metrics: int, counts: Sequence[int]
) -> Floats:
    """Losses of unchanged starts against their true level, in prior sigmas: positive is worse.

    Args:
        rng: source of the random numbers.
        kind: how noisy they are.
        trials: how many probes are drawn, independently of each other.
        metrics: of each probe, 1 to 7, in the order of `CORRELATION`.
        counts: starts of each session, in order.

    Returns:
        shape (trials, metrics, sum of counts): the starts of the first session come first.

    Raises:
        ValueError: more than 7 metrics.
    """
    own, shared = kind.core * (1 - kind.between) ** 0.5, kind.core * kind.between**0.5
    found = _drawn(rng, own, kind.of_starts, kind.event_size, (trials, metrics, sum(counts)))
    if kind.between or any(kind.of_sessions):
        shape = (trials, metrics, len(counts))
        of_session = _drawn(rng, shared, kind.of_sessions, kind.event_size, shape)
        found += of_session[:, :, np.repeat(np.arange(len(counts)), counts)]
    return found


def _drawn(
    rng: Generator, core: float, events: Events, size: float | None, shape: tuple[int, int, int]
) -> Floats:
    """Normal values, correlated between the metrics as `CORRELATION` says, and their events.

    Times to first token have events of their own.
    """
    (slow, fast), (trials, metrics, number) = events, shape
    mixing = np.linalg.cholesky(CORRELATION[:metrics, :metrics]).astype(np.float32)
    drawn = rng.standard_normal(shape, dtype=np.float32)
    found = core * np.asarray(np.einsum("ij,tjk->tik", mixing, drawn))
    for alike in (~_OF_FIRST_TOKEN[:metrics], _OF_FIRST_TOKEN[:metrics]):
        if any(events) and alike.any():
            luck = rng.random((trials, number), dtype=np.float32)
            sizes = np.full_like(luck, size or EVENT_LEAST)
            if size is None:
                sizes += EVENT_MEAN_BEYOND * rng.standard_exponential(luck.shape, np.float32)
            sizes *= np.where(luck < slow, 1, np.where(luck > 1 - fast, -1, 0))
            found[:, alike] += sizes[:, np.newaxis]
    return found


# What becomes of a test. --------------------------------------------------------------------------


class Odds(Struct, frozen=True):
    """How often each verdict, and how many starts, at one true loss; names as in JSON.

    Attributes:
        loss: in bands.
        regression, passed, inconclusive: shares of 1.
        host_shift: the share that passes only because the other build is as slow.
        starts: mean fresh starts of the new build.
        controls: mean controls.
    """

    loss: float
    regression: float
    passed: float = field(name="pass")
    inconclusive: float
    host_shift: float
    starts: float
    controls: float


@dataclass(frozen=True)
class Outcomes:
    """How the tests of one probe end together, or probes that end independently of each other.

    Attributes:
        regression: share of runs with a REGRESSION, of whichever test.
        new: shares that take 1, 2, … fresh starts of the build under test.
        controls: shares that take 0, 1, … controls.
    """

    regression: float
    new: tuple[float, ...]
    controls: tuple[float, ...]

    @classmethod
    def of(cls, trials: many.Verdicts) -> "Outcomes":
        """How a test ends that was tried so often."""
        number, (new, controls) = len(trials.codes), trials.looks[-1]
        return cls(
            trials.share(many.REGRESSION),
            tuple(np.bincount(trials.new - 1, minlength=new) / number),
            tuple(np.bincount(trials.controls, minlength=controls + 1) / number),
        )

    @property
    def most(self) -> int:
        """Starts of both builds, at most."""
        return len(self.new) + len(self.controls) - 1

    @property
    def starts(self) -> float:
        """Mean starts of both builds."""
        new, controls = (
            sum(share * number for number, share in enumerate(shares))
            for shares in (self.new, self.controls)
        )
        return new + 1 + controls


@dataclass(frozen=True)
class BaselineDesign:
    """A speed against a stored baseline, in units of the noise of one start.

    Attributes:
        n_base: fresh starts of the baseline.
        sessions: sessions that they come from, at most as many.
        band: the loss that counts, in sigma, on the log scale.
        control: whether the other build can be started beside the new one.
        most: fresh starts of the new build, at most.
        between: the share of the variance that a session has in common, as the gate believes.
        prior_dof: how many observations the prior sigma is worth.
        column: which of the correlated metrics of its probe it is; alone it makes no difference.
    """

    n_base: int
    sessions: int
    band: float
    control: Control = "controlled"
    most: int = 5
    between: float = BETWEEN
    prior_dof: float = 10
    column: int = 0

    def trials(self, loss: float, column: int = 0) -> many.Verdicts:
        """What becomes of each trial at a true loss of so many bands, as that metric of a probe;
        like designs share them."""
        sigmas = max(_STEP, math.floor(self.band / _STEP + 1e-9) * _STEP)
        return _trials(replace(self, band=round(sigmas, 6), column=column), loss)

    def decided(self, loss: float, against: many.Levels, session: Floats) -> many.Verdicts:
        """The rule on given noise.

        Args:
            loss: true loss, in bands.
            against: the baselines, in sigma.
            session: the starts of the new build's session, shape (trials, 8), in sigma: N1 N2 C1 C2
                N3 N4 C3 where there are controls, else all of the new build.
        """
        now, moved = session.astype(np.float64), loss * self.band
        if self.control == "controlled":
            rule = ControlRule().with_at_most(self.most)
            new, beside = now[:, _OF_NEW] + moved, now[:, _OF_CONTROLS]
            return many.controlled(against, new, beside, self.band, rule)
        new, required = now[:, : self.most] + moved, self.control == "unproved"
        return many.alone(against, new, self.band, Rule(max_runs=self.most), required=required)


@dataclass(frozen=True)
class RuleDesign:
    """A test of another kind, as a rule with its settings.

    Attributes:
        margin: the loss that counts, on the rule's scale.
        rule: what becomes of each trial: of the settings, and a true loss on that scale.
        settings: its arguments before the loss.
        is_speed: whether it is of a speed; else of an accuracy.
    """

    margin: float
    rule: Callable[..., many.Verdicts]
    settings: tuple[Any, ...]
    is_speed: bool = False

    def trials(self, loss: float) -> many.Verdicts:
        """What becomes of each trial at a true loss of so many margins."""
        return _by_rule(self, loss)


@lru_cache(maxsize=64)
def _by_rule(design: RuleDesign, loss: float) -> many.Verdicts:
    """Once for the many metrics of a suite that are judged alike."""
    return design.rule(*design.settings, loss * design.margin)


def in_turns(
    declared: float, widest: float, sigma: float, references: int, most: int
) -> RuleDesign:
    """A speed against references that take turns with the new build (statistics §9).

    Its margin is the band of the middle run: as declared, or as the noise forces.

    Args:
        declared: the declared band on the log scale; the noise may force a wider one.
        widest: the band from which on the machine is too noisy, on that scale.
        sigma: noise of one start on that scale.
        references: their fresh starts; 0: one is up beside each of the new build, and `sigma` is
            the spread of the difference.
        most: fresh starts of the build under test, at most.
    """
    is_new = (False,) * references + (True,) * most
    kind, rule = (REAL, rule_for(most)) if references else (BESIDE, blocks_rule(most))
    noise = kind, sigma, (_TURNS_SEED, references, most), _TURNS_TRIALS
    settings = Effect.below_band(declared, widest), rule, is_new, noise
    band = float(np.median(_paired(*settings, 0.0).upper))
    return RuleDesign(band, _by_pairs, settings, is_speed=True)


def two_builds(rule: PairedRule, margin: float) -> RuleDesign:
    """An A/B of one metric, in the order A B B A …; what the new build takes, the other takes too.

    A machine that measures its own noise is as noisy as its prior here. The standard error of a
    probability is at most 0.5 / √1000.

    Args:
        rule: the constants; starts are drawn with its prior noise.
        margin: the band on the log scale.
    """
    is_b = ((False, True, True, False) * rule.most)[: 2 * rule.most]
    settings = Effect.below_band(margin), rule, is_b, (HEAVY, rule.sigma, _AB_SEED, _AB_TRIALS)
    return RuleDesign(margin, _by_pairs, settings, is_speed=True)


def _by_pairs(*settings: Any) -> many.Verdicts:
    found = _paired(*settings)
    codes = np.select([found.fails, found.holds], [many.REGRESSION, many.PASS])
    return many.Verdicts(codes, found.starts - 1, many.without_controls(sum(settings[2])))


@lru_cache(maxsize=256)
def _paired(
    effect: Effect, rule: PairedRule, is_new: tuple[bool, ...], noise: tuple[Any, ...], lost: float
) -> Look:
    """The look that decides each trial; `lost` on the log scale."""
    kind, sigma, seed, trials = noise
    drawn = starts(np.random.default_rng(seed), kind, trials, 1, [len(is_new)])[:, 0]
    losses, new = sigma * drawn.astype(np.float64), np.array(is_new)
    reference = np.zeros_like(losses) if new.all() else losses[:, ~new]
    return paired_test(reference, losses[:, new] + lost, effect, rule)


def documented_speed(margin: float, sigma: float, most: int, loss: float) -> many.Verdicts:
    """A speed against a document, on the log scale; noise is Gaussian.

    Args:
        margin: the tolerance.
        sigma: noise of one start, in the document and here.
        most: fresh starts, at most; more than the rule knows count as so many.
        loss: the true one.
    """
    draw = np.random.default_rng(_DOCUMENT_SEED)
    document = loss + BETWEEN_MACHINES * draw.standard_normal(TRIALS)
    document -= sigma * draw.standard_normal(TRIALS)
    losses = sigma * draw.standard_normal((documented.MOST_STARTS, TRIALS)) + document
    return documented.decide(losses[:most].T, margin, sigma)


def documented_score(
    reference: accuracy.Score, questions: int, margin: float, drop: float
) -> many.Verdicts:
    """A score against a document; the document errs by its standard error, evaluations binomially.

    Args:
        reference: from `rules.accuracy.documented_score`.
        questions: asked in each evaluation.
        margin: the declared one; raised as the rule does.
        drop: the true one.
    """
    draw, most = np.random.default_rng([_DOCUMENT_SEED, questions]), accuracy.MOST_EVALUATIONS
    margin = max(margin, accuracy.least_margin(reference, questions))
    true = reference.value - drop - reference.variance() ** 0.5 * draw.standard_normal(TRIALS)
    right = draw.binomial(questions, np.clip(true, 0, 1), (most, TRIALS)) / questions
    return accuracy.decide_scores(right.T, reference, questions, margin)


def paired_answers(
    questions: int, changed_share: float, evaluations: int, margin: float, drop: float
) -> many.Verdicts:
    """Answers that are compared question by question, of a build with a true drop.

    As many questions as the drop says are answered right before and wrong now, always.

    Args:
        questions: how many are asked.
        changed_share: share of answers that differ between two evaluations of one build, 0…0.42.
        evaluations: of the baseline; more than ten count as ten.
        margin: the drop that counts.
        drop: the true one.
    """
    drawn = _drawn_answers(questions, changed_share, min(evaluations, _MOST_BASE))
    sums, squares, alone = (
        one + round(drop * questions) for one in (drawn.sums, drawn.squares, drawn.alone)
    )
    return accuracy.decide_paired(replace(drawn, sums=sums, squares=squares, alone=alone), margin)


@lru_cache(maxsize=256)
def smallest_margin(questions: int, changed_share: float, evaluations: int) -> float | None:
    """The smallest margin that the rule can hold, as a fraction; None: none can (statistics §7).

    With it, a drop of just the margin is found in 93 % of runs and a build that lost nothing passes
    in 95 %. In steps of a quarter of a point, of half a point up to 500 questions. Arguments as
    of `paired_answers`.
    """
    steps = 400 if questions > 500 else 200
    for step in range(1, steps):
        margin = step / steps
        tried = partial(paired_answers, questions, changed_share, evaluations, margin)
        found, passed = tried(margin).share(many.REGRESSION), tried(0.0).share(many.PASS)
        if found >= LEAST_FOUND and passed >= _LEAST_PASSED:
            return margin
    return None


def changed_share(evaluations: Sequence[accuracy.Answers]) -> float | None:
    """The share of answers that differ between two evaluations of one build: the mean over pairs.

    None: fewer than two evaluations of the same questions, of which it could be told.
    """
    if len(evaluations) < 2 or any(one.keys() != evaluations[0].keys() for one in evaluations):
        return None
    number, pairs = len(evaluations), len(evaluations) * (len(evaluations) - 1) / 2
    right = [sum(bool(evaluation[key]) for evaluation in evaluations) for key in evaluations[0]]
    return sum(count * (number - count) for count in right) / pairs / len(right)


@lru_cache(maxsize=64)
def _drawn_answers(questions: int, changed_share: float, base_runs: int) -> many.Differences:
    """Draw the answers that vary; those that never do cancel out.

    A trial is a count of questions for every combination of a chance of being right, right answers
    of the baseline, and right or wrong in each of the three evaluations of the new build.
    """
    draw = np.random.default_rng([_ANSWER_SEED, questions, round(1e6 * changed_share), base_runs])
    varying = min(questions, round(changed_share / MOST_CHANGED * questions))
    most, cells, chances = accuracy.MOST_EVALUATIONS, [], []
    for chance, right, later in product(
        _CHANCES, range(base_runs + 1), product((0, 1), repeat=most)
    ):
        of_all = chance ** (right + sum(later)) * (1 - chance) ** (
            base_runs - right + most - sum(later)
        )
        cells.append((right / base_runs, *later[::-1]))
        chances.append(math.comb(base_runs, right) * of_all)
    counts = draw.multinomial(varying, np.array(chances) / sum(chances), size=_ANSWER_TRIALS)
    table = np.array(cells)
    before, after = table[:, :1], table[:, 1:]
    differences = before - np.cumsum(after, axis=1) / np.arange(1, most + 1)
    of_trials = (counts @ differences, counts @ differences**2, counts @ (before - after))
    return many.Differences(questions, base_runs, *of_trials)


Design = BaselineDesign | RuleDesign


@lru_cache(maxsize=1024)
def odds(design: Design, loss: float) -> Odds:
    """How a test ends at a true loss of so many bands."""
    trials = design.trials(loss)
    undecided, passed, shifted, lost = (
        trials.share(code)
        for code in (many.INCONCLUSIVE, many.PASS, many.HOST_SHIFT, many.REGRESSION)
    )
    shares = lost, passed + shifted, undecided, shifted, trials.new.mean(), trials.controls.mean()
    return Odds(loss, *(round(float(share), 5) for share in shares))


@lru_cache(maxsize=256)
def smallest_found(design: Design) -> float | None:
    """The smallest loss, in bands, that is a REGRESSION in 19 of 20 runs.

    Ten bisections between 0 and four bands.

    Returns:
        None: not even four bands are.
    """

    def found(step: int) -> float:
        return odds(design, _WIDEST * step / _STEPS).regression

    if found(_STEPS) < FOUND:
        return None
    return _WIDEST * bisect_left(range(_STEPS), FOUND, lo=1, key=found) / _STEPS


def of_probe(designs: Sequence[Design], *, slower: bool) -> Outcomes:
    """How the tests of one probe end; one start where nothing is judged.

    Metrics against a baseline share the noise of their starts, as engines show it
    (`CORRELATION`).

    Args:
        designs: one per metric that is judged.
        slower: whether the build loses just the band of every speed; else it is unchanged.
    """
    loss = 1.0 if slower else 0.0
    alike: dict[object, list[many.Verdicts]] = {}
    for place, design in enumerate(designs):
        if isinstance(design, BaselineDesign):
            trials = design.trials(loss, design.column)
            alike.setdefault(trials.looks, []).append(trials)
        else:
            alike[place] = [design.trials(loss if design.is_speed else 0.0)]
    return slowest([Outcomes.of(many.combine(trials)) for trials in alike.values()])


def slowest(ends: Sequence[Outcomes]) -> Outcomes:
    """How all end together, with as many starts as the slowest: taken as independent of each other,
    which errs towards more starts."""
    return Outcomes(
        1 - math.prod(1 - one.regression for one in ends),
        _largest([end.new for end in ends]),
        _largest([one.controls for one in ends]),
    )


def _largest(counts: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    """The distribution of the largest of independent counts; of none, of the least."""
    below = np.ones(max(map(len, counts), default=1))
    for shares in counts:
        below[: len(shares)] *= np.cumsum(shares)
    return tuple(map(float, np.diff(below, prepend=0.0)))


@lru_cache(maxsize=512)
def _trials(design: BaselineDesign, loss: float) -> many.Verdicts:
    sessions, between = design.sessions, round(design.between, 2)
    base, session = (drawn[:, design.column] for drawn in _draws(design.n_base, sessions))
    against = many.levels(
        base.astype(np.float64), 1.0, sessions=sessions, between=between, prior_dof=design.prior_dof
    )
    return design.decided(loss, against, session)


@lru_cache(maxsize=8)
def _draws(n_base: int, sessions: int) -> tuple[Floats, Floats]:
    """Baseline and the new build's session, in sigma: once for each size of a baseline."""
    rng = np.random.default_rng([_SEED, n_base, sessions])
    base = starts(rng, REAL, TRIALS, 3, session_counts(n_base, sessions))
    return base, starts(rng, REAL, TRIALS, 3, [IN_SESSION])
