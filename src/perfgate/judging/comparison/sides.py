"""Sides: the two things that `perfgate compare` compares, as plain values.

A side holds, per probe, one measurement for each fresh start of the engine.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from perfgate.core.measurement import Measurement
from perfgate.judging.comparison.comparability import Fact

Kind = Literal["run", "baseline", "files"]


@dataclass(frozen=True)
class Measured:
    """One probe of a side.

    Attributes:
        name: readable name; of other tools' results the program's.
        label: the probe's own name in its scenario; as `name` for other tools.
        scenario: its scenario; empty for other tools' results.
        runs: one measurement per fresh start, in order.
        identities: what tells each run from all others: file, or run and time of its start.
        fingerprint: the facts that must be equal; None for other tools' results.
        facts: what the results themselves tell of the load.
        machine_bound: whether the machine that measured it is its own reference.
        failure: why its numbers must not be used; empty if they may.
        sessions: sessions behind the runs, whose starts share their luck; files of other tools do
            not tell, and count as one.
        hardware: label of the hardware; empty: not known.
    """

    name: str
    label: str
    scenario: str
    runs: tuple[Measurement, ...]
    identities: tuple[str, ...]
    fingerprint: Mapping[str, str] | None = None
    facts: Mapping[str, Fact] = field(default_factory=dict)
    machine_bound: bool = False
    failure: str = ""
    sessions: int = 1
    hardware: str = ""

    def values(self, metric: str) -> list[float]:
        """The metric's values, one per fresh start."""
        return [run.metrics[metric] for run in self.runs]

    def metrics(self) -> list[str]:
        """The metrics that every one of its runs has, sorted."""
        sets = [set(run.metrics) for run in self.runs]
        return sorted(set.intersection(*sets)) if sets else []

    def partial(self) -> list[str]:
        """The metrics that only some of its runs have, sorted."""
        return sorted({name for run in self.runs for name in run.metrics} - {*self.metrics()})


@dataclass(frozen=True)
class Side:
    """One of the two things that are compared.

    Attributes:
        path: what was named.
        kind: what it is.
        description: in words, where the numbers come from.
        probes: what was measured, by name.
        synthetic: whether stand-ins made numbers of it.
        injected: settings that were changed on purpose, as KEY=VALUE.
        warnings: what a reader should know of it.
    """

    path: Path
    kind: Kind
    description: str
    probes: tuple[Measured, ...]
    synthetic: bool = False
    injected: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
