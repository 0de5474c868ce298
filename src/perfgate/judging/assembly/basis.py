"""Basis: what a verdict rests on beside the measurements, so that it can be computed anew. Pure.

It is part of the record of a verdict. The baselines that it names are kept in the run folder, as
they were when the verdict was given (`campaign.kept_references`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from perfgate.baselines import Entry
from perfgate.baselines.waivers import Waiver
from perfgate.core.rule import VERSION, ControlPolicy, Rule
from perfgate.core.verdict import Against
from perfgate.judging.rules.probe import RunNoise
from perfgate.scenarios.documented import DocumentedValue


@dataclass(frozen=True)
class ClaimSide:
    """Where the numbers of one side of a claim come from.

    Attributes:
        scenario: id of its scenario.
        probe: label of its probe.
        role: of the fresh starts that measured it in this run; empty: an accepted baseline is it.
        starts: numbers of those starts.
        baseline: that baseline's file, in the run's kept references; empty: none.
    """

    scenario: str
    probe: str
    role: str = ""
    starts: tuple[int, ...] = ()
    baseline: str = ""


@dataclass(frozen=True)
class BasisControls:
    """The controls that stood beside the build under test.

    Attributes:
        policy: as in `ControlStarts`.
        starts: build → numbers of its starts; a build that is missing could not be started.
        why_not: build → why it could not be started.
    """

    policy: ControlPolicy
    starts: Mapping[Against, tuple[int, ...]] = field(default_factory=dict)
    why_not: Mapping[Against, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Basis:
    """What one verdict rests on.

    Attributes:
        rule: error rates, and the most fresh starts.
        rule_version: which rule of the gate it is (`perfgate.core.rule.VERSION`).
        role: of the starts of the build under test: ``new``, or ``claim``.
        starts: their numbers, in order; none that was disturbed.
        fingerprint: the facts that had to be those of the baseline.
        window: the baseline and the older ones on its level, newest first, each a file in the run's
            kept references; empty: none.
        anchor: the last release's; empty: none beside the baseline.
        own_starts: numbers of the starts in which this machine measured its own reference.
        earlier: what it had measured of itself in earlier sessions.
        takes_turns: whether those starts took turns with the build under test.
        documented: metric → what the document says of it.
        noise: metric → noise of one fresh start that was known.
        controls: None: no other build could stand beside it.
        waivers: those that there were for the scenario.
        today: the day that they were held against.
        broken: why the speed of this build says nothing; empty: it does.
        points: of a curve: label of each point → what is known of it.
        sides: of a claim: the one that it speaks of, and the other where there is one.
    """

    rule: Rule
    rule_version: str = VERSION
    role: str = "new"
    starts: tuple[int, ...] = ()
    fingerprint: Mapping[str, str] = field(default_factory=dict)
    window: tuple[str, ...] = ()
    anchor: str = ""
    own_starts: tuple[int, ...] = ()
    earlier: Entry | None = None
    takes_turns: bool = False
    documented: Mapping[str, DocumentedValue] = field(default_factory=dict)
    noise: Mapping[str, RunNoise] = field(default_factory=dict)
    controls: BasisControls | None = None
    waivers: tuple[Waiver, ...] = ()
    today: date = date.min
    broken: str = ""
    points: Mapping[str, "Basis"] = field(default_factory=dict)
    sides: tuple[ClaimSide, ...] = ()
