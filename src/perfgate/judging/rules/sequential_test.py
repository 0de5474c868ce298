"""Sequential test: the rule itself, on the log scale of `perfgate.judging.rules.scale`.

Every further fresh start of the new build is one more look at its runs. The rule, its error rates
and the reasons for its order: docs/reference/verdicts.md, "The rule for performance".
"""

from collections.abc import Sequence
from statistics import fmean

from perfgate.core.verdict import (
    HOST_SHIFT_MEANING,
    Judgement,
    Verdict,
    counted,
    no_worse,
    percent,
    with_interval,
)
from perfgate.judging.rules import scale
from perfgate.judging.rules.baseline_level import BaselineLevel, Look
from perfgate.judging.rules.controlled_test import Decision, Need, decide
from perfgate.judging.rules.controls import Controls
from perfgate.judging.rules.noise import median

# A run so many sigma from the others is told. By chance alone 5 in 1,000 pairs differ by as much.
_FAR_SIGMAS = 4


def judge(
    comparison: BaselineLevel,
    new: Sequence[float],
    margin: float,
    notes: Sequence[str] = (),
    controls: Controls | None = None,
) -> Judgement:
    """Look after each start, in order, and stop at the first look that decides.

    Starts after that look, or beyond `rule.max_runs`, are not used.

    Args:
        comparison: what the new build is compared with.
        new: its losses, one per fresh start, in the order measured.
        margin: the band on the scale.
        notes: what is to be told beside.
        controls: starts of the other build; None: it is no build, and no control is missed.
    """
    runs = list(new[: comparison.rule.max_runs])
    if controls is not None and controls.values is not None and controls.can_be_started:
        rule = controls.rule.with_at_most(comparison.rule.max_runs)
        most = rule.looks[-1][0]
        decided = decide(comparison, runs, controls.values, margin, rule)
    else:
        most = comparison.rule.max_runs
        decided = _decide_alone(comparison, runs, margin, controls)
    verdict, look = decided.verdict, comparison.look(runs[: decided.new])
    remarks = list(notes)
    if verdict == Verdict.PASS and not decided.mark and look.low > 0:
        remarks.append("small loss within the band")
    if verdict == Verdict.PASS and look.improved(margin):
        second = comparison.look(runs[1:2]) if len(runs) > 1 else None
        if second is None:
            remarks.append("improved; a second fresh start would have to agree")
        elif look.runs == 1 and second.improved(margin):
            verdict, look = Verdict.IMPROVEMENT, comparison.look(runs[:2])
        else:
            remarks.append("improved, but not in each of the first two fresh starts")
    metric = comparison.metric
    remarks += _far_runs(comparison, runs[: look.runs])
    return Judgement(
        metric=metric.name,
        verdict=verdict,
        baseline=scale.value(metric, comparison.centre),
        measured=scale.value(metric, fmean(runs[: look.runs])),
        change=scale.change(metric, look.loss),
        interval=comparison.interval(look),
        band=scale.band(metric, margin),
        runs_used=look.runs,
        needs_more_runs=bool(decided.need),
        reason=_reason(verdict, comparison, look, margin, decided, most),
        notes=(*remarks, *(controls.notes_of(decided) if controls else ())),
        against=comparison.kind,
        controls_used=decided.controls,
        needs_control=decided.need == "control",
        mark=decided.mark,
    )


def _decide_alone(
    comparison: BaselineLevel, runs: Sequence[float], margin: float, controls: Controls | None
) -> Decision:
    """The rule without controls: a second start that agrees by itself confirms a loss."""
    for count in range(1, len(runs) + 1):
        look = comparison.look(runs[:count])
        if look.high < margin:
            return Decision(Verdict.PASS, count, 0)
        # The first run raised the suspicion, so only later ones can confirm it.
        if look.low > 0 and count >= 2 and comparison.look(runs[1:count]).low > 0:
            if controls is None:
                return Decision(Verdict.REGRESSION, count, 0)
            seen = Verdict.INCONCLUSIVE if controls.are_required else Verdict.REGRESSION
            return Decision(seen, count, 0, "NO_CONTROL")
    need: Need = "new" if len(runs) < comparison.rule.max_runs else ""
    return Decision(Verdict.INCONCLUSIVE, len(runs), 0, "", need)


