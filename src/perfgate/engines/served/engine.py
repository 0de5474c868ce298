"""Served engine: an engine that is one server, as data and what is really its own.

A new one is a table of releases, the settings that are options as they stand, and its rules
(docs/dev/extend.md).

A scenario says each thing in one place. An extra option that a field of the scenario says, or that
perfgate gives for its own needs, is refused, whether or not the field is set, in each spelling that
the program takes for it: with ``_`` for ``-``, and by any beginning.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.engines.arguments import Argument, spelled
from perfgate.engines.base import NOWHERE, ON_PAPER, Endpoint, Engine, EngineBuild, OptionsAnswer
from perfgate.engines.definitions import Definitions
from perfgate.engines.installed_programs import ask_pages, program_words, require_fit, shell_words
from perfgate.engines.option_check import Call, of_call
from perfgate.engines.refusal import (
    ExtraOptionRefused,
    Refused,
    asked_by,
    extra_words,
    require_none,
)
from perfgate.engines.release_tables import Options, ReleaseTable, ReleaseTables
from perfgate.engines.served.description import Description
from perfgate.engines.served.discovery import installed
from perfgate.engines.served.settings import pinned, refused_by_one_server, refused_settings
from perfgate.engines.weights import reference
from perfgate.scenarios.rules.extra_options import ARGS, YAML
from perfgate.scenarios.scenario import EngineSettings, Scenario
from perfgate.scenarios.yaml_document import Problem, dotted


class ServedEngine(Engine):
    """An engine whose one server takes its settings as options, and serves a checkpoint.

    Attributes:
        facts: what it is, whatever its release; `programs` begins with its server and its Python.
        tables: of its releases.
    """

    is_named = True
    facts: ClassVar[Description]
    tables: ClassVar[ReleaseTables[Any]]

    # What is really its own. ----------------------------------------------------------------

    @abstractmethod
    def arguments(
        self, scenario: Scenario, settings: EngineSettings, known: Any
    ) -> Iterable[Argument]:
        """All that the server is told of `settings`, in order.

        Args:
            scenario: for messages.
            settings: the scenario's, with the document's defaults in the place of what it leaves
                open.
            known: the table of the release that is told.

        Raises:
            CannotDo: a value that the release cannot express, where no option is missing for it.
        """

    @abstractmethod
    def refusals(self, scenario: Scenario) -> Iterator[Refused]:
        """What no release can honour and rendering cannot see."""

    def environment(self, scenario: Scenario, known: Any) -> dict[str, str]:
        """Variables of the server; here: those of the release, and of the scenario.

        Raises:
            CannotDo: a variable that the release cannot be given.
        """
        return {**known.environment, **scenario.environment}

    # What all share. ------------------------------------------------------------------------

    @classmethod
    def words(cls) -> Mapping[str, frozenset[str]]:
        """See `Engine.words`."""
        return cls.tables.words(cls.facts.worded, cls.facts.page)

    def check(self, scenario: Scenario, build: EngineBuild) -> None:
        """See `Engine.check`: an option that the release lacks is refused by rendering itself."""
        known = self.tables.release(build.version)
        require_none(scenario, known, refused_settings(scenario, self.facts))
        require_none(scenario, known, refused_by_one_server(scenario, self.facts.title))
        require_none(scenario, known, self.refusals(scenario))
        self.serve(scenario, build, NOWHERE, ON_PAPER)

    def build(self, locations: Locations) -> EngineBuild:
        """See `Engine.build`."""
        server, python = self.programs[:2]
        return installed(self.name, self.facts, server, python, locations)

    def verify(
        self, build: EngineBuild, commands: Sequence[Command], locations: Locations
    ) -> OptionsAnswer:
        """See `Engine.verify`."""
        known = self.tables.release(build.version)

        def calls(command: Command) -> list[Call]:
            return self.calls(command.argv, known, locations)

        pages, _ = ask_pages((call for one in commands for call in calls(one)), locations)
        definitions = Definitions(
            engine=build.name,
            version=build.version,
            source="the installed build",
            whole=True,
            programs=pages,
            abbreviates=True,
            dashes_alike=self.facts.dashes_alike,
        )
        marked = require_fit(
            build,
            self.facts.title,
            commands,
            lambda one: [found for call in calls(one) for found in of_call(call, definitions)],
            self.tables.told_by,
        )
        return OptionsAnswer(marked=marked)

    def calls(self, argv: Sequence[str], known: ReleaseTable, locations: Locations) -> list[Call]:
        """The call of the server in a command, whatever launcher stands before it; none, or one.

        Args:
            argv: a command's words.
            known: the release, which says how its options are asked for.
            locations: where programs are, which says how they are spelled.
        """
        page = self.facts.page
        for position, word in enumerate(argv):
            if " " in word and page in word:
                return self.calls(shell_words(word), known, locations)
            prefix = program_words(argv[position:], self.programs[0], locations)
            if prefix is None:
                continue
            at = position + len(prefix) + len(self.facts.subcommand)
            whole = (*prefix, *self.facts.subcommand)
            if tuple(argv[position:at]) == whole:
                return [Call(page, (*whole, known.help), tuple(argv[at:]), page)]
        return []

    def serve(
        self, scenario: Scenario, build: EngineBuild, endpoint: Endpoint, locations: Locations
    ) -> Command:
        """See `Engine.serve`.

        Raises:
            InputError: a setting that this release cannot express.
            MissingProgram: the program is not installed.
        """
        known, settings = self.tables.release(build.version), self.pinned(scenario, build)
        model, facts = reference(scenario, locations), self.facts
        places: Mapping[str, str | int | None] = {
            "model": model.where,
            "host": endpoint.host,
            "port": endpoint.port,
            "served_name": None if model.path is None else endpoint.model,
            "device": "cpu" if scenario.hardware.gpu == "none" else None,
        }
        placed = [Argument(one, places[one], facts.fields[one]) for one in facts.places]
        told = list(self.arguments(scenario, settings, known))
        arguments = [*placed, *told] if facts.places_first else [*told, *placed]
        return Command(
            (
                *locations.find(self.programs[0]),
                *facts.subcommand,
                *((model.where,) if facts.model_first else ()),
                *spelled(scenario, known, facts.page, arguments),
                *_extra_words(facts, scenario, known.options(facts.page), arguments),
            ),
            env=self.environment(scenario, known),
            asked_by=asked_by(scenario),
        )

    def pinned(self, scenario: Scenario, build: EngineBuild) -> EngineSettings:
        """See `settings.pinned`."""
        return pinned(
            scenario,
            build,
            self.tables,
            lambda known: known.moved_defaults(),
            self.facts.pinned_where_moved,
        )


# Extra options. ----------------------------------------------------------------------------------


def _extra_words(
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

    def owner_of(name: str) -> str | None:
        given = "--" + name.removeprefix("--").replace("_", "-")
        begun = (owner for word, owner in owners.items() if word.startswith(given))
        return owners.get(given) or next(begun, None)

    return extra_words(scenario, engine.program, owner_of)


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
