"""Claims: documented statements that one result is better or worse than another, or than a number.

Unlike a regression test, a claim is about two settings of one build, measured in one session on one
machine: there is no history, and no spread between machines to allow for.

Performance is compared on the log scale of `perfgate.gate.scale`, where a positive difference is a
loss of what the claim speaks of. With x̄ the means over fresh starts and s the prior sigma of the
metric's family, worth `rule.prior_dof` degrees of freedom,

    d = x̄_new - x̄_other        SE = s √(1/n_new + 1/n_other)        (a fixed number: s √(1/n_new))
    L = d - t(1-α) SE           U = d + t(1-β) SE

so the true loss is below L with probability α at most, and above U with β. A claim holds when its
opposite is excluded, and fails when the claim itself is excluded:

    better      PASS: U < -ε     REGRESSION: L > -ε    (H₁: d < -ε, the minimum effect, if any)
    not_worse   PASS: U < δ      REGRESSION: L > δ     (H₁: d < δ, the margin on the scale)
    worse       PASS always; a note says whether the cost shows (L > 0), is absent (U < 0) or cannot
                be told: the document warns of a cost, it does not promise one

Anything else is INCONCLUSIVE. At the edge of a claim (d = -ε, or d = δ) a false PASS has
probability β and a false REGRESSION α, at every look. A difference of 4.1 SE is found in 97 %
(α = β = 0.025, ν = 10), so one start a side tells differences from 3 % on where s is 0.5 %, and two
from 2 %; where there is a minimum effect, so much beyond it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from statistics import fmean
from typing import Literal

from perfgate.core.errors import InputError
from perfgate.core.metrics import ACCURACY, Metric, is_accuracy, lookup
from perfgate.gate import scale
from perfgate.gate.accuracy import Answers, judge_paired
from perfgate.gate.baseline_level import BaselineLevel
from perfgate.gate.noise import Noise
from perfgate.gate.performance import performance_metric
from perfgate.gate.rule import Rule
from perfgate.gate.scores import Score, documented_score, judge_unpaired, score_of
from perfgate.gate.verdict import (
    Judgement,
    Verdict,
    counted,
    percent,
    points,
    with_interval,
)

Expect = Literal["better", "worse", "not_worse"]


@dataclass(frozen=True)
class _Loss:
    """What the numbers say of the loss: its estimate and bounds, and how one is written."""

    estimate: float
    low: float
    high: float
    told: Callable[[float], str]


def judge_claim(
    metric: str,
    expect: Expect,
    new: Sequence[float],
    versus: Sequence[float] = (),
    *,
    value: float | None = None,
    margin: float = 0.0,
    minimum_effect: float = 0.0,
    rule: Rule | None = None,
    sigma: float | None = None,
) -> Judgement:
    """Judge a claim about a performance metric; formulas at the top of this module.

    All values given are used: there is no stopping at an earlier look.

    Args:
        metric: canonical name of a performance metric.
        expect: ``better`` or ``worse`` than the other, or ``not_worse`` by more than `margin`.
        new: values of the scenario that the claim speaks of, one per fresh start.
        versus: those of the scenario it is compared with, from the same session, or …
        value: … the number it is compared with, in the metric's unit: "better" means above it
            where higher is better, else below it.
        margin: the loss that is still not worse, as a fraction; 0: the band of the metric's family.
            Only for ``not_worse``.
        minimum_effect: the gain that it must show at least, as a fraction of the value. Only for
            ``better`` than another scenario.
        rule: error rates and most fresh starts; None: `Rule()`.
        sigma: noise of one run on the log scale; None: that of the metric's family.

    Returns:
        the judgement; `baseline` is the other side, REGRESSION means that the claim does not hold.

    Raises:
        InputError: no or both comparisons, values that cannot be judged, a margin without meaning.
    """
    found, rule = performance_metric(metric, "judge_accuracy_claim"), rule or Rule()
    _check_sides(metric, len(versus), value)
    _check_effect(found, expect, minimum_effect, value)
    band = _margin(found, expect, margin)
    ours = scale.badness(found, new, "new")
    theirs, against = _other_side(found, versus, value)
    noise = Noise(found.family.sigma if sigma is None else sigma, rule.prior_dof or inf, "prior")
    n_other = len(theirs) if value is None else inf
    level = BaselineLevel(found, fmean(theirs), n_other, noise, rule, against, "claim")
    look = level.look(ours)
    loss = _Loss(look.loss, look.low, look.high, lambda x: percent(scale.change(found, x)))
    edge = 0.0 if band is None else scale.margin(found, band)
    if minimum_effect:
        edge = -scale.gain(found, minimum_effect)
    verdict, why, notes = _decide(expect, loss, edge)
    return Judgement(
        metric=metric,
        verdict=verdict,
        baseline=scale.value(found, fmean(theirs)),
        measured=scale.value(found, fmean(ours)),
        change=scale.change(found, loss.estimate),
        interval=level.interval(look),
        band=band,
        runs_used=look.runs,
        needs_more_runs=verdict == Verdict.INCONCLUSIVE and min(look.runs, n_other) < rule.max_runs,
        reason=f"{why}; {counted(len(ours), 'fresh start')} against {against}",
        notes=(*notes, *_effect_note(minimum_effect, f"{100 * minimum_effect:g} %")),
        against="claim",
    )


def _other_side(
    metric: Metric, versus: Sequence[float], value: float | None
) -> tuple[tuple[float, ...], str]:
    """What is compared with, on the scale and in words."""
    if value is not None:
        claimed = scale.badness(metric, [value], "claimed")
        return claimed, f"the claimed {value:.10g} {metric.unit}"
    theirs = scale.badness(metric, versus, "compared")
    return theirs, counted(len(theirs), "fresh start")


def judge_accuracy_claim(
    metric: str,
    expect: Expect,
    new: Sequence[Answers],
    versus: Sequence[Answers] = (),
    *,
    new_score: Score | None = None,
    versus_score: Score | None = None,
    value: float | None = None,
    margin: float = 0.0,
    minimum_effect: float = 0.0,
) -> Judgement:
    """Judge a claim about an accuracy.

    Where both sides' answers are known, questions are paired (`judge_paired`), else the scores are
    compared (`judge_unpaired`). Of both it takes the bounds L and U of the drop, which fail with
    0.002 (of scores 0.005) and 0.05, and decides as for performance, on the scale of the score
    itself: a drop that is real but may be smaller than the margin does not refute the claim.

    Args:
        metric: canonical name of an accuracy metric.
        expect: as in `judge_claim`.
        new: question key → answered correctly, of each evaluation; empty ones are left out.
        versus: the same of the other scenario, or …
        new_score: the score, where the answers are not known.
        versus_score: that of the other side, or …
        value: … the share, 0…1, that it is compared with, taken as exact.
        margin: the drop that is still not worse, absolute; 0: two points, the default band.
        minimum_effect: the gain that it must show at least, absolute. Only for ``better`` than
            another scenario.

    Raises:
        InputError: nothing to compare, or input that the rules refuse.
    """
    if not is_accuracy(metric):
        raise InputError("not an accuracy metric", found=metric, hint="use judge_claim")
    ours, theirs = [one for one in new if one], [one for one in versus if one]
    _check_sides(metric, len(theirs) + (versus_score is not None), value)
    _check_effect(lookup(metric), expect, minimum_effect, value)
    band = _margin(lookup(metric), expect, margin) or ACCURACY.band or 0.0
    if ours and theirs:
        paired = judge_paired(metric, theirs, ours, margin=band)
        return _as_claim(paired, expect, minimum_effect, band)
    score = score_of(ours[0]) if ours else new_score
    reference = score_of(theirs[0]) if theirs else versus_score
    if value is not None:
        reference = documented_score(value)
    if reference is None or score is None:
        raise InputError(f"no score of {metric}", expected="answers or a score of both sides")
    unpaired = judge_unpaired(metric, reference, [score], margin=band)
    return _as_claim(unpaired, expect, minimum_effect, band)


def _check_sides(metric: str, others: int, value: float | None) -> None:
    if bool(others) == (value is not None):
        raise InputError(
            f"a claim about {metric} needs one thing to be compared with",
            found="two" if others else "none",
            expected="values of another scenario, or a number",
        )


def _check_effect(metric: Metric, expect: Expect, effect: float, value: float | None) -> None:
    if not (isfinite(effect) and 0 <= effect < 1):
        raise InputError(
            f"the minimum effect of a claim about {metric.name} cannot be used",
            found=effect,
            expected="a fraction from 0 to below 1, e.g. 0.05 for a gain of 5 %",
        )
    if effect and (expect != "better" or value is not None):
        against = "a number" if value is not None else "another scenario"
        raise InputError(
            f"a minimum effect says nothing in a claim of {expect!r} about {metric.name}",
            found=f"{effect:g}, compared with {against}",
            hint="claim better than another scenario, or leave the minimum effect out",
        )


def _effect_note(effect: float, told: str) -> tuple[str, ...]:
    return (f"minimum effect {told}, ours: the document gives no number",) if effect else ()


def _margin(metric: Metric, expect: Expect, margin: float) -> float | None:
    """The band of a ``not_worse`` claim; None for the others, which have none."""
    if not (isfinite(margin) and 0 <= margin < 1):
        raise InputError(
            f"the margin of a claim about {metric.name} cannot be used",
            found=margin,
            expected="a fraction from 0 to below 1, e.g. 0.01 for a loss of 1 %",
        )
    if expect != "not_worse":
        if margin:
            raise InputError(
                f"a margin says nothing in a claim of {expect!r} about {metric.name}",
                found=margin,
                hint="leave the margin out, or claim not_worse",
            )
        return None
    if margin:
        return margin
    if metric.family.band is None:
        raise InputError(
            f"a claim of 'not_worse' about {metric.name} needs a margin",
            hint="that it is not worse at all can never be shown; say which loss would count",
        )
    return metric.family.band


def _as_claim(judged: Judgement, expect: Expect, effect: float, band: float) -> Judgement:
    """The verdict of a claim from the judgement of an accuracy; `band`: the claim's own."""
    if judged.change is None or judged.interval is None:
        return replace(judged, against="claim")  # not the same questions
    low, high = judged.interval
    loss = _Loss(-judged.change, -high, -low, lambda drop: f"{points(-drop)} points")
    margin = band if expect == "not_worse" else None
    verdict, why, notes = _decide(expect, loss, margin or -effect)
    return replace(
        judged,
        verdict=verdict,
        band=margin,
        needs_more_runs=judged.needs_more_runs and verdict == Verdict.INCONCLUSIVE,
        reason=f"{why}; {counted(judged.runs_used, 'evaluation')}",
        notes=(*notes, *_effect_note(effect, f"{100 * effect:g} points")),
        against="claim",
    )


