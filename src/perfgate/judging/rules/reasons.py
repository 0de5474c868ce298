"""Reasons of judgements: what the numbers of a rule say, in one sentence each, or why none do."""

from perfgate.core.verdict import Judgement, Verdict

HOST_SHIFT_MEANING = "no worse than the baseline's build on this machine in this session"


def no_worse(band: str, *, than: str = "the baseline", equal: bool = False) -> str:
    """What PASS claims, with its band: ``no worse than the baseline by the -2.0 % band``.

    Args:
        band: with its sign and unit.
        than: what was compared with.
        equal: whether a gain of the band is excluded too: only then are both equal within it.
    """
    return f"no worse than {than} by the {band} band{', nor better: equal within it' * equal}"


def reason_of(
    verdict: Verdict,
    seen: str,
    band: str,
    evidence: str,
    *,
    than: str = "the baseline",
    equal: bool = False,
    gain: str = "",
    beyond: bool = False,
    proof: str = "",
    likely: bool = False,
    ahead: str = "",
) -> str:
    """The reason of a judgement: how far it moved, what follows, and from how much.

    Args:
        verdict: PASS, IMPROVEMENT, REGRESSION or INCONCLUSIVE.
        seen: the change with its interval.
        band: with its sign and unit.
        evidence: how many starts or evaluations, against what.
        than, equal: as in `no_worse`.
        gain: what counts as a gain, and that each of two starts shows it.
        beyond: whether the measured loss is a band or more.
        proof: what proves a loss; empty: nothing beside the numbers.
        likely: whether a loss is more likely than not to be real.
        ahead: what may still decide.
    """
    if verdict == Verdict.PASS:
        return f"{seen}, {no_worse(band, than=than, equal=equal)}; {evidence}"
    if verdict == Verdict.IMPROVEMENT:
        return f"{seen}, beyond the {gain}; {evidence}"
    if verdict == Verdict.REGRESSION:
        size = "beyond" if beyond else "a real loss that may reach"
        return f"{seen}, {size} the {band} band; {proof and f'{proof}; '}{evidence}"
    shown = "a loss is likely but not confirmed" if likely else "no loss is proved"
    return f"{seen}: {shown}, and the {band} band is not excluded; {evidence}{ahead}"


def may_decide(left: int) -> str:
    """How many more fresh starts or evaluations may decide."""
    return f"up to {left} more may decide" if left > 0 else "no more are allowed"


def with_interval(change: str, low: str, high: str) -> str:
    """A change and where the true one lies: ``-62.8 % (interval -66.5…-52.2 %)``.

    Args:
        change, low, high: with their unit, the same for all.
    """
    number, space, unit = low.partition(" ")
    return f"{change} (interval {number if high.endswith(space + unit) else low}…{high})"


def unjudged(
    metric: str,
    verdict: Verdict,
    reason: str,
    *,
    band: float | None,
    baseline: float | None = None,
) -> Judgement:
    """A judgement without numbers: there was nothing to compare with, and `reason` says why."""
    return Judgement(
        metric=metric,
        verdict=verdict,
        baseline=baseline,
        measured=None,
        change=None,
        interval=None,
        band=band,
        runs_used=0,
        needs_more_runs=False,
        reason=reason,
    )
