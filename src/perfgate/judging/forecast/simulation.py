"""Simulation: how often each planned test ends in which verdict, and after how many starts.

Pure, and the same each time: the gate's own rules on drawn numbers (statistics §6), with one seed a
baseline size and the same draws for every band and loss. The starts are as noisy as published
nightlies (`forecast.noise_scenarios`, "real"); for an A/B the prior noise holds, and 3.5 % of the
starts are far off ("heavy", statistics §1).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from msgspec import Struct, field

from perfgate.core.rule import ControlRule, Rule
from perfgate.judging.forecast.noise_scenarios import IN_SESSION, session_counts, starts
from perfgate.judging.rules import odds as drawn
from perfgate.judging.rules import sequential as many
from perfgate.judging.rules.interleaved import rule_for
from perfgate.judging.rules.noise import BETWEEN
from perfgate.judging.rules.paired import Effect, Look, PairedRule, paired_test
from perfgate.judging.rules.sequential import Floats

TRIALS = 20_000
FOUND = 0.95
"""A loss is found if it is a REGRESSION in 19 of 20 runs."""

BETWEEN_MACHINES = 0.03
"""What the document's machine and this one are taken to differ by (statistics §7)."""

CHANGED_ANSWERS = 0.04
"""Share of a fixed set of questions whose answers differ between two evaluations of one build: in
public nightly results of DeepSeek-R1, Kimi, GLM and others 1 to 8 % did."""

_NOISE, _SEED = "real", 1
_TURNS_TRIALS, _TURNS_SEED = 10_000, 9
_AB_TRIALS, _AB_SEED = 1000, (15, 10)
EFFECTS = (0.0, 0.5, 1.0, 2.0)
"""True losses of B, in bands, at which an A/B is simulated."""

_BISECTIONS, _WIDEST = 10, 4.0  # a loss that is not found at so many bands is not looked for
# Places of both builds' starts in a session of `IN_SESSION`.
_OF_NEW, _OF_CONTROLS = (0, 1, 4, 5), (2, 3, 6)
# Bands are rounded down to so many sigma, so that like metrics share their simulation.
_STEP = 0.02

