"""Verdict and Judgement: what the gate says of one metric, and the worst of several verdicts; Rule:
the error rates and effort by which it does, whatever is selected.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta

from perfgate.core.errors import InputError

Count = Annotated[int, Meta(ge=0)]

# The nearest baseline; the anchor (the last release); a document; the other side of a claim; build
# A of an A/B.
Against = Literal["baseline", "anchor", "documented", "claim", "ab"]

# What beside the build a verdict speaks of: HOST_SHIFT: no worse than the baseline's build in this
# session, both slower than history: "machine, not build". MACHINE: the machine is not fit to judge
# on. NO_CONTROL: a loss without a control: the machine is not excluded.
Mark = Literal["", "HOST_SHIFT", "MACHINE", "NO_CONTROL"]


class Verdict(StrEnum):
    """What the gate says.

    PASS and REGRESSION are claims that the numbers prove; INCONCLUSIVE means that they prove
    neither. NO_BASELINE and NOT_COMPARABLE: there was nothing to compare with. ERROR: no numbers.
    `MEANINGS` has each in the words that every text uses.
    """

    PASS = "PASS"
    REGRESSION = "REGRESSION"
    IMPROVEMENT = "IMPROVEMENT"
    INCONCLUSIVE = "INCONCLUSIVE"
    NO_BASELINE = "NO_BASELINE"
    NOT_COMPARABLE = "NOT_COMPARABLE"
    ERROR = "ERROR"


# What each verdict claims, in the words of every text that tells it (statistics §8).
MEANINGS: Mapping[Verdict, str] = {
    Verdict.PASS: "no worse than the baseline by the band",
    Verdict.IMPROVEMENT: "better by at least half a band, and each of two fresh starts agrees",
    Verdict.REGRESSION: "a loss is real, may be as large as the band, and later starts confirm it",
    Verdict.INCONCLUSIVE: "the allowed fresh starts decided neither",
    Verdict.NO_BASELINE: "measured, but there is nothing to compare with",
    Verdict.NOT_COMPARABLE: "measured, but a fact differs that must be equal; it says which",
    Verdict.ERROR: "there is no number: the engine, a client, an evaluator or the machine failed",
}

# A proved loss must not hide behind a failed sibling; an improvement shows only if all is well.
FROM_WORST = (
    Verdict.REGRESSION,
    Verdict.ERROR,
    Verdict.NOT_COMPARABLE,
    Verdict.NO_BASELINE,
    Verdict.INCONCLUSIVE,
    Verdict.IMPROVEMENT,
    Verdict.PASS,
)


RULE_VERSION = "3"
"""Of everything by which `judging` turns numbers into verdicts. Old evidence is judged again by its
own version alone, so whatever changes a verdict changes this."""

# auto: controls where the other build can be started; required: without one at most INCONCLUSIVE;
# none: never.
ControlPolicy = Literal["auto", "required", "none"]

# Of a machine that is its own reference: fresh starts of the reference below which its spread says
# nothing, and of the new build below which nothing is decided (statistics §9).
FEWEST_REFERENCES = 3
FIRST_LOOK = 4


@dataclass(frozen=True)
class Rule:
    """Error rates and effort of a test without control (docs/reference/verdicts.md).

    They are the same however many tests a session selects and however CI splits them.

    Attributes:
        alpha: one-sided error rate, per look, of calling a loss real.
        beta: one-sided error rate, per look, of excluding a loss of the band.
        max_runs: fresh starts of the new build, at most; REGRESSION needs at least two.
        prior_dof: how many observations the prior sigma is worth.
    """

    alpha: float = 0.005
    beta: float = 0.025
    max_runs: int = 5
    prior_dof: float = 10

    def __post_init__(self) -> None:
        rates_fit = all(0 < rate < 0.5 for rate in (self.alpha, self.beta))
        if not (rates_fit and self.max_runs >= 1 and self.prior_dof > 0):
            raise InputError(
                "the gate's rule cannot be used",
                found=self,
                expected="0 < alpha, beta < 0.5, at least one run, prior_dof above 0",
            )


@dataclass(frozen=True)
class AppliedWaiver:
    """The waiver that lets a regression through.

    Attributes:
        owner: who answers for it.
        last_day: the last day on which it holds.
        text: one sentence with owner, limit, last day, reason and link, for a person.
    """

    owner: str
    last_day: date
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Judgement:
    """The verdict of one metric with the numbers behind it.

    Attributes:
        metric: canonical name.
        verdict: what the gate says.
        baseline: central value of the baseline in the metric's unit (performance: geometric mean
            of the winsorised values).
        measured: central value of the runs used, in the metric's unit.
        change: signed change of the value itself: relative for performance (-0.05: the value fell
            by 5 %), measured minus baseline for accuracy (-0.02: two points lower).
        interval: confidence bounds of `change`, low first; each is one-sided, the bad end with
            error rate beta (missed loss), the good end with alpha (false alarm).
        band: the loss that counts, as a positive fraction (accuracy: absolute).
        runs_used: fresh starts of the new build that the verdict rests on.
        needs_more_runs: whether another fresh start may still decide it.
        reason: one sentence with its numbers, for a person.
        notes: what else a person should know.
        against: what it was compared with; one metric can be judged against more than one.
        waiver: what lets a regression through; None: nothing does.
        controls_used: controls that the verdict rests on: fresh starts, in the same session, of the
            build that it is compared with.
        needs_control: whether the next start wanted is such a control.
        mark: what beside the build the verdict speaks of.
        is_interleaved: whether the machine measured its own reference in turns with the new build.
    """

    metric: str
    verdict: Verdict
    baseline: float | None
    measured: float | None
    change: float | None
    interval: tuple[float, float] | None
    band: float | None
    runs_used: Count
    needs_more_runs: bool
    reason: str
    notes: tuple[str, ...] = ()
    against: Against = "baseline"
    waiver: AppliedWaiver | None = None
    controls_used: Count = 0
    needs_control: bool = False
    mark: Mark = ""
    is_interleaved: bool = False


def verdict_of(judgements: Iterable[Judgement]) -> Verdict:
    """The verdict of judgements together: the worst, a waived regression counting as PASS.

    Raises:
        ValueError: none is given.
    """
    return worst(Verdict.PASS if one.waiver else one.verdict for one in judgements)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of a group: the first of REGRESSION, ERROR, NOT_COMPARABLE, NO_BASELINE,
    INCONCLUSIVE, IMPROVEMENT, PASS that occurs in it.

    So IMPROVEMENT needs at least one improvement and nothing worse than PASS beside it.

    Raises:
        ValueError: no verdict is given: an empty group has not passed.
    """
    return min(verdicts, key=FROM_WORST.index)


def counted(number: int, noun: str) -> str:
    """``1 fresh start``, ``2 fresh starts``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def percent(share: float, digits: int = 1, *, sign: str = "+") -> str:
    """A share as a percentage, ``-1.5 %``; never ``-0.0 %``."""
    told = f"{100 * share:{sign}.{digits}f}"
    return f"{told.replace('-', sign, 1) if float(told) == 0 else told} %"


def points(share: float) -> str:
    """A signed share as points, ``-1.5``; never ``-0.0``."""
    return percent(share).removesuffix(" %")
