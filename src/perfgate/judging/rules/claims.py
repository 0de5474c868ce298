"""Claims: documented statements that one result is better or worse than another, or than a number.

Unlike a regression test, a claim is about two settings of one build, measured in one session on one
machine: there is no history, and no spread between machines to allow for.

Performance is compared on the log scale of `rules.scale`, where a positive difference is a
loss of what the claim speaks of. The starts of both sides are taken in pairs, in the order made,
and looked at after every pair as in an A/B (`rules.ab`): from three pairs on, each side is
clipped at its median ± 2 σ, and

    d = x̄_new - x̄_other        s² = (10 σ² (1-ρ) + Σ (x_other - x̄_other)²) / (10 + r - 1)
    SE = s √(2/r)               L, U = d ∓ t(1-α) SE,  α = 0.002

The two scenarios are measured by campaigns of their own, one after the other in one session, and
not in strict ABBA order: they have the session in common, but a machine that drifts meanwhile
touches one side alone. Against a number there is one side: SE = s √(1/r), the spread of its own
starts counting, and the whole σ. With three pairs or more, the first look at which one of these is
proved decides:

    better by g   PASS: U < 0 and d ≤ -g/2    REGRESSION: L > -g    (g: the minimum effect)
    better        PASS: U < 0                 REGRESSION: L > 0
    not_worse     PASS: U < δ                 REGRESSION: L > δ     (δ: the margin on the scale)
    not_better    PASS: L > -δ                REGRESSION: U < -δ
    worse         PASS always; a note says whether the cost shows (L > 0), is absent (U < 0) or
                  cannot be told: the document warns of a cost, it does not promise one

With a documented size and our tolerance (`rules.claim_size`), e being the largest loss that
is still that size:

    better        PASS: U < min(0, e)         REGRESSION: L > min(0, e)
    worse         PASS: U < e                 REGRESSION: L > e

so a size that is missed in the good direction is no failure. These claims, ``not_better``, those of
machines that measure their own noise (3 % worth two observations, looks from the fourth pair on)
and those against a baseline take each side's own spread (`BothSpreads`), with n starts of one side
and m of the other, and a baseline of D sessions:

    s_i² = max((10 σ² (1-ρ) + Σ (x - x̄_i)²) / (10 + n_i - 1), Σ (x - x̄_i)² / (n_i - 1))
    SE² = s_n²/n + s_m²/m (+ ρ σ² (1 + 1/D) of a baseline)       10 + min(n, m) - 1 degrees

Anything else is INCONCLUSIVE after six pairs. A claim that fails is "not reproduced": it may be the
document's fault, and is no part of what is promised of a release run. Simulated error rates:
statistics §10.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite

from perfgate.core.errors import InputError
from perfgate.core.metrics import ACCURACY, Metric, is_accuracy, lookup
from perfgate.core.verdict import (
    Judgement,
    Verdict,
    counted,
    points,
)
from perfgate.judging.rules import scale
from perfgate.judging.rules.ab import AbNoise, AbRule
from perfgate.judging.rules.accuracy import Answers, judge_paired
from perfgate.judging.rules.claim_decision import WITH_MARGIN, Expect, Statement, decide, seen
from perfgate.judging.rules.claim_evidence import (
    CLAIM_RULE,
    BothSpreads,
    EarlierStarts,
    Evidence,
    Loss,
    PairsOrNumber,
)
from perfgate.judging.rules.claim_size import DocumentedSize
from perfgate.judging.rules.noise import OWN_DOF, checked_sigma
from perfgate.judging.rules.performance import performance_metric
from perfgate.judging.rules.scores import Score, documented_score, judge_unpaired, score_of

# Of a machine that measures its own noise: a weak prior, so a later first look (statistics §9).
OWN_NOISE_CLAIM_RULE = AbRule(alpha=0.002, beta=0.002, prior_dof=OWN_DOF, first_look=4, needed=4)


def judge_claim(
    metric: str,
    expect: Expect,
    new: Sequence[float],
    versus: Sequence[float] = (),
    *,
    value: float | None = None,
    margin: float = 0.0,
    minimum_effect: float = 0.0,
    documented: float | None = None,
    tolerance: float = 0.0,
    earlier: EarlierStarts | None = None,
    own_noise: bool = False,
    rule: AbRule | None = None,
    sigma: float | None = None,
) -> Judgement:
    """Judge a claim about a performance metric; formulas at the top of this module.

    Args:
        metric: canonical name of a performance metric.
        expect: ``better`` or ``worse`` than the other, ``not_worse`` or ``not_better`` by more than
            `margin`.
        new: values of the scenario that the claim speaks of, one per fresh start in order.
        versus: those of the scenario it is compared with, or …
        value: … the number it is compared with, in the metric's unit: "better" means above it
            where higher is better, else below it.
        margin: the loss that is still not worse, or the gain that is still not better, as a
            fraction; 0: the band of the metric's family.
        minimum_effect: the gain that it must show at least, as a fraction of the value. Only for
            ``better`` than another scenario.
        documented: the change against the other that the document gives, as a fraction.
        tolerance: how far the change may fall short of that. Only for ``better`` and ``worse``.
        earlier: that one side is a baseline's; None: both are of this session.
        own_noise: whether the machine's own noise decides; `sigma` does not count.
        rule: constants; None: `CLAIM_RULE`, or that of the machine's own noise.
        sigma: noise of one run on the log scale; None: that of the metric's family.

    Returns:
        the judgement; `baseline` is the other side, `runs_used` counts pairs, REGRESSION means that
        the claim does not hold, `band` is the margin or the tolerance.

    Raises:
        InputError: no or both comparisons, values that cannot be judged, a margin or a size without
            meaning.
    """
    found = performance_metric(metric, "judge_accuracy_claim")
    rule = rule or (OWN_NOISE_CLAIM_RULE if own_noise else CLAIM_RULE)
    _check_sides(metric, len(versus), value)
    _check_effect(found, expect, minimum_effect, value)
    band = _margin(found, expect, margin)
    size = _size(found, expect, documented, tolerance, minimum_effect, value)
    noise = AbNoise(checked_sigma(found.family.sigma if sigma is None else sigma))
    if own_noise:
        noise = AbNoise.own()
    ours = scale.badness(found, new, "new")
    theirs = scale.badness(found, versus, "compared") if value is None else ()
    claimed = None if value is None else scale.badness(found, [value], "claimed")[0]
    evidence: Evidence
    if claimed is None and (size or earlier or own_noise or expect == "not_better"):
        evidence = BothSpreads(found, ours, theirs, noise, rule, earlier)
    else:
        evidence = PairsOrNumber(found, ours, theirs, claimed, noise, rule)
    statement = Statement(expect, _edge(found, expect, band, minimum_effect), size)
    loss, verdict, why, notes = _first_decision(evidence, statement)
    against = "" if value is None else f" against the claimed {value:.10g} {found.unit}"
    low, high = sorted(scale.change(found, x) for x in (loss.low, loss.high))
    undecided = verdict == Verdict.INCONCLUSIVE and not evidence.lacks
    return Judgement(
        metric=metric,
        verdict=verdict,
        baseline=scale.value(found, loss.other),
        measured=scale.value(found, loss.other + loss.estimate),
        change=scale.change(found, loss.estimate),
        interval=(low, high),
        band=band or tolerance or None,
        runs_used=loss.runs,
        needs_more_runs=undecided and loss.runs < rule.pairs,
        reason=f"{why}; {evidence.counted(loss.runs)}{against}",
        notes=(*notes, *_effect_note(minimum_effect, f"{100 * minimum_effect:g} %")),
        against="claim",
    )


def _edge(metric: Metric, expect: Expect, band: float | None, effect: float) -> float:
    if expect == "not_better" and band is not None:
        return -scale.gain(metric, band)
    if band is not None:
        return scale.margin(metric, band)
    return -scale.gain(metric, effect) if effect else 0.0


def _starts(number: int) -> str:
    return counted(number, "fresh start")


def _first_decision(
    evidence: Evidence, statement: Statement
) -> tuple[Loss, Verdict, str, tuple[str, ...]]:
    """The first look that decides, or the last one; what a document warns of takes all at once."""
    first, last = evidence.rule.first_look, evidence.looks
    looks = [last] if statement.takes_all else range(min(first, last), last + 1)
    for number in looks:
        loss = evidence.look(number)
        verdict, why, notes = decide(statement, loss)
        if not statement.takes_all and (number < first or evidence.lacks):
            told = evidence.lacks or f"at least {_starts(first)} a side decide"
            verdict, why, notes = Verdict.INCONCLUSIVE, f"{seen(loss)}: {told}", ()
        if verdict != Verdict.INCONCLUSIVE:
            break
    return loss, verdict, why, notes


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
        margin: the drop that is still not worse, or the gain that is still not better, absolute;
            0: two points, the default band.
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


def _size(
    metric: Metric,
    expect: Expect,
    documented: float | None,
    tolerance: float,
    effect: float,
    value: float | None,
) -> DocumentedSize | None:
    """The documented size, checked; None: the document gives none."""
    if documented is None:
        if tolerance:
            raise InputError(
                f"a tolerance says nothing in a claim about {metric.name} without documented size",
                found=f"{tolerance:g}",
                hint="give the documented change, or leave the tolerance out",
            )
        return None
    size = DocumentedSize(metric, documented, tolerance)
    judged = expect in ("better", "worse")
    wrong = value is not None or effect or judged != bool(tolerance)
    if wrong or (judged and (size.loss < 0) != (expect == "better")):
        raise InputError(
            f"the documented size says nothing in a claim of {expect!r} about {metric.name}",
            found=f"documented {documented:g}, tolerance {tolerance:g}",
            expected="of two scenarios and without minimum effect: better or worse with a "
            "tolerance and a change in that direction, or any other claim without a tolerance",
        )
    return size


def _margin(metric: Metric, expect: Expect, margin: float) -> float | None:
    """The band of a ``not_worse`` or ``not_better`` claim; None for the others, without any."""
    if not (isfinite(margin) and 0 <= margin < 1):
        raise InputError(
            f"the margin of a claim about {metric.name} cannot be used",
            found=margin,
            expected="a fraction from 0 to below 1, e.g. 0.01 for a loss of 1 %",
        )
    if expect not in WITH_MARGIN:
        if margin:
            raise InputError(
                f"a margin says nothing in a claim of {expect!r} about {metric.name}",
                found=margin,
                hint="leave the margin out, or claim not_worse or not_better",
            )
        return None
    if margin:
        return margin
    if metric.family.band is None:
        raise InputError(
            f"a claim of {expect!r} about {metric.name} needs a margin",
            hint="that it is not worse, or not better, at all can never be shown; say which change "
            "would count",
        )
    return metric.family.band


def _as_claim(judged: Judgement, expect: Expect, effect: float, band: float) -> Judgement:
    """The verdict of a claim from the judgement of an accuracy; `band`: the claim's own."""
    if judged.change is None or judged.interval is None:
        return replace(judged, against="claim")  # not the same questions
    low, high = judged.interval
    loss = Loss(-judged.change, -high, -low, lambda drop: f"{points(-drop)} points")
    margin = band if expect in WITH_MARGIN else None
    edge = -effect if margin is None else margin
    verdict, why, notes = decide(Statement(expect, -edge if expect == "not_better" else edge), loss)
    return replace(
        judged,
        verdict=verdict,
        band=margin,
        needs_more_runs=judged.needs_more_runs and verdict == Verdict.INCONCLUSIVE,
        reason=f"{why}; {counted(judged.runs_used, 'evaluation')}",
        notes=(*notes, *_effect_note(effect, f"{100 * effect:g} points")),
        against="claim",
    )