def _decide(expect: Expect, loss: _Loss, edge: float) -> tuple[Verdict, str, tuple[str, ...]]:
    """Verdict, reason and notes.

    `edge` is the largest loss with which the claim is true, on the scale of the loss: the margin of
    ``not_worse``, the negative minimum effect of ``better``, else 0.
    """
    seen = with_interval(
        loss.told(loss.estimate), *sorted(map(loss.told, (loss.low, loss.high)), key=_number)
    )
    if expect == "worse":
        return Verdict.PASS, seen, (_cost(loss),)
    if expect == "not_worse":
        allowed = loss.told(edge)
        wanted, opposite = f"not worse by {allowed}", f"worse by more than {allowed}"
    elif edge:
        wanted, opposite = f"better by {loss.told(edge)}", f"not better by {loss.told(edge)}"
    else:
        wanted, opposite = "better", "worse"
    if loss.high < edge:
        return Verdict.PASS, f"the claim holds: {seen}, {wanted}", ()
    if loss.low > edge:
        return Verdict.REGRESSION, f"the claim does not hold: {seen}, {opposite}", ()
    return Verdict.INCONCLUSIVE, f"{seen}: neither {wanted} nor {opposite} is proved", ()


def _number(told: str) -> float:
    return float(told.split()[0])


def _cost(loss: _Loss) -> str:
    if loss.low > 0:
        return "the cost that the document warns of shows"
    if loss.high < 0:
        return "there is no cost here, but a gain"
    return "no cost shows here: neither a loss nor a gain is proved"
