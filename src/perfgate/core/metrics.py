"""The table of metrics: one name, unit, direction, family, prior sigma and default band for each.

The table itself is metrics.toml; everything else in perfgate looks its facts up here.
"""

import re
from dataclasses import dataclass, replace
from typing import Literal

from perfgate.core.errors import InputError
from perfgate.core.files.remembered import toml_beside
from perfgate.core.plain import from_plain

Direction = Literal["higher", "lower"]


@dataclass(frozen=True)
class Family:
    """Metrics that share their noise.

    Attributes:
        name: the family's name.
        sigma: prior standard deviation of one run on the log scale (0.005 = 0.5 %).
        band: default loss, as a fraction, from which on a change counts; None: report only.
        on_nodes: sigma and band on several nodes, where they are known to differ.
    """

    name: str
    sigma: float
    band: float | None = None
    on_nodes: tuple[float, float] | None = None

    def on(self, nodes: int) -> "Family":
        """The family as it is on so many nodes."""
        if nodes == 1 or self.on_nodes is None:
            return self
        sigma, band = self.on_nodes
        return replace(self, sigma=sigma, band=band)


@dataclass(frozen=True)
class Metric:
    """What one metric is.

    Attributes:
        name: canonical name, the only one used in records, baselines and reports.
        unit: unit of every stored value.
        direction: whether "higher" or "lower" values are better.
        family: its noise family.
        meaning: one line for people.
        may_be_zero: whether a whole result can have a value of 0: most tokens of an answer can
            reach the client together, and have no time between them.
    """

    name: str
    unit: str
    direction: Direction
    family: Family
    meaning: str
    may_be_zero: bool = False


_TABLE = toml_beside(__file__, "metrics")

FAMILIES: dict[str, Family] = {
    name: from_plain(Family, {"name": name, **one}) for name, one in _TABLE["families"].items()
}
ACCEPTANCE, ACCURACY = FAMILIES["acceptance"], FAMILIES["accuracy"]
THROUGHPUT, TTFT = FAMILIES["throughput"], FAMILIES["ttft"]

METRICS: dict[str, Metric] = {
    name: Metric(**{**one, "name": name, "family": FAMILIES[one["family"]]})
    for name, one in _TABLE["metrics"].items()
}

_ACCURACY = re.compile(r"accuracy:(?P<task>[\w.-]+):(?P<metric>[\w.-]+):(?P<filter>[\w.-]+)")


def accuracy_name(task: str, metric: str, filter_name: str) -> str:
    """Canonical name of a score, e.g. ``accuracy:gsm8k:exact_match:strict-match``."""
    return f"accuracy:{task}:{metric}:{filter_name}"


def is_accuracy(name: str) -> bool:
    """Whether `name` is an accuracy metric (fraction 0…1, higher is better)."""
    return _ACCURACY.fullmatch(name) is not None


def lookup(name: str) -> Metric:
    """The metric called `name`.

    Raises:
        InputError: no metric has that name.
    """
    if name in METRICS:
        return METRICS[name]
    match = _ACCURACY.fullmatch(name)
    if match:
        meaning = f"{match['metric']} of {match['task']}, filter {match['filter']}"
        return Metric(name, "fraction", "higher", ACCURACY, meaning)
    raise InputError(
        "unknown metric",
        found=name,
        expected="accuracy:<task>:<metric>:<filter> or one of " + ", ".join(sorted(METRICS)),
    )
