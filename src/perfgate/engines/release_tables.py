"""Which release of an engine knows what: one table per range of releases, chosen by version.

A range is one YAML file, named after its first release. The oldest is a whole table; each later one
is what changed against the range before it, as a merge patch (RFC 7396): mappings are merged,
anything else is replaced, null takes away. Further files can stand in a folder of one's own.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import msgspec
import yaml
from msgspec import Struct
from packaging.version import InvalidVersion, Version

from perfgate.core.errors import InputError
from perfgate.core.files.paths import named_folder
from perfgate.engines.definitions import YAML
from perfgate.engines.option_check import Mismatch
from perfgate.scenarios.yaml_document import read_document


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
        environment: variables that every program is given, beside those of settings.
        file: the table's file.
        version: the release that was asked for; empty: the range as such.
    """

    title: ClassVar[str] = "the engine"

    since: str
    programs: Mapping[str, Options]
    help: str = "--help"
    environment: Mapping[str, str] = {}
    file: str = ""
    version: str = ""

    def options(self, program: str) -> Options:
        """The option of each setting of one program; empty when the range has no such program."""
        return self.programs.get(program, {})

    def choices(self, program: str, setting: str) -> tuple[str, ...]:
        """The values that an option takes; empty: any, or there is no such option."""
        option = self.options(program).get(setting)
        return () if option is None else option.choices

    def moved_defaults(self) -> Mapping[str, Any]:
        """What a server does where settings are left open, of what moved between releases."""
        return {}


T = TypeVar("T", bound=ReleaseTable)

_Programs = dict[str, dict[str, str | dict[str, Any] | None] | None]


class ReleaseTables(Generic[T]):
    """The tables of one engine.

    Args:
        kind: what a table holds.
        folder: of the tables that come with perfgate.
        variable: environment variable of a folder with further tables; None: there is none.
        hint: what a person whose release is too old can do.
        examples: releases as the engine names them, for messages.
    """

    def __init__(
        self,
        kind: type[T],
        folder: Path,
        *,
        variable: str | None = None,
        hint: str | None = None,
        examples: str = "1.0.0 or 1.3.0rc7",
    ) -> None:
        self.kind = kind
        self.folder = folder
        self._variable = variable
        self._hint = hint
        self._examples = examples
        self._tables = lru_cache(maxsize=8)(self._read_all)
        self._release = lru_cache(maxsize=64)(self._chosen)

    def read(self, *folders: Path) -> tuple[T, ...]:
        """The tables of all ranges in `folders`, oldest first.

        Raises:
            InputError: a file is not named after a release, two are after the same, or one says
                what no table has, or takes away what the range before it lacks; or one of a
                person's own is no YAML, or beyond the limits of scenario files.
        """
        tables: list[T] = []
        fields: dict[str, Any] = {}
        for path in self._files(folders):
            is_own = path.parent == self.folder
            changes = msgspec.yaml.decode(path.read_bytes()) if is_own else self._of_others(path)
            try:
                fields = _patched(fields, _spelled_out(changes))
                table = {**fields, "since": path.stem, "file": str(path)}
                tables.append(msgspec.convert(table, self.kind))
            except KeyError as error:
                found = f"null for {error}, which the range before it lacks"
                raise self._wrong(path, found) from None
            except (msgspec.ValidationError, TypeError) as error:
                raise self._wrong(path, str(error)) from error
        return tuple(tables)

    def all(self) -> tuple[T, ...]:
        """All ranges, oldest first; the last one also stands for every later release.

        Raises:
            InputError: the folder that the variable names is none, or has a file that is no table.
        """
        return self._tables(self._more())

    def release(self, version: str) -> T:
        """The table of the range that `version` falls into.

        Raises:
            InputError: it is no version, or older than the oldest table.
        """
        return self._release(version, self._more())

    def words(self, settings: Iterable[str], *programs: str) -> dict[str, frozenset[str]]:
        """Setting → the words that any release lists for it, of any of the programs."""
        return {
            setting: frozenset(
                word
                for table in self.all()
                for program in programs
                for word in table.choices(program, setting)
            )
            for setting in settings
        }

    def uncovered(self, version: str) -> str | None:
        """Why no table is known to hold for a release, and which is used; None: one is.

        The newest table holds for the rest of its minor release: a later one may have moved
        options.

        Raises:
            InputError: as `release`.
        """
        used, newest = self.release(version), self.all()[-1]
        last = Version(newest.since).release[:2]
        if used.since != newest.since or self.base(version).release[:2] <= last:
            return None
        return (
            f"no table of releases covers {self.kind.title} {version}: the newest one is used, of "
            f"{newest.since} to {'.'.join(map(str, last))}; every option is asked of the installed "
            "program before GPU time is spent"
        )

    def base(self, version: str) -> Version:
        """The version as Python packages order them, without the build that follows a ``+``.

        Raises:
            InputError: it is no version.
        """
        try:
            return Version(Version(version).public)
        except InvalidVersion:
            raise InputError(
                f"not a version of {self.kind.title}",
                field="engine version",
                found=repr(version),
                expected=f"a release or a candidate, e.g. {self._examples}",
                hint="give the release that the build was branched from as --engine-version, and "
                "its commit as --engine-commit",
            ) from None

    def same(self, one: str, other: str) -> bool:
        """Whether two versions name one release; what follows a ``+`` names a build of it.

        Raises:
            InputError: one of them is no version.
        """
        return self.base(one) == self.base(other)

    def told_by(self, version: str, mismatch: Mismatch) -> str:
        """``releases/1.0.0rc4.yaml:24``: the newest line up to `version` that names it; else empty.

        Args:
            version: the release that was rendered for.
            mismatch: what does not fit.
        """
        asked, folder = self.base(version), self.folder
        tables = sorted(folder.glob("*.yaml"), key=lambda path: Version(path.stem), reverse=True)
        for path in tables:
            if Version(path.stem) <= asked and (line := _line(_places(path), mismatch)):
                return f"{folder.name}/{path.name}:{line}"
        # What no file says is the same for all releases: a default of the tables' own type.
        code, word = folder.with_name("table.py"), f'"{mismatch.place.rpartition(".")[2]}"'
        lines = code.read_text(encoding="utf-8").splitlines() if code.is_file() else []
        found = next((number for number, line in enumerate(lines, start=1) if word in line), None)
        return f"{folder.parent.name}/{code.name}:{found}" if found else ""

    def _of_others(self, path: Path) -> object:
        document, errors = read_document(path, "programs", "write what changed, or delete the file")
        if errors or document is None:
            raise errors[0]
        return document.value

    def _more(self) -> Path | None:
        if self._variable is None:
            return None
        expected = "a folder with tables of further releases"
        hint = "set it to where they are, or unset it"
        return named_folder(self._variable, expected=expected, hint=hint)

    def _read_all(self, more: Path | None) -> tuple[T, ...]:
        return self.read(self.folder, *filter(None, [more]))

    def _chosen(self, version: str, more: Path | None) -> T:
        asked, tables = self.base(version), self._tables(more)
        for table in reversed(tables):
            if asked >= Version(table.since):
                return msgspec.structs.replace(table, version=version)
        raise InputError(
            f"this release of {self.kind.title} is too old",
            field="engine version",
            found=version,
            expected=f"{tables[0].since} or later",
            hint=self._hint,
        )

    def _files(self, folders: Iterable[Path]) -> list[Path]:
        """The tables' files, in the order of their releases."""
        found: dict[Version, Path] = {}
        for path in (path for folder in folders for path in folder.glob("*.yaml")):
            since = self.base(path.stem)
            if since in found:
                raise self._wrong(path, f"the release of {found[since]}")
            found[since] = path
        return [found[since] for since in sorted(found)]

    def _wrong(self, path: Path, found: str) -> InputError:
        return InputError(
            f"not a table of {self.kind.title} releases",
            file=path,
            found=found,
            expected="what changed against the range before, under the names of "
            f"{self.kind.__module__}",
            hint='see "Add a release" in docs/reference/dialects.md',
        )


