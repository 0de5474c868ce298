"""History: the values of a metric at earlier commits, as a report shows them. Pure."""

from dataclasses import dataclass
from typing import Literal

# A stored baseline; the anchor, a baseline that stays the last release's; an earlier run; this run.
PointKind = Literal["baseline", "anchor", "run", "this run"]


@dataclass(frozen=True)
class HistoryPoint:
    """A metric at one commit.

    Attributes:
        commit: of the engine.
        version: release of the engine.
        at: when it was measured, ISO 8601.
        value: central value over the fresh starts, in the metric's unit.
        values: one per fresh start.
        kind: what it is from.
        source: id of the run, or who accepted the baseline and when, in words.
        synthetic: whether stand-ins made it.
        note: what a person decided beside accepting it: a loss accepted, a baseline retired.
        segment: points of different segments were not measured alike, and are not joined.
    """

    commit: str
    version: str
    at: str
    value: float
    values: tuple[float, ...]
    kind: PointKind
    source: str
    synthetic: bool = False
    note: str = ""
    segment: int = 0


@dataclass(frozen=True)
class MetricHistory:
    """One metric of one probe over commits.

    Attributes:
        name: of the probe.
        metric: canonical name.
        unit: of all values.
        points: in the order of the engine's commits where that is known, else of days.
        order: in words, which of both it is.
    """

    name: str
    metric: str
    unit: str
    points: tuple[HistoryPoint, ...]
    order: str
