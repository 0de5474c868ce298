"""Command-line arguments: settings under the options that a release's table has for them.

What the table lacks is refused, never dropped. No option is named here.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from perfgate.engines.refusal import refusal
from perfgate.engines.release_tables import Option, ReleaseTable
from perfgate.scenarios.scenario import CudaGraphs, EngineSettings, Scenario

Value = bool | int | float | str | tuple[int | str, ...] | None


@dataclass(frozen=True)
class Argument:
    """One setting with its value, and the scenario's field that asks for it.

    Attributes:
        setting: the setting's name in the release's table of a program.
        value: True: the flag; False: its opposite, or nothing where its absence says the same;
            several words for a tuple; None: left to the program.
        asked_by: the scenario's field, for messages; empty: the setting of that name.
    """

    setting: str
    value: Value
    asked_by: str = ""

    @property
    def field(self) -> str:
        """The scenario's field that asks for it."""
        return self.asked_by or f"engine.settings.{self.setting}"


def of_settings(settings: EngineSettings, *names: str) -> tuple[Argument, ...]:
    """The arguments that are settings as they stand, in this order."""
    return tuple(Argument(name, getattr(settings, name)) for name in names)


def of_graphs(graphs: CudaGraphs) -> tuple[Argument, ...]:
    """CUDA graphs where each part of them is an option of its own."""
    return (
        Argument("cuda_graphs", graphs.enabled),
        Argument("cuda_graphs.padding", graphs.padding),
        Argument("cuda_graphs.batch_sizes", graphs.batch_sizes or None),
        Argument("cuda_graphs.max_batch_size", graphs.max_batch_size),
    )


def spelled(
    scenario: Scenario, release: ReleaseTable, program: str, arguments: Iterable[Argument]
) -> tuple[str, ...]:
    """The words of `arguments`, in their order.

    Raises:
        InputError: the release's program has no option for one, or not this value of it.
    """
    words: list[str] = []
    for argument in arguments:
        value = argument.value
        if value is None:
            continue
        option = release.options(program).get(argument.setting)
        if option is None and value is False:
            continue  # what has no switch is off
        if option is None:
            expected = f"not to be set: {program} has no option for it"
            raise refusal(scenario, argument.field, value, release, expected)
        if option.choices and value not in option.choices:
            expected = "one of " + ", ".join(sorted(option.choices))
            raise refusal(scenario, argument.field, value, release, expected)
        words += _words(option, value)
    return tuple(words)


def _words(option: Option, value: bool | int | float | str | tuple[int | str, ...]) -> list[str]:
    if isinstance(value, bool):
        word = option.name if value else option.opposite
        return [] if word is None else [word]
    if option.name is None:
        raise TypeError(f"{option.opposite} takes no value")
    if isinstance(value, tuple):
        return [option.name, *(str(word) for word in value)]
    return [option.name, f"{value:g}" if isinstance(value, float) else str(value)]
