"""The study on labelled real series: our gate online, the rules of today, Otava, and edge cases."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.detection.labelled import AFTER, BEFORE, Labelled, score
from benchmarks.detection.online import Settings, noise_of, refusal, walk
from benchmarks.detection.real_rules import Alarms, by_otava, by_rules
from perfgate.core.metrics import lookup

# One setting at a time is moved away from the default; all rows are shown.
SENSITIVITY = (
    Settings(),
    *(Settings(band=band) for band in (2.0, 3.0)),
    *(Settings(window=window) for window in (5, 10, 20, 60)),
    *(Settings(alpha=alpha) for alpha in (0.025, 0.001)),
    *(Settings(first=first) for first in (5, 20)),
    *(Settings(first=first, recalibrate=False) for first in (5, 10, 20)),
    *(Settings(prior_dof=dof) for dof in (4.0, 30.0)),
    Settings(anchor=0),
    Settings(anchor=30),
    Settings(gains="improvement"),
)


def primary(series: Sequence[Labelled]) -> list[Labelled]:
    return [one for one in series if one.use == "primary"]


def ours(series: Sequence[Labelled]) -> list[dict[str, object]]:
    """Our gate with each of the settings, and over bands and windows together."""
    crossed = [Settings(band=b, window=w) for b, w in product((2.0, 3.0, 4.0), (5, 10, 20, 30, 60))]
    settings = list(dict.fromkeys([*SENSITIVITY, *crossed]))
    rows = []
    for one in settings:
        walks = {each.name: walk(each.values, one) for each in series}
        alarms = {name: found.alarms for name, found in walks.items()}
        decisions = sum(found.decisions for found in walks.values())
        rows.append(
            {
                **asdict(one),
                **_told(series, alarms),
                "starts": sum(found.starts for found in walks.values()) / decisions,
                "undecided": sum(found.undecided for found in walks.values()) / decisions,
                "each": _each(series, alarms),
            }
        )
    return rows


def others(series: Sequence[Labelled], otava: Path) -> list[dict[str, object]]:
    """The rules of today, with Otava in its own environment."""
    rows = []
    for name, starts, alarms in [*by_rules(series), *by_otava(series, otava)]:
        rows.append(
            {
                "rule": name,
                **_told(series, alarms),
                "starts": starts,
                "each": _each(series, alarms),
            }
        )
    return rows


def by_size(series: Sequence[Labelled], alarms: dict[str, Alarms]) -> list[dict[str, object]]:
    """How many of the sought labels each rule finds, by the size of the step in bands of 4 sigma.

    A step's size is the difference of the medians of ten points before and after it, against the
    noise of the series' past at that point.
    """
    rows = []
    for one in series:
        for start in one.sought:
            before, after = (
                np.median(np.log(one.values[max(0, first) : first + 10]))
                for first in (start - 10, start)
            )
            bands = abs(after - before) / (Settings().band * noise_of(one.values[:start]))
            rows.append(
                {
                    "series": one.name,
                    "at": start,
                    "change": float(np.expm1(after - before)),
                    "bands": float(bands),
                    **{
                        rule: any(start - BEFORE <= at <= start + AFTER for at in found[one.name])
                        for rule, found in alarms.items()
                    },
                }
            )
    return rows


def edges(series: Sequence[Labelled]) -> list[dict[str, object]]:
    """What our gate does on series that break its assumptions, or hold no change at all.

    Where it refuses (no noise, values that are not positive), it is asked again with the sigma of
    the throughput family, as if that had never been calibrated.
    """
    prior = lookup("output_throughput").family.sigma
    rows = []
    for one in series:
        if not one.use.startswith("edge"):
            continue
        for settings in (Settings(), replace(Settings(), sigma=prior)):
            refused = refusal(one.values, settings)
            row: dict[str, object] = {
                "series": one.name,
                "use": one.use,
                "sigma": settings.sigma,
                "refused": refused,
                "points": len(one.values),
            }
            if not refused:
                found = walk(one.values, settings)
                row |= _told([one], {one.name: found.alarms})
                row |= {
                    "starts": found.starts / found.decisions,
                    "undecided": found.undecided / found.decisions,
                }
            rows.append(row)
            if not refused:
                break
    return rows


def sizes(series: Sequence[Labelled], otava: Path) -> list[dict[str, object]]:
    """`by_size` of our gate as it comes, of the fixed rule, and of Otava with the whole series."""
    fixed = next(iter(by_rules(series)))[2]
    whole = next(iter(by_otava(series, otava)))[2]
    own = {one.name: walk(one.values, Settings()).alarms for one in series}
    return by_size(series, {"perfgate": own, "fixed": fixed, "otava": whole})


def _told(series: Sequence[Labelled], alarms: Alarms) -> dict[str, object]:
    found = score(series, alarms)
    return {
        "labels": found.labels,
        "found": found.found,
        "false": found.false,
        "false_per_1000": found.false_per_1000,
        "delay": None if found.delay != found.delay else found.delay,
        "points": found.points,
    }


def _each(series: Sequence[Labelled], alarms: Alarms) -> dict[str, list[int]]:
    """Series → labels, found, false alarms."""
    told = {one.name: score([one], alarms) for one in series}
    return {name: [one.labels, one.found, one.false] for name, one in told.items()}
