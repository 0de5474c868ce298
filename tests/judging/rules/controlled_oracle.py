"""The rule with controls once more, for many cases at once: slow to read, and not the product's.

Written from the rule's text with NumPy, one step of the text a line, so that the product's own code
can be held against it case by case.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

Floats = Any

INCONCLUSIVE, PASS, REGRESSION, HOST_SHIFT = 0, 1, 2, 3
LOOKS = ((1, 0), (2, 0), (2, 1), (2, 2), (3, 2), (4, 2), (4, 3))


@dataclass
class History:
    """Centre, spread, degrees of freedom, starts and sessions; one row a case."""

    h: Floats
    s: Floats
    nu: int
    n: int
    d: int
    rho: float


def history(base: Floats, sigma: float, sessions: int, rho: float = 0.3) -> History:
    n = base.shape[-1]
    kept = base
    if n >= 3:
        c = np.median(base, axis=-1, keepdims=True)
        r = np.full_like(c, sigma)
        if n >= 5:
            r = np.maximum(r, 1.4826 * np.median(np.abs(base - c), axis=-1, keepdims=True))
        kept = np.clip(base, c - 2 * r, c + 2 * r)
    h = kept.mean(axis=-1)
    nu = 10 + n - 1
    s = np.sqrt((10 * sigma**2 + ((kept - h[..., None]) ** 2).sum(axis=-1)) / nu)
    return History(h, s, nu, n, sessions, rho)


def codes(level: History, new: Floats, controls: Floats, delta: float) -> tuple[Floats, ...]:
    """Verdict of each metric, and new starts and controls of each probe.

    Args:
        level: of (probes, metrics).
        new, controls: (probes, metrics, starts).
        delta: the band.
    """
    h, s, rho = level.h, level.s, level.rho
    t_alpha, t_beta, t_beta2 = student.ppf([1 - 0.01, 1 - 0.025, 1 - 0.005], level.nu)
    code = np.zeros(new.shape[:2], dtype=int)
    used = np.full((len(new), 2), LOOKS[-1])
    live = np.ones(len(new), dtype=bool)
    for n, j in LOOKS:
        seh = s * np.sqrt(rho * (1 + 1 / level.d) + (1 - rho) * (1 / n + 1 / level.n))
        m = new[..., :n].mean(axis=-1)
        passed = m - h + t_beta * seh < delta
        host = np.zeros_like(passed)
        lost = np.zeros_like(passed)
        if n >= 2:
            f = new[..., 1:n].mean(axis=-1)
            se1 = s * np.sqrt(rho * (1 + 1 / level.d) + (1 - rho) * (1 / (n - 1) + 1 / level.n))
            passed |= f - h + t_beta2 * se1 < delta
        if j >= 1:
            ordered = np.sort(controls[..., :j], axis=-1)
            lo, up = ordered[..., (j - 1) // 2], ordered[..., j // 2]
            broken = lo - h > 3 * delta
            one = s * np.sqrt(rho * (1 + 1 / level.d) + (1 - rho) * (1 + 1 / level.n))
            sec = s * np.sqrt((1 - rho) * (1 / (n - 1) + 1 / j))
            if j >= 2:
                host |= ~broken & (lo - h > 2.5 * one) & (f - lo + t_beta * sec < delta)
            if j >= 3:
                host |= ~broken & (f - lo + t_beta2 * sec < delta)
            gap = new[..., :n] - np.maximum(h, up)[..., None]
            enough = (gap > 3 * delta).all(axis=-1)
            if j >= 2:
                enough |= (gap > delta / 2).sum(axis=-1) >= 3
            lost = ~broken & enough & (m - h - t_alpha * seh > 0) & (f - up - t_alpha * sec > 0)
        open_ = (code == INCONCLUSIVE) & live[:, None]
        code[open_ & passed] = PASS
        code[open_ & ~passed & host] = HOST_SHIFT
        code[open_ & ~passed & ~host & lost] = REGRESSION
        done = live & ((code == REGRESSION).any(axis=1) | (code > INCONCLUSIVE).all(axis=1))
        used[done] = (n, j)
        live &= ~done
    return code, used[:, 0], used[:, 1]
