"""Read scenario files: YAML, defaults, schema, rules; every error has its file, line and field.

The steps of one file: `yaml_document` gives plain values that know their lines, the defaults block
goes under each scenario, `schema` checks the shape, `plain` makes the dataclasses
and `rules` checks what a schema cannot say. Claims are checked last, against the scenarios of all
files.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.core.measurement import Json
from perfgate.core.plain import from_plain
from perfgate.scenarios.claims import broken_claim_rules
from perfgate.scenarios.plain import scenario_from_plain
from perfgate.scenarios.problem import Keys, Problem
from perfgate.scenarios.rules import broken_rules
from perfgate.scenarios.scenario import Claim, Scenario
from perfgate.scenarios.scenario_schema import scenario_schema
from perfgate.scenarios.yaml_document import Document, read_document


@dataclass(frozen=True)
class LoadedSuite:
    """The scenarios and claims of a set of files."""

    scenarios: tuple[Scenario, ...]
    claims: tuple[Claim, ...]


def load_scenarios(locations: Path | Iterable[Path]) -> tuple[Scenario, ...]:
    """The scenarios of `load_suite`.

    Raises:
        SeveralInputErrors: all that is wrong in any of the files, be it a claim.
    """
    return load_suite(locations).scenarios


def load_suite(locations: Path | Iterable[Path]) -> LoadedSuite:
    """All scenarios and claims of the given files and of the YAML files below the given folders.

    Files come in the order of their paths, scenarios and claims in the order of their file. A claim
    may speak of a scenario of another file, which then has to be among the given ones.

    Raises:
        SeveralInputErrors: all that is wrong in any of the files.
    """
    errors: list[InputError] = []
    scenarios: list[Scenario] = []
    claims: list[tuple[Document, int, Claim]] = []
    first_scenarios: dict[str, str] = {}
    first_claims: dict[str, str] = {}
    for file in _files([locations] if isinstance(locations, Path) else locations, errors):
        document, damages = read_document(file)
        if document is None:
            errors += damages
            continue
        content = _read(document, damaged=bool(damages))
        told = damages + _beyond(damages, content.errors)
        errors += sorted(told, key=lambda error: error.line or 0)
        for position, scenario in enumerate(content.scenarios):
            scenarios.append(scenario)
            path = ("scenarios", position, "id")
            errors += _second_of_its_name(document, path, scenario.id, first_scenarios)
        for position, claim in enumerate(content.claims):
            claims.append((document, position, claim))
            path = ("claims", position, "id")
            errors += _second_of_its_name(document, path, claim.id, first_claims)
    if not errors:  # else a claim's scenario may be missing for no fault of the claim
        errors = list(_wrong_claims(claims, scenarios))
    if errors:
        raise SeveralInputErrors(errors)
    return LoadedSuite(tuple(scenarios), tuple(claim for _, _, claim in claims))


def _files(locations: Iterable[Path], errors: list[InputError]) -> list[Path]:
    """The files to read, sorted, each once; a place without any is an error."""
    found: dict[Path, Path] = {}
    for place in locations:
        if place.is_dir():
            files = [path for path in place.rglob("*") if path.suffix in (".yaml", ".yml")]
            if not files:
                errors.append(InputError("no scenario file", file=place, expected="*.yaml"))
        elif place.is_file():
            files = [place]
        else:
            files = []
            errors.append(InputError("no such file or folder", file=place))
        found.update((file.resolve(), file) for file in files)
    if not found and not errors:
        errors.append(InputError("no scenario file given", expected="a file or folder"))
    return sorted(found.values())


def _beyond(known: list[InputError], more: list[InputError]) -> list[InputError]:
    """`more` without what only follows from a known error: those of the same line."""
    lines = {error.line for error in known}
    return [error for error in more if error.line not in lines]


def _second_of_its_name(
    document: Document, path: Keys, name: str, first_places: dict[str, str]
) -> list[InputError]:
    line = document.line(path)
    first = first_places.setdefault(name, f"{document.file}:{line}")
    if first == f"{document.file}:{line}":
        return []
    kind = "claim" if path[0] == "claims" else "scenario"
    expected = f"one {kind} of that id; the first is in {first}"
    return [Problem(path, "id given twice", name, expected).error(document.file, line)]


def _error(document: Document, problem: Problem, *, by_origin: bool) -> InputError:
    """The problem with its place, be it in the defaults block.

    `by_origin`: a value that came from the defaults block is called by its name there, so that its
    error is told once, not once a scenario.
    """
    path = place = problem.path
    if document.node(path) is None and len(path) > 2 and path[0] == "scenarios":
        origin: Keys = ("defaults", *path[2:])
        place = path if document.node(origin) is None else origin
    return document.error(replace(problem, path=place) if by_origin else problem, place)


@dataclass(frozen=True)
class _Content:
    """What one file holds, and what is wrong with it."""

    errors: list[InputError]
    scenarios: tuple[Scenario, ...] = ()
    claims: tuple[Claim, ...] = ()


def _read(document: Document, *, damaged: bool) -> _Content:
    """Read one file; of a damaged one, only the shape of what could be read is checked."""
    value = document.value
    schema = scenario_schema()
    problems: list[Problem] = []
    if isinstance(value, dict) and isinstance(value.get("defaults"), dict):
        problems += schema.problems_of_defaults(value["defaults"])
        value = _without_defaults(value)
    problems += schema.problems(value)
    errors = list(
        {str(e): e for p in problems if (e := _error(document, p, by_origin=True))}.values()
    )
    if errors or damaged or not isinstance(value, dict):
        return _Content(errors)
    plain: Any = value
    scenarios = tuple(scenario_from_plain(part, document.file) for part in plain["scenarios"])
    for position, scenario in enumerate(scenarios):
        for problem in broken_rules(scenario):
            placed = _below(("scenarios", position), problem)
            errors.append(_error(document, placed, by_origin=False))
    claims = tuple(from_plain(Claim, part) for part in plain.get("claims", ()))
    return _Content(errors, scenarios, claims)


def _wrong_claims(
    claims: Iterable[tuple[Document, int, Claim]], scenarios: Iterable[Scenario]
) -> Iterator[InputError]:
    by_id = {scenario.id: scenario for scenario in scenarios}
    for document, position, claim in claims:
        for problem in broken_claim_rules(claim, by_id):
            yield _error(document, _below(("claims", position), problem), by_origin=False)


def _below(path: Keys, problem: Problem) -> Problem:
    return replace(problem, path=(*path, *problem.path))


def _without_defaults(value: Mapping[str, Json]) -> dict[str, Json]:
    """The file with its defaults merged into its scenarios."""
    defaults, scenarios = value["defaults"], value.get("scenarios")
    rest = {name: part for name, part in value.items() if name != "defaults"}
    if isinstance(defaults, dict) and isinstance(scenarios, list):
        rest["scenarios"] = [
            _merge(defaults, part) if isinstance(part, dict) else part for part in scenarios
        ]
    return rest


def _merge(under: Mapping[str, Json], over: Mapping[str, Json]) -> dict[str, Json]:
    """`over` laid on `under`: mappings merge, all else replaces, nothing (null) takes away."""
    merged = dict(under)
    for name, value in over.items():
        below = under.get(name)
        if value is None and name in under:
            del merged[name]
        elif isinstance(value, dict) and isinstance(below, dict):
            merged[name] = _merge(below, value)
        else:
            merged[name] = value
    return merged
