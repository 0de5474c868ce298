"""`perfgate ci matrix`: the jobs that measure a selection, one line of JSON for GitHub and GitLab.

For each kind of GPU up to N rows, divided as `pytest --shard` divides; a row is run by
`pytest -m EXPRESSION --shard SHARD`. docs/how-to/shards.md

exit status: 0 done; 2 nothing is selected, or unusable input
"""

import argparse
import math
import sys
from collections.abc import Sequence
from typing import Any

from perfgate.campaign.scenario_hours import ScenarioSeconds, stored_seconds
from perfgate.campaign.selection import Selected, probes_of
from perfgate.campaign.shards import divided, groups_of
from perfgate.campaign.suite_tests import selected_with, suite_tests
from perfgate.cli.output import json_text
from perfgate.cli.scenario_choice import add_folder, load
from perfgate.core.errors import InputError
from perfgate.judging.assembly.claims import claims_of_suite
from perfgate.scenarios.markers import GPUS, hardware_marker
from perfgate.scenarios.scenario import Scenario

_MOST_ROWS = 256  # of a matrix: GitHub, "Usage limits"
_BESIDE_MINUTES = 30  # collecting, installing, writing reports
_MOST_MINUTES = 7200  # GitHub ends a job of a runner of one's own after five days


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "-m",
        "--marker",
        action="append",
        default=[],
        metavar="EXPRESSION",
        help="only with these markers, as in pytest -m; given again: both",
    )
    add("--gpu", choices=GPUS, help="only for this GPU, e.g. B200; none: for the CPU")
    add("--shards", type=int, default=1, metavar="N", help="rows for each kind of GPU, at most")
    add_folder(parser)
    parser.set_defaults(execute=_matrix)


def _matrix(arguments: argparse.Namespace) -> int:
    if not 1 <= arguments.shards <= _MOST_ROWS:
        raise InputError(
            "no number of shards",
            field="--shards",
            found=arguments.shards,
            expected=f"1 to {_MOST_ROWS}",
        )
    suite = load(arguments.scenarios)
    claims = claims_of_suite(suite)
    tests = suite_tests(suite.scenarios, claims)
    asked = " and ".join(
        f"({one})" if len(arguments.marker) > 1 else one for one in arguments.marker if one
    )
    rows: list[dict[str, Any]] = []
    for gpu in GPUS if arguments.gpu is None else [arguments.gpu]:
        marker = next(
            (hardware_marker(one) for one in suite.scenarios if one.hardware.gpu == gpu), None
        )
        if marker is None:
            continue
        expression = f"({asked}) and {marker}" if asked else marker
        rows += _rows(
            gpu,
            marker,
            expression,
            selected_with(expression, tests, suite.markers),
            suite.scenarios,
            arguments.shards,
        )
    if not rows:
        raise InputError(
            "no scenario is selected, so there is no job",
            field="-m",
            found=asked or "everything",
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
    print(json_text({"include": rows}))
    return 0


def _rows(
    gpu: str,
    marker: str,
    expression: str,
    selected: Sequence[Selected],
    scenarios: Sequence[Scenario],
    most: int,
) -> list[dict[str, Any]]:
    """The rows of one kind of GPU."""
    groups = groups_of(selected)
    if not groups:
        return []
    by_id = {one.id: one for one in scenarios}
    about = {probe.scenario.id for one in selected for probe in probes_of(one)}
    seconds = stored_seconds(by_id[name] for name in sorted(about))
    of = min(most, len(groups))
    usual = {name: one.usual for name, one in seconds.items()}
    return [
        _row(gpu, marker, expression, f"{number}/{of}", [by_id[name] for name in part], seconds)
        for number, part in enumerate(divided(groups, usual, of), 1)
    ]


def _row(
    gpu: str,
    marker: str,
    expression: str,
    shard: str,
    scenarios: Sequence[Scenario],
    seconds: dict[str, ScenarioSeconds],
) -> dict[str, Any]:
    name = f"{marker}-{shard.replace('/', '-of-')}"
    told = [seconds[one.id] for one in scenarios]
    minutes = math.ceil(sum(one.longest for one in told) / 60) + _BESIDE_MINUTES
    if minutes > _MOST_MINUTES:
        print(
            f"perfgate: warning: {name} may take {minutes} minutes, GitHub ends a job after "
            f"{_MOST_MINUTES}; take more shards, or store baselines: their hours are known",
            file=sys.stderr,
        )
    return {
        "name": name,
        "gpu": "none" if gpu == "none" else gpu.lower(),
        "gpus": 0 if gpu == "none" else max(one.hardware.gpus for one in scenarios),
        "nodes": max(one.hardware.nodes for one in scenarios),
        "expression": expression,
        "shard": shard,
        "hours": round(sum(one.usual for one in told) / 3600, 2),
        "hours_known": all(one.known for one in told),
        "timeout_minutes": min(minutes, _MOST_MINUTES),
        "scenarios": [one.id for one in scenarios],
    }
