"""Shards: a selection divided into parts that are run apart, the same on every machine. Pure.

A scenario is never split, and scenarios that a claim of the selection compares stay together: its
numbers are of one session. No threshold of the gate depends on how a selection is divided
(docs/how-to/shards.md).
"""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from perfgate.campaign.selection import Selected, measured_scenarios
from perfgate.core.errors import InputError
from perfgate.judging.assembly.claims import ClaimProbe
from perfgate.runs.record import ShardRecord

_NUMBER = re.compile(r"([0-9]{1,4})/([0-9]{1,4})", re.ASCII)


@dataclass(frozen=True)
class ShardNumber:
    """Which part of how many: 1 to `of`."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def parse_shard(text: str) -> ShardNumber:
    """The shard that ``K/N`` names.

    Raises:
        InputError: it names none.
    """
    match = _NUMBER.fullmatch(text)
    found = None if match is None else ShardNumber(int(match[1]), int(match[2]))
    if found is None or not 1 <= found.number <= found.of:
        raise InputError(
            "no shard",
            field="--shard",
            found=text,
            expected="K/N, the K-th of N parts, as 2/5; K from 1 to N",
        )
    return found


@dataclass(frozen=True)
class Division:
    """A selection in parts.

    Attributes:
        parts: ids of the scenarios of each shard, sorted; empty ones last.
        fingerprint: of all tests, their scenarios' content and the parts; the same wherever the
            same selection is divided alike.
        groups: how many groups of scenarios there are to distribute.
    """

    parts: tuple[tuple[str, ...], ...]
    fingerprint: str
    groups: int

    def part_of(self, scenario: str) -> int:
        """The number of the shard that has a scenario, from 1."""
        return next(number for number, part in enumerate(self.parts, 1) if scenario in part)

    def tests_of(self, number: int, selected: Mapping[str, Selected]) -> frozenset[str]:
        """The tests of one shard.

        Args:
            number: of the shard, from 1.
            selected: the whole selection, test → what it is about.
        """
        measured = measured_scenarios(selected.values())
        return frozenset(
            test for test, one in selected.items() if self.part_of(_home(one, measured)) == number
        )

    def record(self, shard: ShardNumber, expression: str) -> ShardRecord:
        """The record of a run that is one of the parts."""
        return ShardRecord(
            number=shard.number,
            of=shard.of,
            expression=expression,
            selection=self.fingerprint,
            scenarios=tuple(tuple(part) for part in self.parts),
        )


def groups_of(selected: Iterable[Selected]) -> list[tuple[str, ...]]:
    """The scenarios that a selection measures, those that must stay together in one tuple; sorted.

    Args:
        selected: what the tests are about.
    """
    tests = tuple(selected)
    measured = measured_scenarios(tests)
    group = {name: {name} for name in measured}
    for one in tests:
        if not isinstance(one, ClaimProbe):
            continue
        joined = set().union(*(group[side] for side in one.claim.sides if side in measured))
        for name in joined:
            group[name] = joined
    return sorted({tuple(sorted(names)) for names in group.values()})


def divided(
    groups: Sequence[tuple[str, ...]], seconds: Mapping[str, float], of: int
) -> tuple[tuple[str, ...], ...]:
    """The groups in `of` parts: the longest first, each to the part with the least so far.

    Args:
        groups: scenarios that stay together.
        seconds: how long each scenario is taken to last.
        of: number of parts.
    """
    # In whole seconds: the order in which a machine adds does not show.
    length = {one: round(math.fsum(seconds[name] for name in one)) for one in groups}
    loads = [0] * of
    parts: list[list[str]] = [[] for _ in range(of)]
    for one in sorted(groups, key=lambda group: (-length[group], group)):
        # A part with nothing comes first, also where something takes no time.
        least = min(range(of), key=lambda part: (loads[part], len(parts[part]), part))
        parts[least] += one
        loads[least] += length[one]
    return tuple(tuple(sorted(part)) for part in parts)


def divide(selected: Mapping[str, Selected], seconds: Mapping[str, float], of: int) -> Division:
    """A selection in `of` parts.

    Args:
        selected: test → what it is about.
        seconds: of each scenario, as `divided` takes them.
        of: number of parts.
    """
    groups = groups_of(selected.values())
    parts = divided(groups, seconds, of)
    content = {one.scenario.id: one.scenario.content_hash() for one in selected.values()}
    text = json.dumps([sorted(selected), sorted(content.items()), parts])
    fingerprint = hashlib.sha256(text.encode()).hexdigest()[:16]
    return Division(parts, fingerprint, len(groups))


def require_not_empty(division: Division, shard: ShardNumber) -> None:
    """Check that a shard has something to do.

    Raises:
        InputError: it has not, which would look as if it had passed.
    """
    if division.parts[shard.number - 1]:
        return
    there = "1 group" if division.groups == 1 else f"{division.groups} groups"
    raise InputError(
        "the shard is empty, nothing would be measured",
        field="--shard",
        found=f"{shard}, and the selection has {there} of scenarios that cannot be split",
        expected=f"at most {division.groups} shards",
        hint="`perfgate ci matrix` prints as many as there is work for",
    )


def _home(one: Selected, measured: frozenset[str]) -> str:
    """The scenario whose shard a test goes to."""
    sides = one.claim.sides if isinstance(one, ClaimProbe) else (one.scenario.id,)
    return next(side for side in sides if side in measured)