# controlled: the baseline's build is started beside the new one; alone: it is not; unproved: it is
# not, and `gate.control: required` lets no loss count without it.
Control = Literal["controlled", "alone", "unproved"]


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
    """How something ends: one test, or several that end independently of each other.

    Attributes:
        regression: share of runs with a REGRESSION, of whichever test.
        passed: share in which all pass.
        host_shift: the part of it that passes only because the other build is as slow.
        new: shares that take 1, 2, … fresh starts of the build under test.
        controls: shares that take 0, 1, … controls.
    """

    regression: float = 0.0
    passed: float = 1.0
    host_shift: float = 0.0
    new: tuple[float, ...] = (1.0,)
    controls: tuple[float, ...] = (1.0,)

    @classmethod
    def of(cls, trials: many.Verdicts) -> "Outcomes":
        """How a test ends that was tried so often."""
        number, (new, controls) = len(trials.codes), trials.looks[-1]
        return cls(
            trials.share(many.REGRESSION),
            trials.share(many.PASS, many.HOST_SHIFT),
            trials.share(many.HOST_SHIFT),
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
        return _mean(self.new) + 1 + _mean(self.controls)

    def at_worst(self) -> "Outcomes":
        """As many starts as there can be."""
        new, controls = (0.0,) * (len(self.new) - 1), (0.0,) * (len(self.controls) - 1)
        return replace(self, new=(*new, 1.0), controls=(*controls, 1.0))

    def odds(self, loss: float) -> Odds:
        """The same in means, at a true loss of so many bands."""
        undecided = max(0.0, 1 - self.regression - self.passed)
        shares = (self.regression, self.passed, undecided, self.host_shift)
        means = (_mean(self.new) + 1, _mean(self.controls))
        return Odds(loss, *(round(share, 5) for share in (*shares, *means)))


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
        return self.rule(*self.settings, loss * self.margin)


def in_turns(
    declared: float, widest: float, sigma: float, references: int, most: int
) -> RuleDesign:
    """A speed against references that take turns with the new build (statistics §9).

    Its margin is the band of the middle run: as declared, or as the noise forces.

    Args:
        declared: the declared band on the log scale; the noise may force a wider one.
        widest: the band from which on the machine is too noisy, on that scale.
        sigma: noise of one start on that scale.
        references: their fresh starts.
        most: fresh starts of the build under test, at most.
    """
    settings = (declared, widest, sigma, references, most)
    return RuleDesign(float(np.median(_turns(*settings, 0.0).upper)), _in_turns, settings, True)


def _in_turns(*settings: Any) -> many.Verdicts:
    found, most = _turns(*settings), settings[4]
    codes = np.select([found.fails, found.holds], [many.REGRESSION, many.PASS])
    return many.Verdicts(codes, found.starts - 1, many.without_controls(most))


@lru_cache(maxsize=256)
def _turns(
    declared: float, widest: float, sigma: float, references: int, most: int, lost: float
) -> Look:
    """The look that decides each trial; `lost` on the log scale."""
    draw = np.random.default_rng([_TURNS_SEED, references, most])
    noise = sigma * _starts(draw, _NOISE, _TURNS_TRIALS, references + most)
    before, new = noise[:, :references], noise[:, references:] + lost
    return paired_test(before, new, Effect.below_band(declared, widest), rule_for(most))


def against_document(margin: float, sigma: float, most: int) -> RuleDesign:
    """A speed against a documented value.

    Args:
        margin: the tolerance on the log scale.
        sigma: noise of one start on that scale.
        most: fresh starts, at most; more than the rule knows count as so many.
    """
    return RuleDesign(margin, _against_document, (most, margin, sigma), True)


def _against_document(most: int, *speed: float) -> many.Verdicts:
    return drawn.documented_speed(*speed, machines=BETWEEN_MACHINES, most=most)


Design = BaselineDesign | RuleDesign


@lru_cache(maxsize=1024)
def outcomes(design: Design, loss: float) -> Outcomes:
    """How a test ends at a true loss of so many bands."""
    return Outcomes.of(design.trials(loss))


@lru_cache(maxsize=256)
def smallest_found(design: Design) -> float | None:
    """The smallest loss, in bands, that is a REGRESSION in 19 of 20 runs.

    Ten bisections between 0 and four bands.

    Returns:
        None: not even four bands are.
    """
    low, high = 0.0, _WIDEST
    if outcomes(design, high).regression < FOUND:
        return None
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        is_found = outcomes(design, middle).regression >= FOUND
        low, high = (low, middle) if is_found else (middle, high)
    return high


def of_probe(designs: Sequence[Design], *, slower: bool) -> Outcomes:
    """How the tests of one probe end; one start where nothing is judged.

    Metrics against a baseline share the noise of their starts, as engines show it
    (`noise_scenarios.CORRELATION`).

    Args:
        designs: one per metric that is judged.
        slower: whether the build loses just the band of every speed; else it is unchanged.
    """
    loss = 1.0 if slower else 0.0
    alike: dict[tuple[tuple[int, int], ...], list[many.Verdicts]] = {}
    others = []
    for design in designs:
        if isinstance(design, BaselineDesign):
            trials = design.trials(loss, design.column)
            alike.setdefault(trials.looks, []).append(trials)
        else:
            others.append(outcomes(design, loss if design.is_speed else 0.0))
    return slowest([*(Outcomes.of(many.together(trials)) for trials in alike.values()), *others])


def slowest(ends: Sequence[Outcomes]) -> Outcomes:
    """How all end together, with as many starts as the slowest: taken as independent of each other,
    which errs towards more starts."""
    return Outcomes(
        1 - math.prod(1 - one.regression for one in ends),
        math.prod(one.passed for one in ends),
        new=_largest([one.new for one in ends]),
        controls=_largest([one.controls for one in ends]),
    )


def _largest(counts: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    """The distribution of the largest of independent counts; of none, of the least."""
    below = np.ones(max(map(len, counts), default=1))
    for shares in counts:
        below[: len(shares)] *= np.cumsum(shares)
    return tuple(map(float, np.diff(below, prepend=0.0)))


def _mean(shares: Sequence[float]) -> float:
    return sum(share * number for number, share in enumerate(shares))


@lru_cache(maxsize=512)
def _trials(design: BaselineDesign, loss: float) -> many.Verdicts:
    sessions, between = design.sessions, round(design.between, 2)
    base, session = (drawn[:, design.column] for drawn in _draws(design.n_base, sessions))
    against = many.levels(
        base.astype(np.float64),
        1.0,
        sessions=sessions,
        between=between,
        prior_dof=design.prior_dof,
    )
    return design.decided(loss, against, session)


@lru_cache(maxsize=8)
def _draws(n_base: int, sessions: int) -> tuple[Floats, Floats]:
    """Baseline and the new build's session, in sigma: once for each size of a baseline."""
    rng = np.random.default_rng([_SEED, n_base, sessions])
    base = starts(rng, _NOISE, TRIALS, 3, session_counts(n_base, sessions))
    return base, starts(rng, _NOISE, TRIALS, 3, [IN_SESSION])


def _starts(draw: np.random.Generator, noise: str, trials: int, count: int) -> Floats:
    """So many starts of one session, of one metric, in sigma; shape (trials, count)."""
    return starts(draw, noise, trials, 1, [count])[:, 0].astype(np.float64)


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


def expected_ab(rule: PairedRule, margin: float) -> tuple[AbEffort, ...]:
    """What an A/B of one metric comes to at each of `EFFECTS`.

    A machine that measures its own noise is as noisy as its prior here. The standard error of a
    probability is at most 0.5 / √1000.

    Args:
        rule: the constants; starts are drawn with its prior noise.
        margin: the band on the log scale.
    """
    draw, count = np.random.default_rng(_AB_SEED), 2 * rule.most
    noise = rule.sigma * _starts(draw, "heavy", _AB_TRIALS, count)
    is_b = np.resize([False, True, True, False], count)

    def effort(bands: float) -> AbEffort:
        a, b = noise[:, ~is_b], noise[:, is_b] + bands * margin
        found = paired_test(a, b, Effect.below_band(margin), rule)
        shares = float(found.fails.mean()), float(found.holds.mean())
        return AbEffort(bands, *shares, 2 * float(found.starts.mean()))

    return tuple(map(effort, EFFECTS))
