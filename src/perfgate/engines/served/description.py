"""Description: what an engine is, whatever its release, as one YAML file beside its tables."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

T = TypeVar("T", bound="Description")


class Description(Struct, frozen=True, forbid_unknown_fields=True):
    """What an engine is, whatever its release.

    Attributes:
        title: name of the engine, for people.
        foreign: settings of other engines → what is written instead.
        never: whose an option is → options that are not a scenario's to give: what would take the
            measurement out of perfgate's hands, or say a field of the scenario in another way.
        package: package of its Python.
        distributions: what its wheels are called.
        version_option: makes the server print its version; empty: it cannot.
        page: the server, as the release tables name it.
        program: the server as `engine.extra_args` calls it.
        command: the server as a person types it.
        subcommand: words between the server's program and its options.
        model_first: whether the model stands before all options.
        dashes_alike: whether the server takes ``_`` for ``-`` in an option's name.
        places: what else is an option, in its order: where the server listens, what it serves.
        places_first: whether those stand before the settings.
        settings: settings that are options as they stand, in their order.
        worded: settings whose value is one of the words that the release tables list.
        fields: setting of the release tables → the field that it is, where it is called otherwise.
        wider: settings whose option says more than they do: it is the scenario's to give where
            they are not asked for.
        overruling: option → the settings that it silently wins over: it is refused where one of
            them is set.
        pinned_where_moved: settings whose documented default is written out only where it moved.
        reported: setting → the name under which a running server reports its value.
        switches: setting → the name under which it reports whether it is on.
        chosen: setting → the name under which it reports its value, or that it chooses itself.
        sections: section of its answer → key → the name under which its log has the same.
        kept: what else of its report is worth keeping.
    """

    title: str
    foreign: Mapping[str, str]
    never: Mapping[str, tuple[str, ...]]
    package: str = ""
    distributions: tuple[str, ...] = ()
    version_option: str = ""
    page: str = ""
    program: str = ""
    command: str = ""
    subcommand: tuple[str, ...] = ()
    model_first: bool = False
    dashes_alike: bool = True
    places: tuple[str, ...] = ()
    places_first: bool = False
    settings: tuple[str, ...] = ()
    worded: tuple[str, ...] = ()
    fields: Mapping[str, str] = {}
    wider: tuple[str, ...] = ()
    overruling: Mapping[str, tuple[str, ...]] = {}
    pinned_where_moved: tuple[str, ...] = ()
    reported: Mapping[str, str] = {}
    switches: Mapping[str, str] = {}
    chosen: Mapping[str, str] = {}
    sections: Mapping[str, Mapping[str, str]] = {}
    kept: tuple[str, ...] = ()


def described(beside: str, kind: type[T]) -> T:
    """The description in ``engine.yaml``.

    Args:
        beside: a file in the same folder.
        kind: what it holds.
    """
    return msgspec.yaml.decode(Path(beside).with_name("engine.yaml").read_bytes(), type=kind)
