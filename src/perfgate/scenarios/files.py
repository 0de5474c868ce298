"""Read scenario files: YAML, defaults, schema, rules; every error has its file, line and field.

The steps of one file: `yaml_document` gives plain values that know their lines, the defaults block
goes under each scenario, `schema` checks the shape, `plain` makes the dataclasses
`rules` checks what a schema cannot say and `vocabulary` the names of engines and programs. Markers
and claims are checked last, against the declarations and scenarios of all files.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.core.files.paths import packaged
from perfgate.core.measurement import Json
from perfgate.core.plain import from_plain
from perfgate.scenarios.claims import broken_claim_rules
from perfgate.scenarios.markers import (
    DECLARED_BY_PERFGATE,
    taken_name,
    undeclared_markers,
)
from perfgate.scenarios.rules.scenario_rules import broken_rules
from perfgate.scenarios.rules.vocabulary import Vocabulary, unknown_names
from perfgate.scenarios.scenario import Claim, Scenario, scenario_from_plain
from perfgate.scenarios.schema import read_schema
from perfgate.scenarios.yaml_document import (
    MOST_VALUES,
    Document,
    Keys,
    Problem,
    read_document,
    too_many_values,
)

_SCHEMA = Path(__file__).with_name("scenario.schema.json")


@dataclass(frozen=True)
class LoadedSuite:
    """The scenarios and claims of a set of files.

    Attributes:
        scenarios: all scenarios.
        claims: all claims of the files.
        markers: every marker that is declared → what it means.
    """

    scenarios: tuple[Scenario, ...]
    claims: tuple[Claim, ...]
    markers: Mapping[str, str]


def load_scenarios(
    locations: Path | Iterable[Path], known: Vocabulary | None = None
) -> tuple[Scenario, ...]:
    """The scenarios of `load_suite`.

    Raises:
        SeveralInputErrors: all that is wrong in any of the files, be it a claim.
    """
    return load_suite(locations, known).scenarios


def load_suite(locations: Path | Iterable[Path], known: Vocabulary | None = None) -> LoadedSuite:
    """All scenarios and claims of the given files and of the YAML files below the given folders.

    Files come in the order of their paths, scenarios and claims in the order of their file. A claim
    may speak of a scenario of another file, which then has to be among the given ones. A marker
    declared in any of them holds for all, and so do those of the suite's own markers.yaml.

    Args:
        locations: files and folders.
        known: the engines, clients and evaluators that scenarios may name, and the engines' rules;
            None: any, and no rules but perfgate's own.

    Raises:
        SeveralInputErrors: all that is wrong in any of the files.
    """
    errors: list[InputError] = []
    contents: list[_Content] = []
    first_places: dict[tuple[str, str], str] = {}
    files = _files([locations] if isinstance(locations, Path) else locations, errors)
    for file in files:
        content, wrong = _read(file, known)
        errors += wrong
        if content is not None:
            contents.append(content)
            errors += _named_twice(content, first_places)
    markers = {**DECLARED_BY_PERFGATE, **_shared_markers(files)}
    for content in contents:
        markers |= content.markers
    if len(contents) == len(files):  # else one that could not be read may declare more
        errors += _once(_undeclared(contents, markers))
    scenarios = tuple(scenario for content in contents for scenario in content.scenarios)
    if not errors:  # else a claim's scenario may be missing for no fault of the claim
        errors += _wrong_claims(contents, scenarios)
    if errors:
        raise SeveralInputErrors(errors)
    claims = tuple(claim for content in contents for claim in content.claims)
    return LoadedSuite(scenarios, claims, markers)


@dataclass(frozen=True)
class _Content:
    """What a file holds that is shaped as it should be."""

    document: Document
    scenarios: tuple[Scenario, ...]
    claims: tuple[Claim, ...]
    markers: Mapping[str, str]


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


def _named_twice(
    content: _Content, first_places: dict[tuple[str, str], str]
) -> Iterator[InputError]:
    """Ids and markers of a file that another one, or itself, has before."""
    document = content.document
    named: list[tuple[str, Keys, str]] = [
        *(("scenario", ("scenarios", at, "id"), x.id) for at, x in enumerate(content.scenarios)),
        *(("claim", ("claims", at, "id"), x.id) for at, x in enumerate(content.claims)),
        *(("marker", ("markers", name), name) for name in content.markers),
    ]
    for kind, path, name in named:
        line, is_marker = document.line(path), kind == "marker"
        if is_marker and (taken := taken_name(path, name)):
            yield taken.error(document.file, line)
        first = first_places.setdefault((kind, name), f"{document.file}:{line}")
        if first != f"{document.file}:{line}":
            problem = "marker declared twice" if is_marker else "id given twice"
            one = "one declaration" if is_marker else f"one {kind} of that id"
            expected = f"{one}; the first is in {first}"
            yield Problem(path, problem, name, expected).error(document.file, line)


def _shared_markers(files: Iterable[Path]) -> Mapping[str, str]:
    """What the suite's own markers.yaml declares, unless it is among the files."""
    shared = packaged() / "scenarios" / "markers.yaml"
    if not shared.is_file() or shared.resolve() in {file.resolve() for file in files}:
        return {}
    content, _ = _read(shared, None)
    return content.markers if content else {}


