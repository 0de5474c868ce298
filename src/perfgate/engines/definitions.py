"""Definitions: what the programs of one build of an engine accept, whoever told it.

A recorded option page and an installed program that was asked end as the same value, so that one
check serves both. What perfgate's own release tables say is not among them: those are what is
checked.
"""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

YAML = "LLM-API YAML"  # stands for a program in what is told of TensorRT-LLM's file

Kind = Literal["flag", "integer", "number", "text", "boolean", "argument"]
"""What an option takes: nothing; a whole number; a number; any text; true or false. An argument
has no name before it."""


class OptionDefinition(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One option, or positional argument, of one program.

    Attributes:
        options: every spelling; of an argument, its name.
        kind: what it takes.
        off: spellings of the flag that says the opposite.
        hidden: those of all spellings that the program takes and its help page does not show.
        choices: the only values it takes; empty: any of its kind.
        default: what it is when it is not given; UNSET: not told.
        required: the program ends without it.
        many: it takes several words, up to the next option.
        repeated: it may be given several times.
        status: ``deprecated`` or ``prototype``, as its program marks it; empty: neither.
    """

    options: tuple[str, ...]
    kind: Kind = "text"
    off: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    default: Any = UNSET
    required: bool = False
    many: bool = False
    repeated: bool = False
    status: str = ""

    @property
    def spellings(self) -> tuple[str, ...]:
        """Every word that the program takes for it or its opposite."""
        return (*self.options, *self.off)


class KeyDefinition(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One key of the engine's YAML file.

    Attributes:
        types: what it takes: ``int``, ``str``, ``null``, a class, and what else the engine's source
            names; empty: not told.
        choices: the only texts it takes, beside its types; empty: not told, or any.
        default: its default; UNSET: not told.
        alias: another spelling of the key.
        models: class name → the keys below, for each mapping that it takes; empty: none, or not
            told what is below.
        unknown: what becomes of a key below that no model has; UNSET: as at the top.
        status: ``deprecated`` or ``prototype``, as its model marks it; empty: neither.
    """

    types: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    default: Any = UNSET
    alias: str | None = None
    models: Mapping[str, Mapping[str, "KeyDefinition"]] = {}
    unknown: Literal["refused", "ignored"] | UnsetType = UNSET
    status: str = ""


Options = Mapping[str, OptionDefinition]
Keys = Mapping[str, KeyDefinition]


class Definitions(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the programs of one build accept.

    Attributes:
        engine: name of the engine.
        version: the release.
        source: who told it, for people: a file of the engine's repository, an installed program.
        whole: every option of each program listed is there; False: an option that is missing may
            exist all the same.
        programs: program, with its subcommands → its options by name, e.g.
            ``trtllm-bench throughput``.
        keys: keys of the LLM-API YAML file; None: not told.
        unknown_keys: what becomes of a key that `keys` lacks; None: not told.
        exact_types: the keys' types tell lists (``list``) and mappings (``dict``) from single
            values.
        notes: what could not be asked, and why, for people.
        abbreviates: the programs take an option by any beginning of it that no other one has, as
            argparse does.
        dashes_alike: they take ``_`` for ``-`` in an option's name.
    """

    engine: str
    version: str
    source: str
    whole: bool
    programs: Mapping[str, Options]
    keys: Keys | None = None
    unknown_keys: Literal["refused", "ignored"] | None = None
    exact_types: bool = False
    notes: tuple[str, ...] = ()
    abbreviates: bool = False
    dashes_alike: bool = False

    def option(self, program: str, spelling: str) -> OptionDefinition | None:
        """The option of `program` that `spelling` is taken for; None: there is none."""
        options = self.programs.get(program, {}).values()
        tried = [spelling]
        if self.dashes_alike:
            tried.append("--" + spelling.removeprefix("--").replace("_", "-"))
        for word in tried:
            for option in options:
                if word in option.spellings:
                    return option
        if not self.abbreviates or not spelling.startswith("--"):
            return None
        begun = [
            option
            for option in options
            if any(one.startswith(word) for one in option.spellings for word in tried)
        ]
        return begun[0] if len(begun) == 1 else None
