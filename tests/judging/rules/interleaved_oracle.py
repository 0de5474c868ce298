"""The rule for interleaved starts as slowly and plainly as it can be written: one case at a time.

Own quantiles (scipy is not needed: a table would hide mistakes, so Student's t is integrated), own
median, no shared code with the package.
"""

import math
from functools import cache

ALPHA, BETA = 0.002, 0.05
PRIOR, PRIOR_WORTH = 0.03, 2


def t_density(t, nu):
    log = math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2) - 0.5 * math.log(nu * math.pi)
    return math.exp(log - (nu + 1) / 2 * math.log(1 + t * t / nu))


def t_share_below(t, nu):
    """Simpson's rule from 0 to t, on 2,000 steps."""
    steps = 2000
    width = t / steps
    total = t_density(0, nu) + t_density(t, nu)
    for i in range(1, steps):
        total += t_density(i * width, nu) * (4 if i % 2 else 2)
    return 0.5 + total * width / 3


@cache
def t_quantile(share, nu):
    low, high = 0.0, 100.0
    for _ in range(80):
        middle = (low + high) / 2
        if t_share_below(middle, nu) < share:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def middle_of(values):
    ordered = sorted(values)
    n = len(ordered)
    if n % 2 == 1:
        return ordered[n // 2]
    return (ordered[n // 2 - 1] + ordered[n // 2]) / 2


def clipped(values):
    c = middle_of(values)
    distances = []
    for x in values:
        distances.append(abs(x - c))
    r = 1.4826 * middle_of(distances)
    if r < 0.01:
        r = 0.01
    kept = []
    for x in values:
        if x > c + 3 * r:
            kept.append(c + 3 * r)
        elif x < c - 3 * r:
            kept.append(c - 3 * r)
        else:
            kept.append(x)
    return kept


def verdict(references, new, declared, earlier=(), looks=(4, 6)):  # noqa: C901
    """(verdict, new starts used, band) on the log scale; new must hold as many as the last look."""
    kept = clipped(references)
    h = sum(kept) / len(kept)
    squares = PRIOR_WORTH * PRIOR**2
    nu = PRIOR_WORTH
    for x in kept:
        squares = squares + (x - h) ** 2
    nu = nu + len(kept) - 1
    old_squares, old_nu = 0.0, 0
    for session in earlier:
        old = clipped(session)
        mean = sum(old) / len(old)
        for x in old:
            old_squares = old_squares + (x - mean) ** 2
        old_nu = old_nu + len(old) - 1
    if old_nu > 0:
        worth = min(15, old_nu)
        squares = squares + worth * (old_squares / old_nu)
        nu = nu + worth
    s = math.sqrt(squares / nu)
    t_alpha, t_beta = t_quantile(1 - ALPHA, nu), t_quantile(1 - BETA, nu)
    last = looks[-1]
    band = max(declared, (t_alpha + t_beta) * s * math.sqrt(1 / last + 1 / len(references)))
    for a in looks:
        seen = new[:a]
        m = sum(seen) / a
        d = m - h
        error = math.sqrt(1 / a + 1 / len(references))
        if d + t_beta * s * error < band:
            return "PASS", a, band
        pooled = nu * s * s
        for x in seen:
            pooled = pooled + (x - m) ** 2
        pooled = math.sqrt(pooled / (nu + a - 1))
        wide = s if s > pooled else pooled
        over = 0
        for x in seen:
            if x - h > band / 2:
                over = over + 1
        if d - t_alpha * wide * error > 0 and over >= 4:
            return "REGRESSION", a, band
    return "INCONCLUSIVE", last, band