def _undeclared(contents: Iterable[_Content], declared: Mapping[str, str]) -> Iterator[InputError]:
    for content in contents:
        for position, scenario in enumerate(content.scenarios):
            for problem in undeclared_markers(scenario, declared):
                yield _error(content.document, problem, ("scenarios", position))


def _wrong_claims(
    contents: Iterable[_Content], scenarios: Iterable[Scenario]
) -> Iterator[InputError]:
    by_id = {scenario.id: scenario for scenario in scenarios}
    for content in contents:
        for position, claim in enumerate(content.claims):
            for problem in broken_claim_rules(claim, by_id):
                yield _error(content.document, problem, ("claims", position))


def _error(
    document: Document, problem: Problem, at: Keys = (), *, by_origin: bool = True
) -> InputError:
    """The problem with its place, be it in the defaults block.

    Args:
        document: the file.
        problem: what is wrong.
        at: what its path is below.
        by_origin: whether a value that came from the defaults block is called by its name there, so
            that its error is told once, not once a scenario.
    """
    path = place = (*at, *problem.path)
    if document.node(path) is None and len(path) > 2 and path[0] == "scenarios":
        origin: Keys = ("defaults", *path[2:])
        place = path if document.node(origin) is None else origin
    return document.error(replace(problem, path=place if by_origin else path), place)


def _read(file: Path, known: Vocabulary | None) -> tuple[_Content | None, list[InputError]]:
    """What a file holds, and what is wrong; of a damaged one, with the shape of what is left."""
    document, damages = read_document(file)
    if document is None:
        return None, damages
    value = document.value
    problems: list[Problem] = []
    if isinstance(value, dict) and isinstance(value.get("defaults"), dict):
        alone: Json = {"schema_version": 1, "claims": [], "defaults": value["defaults"]}
        problems += read_schema(_SCHEMA).problems(alone)
        try:
            value = _without_defaults(file, value)
        except InputError as error:
            return None, [error]
    problems += read_schema(_SCHEMA, one_line=True).problems(value)
    if problems or damages or not isinstance(value, dict):
        known_lines = {error.line for error in damages}  # what else is told there follows from it
        errors = _once(_error(document, problem) for problem in problems)
        errors = damages + [error for error in errors if error.line not in known_lines]
        return None, sorted(errors, key=lambda error: error.line or 0)
    plain: Any = value
    scenarios = tuple(scenario_from_plain(part, file) for part in plain.get("scenarios", ()))
    claims = tuple(from_plain(Claim, part) for part in plain.get("claims", ()))
    content = _Content(document, scenarios, claims, plain.get("markers", {}))
    errors = _once(_misfits(content, known))
    return content, sorted(errors, key=lambda error: error.line or 0)


def _misfits(content: _Content, known: Vocabulary | None) -> Iterator[InputError]:
    """What breaks a rule in each scenario of a file, and the names that nobody knows."""
    for position, scenario in enumerate(content.scenarios):
        at = ("scenarios", position)
        for problem in broken_rules(scenario, known.rules if known else ()):
            yield _error(content.document, problem, at, by_origin=False)
        for problem in unknown_names(scenario, known) if known else ():
            yield _error(content.document, problem, at)


def _values(value: Json) -> int:
    inside: Iterable[Json] = ()
    if isinstance(value, dict):
        inside = value.values()
    elif isinstance(value, list):
        inside = value
    return 1 + sum(map(_values, inside))


def _once(errors: Iterable[InputError]) -> list[InputError]:
    """The errors without those that say the same as one before."""
    return list({str(error): error for error in errors}.values())


def _without_defaults(file: Path, value: Mapping[str, Json]) -> dict[str, Json]:
    """The file with its defaults merged into its scenarios.

    Raises:
        InputError: they are repeated in more scenarios than can be read.
    """
    under: Any = value["defaults"]
    rest = {name: part for name, part in value.items() if name != "defaults"}
    if isinstance(scenarios := rest.get("scenarios"), list):
        count = _values(under) * len(scenarios) + _values(scenarios)
        if count > MOST_VALUES:
            raise too_many_values(count, file, "defaults")
        rest["scenarios"] = [
            _merge(under, part) if isinstance(part, dict) else part for part in scenarios
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
