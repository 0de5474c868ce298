"""Does one call of a program fit what a build of the engine accepts? Options, kinds, choices. Pure.

The definitions come from a recorded page or an installed program. What they do not tell is not
judged.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from perfgate.core.errors import nearest
from perfgate.engines.definitions import Definitions, OptionDefinition

TRUTH = frozenset({"true", "false", "t", "f", "1", "0", "yes", "no", "y", "n", "on", "off"})


@dataclass(frozen=True)
class Call:
    """One program call inside a command: the program, how it tells its options, what it is given.

    Attributes:
        program: name as in the release tables.
        help: the argv that prints the program's options; empty: the program would load a model,
            or its tokenizer, before it shows them.
        arguments: what the command gives to it.
        page: the program with its subcommands, as `Definitions` names it.
    """

    program: str
    help: tuple[str, ...]
    arguments: tuple[str, ...]
    page: str


class Mismatch(NamedTuple):
    """One thing of a command that the build does not take.

    Attributes:
        program: the program, or ``LLM-API YAML``.
        place: the option, or the YAML key with dots.
        problem: what is wrong, for people.
        found: what the command gives.
        expected: what the build knows there.
        is_taken: the build takes it, and marks it as deprecated or as a prototype.
    """

    program: str
    place: str
    problem: str
    found: str
    expected: str
    is_taken: bool = False


def marked(program: str, place: str, status: str) -> Iterator[Mismatch]:
    """What the build takes and marks; nothing where its status is empty."""
    if status:
        yield Mismatch(program, place, f"marked {status} by the build", place, "", is_taken=True)


def of_call(call: Call, definitions: Definitions) -> Iterator[Mismatch]:
    """All that the call gives and the build does not take, or marks; its program has a page.

    Args:
        call: what the program is given.
        definitions: of the build.
    """
    options = definitions.programs[call.page]
    given: set[str] = set()
    positional = 0
    left = list(call.arguments)
    while left:
        word = left.pop(0)
        if not word.startswith("--") and not (word.startswith("-") and word[1:2].isalpha()):
            positional += 1
            continue
        name, equals, value = word.partition("=")
        option = definitions.option(call.page, name)
        if option is None:
            yield _unknown_option(call, name, options)
            if left and not left[0].startswith("-"):
                left.pop(0)  # its value, as far as can be told
            continue
        given.update(option.options)
        yield from marked(call.page, name, option.status)
        if option.kind == "flag":
            if equals:
                yield _wrong(call, name, option, "takes no value", value)
            continue
        values = [value] if equals else _taken(option, left)
        if not values:
            yield _wrong(call, name, option, "is given no value", name)
        for one in values:
            yield from _of_value(call, name, option, one)
    if definitions.whole:
        yield from _missing(call, options.values(), given, positional)


def _unknown_option(call: Call, name: str, options: Mapping[str, OptionDefinition]) -> Mismatch:
    known = [spelling for option in options.values() for spelling in option.spellings]
    near = nearest(name, [spelling for spelling in known if spelling.startswith("-")])
    expected = f"{near}?" if near else f"one of its {len(known)} options"
    return Mismatch(call.page, name, "no such option", name, expected)


def _wrong(call: Call, name: str, option: OptionDefinition, problem: str, found: str) -> Mismatch:
    expected = ", ".join(option.choices) or option.kind
    return Mismatch(call.page, name, problem, found, expected)


def _taken(option: OptionDefinition, left: list[str]) -> list[str]:
    """The words that a program takes for the option's value: the next one, whatever it begins with.

    Of an option that takes several, a word that could be the next option ends them; ``-1`` is none.
    """
    taken = [left.pop(0)] if left else []
    while option.many and left and not (left[0].startswith("-") and not is_number(left[0])):
        taken.append(left.pop(0))
    return taken


def _of_value(call: Call, name: str, option: OptionDefinition, value: str) -> Iterator[Mismatch]:
    if option.choices:
        if value not in option.choices:
            yield _wrong(call, name, option, "no such choice", value)
    elif not _is_of(option.kind, value):
        yield _wrong(call, name, option, f"not a value of kind {option.kind}", value)


def _missing(
    call: Call, options: Iterable[OptionDefinition], given: set[str], positional: int
) -> Iterator[Mismatch]:
    for option in options:
        if not option.required:
            continue
        if option.kind == "argument":
            is_given = positional > 0
            positional -= 1
        else:
            is_given = bool(given & set(option.options))
        if not is_given:
            yield _wrong(call, option.options[0], option, "is required and not given", "nothing")


def _is_of(kind: str, value: str) -> bool:
    if kind == "integer":
        return is_number(value, int)
    if kind == "number":
        return is_number(value)
    return kind != "boolean" or value.lower() in TRUTH


def is_number(value: str, of: type[int] | type[float] = float) -> bool:
    """Whether the text is a number of that type."""
    try:
        of(value)
    except ValueError:
        return False
    return True
