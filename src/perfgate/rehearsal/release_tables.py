"""Release tables: what a stand-in must know of releases, kept in its playbook: it starts at once.

Importing the engine's own tables takes a stand-in longer than all the rest of its life.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perfgate.engines.tensorrt_llm.releases import Release


@dataclass(frozen=True)
class Option:
    """One command-line option: its name, other spellings, whether it is a flag, its opposite."""

    name: str
    aliases: tuple[str, ...] = ()
    flag: bool = False
    negation: str | None = None

    @property
    def spellings(self) -> tuple[str, ...]:
        return (self.name, *self.aliases, *((self.negation,) if self.negation else ()))


@dataclass(frozen=True)
class Tables:
    """One release.

    Attributes:
        programs: program → its options, by name.
        yaml_keys: nested mapping of YAML keys; None: what is below is not listed.
        refuses_unknown_yaml: whether an unknown key ends the engine; else it is ignored.
        yaml_option: option that names the YAML file.
    """

    programs: Mapping[str, Mapping[str, Option]]
    yaml_keys: Mapping[str, Any]
    refuses_unknown_yaml: bool
    yaml_option: str

    def options(self, program: str) -> Mapping[str, Option]:
        """The options of one program; empty when the release has no such program."""
        return self.programs.get(program, {})


def as_plain(release: "Release") -> dict[str, Any]:
    """The tables of a release as JSON knows them."""
    return {
        "programs": {
            program: {
                name: {field.name: getattr(option, field.name) for field in fields(Option)}
                for name, option in options.items()
            }
            for program, options in release.programs.items()
        },
        "yaml_keys": release.yaml_keys,
        "refuses_unknown_yaml": release.unknown_yaml == "refused",
        "yaml_option": release.yaml_option,
    }


def from_plain(plain: Mapping[str, Any]) -> Tables:
    """The reverse of `as_plain`."""
    programs = {
        program: {
            name: Option(**{**option, "aliases": tuple(option["aliases"])})
            for name, option in options.items()
        }
        for program, options in plain["programs"].items()
    }
    return Tables(**{**plain, "programs": programs})
