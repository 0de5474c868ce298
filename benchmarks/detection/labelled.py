"""Labelled series: reading them from a folder outside of the project, and scoring alarms on them.

The folder holds `series.csv` (series_id, file, use), `labels.csv` (series_id, index, end_index,
kind, confidence) and the files themselves (column value).
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

# An alarm belongs to a label from three points before its start to ten after its end.
BEFORE = 3
AFTER = 10


@dataclass(frozen=True)
class Label:
    """A change, from `start` to `end` (a ramp; else both are the same)."""

    start: int
    end: int
    kind: str
    confidence: str

    @property
    def scored(self) -> bool:
        """Whether it must be found: a step, and not one of low confidence."""
        return self.kind == "step" and self.confidence != "low"


@dataclass(frozen=True)
class Labelled:
    """A series: one value per run, in order."""

    name: str
    use: str
    values: tuple[float, ...]
    labels: tuple[Label, ...]

    @property
    def sought(self) -> tuple[int, ...]:
        """Starts of the labels that must be found, each once."""
        return tuple(sorted({label.start for label in self.labels if label.scored}))


@dataclass(frozen=True)
class Score:
    """What alarms are worth on some series."""

    labels: int
    found: int
    false: int
    alarms: int
    points: int
    delays: tuple[int, ...]

    @property
    def false_per_1000(self) -> float:
        return 1000 * self.false / self.points

    @property
    def delay(self) -> float:
        """Median points from a label to its first alarm; NaN if none was found."""
        return median(self.delays) if self.delays else float("nan")


def read(folder: Path) -> tuple[Labelled, ...]:
    """All series of a folder with their labels."""
    labels: dict[str, list[Label]] = {}
    for row in _rows(folder / "labels.csv"):
        start = int(row["index"])
        end = int(row["end_index"] or start)
        label = Label(start, end, row["kind"], row["confidence"])
        labels.setdefault(row["series_id"], []).append(label)
    return tuple(
        Labelled(
            row["series_id"],
            row["use"],
            tuple(float(point["value"]) for point in _rows(folder / row["file"])),
            tuple(labels.get(row["series_id"], ())),
        )
        for row in _rows(folder / "series.csv")
    )


def score(series: Sequence[Labelled], alarms: Mapping[str, Sequence[int]]) -> Score:
    """Score the alarms of each series (by name).

    A scored label is found when an alarm lies in [start - 3, start + 10]. An alarm is false when it
    lies in no label's [start - 3, end + 10], whatever the label's kind and confidence: a ramp, an
    outlier or a doubtful step is no reason to call an alarm false, nor must it be found.
    """
    found, delays, false = 0, [], 0
    for one in series:
        raised = sorted(alarms[one.name])
        for start in one.sought:
            hits = [at for at in raised if start - BEFORE <= at <= start + AFTER]
            if hits:
                found += 1
                delays.append(hits[0] - start)
        false += sum(
            not any(label.start - BEFORE <= at <= label.end + AFTER for label in one.labels)
            for at in raised
        )
    return Score(
        labels=sum(len(one.sought) for one in series),
        found=found,
        false=false,
        alarms=sum(len(alarms[one.name]) for one in series),
        points=sum(len(one.values) for one in series),
        delays=tuple(delays),
    )


def _rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as stream:
        return list(csv.DictReader(stream))
