"""Documented values: what the public documents report for a scenario, one file per scenario.

They are references without a spread, perhaps of another machine: judged by a rule of their own
(`perfgate.judging.rules.documented.DocumentedTest`) and never mixed with measured baselines.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from perfgate.core.errors import SeveralInputErrors
from perfgate.core.files.durable_files import read_json
from perfgate.core.files.paths import baselines_folder, packaged, require_own
from perfgate.core.metrics import is_accuracy
from perfgate.core.plain import from_plain
from perfgate.scenarios.claims import claims_of
from perfgate.scenarios.rules.metric_rules import misplaced_point, unknown_metric, unmeasured_metric
from perfgate.scenarios.scenario import Claim, Count, Fraction, Id, Positive, Scenario, Source
from perfgate.scenarios.schema import in_json, read_schema
from perfgate.scenarios.yaml_document import Problem


@dataclass(frozen=True)
class DocumentedValue:
    """One value.

    Attributes:
        value: In the metric's unit, with the digits of the document.
        concurrency: Sweep point that it belongs to; left out: the only one, or a score.
        tolerance: Loss allowed against it, as a fraction (accuracy: absolute); left out: the rule's
            own.
        stderr: Standard error documented with it.
    """

    value: Positive
    concurrency: Count | None = None
    tolerance: Fraction | None = None
    stderr: Positive | None = None


@dataclass(frozen=True)
class Documented:
    """What a public document reports for one scenario; documented.schema.json is made of it.

    Attributes:
        scenario: Id of the scenario; also the file's name.
        source: Where the values are documented.
        values: Canonical metric name to value.
    """

    scenario: Id
    source: Source
    values: Annotated[Mapping[str, DocumentedValue], Meta(min_length=1)]


FOLDER = "documented"  # within a folder of baselines


def documented_file(scenario: Scenario) -> Path:
    """Where the documented values of a scenario are, which need not be there.

    It is the file of the gate repository; of a packaged scenario, else the packaged one.

    Raises:
        InputError: it was found, not named, and could be another user's.
    """
    own = require_own(baselines_folder() / FOLDER / f"{scenario.id}.json")
    brought = packaged()
    is_packaged = scenario.file is not None and scenario.file.is_relative_to(brought / "scenarios")
    if own.is_file() or not is_packaged:
        return own
    return brought / "baselines" / FOLDER / own.name


def documented_values(scenario: Scenario, place: Path | None = None) -> Documented | None:
    """What is documented for `scenario`; None: nothing.

    Args:
        scenario: the scenario.
        place: folder of the files; None: the gate repository's, else the packaged one.

    Raises:
        InputError: the file is not JSON.
        SeveralInputErrors: it is not as its schema says, or does not fit the scenario.
    """
    file = documented_file(scenario) if place is None else place / f"{scenario.id}.json"
    if not file.is_file():
        return None
    plain = read_json(file, what="file of documented values", hint="restore it from git")
    schema = read_schema(Path(__file__).with_name("documented.schema.json"))
    problems = schema.problems(plain) or list(_misfits(plain, scenario))
    if problems:
        raise SeveralInputErrors([in_json(problem, file, plain) for problem in problems])
    return from_plain(Documented, plain)


def _misfits(plain: Mapping[str, Any], scenario: Scenario) -> Iterator[Problem]:
    """All in which the file does not fit the scenario."""
    if plain["scenario"] != scenario.id:
        yield Problem(
            ("scenario",), "not the scenario of the file's name", plain["scenario"], scenario.id
        )
    for name, value in plain["values"].items():
        path, point = ("values", name), value.get("concurrency")
        problem = unknown_metric(path, name) or unmeasured_metric(scenario, path, name)
        if problem := problem or misplaced_point(
            scenario, (*path, "concurrency"), name, point, missing="one of"
        ):
            yield problem


SpeedFrom = Literal["", "document", "first run", "machine"]


def speed_from(scenario: Scenario, claims: Iterable[Claim] = ()) -> SpeedFrom:
    """What the first measured speed of the scenario can be compared with.

    Its ``document``, which gives a number, be it a floor or a claim; the ``machine``, which
    measures its own; else nothing, so that the ``first run`` records it. Empty: it has no load.

    Args:
        scenario: the scenario.
        claims: the claims of its suite.

    Raises:
        InputError: the file of its documented values is not as it should be.
    """
    if scenario.workload is None:
        return ""
    if scenario.gate.reference == "self":
        return "machine"
    documented = documented_values(scenario)
    told = [] if documented is None else [*documented.values]
    told += [
        claim.metric
        for claim in claims_of([scenario], claims)
        if claim.scenario == scenario.id and claim.value is not None
    ]
    return "first run" if all(map(is_accuracy, told)) else "document"
