"""Many metrics at once: the false discovery rate of those that do not gate.

It takes p-values from elsewhere; nothing is measured or compared here. Those that gate share
nothing: their error rates are constants (statistics §3).
"""

from collections.abc import Sequence

from perfgate.core.errors import InputError
from perfgate.judging.rules.scale import as_number


def false_discoveries(p_values: Sequence[float], q: float = 0.10) -> tuple[bool, ...]:
    """Which of many p-values to call out, so that of those a share q is chance, on average.

    Benjamini and Hochberg (1995): with m values in ascending order, all up to the largest
    p_(i) <= q i / m. It holds for metrics that are independent or positively dependent.

    Args:
        p_values: one-sided, e.g. `perfgate.judging.rules.performance.Change.p_value`.
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
