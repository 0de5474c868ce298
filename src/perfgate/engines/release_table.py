"""What a table of one range of an engine's releases holds, whatever the engine. Values only."""

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Struct


class Option(Struct, frozen=True, forbid_unknown_fields=True):
    """One command-line option.

    Attributes:
        name: as it is spelled; None: there is none but `opposite`.
        aliases: other spellings, which are never rendered: an extra option may not say them.
        flag: it takes no value.
        opposite: the flag that says the opposite.
        choices: the only values that it takes; empty: any.
        deprecated: it is given only where it says another value than the program's default.
    """

    name: str | None = None
    aliases: tuple[str, ...] = ()
    flag: bool = False
    opposite: str | None = None
    choices: tuple[str, ...] = ()
    deprecated: bool = False

    @property
    def spellings(self) -> tuple[str, ...]:
        """Every word that the program takes for it."""
        return tuple(word for word in (self.name, self.opposite, *self.aliases) if word)


Options = Mapping[str, Option]
"""Setting → the option of one program that it becomes."""


class ReleaseTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One range of releases that behave the same for perfgate.

    Attributes:
        title: name of the engine, for people.
        since: the first release (or candidate) of the range.
        programs: for each program that the range has, the option of each setting.
        help: the option that makes a program print all others.
        file: the table's file.
        version: the release that was asked for; empty: the range as such.
    """

    title: ClassVar[str] = "the engine"

    since: str
    programs: Mapping[str, Options]
    help: str = "--help"
    file: str = ""
    version: str = ""

    def options(self, program: str) -> Options:
        """The option of each setting of one program; empty when the range has no such program."""
        return self.programs.get(program, {})

    def choices(self, program: str, setting: str) -> tuple[str, ...]:
        """The values that an option takes; empty: any, or there is no such option."""
        option = self.options(program).get(setting)
        return () if option is None else option.choices
