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
from perfgate.scenarios.claims import broken_claim_rules
from perfgate.scenarios.plain import claim_from_plain, from_plain
from perfgate.scenarios.problem import Keys, Problem, dotted
from perfgate.scenarios.rules import broken_rules
from perfgate.scenarios.scenario import Claim, Scenario
from perfgate.scenarios.schema import scenario_schema
from perfgate.scenarios.yaml_document import Document, describe, read_document


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
    claims: list[tuple[_SourceLines, int, Claim]] = []
    first_scenarios: dict[str, str] = {}
    first_claims: dict[str, str] = {}
    for file in _files([locations] if isinstance(locations, Path) else locations, errors):
        document, damages = read_document(file)
        if document is None:
            errors += damages
            continue
        content = _read(_SourceLines(document), damaged=bool(damages))
        told = damages + _beyond(damages, content.errors)
        errors += sorted(told, key=lambda error: error.line or 0)
        for position, scenario in enumerate(content.scenarios):
            scenarios.append(scenario)
            path = ("scenarios", position, "id")
            errors += _second_of_its_name(document, path, scenario.id, first_scenarios)
        for position, claim in enumerate(content.claims):
            claims.append((_SourceLines(document), position, claim))
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
    return [
        InputError(
            "id given twice",
            file=document.file,
            line=line,
            field=dotted(path),
            found=name,
            expected=f"one {kind} of that id; the first is in {first}",
        )
    ]


@dataclass(frozen=True)
class _SourceLines:
    """Where the values of a file's scenarios are written, be it in its defaults block."""

    document: Document

    def error(self, problem: Problem, *, by_origin: bool) -> InputError:
        """The problem with its place.

        `by_origin`: a value that came from the defaults block is called by its name there, so that
        its error is told once, not once a scenario.
        """
        path, node = problem.path, self.document.node(problem.path)
        field, line = path, self.document.line(path)
        if node is None and len(path) > 2 and path[0] == "scenarios":
            origin = ("defaults", *path[2:])
            node, line = self.document.node(origin), self.document.line(origin)
            if by_origin and node is not None:
                field = origin
        found = problem.found
        if found is None and node is not None:
            found = describe(node)
        return InputError(
            problem.problem,
            file=self.document.file,
            line=line or self._nearest(path),
            field=dotted(field) or None,
            found=found,
            expected=problem.expected,
            hint=problem.hint,
        )

    def _nearest(self, path: Keys) -> int | None:
        """The line of the smallest thing around `path` that is written in the scenario."""
        lines = (self.document.line(path[:end]) for end in range(len(path) - 1, -1, -1))
        return next((line for line in lines if line), None)


@dataclass(frozen=True)
class _Content:
    """What one file holds, and what is wrong with it."""

    errors: list[InputError]
    scenarios: tuple[Scenario, ...] = ()
    claims: tuple[Claim, ...] = ()


def _read(locations: _SourceLines, *, damaged: bool) -> _Content:
    """Read one file; of a damaged one, only the shape of what could be read is checked."""
    value = locations.document.value
    schema = scenario_schema()
    problems: list[Problem] = []
    if isinstance(value, dict) and isinstance(value.get("defaults"), dict):
        problems += schema.problems_of_defaults(value["defaults"])
        value = _without_defaults(value)
    problems += schema.problems(value)
    errors = list(
        {str(e): e for p in problems if (e := locations.error(p, by_origin=True))}.values()
    )
    if errors or damaged or not isinstance(value, dict):
        return _Content(errors)
    plain: Any = value
    scenarios = tuple(from_plain(part, locations.document.file) for part in plain["scenarios"])
    for position, scenario in enumerate(scenarios):
        for problem in broken_rules(scenario):
            errors.append(
                locations.error(_below(("scenarios", position), problem), by_origin=False)
            )
    claims = tuple(claim_from_plain(part) for part in plain.get("claims", ()))
    return _Content(errors, scenarios, claims)


def _wrong_claims(
    claims: Iterable[tuple[_SourceLines, int, Claim]], scenarios: Iterable[Scenario]
) -> Iterator[InputError]:
    by_id = {scenario.id: scenario for scenario in scenarios}
    for locations, position, claim in claims:
        for problem in broken_claim_rules(claim, by_id):
            yield locations.error(_below(("claims", position), problem), by_origin=False)


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
