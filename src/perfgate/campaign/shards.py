"""Shards: a selection divided into parts that are run apart, the same on every machine, and the
matrix of jobs that run them: a row for each shard on each kind of GPU.

A scenario is never split, and scenarios that a claim of the selection compares stay together: its
numbers are of one session. No threshold of the gate depends on how a selection is divided
(docs/how-to/shards.md). `perfgate ci matrix` prints the matrix, CI systems make jobs of it,
`perfgate report` misses a row without a run.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from perfgate.campaign.budget import stored_seconds
from perfgate.campaign.selection import (
    Selected,
    measured_scenarios,
    probes_of,
    selected_with,
    suite_tests,
)
from perfgate.core.errors import InputError
from perfgate.core.files.json_text import JsonError, parse_object
from perfgate.core.plain import from_plain
from perfgate.judging.assembly.claims import ClaimProbe, claims_of_suite
from perfgate.runs.record import ShardRecord
from perfgate.scenarios.files import LoadedSuite
from perfgate.scenarios.markers import hardware_marker
from perfgate.scenarios.scenario import Scenario

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
    for test in tests:
        if not isinstance(test, ClaimProbe):
            continue
        joined = set().union(*(group[side] for side in test.claim.sides if side in measured))
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


LARGEST = 4 * 2**20  # bytes of a printed matrix
_MOST_ROWS = 256  # of a matrix: GitHub, "Usage limits"
_BESIDE_MINUTES = 30  # collecting, installing, writing reports
_MOST_MINUTES = 7200  # GitHub ends a job of a runner of one's own after five days

_Name = Annotated[str, Meta(pattern=r"\A[a-z0-9][a-z0-9-]{0,79}\Z")]


class MatrixRow(Struct, frozen=True):
    """What one job measures.

    Attributes:
        name: of the job.
        gpu: kind of GPU, in small letters; none: the CPU.
        gpus, nodes: the most that one of the scenarios needs.
        expression: for pytest's `-m`.
        shard: `K/N`.
        hours: that it usually takes.
        hours_known: whether they were measured.
        timeout_minutes: above the limits of perfgate's own.
        scenarios: ids of what it measures.
    """

    name: _Name
    gpu: _Name
    gpus: int
    nodes: int
    expression: Annotated[str, Meta(pattern=r"\A[^\x00-\x1f\x7f-\x9f\u2028\u2029]{1,2000}\Z")]
    shard: Annotated[str, Meta(pattern=r"\A[1-9]\d{0,3}/[1-9]\d{0,3}\Z")]
    hours: float
    hours_known: bool
    timeout_minutes: Annotated[int, Meta(ge=1, le=30 * 24 * 60)]
    scenarios: tuple[str, ...]


class Matrix(Struct, frozen=True):
    """The rows, under the name that GitHub reads."""

    include: Annotated[tuple[MatrixRow, ...], Meta(min_length=1)]


def read_matrix(text: bytes, file: Path) -> Matrix:
    """The matrix that `perfgate ci matrix` printed.

    Args:
        text: what it printed.
        file: where that stands, for messages.

    Raises:
        InputError: it is none, is empty, or holds what cannot be a job.
    """
    try:
        matrix = from_plain(Matrix, parse_object(text, limit=LARGEST))
    except JsonError as error:
        raise error.input_error("the matrix", file=file) from error
    except InputError as error:
        raise InputError(
            "not a matrix of `perfgate ci matrix`",
            file=file,
            field=error.field,
            found=error.problem,
        ) from error
    names = [row.name for row in matrix.include]
    if len(set(names)) < len(names):
        raise InputError("the matrix has two rows of one name", file=file, found=", ".join(names))
    return matrix


def matrix_of(
    suite: LoadedSuite, expression: str, gpus: Sequence[str], shards: int
) -> tuple[Matrix, tuple[str, ...]]:
    """The jobs that measure a selection, and warnings of those that may take too long.

    Args:
        suite: whose tests are selected.
        expression: as of pytest's `-m`; empty selects all.
        gpus: kinds of GPUs.
        shards: rows for each kind of GPU, at most.

    Raises:
        InputError: nothing is selected, or `shards` or the rows are beyond GitHub's limit.
    """
    if not 1 <= shards <= _MOST_ROWS:
        raise InputError(
            "no number of shards", field="--shards", found=shards, expected=f"1 to {_MOST_ROWS}"
        )
    tests = suite_tests(suite.scenarios, claims_of_suite(suite))
    rows: list[MatrixRow] = []
    warnings: list[str] = []
    for gpu in gpus:
        markers = (
            hardware_marker(scenario)
            for scenario in suite.scenarios
            if scenario.hardware.gpu == gpu
        )
        marker = next(markers, None)
        if marker is None:
            continue
        on_gpu = f"({expression}) and {marker}" if expression else marker
        selected = selected_with(on_gpu, tests, suite.markers)
        for row, minutes in _rows(marker, on_gpu, selected, suite.scenarios, shards):
            rows.append(row)
            if minutes > _MOST_MINUTES:
                warnings.append(
                    f"{row.name} may take {minutes} minutes, GitHub ends a job after "
                    f"{_MOST_MINUTES}; take more shards, or store baselines: their hours are known"
                )
    if not rows:
        raise InputError(
            "no scenario is selected, so there is no job",
            field="-m",
            found=expression or "everything",
            expected="an expression that selects scenarios",
            hint="`perfgate scenarios list` shows their markers",
        )
    if len(rows) > _MOST_ROWS:
        raise InputError(
            "more rows than GitHub takes in a matrix",
            field="--shards",
            found=f"{len(rows)} rows",
            expected=f"at most {_MOST_ROWS}",
            hint="fewer shards, or a matrix for each --gpu",
        )
    return Matrix(tuple(rows)), tuple(warnings)


def _rows(
    marker: str,
    expression: str,
    selected: Sequence[Selected],
    scenarios: Sequence[Scenario],
    shards: int,
) -> list[tuple[MatrixRow, int]]:
    """The rows of one kind of GPU, each with the minutes that it may take."""
    groups = groups_of(selected)
    by_id = {scenario.id: scenario for scenario in scenarios}
    about = {probe.scenario.id for test in selected for probe in probes_of(test)}
    seconds = stored_seconds(by_id[name] for name in sorted(about))
    of = min(shards, len(groups))
    rows = []
    usual = {name: duration.usual for name, duration in seconds.items()}
    for number, names in enumerate(divided(groups, usual, of), 1):
        hardware = [by_id[name].hardware for name in names]
        has_gpu = hardware[0].gpu != "none"
        minutes = math.ceil(sum(seconds[name].longest for name in names) / 60) + _BESIDE_MINUTES
        row = MatrixRow(
            name=f"{marker}-{number}-of-{of}",
            gpu=hardware[0].gpu.lower(),
            gpus=max(one.gpus for one in hardware) if has_gpu else 0,
            nodes=max(one.nodes for one in hardware),
            expression=expression,
            shard=f"{number}/{of}",
            hours=round(sum(seconds[name].usual for name in names) / 3600, 2),
            hours_known=all(seconds[name].known for name in names),
            timeout_minutes=min(minutes, _MOST_MINUTES),
            scenarios=tuple(names),
        )
        rows.append((row, minutes))
    return rows
