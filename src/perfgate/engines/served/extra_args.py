"""Extra options: `engine.extra_args` on its way into the server's command line.

A scenario says each thing in one place. An extra option that a field of the scenario says, or that
perfgate gives for its own needs, is refused, whether or not the field is set, in each spelling that
the program takes for it: with ``_`` for ``-``, and by any beginning.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from perfgate.engines.arguments import Argument
from perfgate.engines.refusal import ExtraOptionRefused, said_elsewhere
from perfgate.engines.release_tables import Options
from perfgate.scenarios.extra_options import ARGS, YAML, extra_options
from perfgate.scenarios.problem import Problem, dotted
from perfgate.scenarios.scenario import Scenario

PERFGATE = "perfgate itself"
ONE_SERVER = "nothing: perfgate measures one server, over HTTP"


@dataclass(frozen=True)
class ExtraArgs:
    """Which options of a server are not a scenario's to give.

    Attributes:
        title: name of the engine, for people.
        program: the server as `engine.extra_args` calls it.
        server: the server as a person types it.
        never: option → whose it is: what would take the measurement out of perfgate's hands, or say
            a field of the scenario in another way.
        fields: setting of the release tables → the field that it is, where it is called otherwise.
        wider: settings whose option says more than they do: it is the scenario's to give where
            they are not asked for.
        overruling: option → the settings that it silently wins over: it is refused where one of
            them is set.
    """

    title: str
    program: str
    server: str
    never: Mapping[str, str]
    fields: Mapping[str, str]
    wider: tuple[str, ...] = ()
    overruling: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def words(
        self, scenario: Scenario, options: Options, arguments: Iterable[Argument]
    ) -> tuple[str, ...]:
        """The scenario's extra words for the server.

        Args:
            scenario: the scenario.
            options: of the release that is told.
            arguments: what it is given beside them.

        Raises:
            ExtraOptionRefused: an option that a field of the scenario, or perfgate, gives; or
                another place for options.
        """
        for problem in self._misplaced(scenario):
            raise ExtraOptionRefused(scenario, problem)
        owners = dict(self._owners(scenario, options, arguments))
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

    def _misplaced(self, scenario: Scenario) -> Iterator[Problem]:
        """Extra options for another program, or in a file that the engine is not given."""
        if scenario.engine.extra_yaml is not None:
            found = ", ".join(scenario.engine.extra_yaml)
            expected = f"nothing: write its options under {dotted(ARGS)}.{self.program}"
            yield Problem(YAML, f"{self.title} is given no settings file", found, expected)
        for program in scenario.engine.extra_args or {}:
            if program != self.program:
                expected = f"{self.program}, for `{self.server}`"
                yield Problem((*ARGS, program), "not the engine's program", program, expected)

    def _owners(
        self, scenario: Scenario, options: Options, arguments: Iterable[Argument]
    ) -> Iterator[tuple[str, str]]:
        """Each spelling that is not a scenario's to give, and whose it is."""
        rendered = {one.setting: one.field for one in arguments if one.value is not None}
        for setting, option in options.items():
            if setting in self.wider and setting not in rendered:
                continue
            default = f"engine.settings.{setting.partition('.')[0]}"
            owner = rendered.get(setting) or self.fields.get(setting, default)
            for word in option.spellings:
                yield word.partition("=")[0], owner
        settings = scenario.engine.settings
        for name, overruled in self.overruling.items():
            for setting in overruled:
                if getattr(settings, setting) is not None:
                    yield name, f"engine.settings.{setting}"
        yield from self.never.items()
