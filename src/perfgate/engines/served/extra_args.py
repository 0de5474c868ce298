"""Extra options: `engine.extra_args` on its way into the server's command line.

A scenario says each thing in one place. An extra option that a field of the scenario says, or that
perfgate gives for its own needs, is refused, whether or not the field is set, in each spelling that
the program takes for it: with ``_`` for ``-``, and by any beginning.
"""

from collections.abc import Iterable, Iterator

from perfgate.engines.arguments import Argument
from perfgate.engines.refusal import ExtraOptionRefused, said_elsewhere
from perfgate.engines.release_tables import Options
from perfgate.engines.served.description import Description
from perfgate.scenarios.extra_options import ARGS, YAML, extra_options
from perfgate.scenarios.problem import Problem, dotted
from perfgate.scenarios.scenario import Scenario


def words(
    engine: Description, scenario: Scenario, options: Options, arguments: Iterable[Argument]
) -> tuple[str, ...]:
    """The scenario's extra words for the server.

    Args:
        engine: what it is.
        scenario: the scenario.
        options: of the release that is told.
        arguments: what it is given beside them.

    Raises:
        ExtraOptionRefused: an option that a field of the scenario, or perfgate, gives; or another
            place for options.
    """
    for problem in _misplaced(engine, scenario):
        raise ExtraOptionRefused(scenario, problem)
    owners = dict(_owners(engine, scenario, options, arguments))
    found: list[str] = []
    for option in extra_options(scenario.engine):
        given = "--" + option.name.removeprefix("--").replace("_", "-")
        owner = owners.get(given) or next(
            (owner for word, owner in owners.items() if word.startswith(given)), None
        )
        if owner is not None:
            raise said_elsewhere(scenario, option.path, " ".join(option.words), owner)
        found += option.words
    return tuple(found)


def _misplaced(engine: Description, scenario: Scenario) -> Iterator[Problem]:
    """Extra options for another program, or in a file that the engine is not given."""
    if scenario.engine.extra_yaml is not None:
        found = ", ".join(scenario.engine.extra_yaml)
        expected = f"nothing: write its options under {dotted(ARGS)}.{engine.program}"
        yield Problem(YAML, f"{engine.title} is given no settings file", found, expected)
    for program in scenario.engine.extra_args or {}:
        if program != engine.program:
            expected = f"{engine.program}, for `{engine.command}`"
            yield Problem((*ARGS, program), "not the engine's program", program, expected)


def _owners(
    engine: Description, scenario: Scenario, options: Options, arguments: Iterable[Argument]
) -> Iterator[tuple[str, str]]:
    """Each spelling that is not a scenario's to give, and whose it is."""
    rendered = {one.setting: one.field for one in arguments if one.value is not None}
    for setting, option in options.items():
        if setting in engine.wider and setting not in rendered:
            continue
        default = f"engine.settings.{setting.partition('.')[0]}"
        owner = rendered.get(setting) or engine.fields.get(setting, default)
        for word in option.spellings:
            yield word.partition("=")[0], owner
    for name, overruled in engine.overruling.items():
        for setting in overruled:
            if getattr(scenario.engine.settings, setting) is not None:
                yield name, f"engine.settings.{setting}"
    for owner, names in engine.never.items():
        yield from dict.fromkeys(names, owner).items()
