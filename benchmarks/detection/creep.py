"""Creeping losses: many commits that each lose less than anyone would notice, with and without the
anchor."""

from itertools import product
from statistics import median

import numpy as np

from benchmarks.detection.draws import latencies, noise
from benchmarks.detection.error_rates import SIGMA
from benchmarks.detection.online import Settings, walk

COMMITS = 150
STEPS = (0.0, 0.01, 0.02, 0.05, 0.1)  # of a band, a commit
_FIRST = 10
_NOISES = ("real", "gauss")


def of_small_steps(trials: int) -> list[dict[str, object]]:
    """Share of histories with an alarm, and the loss since the anchor when it came.

    The baseline follows: it is the last ten accepted values. Sigma is known, the band is 4 sigma,
    each start is of a session of its own.
    """
    rows: list[dict[str, object]] = []
    for kind, step in product(_NOISES, STEPS):
        slope = step * Settings().band * SIGMA
        losses = slope * np.maximum(np.arange(_FIRST + COMMITS) - _FIRST + 1, 0)
        starts = noise("creep", kind, trials, [1] * len(losses))
        many = latencies(SIGMA * starts + losses)
        for anchor in (0, 10):
            settings = Settings(
                window=_FIRST, first=_FIRST, anchor=anchor, sigma=SIGMA, recalibrate=False
            )
            firsts = [found.alarms[0] for one in many if (found := walk(one, settings)).alarms]
            lost = [step * (at - _FIRST + 1) for at in firsts]
            rows.append(
                {
                    "noise": kind,
                    "step": step,
                    "anchor": anchor,
                    "trials": trials,
                    "alarmed": len(firsts) / trials,
                    "loss": median(lost) if lost and step else None,
                }
            )
    return rows
