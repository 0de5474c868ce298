"""How a setting, or an extra option, is refused: one form of message for all engines."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from perfgate.core.errors import CannotDo, InputError
from perfgate.engines.release_tables import ReleaseTable
from perfgate.scenarios.rules.extra_options import YAML, extra_keys, extra_options
from perfgate.scenarios.scenario import Scenario
from perfgate.scenarios.yaml_document import Keys, Problem, dotted


def refusal(
    scenario: Scenario,
    field: str,
    found: object,
    release: ReleaseTable,
    expected: str,
    hint: str | None = None,
) -> CannotDo:
    """The error that names the setting, the release, what is possible and what to do.

    Args:
        scenario: the scenario that asks for it.
        field: the field, from the scenario down.
        found: its value.
        release: the release that cannot.
        expected: what it can.
        hint: the next step.
    """
    own = field.removeprefix("engine.settings.")
    if own != field and getattr(scenario.engine.settings, own, found) is None:
        documented = scenario.source.engine_version
        found = f"{found}, which the document's release {documented} does by itself"
    return CannotDo(
        f"{release.title} {release.version} cannot do this",
        file=scenario.file,
        field=f"{scenario.id}.{field}",
        found=found,
        expected=expected,
        hint=hint or "run it with a release that can, or take the setting out of the scenario",
    )


class Refused(NamedTuple):
    """A field of the scenario, what stands there, what could, and the next step."""

    field: str
    found: object
    expected: str
    hint: str | None = None


def require_none(scenario: Scenario, release: ReleaseTable, refused: Iterable[Refused]) -> None:
    """Raise the first of what a release's rules refuse.

    Raises:
        CannotDo: there is one.
    """
    for one in refused:
        raise refusal(scenario, one.field, one.found, release, one.expected, one.hint)


_FIELDS = ("engine", "workload", "model", "environment", "hardware", "listen")


class ExtraOptionRefused(InputError):
    """An extra option that a scenario cannot give; `at` is the problem, from the scenario down."""

    def __init__(self, scenario: Scenario, at: Problem) -> None:
        self.at = at
        super().__init__(
            at.problem,
            file=scenario.file,
            field=f"{scenario.id}.{dotted(at.path)}",
            found=at.found,
            expected=at.expected,
            hint=at.hint,
        )


def said_elsewhere(scenario: Scenario, path: Keys, found: object, owner: str) -> ExtraOptionRefused:
    """The error of an option that is not the scenario's to give here.

    Args:
        scenario: the scenario.
        path: where it is written, from the scenario down.
        found: what is written.
        owner: the field that says it, else whose it is.
    """
    is_field = owner.partition(".")[0] in _FIELDS
    problem = Problem(
        path,
        "already said by another field" if is_field else "not a scenario's to say",
        found,
        f"what no other field says; this is for {owner}",
        f"use {owner}" if is_field else "take it out",
    )
    return ExtraOptionRefused(scenario, problem)


def extra_words(
    scenario: Scenario, program: str, owner_of: Callable[[str], str | None]
) -> tuple[str, ...]:
    """The scenario's extra words for one program.

    Args:
        scenario: the scenario.
        program: as `engine.extra_args` calls it.
        owner_of: option → whose it is; None: it is the scenario's to give.

    Raises:
        ExtraOptionRefused: an option that a field of the scenario, or perfgate, gives.
    """
    found: list[str] = []
    for option in extra_options(scenario.engine):
        if option.program != program:
            continue
        owner = owner_of(option.name)
        if owner is not None:
            raise said_elsewhere(scenario, option.path, " ".join(option.words), owner)
        found += option.words
    return tuple(found)


def asked_by(scenario: Scenario) -> dict[str, str]:
    """Extra option, or extra key with dots → the field that gives it, from the scenario's id on."""
    engine = scenario.engine
    places: list[tuple[str, Keys]] = [(one.name, one.path) for one in extra_options(engine)]
    for keys, _ in extra_keys(engine):
        for end in range(1, len(keys) + 1):
            places.append((".".join(map(str, keys[:end])), (*YAML, *keys[:end])))
    return {place: f"{scenario.id}.{dotted(path)}" for place, path in places}
