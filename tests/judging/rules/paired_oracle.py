"""The paired test as slowly and plainly as it can be written: one case at a time, no shared code.

Three rules as statistics §9 and §10 word them: an A/B, a reference measured in turns, a claim.
"""

import math
import statistics
from functools import cache

from scipy.special import stdtrit


@cache
def t(share, dof):
    return float(stdtrit(dof, share))


def squares(values):
    mean = statistics.fmean(values)
    return sum((x - mean) ** 2 for x in values)


def pulled_in(values, times, least, robust):
    if len(values) < 3:
        return list(values)
    c, r = statistics.median(values), least
    if robust:
        r = max(r, 1.4826 * statistics.median([abs(x - c) for x in values]))
    return [min(max(x, c - times * r), c + times * r) for x in values]


def ab(a, b, band, sigma=0.03, between=0.0, own=False):
    """(verdict, pairs, band)"""
    alpha, beta, prior, needed = (0.002, 0.05, 2, 4) if own else (0.005, 0.025, 10, 3)
    looks = (4, 5, 6) if own else (2, 3, 4, 5, 6)
    pairs = min(len(a), len(b), 6)
    for r in range(min(looks[0], pairs), pairs + 1):
        outliers = (3, 0.01, True) if own else (2, sigma, False)
        x, y = pulled_in(a[:r], *outliers), pulled_in(b[:r], *outliers)
        d, nu = statistics.fmean(y) - statistics.fmean(x), prior + r - 1
        total = prior * sigma**2 * (1 - between) + squares(x)
        s = math.sqrt(total / nu)
        wide = max(s, math.sqrt((total + squares(y)) / (nu + r - 1))) if own else s
        forced = (t(1 - alpha, nu) + t(1 - beta, nu)) * s * math.sqrt(2 / 6)
        margin = max(band, forced) if own else band
        far = sum(v > statistics.median(x) + margin / 2 for v in y)
        if r < looks[0]:
            break
        if d + t(1 - beta, nu) * s * math.sqrt(2 / r) < margin:
            return "PASS", r, margin
        if d - t(1 - alpha, nu) * wide * math.sqrt(2 / r) > 0 and far >= needed:
            return "REGRESSION", r, margin
    return "INCONCLUSIVE", pairs, margin


def in_turns(references, new, band, earlier, looks, widest):
    """(verdict, new starts, band)"""
    kept = pulled_in(references, 3, 0.01, True)
    h, m = statistics.fmean(kept), len(kept)
    total, nu = 2 * 0.03**2 + squares(kept), 2 + m - 1
    groups = [pulled_in(group, 3, 0.01, True) for group in earlier if len(group) > 1]
    if groups:
        dof = sum(len(group) - 1 for group in groups)
        total += min(15, dof) * sum(map(squares, groups)) / dof
        nu += min(15, dof)
    s = math.sqrt(total / nu)
    forced = (t(0.998, nu) + t(0.95, nu)) * s * math.sqrt(1 / looks[-1] + 1 / m)
    margin, noisy = max(band, forced), forced > widest
    looks = looks[:1] if noisy else looks
    for n in [one for one in looks if one <= len(new)]:
        seen = new[:n]
        d, error = statistics.fmean(seen) - h, math.sqrt(1 / n + 1 / m)
        wide = max(s, math.sqrt((nu * s * s + squares(seen)) / (nu + n - 1)))
        far = sum(x - h > margin / 2 for x in seen)
        if not noisy and d + t(0.95, nu) * s * error < margin:
            return "PASS", n, margin
        obvious = not noisy or min(seen) - h > margin
        if d - t(0.998, nu) * wide * error > 0 and far >= 4 and obvious:
            return "REGRESSION", n, margin
    return "INCONCLUSIVE", min(len(new), looks[-1]), margin


def claim(new, other, holds, fails, *, sigma, own=False, each=False, number=None, baseline=None):
    """(verdict, pairs); `holds` and `fails` take d, L and U; `baseline`: (side, sessions)"""
    prior, rho, sigma, first = (2, 0.0, 0.03, 4) if own else (10, 0.3, sigma, 3)
    times, least, robust = (3, 0.01, True) if own else (2, sigma, each)
    now = {"new": other, "other": new}[baseline[0]] if baseline else new
    pairs = min(len(now), 6) if baseline or number is not None else min(len(new), len(other), 6)
    for r in range(min(first, pairs), pairs + 1):
        y = pulled_in(new if baseline and baseline[0] == "new" else new[:r], times, least, robust)
        if number is not None:
            nu = prior + r - 1
            d, error = statistics.fmean(y) - number, (prior * sigma**2 + squares(y)) / nu / r
        else:
            x = other if baseline and baseline[0] == "other" else other[:r]
            x = pulled_in(x, times, least, robust)
            d, nu = statistics.fmean(y) - statistics.fmean(x), prior + min(len(x), len(y)) - 1
            own_prior = prior * sigma**2 * (1 - rho)
            error = (own_prior + squares(x)) / nu * 2 / r
            if each:
                error = 0.0
                for z in (x, y):
                    dof = len(z) - 1
                    v = (own_prior + squares(z)) / (prior + dof)
                    error += max(v, squares(z) / dof if dof else 0) / len(z)
                error += rho * sigma**2 * (1 + 1 / baseline[1]) if baseline else 0
        reach = t(0.998, nu) * math.sqrt(error)
        if r < first or (baseline and len(new if baseline[0] == "new" else other) < 3):
            continue
        if holds(d, d - reach, d + reach):
            return "PASS", r
        if fails(d, d - reach, d + reach):
            return "REGRESSION", r
    return "INCONCLUSIVE", pairs