def _spelled_out(content: object) -> dict[str, Any]:
    """Options that are only a name, as mappings, so that they can be merged."""
    changes = msgspec.convert(content or {}, dict[str, Any])
    programs = msgspec.convert(changes.get("programs") or {}, _Programs)
    return {
        **changes,
        "programs": {
            program: options
            and {
                setting: {"name": option} if isinstance(option, str) else option
                for setting, option in options.items()
            }
            for program, options in programs.items()
        },
    }


def _patched(before: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`before` with a merge patch applied; taking away what is not there is a mistake."""
    after = dict(before)
    for key, change in changes.items():
        if change is None:
            del after[key]
        elif isinstance(change, dict):
            was = after.get(key)
            after[key] = _patched(was if isinstance(was, dict) else {}, change)
        else:
            after[key] = change
    return after


# Which line of which table makes perfgate write an option or a YAML key. ------------------------


class Place(NamedTuple):
    """Where a table says something.

    Attributes:
        keys: the keys that lead there.
        word: what stands there.
        line: counted from 1.
    """

    keys: tuple[str, ...]
    word: str
    line: int


def _line(places: tuple[Place, ...], mismatch: Mismatch) -> int | None:
    """The line that spells a setting with the key and one of those above it.

    Else that of the program's option, else of the word anywhere.
    """
    *above, last = mismatch.place.split(".")
    for place in places if mismatch.program == YAML else ():
        if place.word == last and place.keys[:1] == ("spelling",):
            setting = {one.word for one in places if one.keys[:2] == place.keys[:2]}
            if not above or setting & set(above):
                return place.line
    named = [place for place in places if place.word == mismatch.place]
    program = {mismatch.program, mismatch.program.removesuffix(" serve")}
    own = [place for place in named if program & set(place.keys)]
    return next((place.line for place in own or named), None)


@cache
def _places(path: Path) -> tuple[Place, ...]:
    root = yaml.compose(path.read_text(encoding="utf-8"), yaml.SafeLoader)
    return tuple(_below(root, ())) if root is not None else ()


def _below(node: yaml.Node, keys: tuple[str, ...]) -> Iterator[Place]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield Place(keys, key.value, key.start_mark.line + 1)
            yield from _below(value, (*keys, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for one in node.value:
            yield from _below(one, keys)
    elif isinstance(node, yaml.ScalarNode):
        yield Place(keys, node.value, node.start_mark.line + 1)
