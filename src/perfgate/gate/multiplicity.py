"""Many metrics at once: Holm's step-down for those that gate, false discovery rate for the others.

Both take verdicts or p-values from elsewhere; nothing is measured or compared here.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from perfgate.core.errors import InputError
from perfgate.gate.scale import as_number
from perfgate.gate.verdict import Judgement, Verdict


def holm(
    metrics: Sequence[str], judge: Callable[[str, float], Judgement], alpha: float
) -> dict[str, Judgement]:
    """Judge metrics so that all of them together raise a false alarm with `alpha`, not each.

    Step-down procedure of Holm (1979), in terms of verdicts: with k metrics open, each is judged at
    alpha / k; those that are a REGRESSION are settled, and the others are judged again with the k
    that are left, until a step settles none. It holds however the metrics depend on each other.
    Only the claim of a loss is made harder; alpha has no part in excluding one of the band.

    Args:
        metrics: names, in any order; one that comes twice counts once.
        judge: gives the judgement of a metric at an error rate. A smaller rate must not make a
            REGRESSION of what is none at a larger one.
        alpha: the error rate of all metrics together.

    Returns:
        metric → judgement, in the order given.

    Raises:
        InputError: an alpha that is no error rate, or whatever `judge` refuses.
    """
    if not 0 < as_number(alpha) < 0.5:
        raise InputError("not an error rate", found=alpha, expected="0 < alpha < 0.5")
    names = list(dict.fromkeys(metrics))
    found: dict[str, Judgement] = {}
    open_ones = names
    while open_ones:
        share = alpha / len(open_ones)
        judged = {metric: judge(metric, share) for metric in open_ones}
        settled = [one for one in open_ones if judged[one].verdict == Verdict.REGRESSION]
        for metric in open_ones:
            found[metric] = _told(judged[metric], share, alpha, len(names))
        if not settled:
            break
        open_ones = [one for one in open_ones if one not in settled]
    return {name: found[name] for name in names}


def _told(judgement: Judgement, share: float, alpha: float, together: int) -> Judgement:
    """With a note on the error rate, where it had a part in the verdict."""
    if together == 1 or judgement.verdict not in (Verdict.REGRESSION, Verdict.INCONCLUSIVE):
        return judgement
    note = f"at an error rate of {share:.3g}: {together} metrics share {alpha:.3g} (Holm)"
    return replace(judgement, notes=(*judgement.notes, note))


def false_discoveries(p_values: Sequence[float], q: float = 0.10) -> tuple[bool, ...]:
    """Which of many p-values to call out, so that of those a share q is chance, on average.

    Benjamini and Hochberg (1995): with m values in ascending order, all up to the largest
    p_(i) <= q i / m. It holds for metrics that are independent or positively dependent.

    Args:
        p_values: one-sided, e.g. `perfgate.gate.performance.Change.p_value`.
        q: the share of chance findings that is accepted.

    Returns:
        for each value, in the order given, whether it is called out.

    Raises:
        InputError: a p-value that is none, or a q that is no share.
    """
    if not 0 < as_number(q) < 1:
        raise InputError("not a share of false discoveries", found=q, expected="0 < q < 1")
    for value in p_values:
        if not 0 <= as_number(value) <= 1:
            raise InputError("not a p-value", found=value, expected="0…1")
    many = len(p_values)
    ranked = sorted(p_values)
    # p (m / i) <= q is the same as p <= q i / m, and rounds as SciPy does.
    least = [p for i, p in enumerate(ranked, start=1) if p * (many / i) <= q]
    return tuple(bool(least) and value <= least[-1] for value in p_values)
