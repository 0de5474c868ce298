"""Command-line arguments that a release knows: what its table lacks is refused, never dropped."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from perfgate.engines.tensorrt_llm.refusal import refusal
from perfgate.engines.tensorrt_llm.releases import Release
from perfgate.scenarios.scenario import EngineSettings, Scenario

Value = bool | int | float | str | tuple[int | str, ...] | None


@dataclass(frozen=True)
class Argument:
    """One option with its value, and the scenario's field that asks for it.

    Attributes:
        option: the option's name in the release's table.
        value: True: the flag; False: its negation, or nothing where its absence says the same;
            several words for a tuple; None: left to the program.
        field: the scenario's field, for messages.
    """

    option: str
    value: Value
    field: str


def of_settings(settings: EngineSettings, options: Mapping[str, str]) -> tuple[Argument, ...]:
    """The arguments that are settings as they stand.

    Args:
        settings: of the scenario, pinned or not.
        options: option name → field of `settings`, in the order of the command.
    """
    return tuple(
        Argument(option, _value(settings, field), f"engine.settings.{field}")
        for option, field in options.items()
    )


def _value(settings: EngineSettings, field: str) -> Value:
    """A setting; a single pipeline stage is left to the program, as in the documents."""
    value: Value = getattr(settings, field)
    return None if field == "pp" and value == 1 else value


def spelled(
    scenario: Scenario, release: Release, program: str, arguments: Iterable[Argument]
) -> tuple[str, ...]:
    """The words of `arguments`, in their order.

    Raises:
        InputError: the release's program has no such option.
    """
    words: list[str] = []
    for argument in arguments:
        if argument.value is None:
            continue
        option = release.options(program).get(argument.option)
        if option is None and argument.value is False:
            continue  # what has no switch is off
        if option is None:
            raise refusal(
                scenario,
                argument.field,
                argument.value,
                release,
                f"an option of {program}; this release has no {argument.option}",
            )
        if argument.value is True:
            words.append(option.name)
        elif argument.value is False:
            words += [option.negation] if option.negation else []
        elif isinstance(argument.value, tuple):
            words += [option.name, *(str(word) for word in argument.value)]
        else:
            words += [option.name, _text(argument.value)]
    return tuple(words)


def _text(value: int | float | str) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
