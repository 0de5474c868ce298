"""Extra options that a scenario cannot give: how that is told, whatever the engine."""

from collections.abc import Callable, Iterator, Sequence

from perfgate.core.errors import InputError, PerfgateError
from perfgate.engines.base import EngineBuild
from perfgate.engines.release_table import ReleaseTable
from perfgate.scenarios.extra_options import YAML, extra_keys, extra_options
from perfgate.scenarios.problem import Keys, Problem, dotted
from perfgate.scenarios.scenario import Scenario

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


def asked_by(scenario: Scenario) -> dict[str, str]:
    """Extra option, or extra key with dots → the field that gives it, from the scenario's id on."""
    engine = scenario.engine
    places: list[tuple[str, Keys]] = [(one.name, one.path) for one in extra_options(engine)]
    for keys, _ in extra_keys(engine):
        for end in range(1, len(keys) + 1):
            places.append((".".join(map(str, keys[:end])), (*YAML, *keys[:end])))
    return {place: f"{scenario.id}.{dotted(path)}" for place, path in places}


def refused_extras(
    scenario: Scenario,
    check: Callable[[Scenario, EngineBuild], None],
    tables: Callable[[], Sequence[ReleaseTable]],
) -> Iterator[Problem]:
    """What of the scenario's extra options its document's release, else the newest, is not given.

    What else is wrong with it at that release is told when it is measured there.

    Args:
        scenario: the scenario.
        check: the engine's own, which raises `ExtraOptionRefused`.
        tables: gives the engine's releases, the newest last.
    """
    if scenario.engine.extra_yaml is None and scenario.engine.extra_args is None:
        return
    version = scenario.source.engine_version or tables()[-1].since
    try:
        check(scenario, EngineBuild(scenario.engine.name, version, version))
    except ExtraOptionRefused as error:
        yield error.at
    except PerfgateError:
        return