def _far_runs(comparison: BaselineLevel, runs: Sequence[float]) -> list[str]:
    """Notes of runs that lie far from the others; they are told and never dropped.

    A run is far if it lies beyond 4 sigma from the median of the others, and of all as well: of
    three runs the two that agree have a median of the others half-way to the third.
    """
    reach = _FAR_SIGMAS * comparison.noise.sigma
    widest = max(runs) - min(runs)
    if widest <= reach:
        return []
    middle, told = median(runs), []
    for position, run in enumerate(runs):
        others = median([*runs[:position], *runs[position + 1 :]])
        if abs(run - middle) > reach and abs(run - others) > reach:
            told.append(
                f"fresh start {position + 1} lies {_away(comparison, run - others)} from the "
                f"median of the other {len(runs) - 1}; it is used like them"
            )
    if len(runs) == 2:
        apart = _away(comparison, runs[1] - runs[0])
        return [f"fresh start 2 lies {apart} from fresh start 1; both are used"]
    if 2 * len(told) >= len(runs):  # no run is the odd one out
        apart = _away(comparison, widest).lstrip("+-")
        return [f"the {len(runs)} fresh starts lie up to {apart} apart; all are used"]
    return told


def _away(comparison: BaselineLevel, distance: float) -> str:
    change = scale.change(comparison.metric, distance)
    return f"{percent(change)} ({abs(distance) / comparison.noise.sigma:.1f} sigma)"


def _reason(
    verdict: Verdict,
    comparison: BaselineLevel,
    look: Look,
    margin: float,
    decided: Decision,
    most: int,
) -> str:
    """One sentence: how far it moved, where the true change lies, and what follows from that."""
    metric = comparison.metric
    bounds = sorted(scale.change(metric, x) for x in (look.low, look.high))
    (low, high, band), digits = _told_apart([*bounds, scale.change(metric, margin)])
    seen = with_interval(percent(scale.change(metric, look.loss), digits), low, high)
    after = f"{counted(look.runs, 'fresh start')} against {comparison.against}"
    if decided.controls:
        after += f" and {counted(decided.controls, 'control')}"
    if verdict == Verdict.IMPROVEMENT:
        gain = percent(scale.change(metric, -margin / 2), digits)
        return (
            f"{seen}, beyond the {gain} that counts as a gain; "
            f"each of the first two starts agrees; {after}"
        )
    if decided.mark == "HOST_SHIFT":
        return (
            f"{seen}: the machine, not the build: {HOST_SHIFT_MEANING}, by the {band} band; {after}"
        )
    if verdict == Verdict.PASS:
        # d - t(1-β) SE > -δ: a gain of the band is excluded too.
        equal = 2 * look.loss - look.high > -margin
        return f"{seen}, {no_worse(band, equal=equal)}; {after}"
    if verdict == Verdict.REGRESSION:
        size = "beyond" if look.loss >= margin else "a real loss that may reach"
        proof = (
            "the controls are not as slow"
            if decided.controls
            else ("confirmed by the later starts alone")
        )
        return f"{seen}, {size} the {band} band; {proof}; {after}"
    if decided.mark == "MACHINE" and not decided.need:
        return (
            f"{seen}: the machine, not the build: even the baseline's build is slower than its "
            f"history by far; {after}; measure again on another machine"
        )
    if decided.mark == "NO_CONTROL":
        return f"{seen}: a loss is seen, and gate.control requires a control; {after}"
    proof = "a loss is likely but not confirmed" if look.low > 0 else "no loss is proved"
    if decided.need == "control":
        ahead = "a control is wanted"
    else:
        left = most - look.runs if decided.need else 0
        ahead = f"up to {left} more may decide" if left else "no more are allowed"
    return f"{seen}: {proof}, and the {band} band is not excluded; {after}, {ahead}"


def _told_apart(shares: Sequence[float]) -> tuple[list[str], int]:
    """Shares as percentages, with as many digits as tell the last one, the band, from the rest."""
    for digits in (1, 2, 3):
        texts = [percent(share, digits) for share in shares]
        if texts[-1] not in texts[:-1]:
            break
    return texts, digits
