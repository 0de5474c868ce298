"""Registry: named implementations of one kind (engines, clients, evaluators, launchers)."""

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Generic, TypeVar

from perfgate.core.errors import InputError, did_you_mean

T = TypeVar("T")

# The group of entry points by which an installed package registers its own.
ENTRY_POINTS = "perfgate.plugins"


class _UnknownName(InputError, KeyError):
    """Also a KeyError, as a mapping's `in` and `get` need it."""


class Registry(Mapping[str, type[T]], Generic[T]):
    """Name → class, filled by a decorator; an unknown name gets an error that lists the known.

    Args:
        kind: what is registered, for messages.
        package: the package whose modules register themselves when they are imported; they are
            imported when the registry is first read, so a new one is a new file and nothing else.
    """

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self._package = package
        self._complete = False
        self._classes: dict[str, type[T]] = {}

    def __call__(self, name: str) -> Callable[[type[T]], type[T]]:
        """Register the decorated class under `name`, which becomes its attribute of that name."""

        def register(cls: type[T]) -> type[T]:
            if name in self._classes:
                raise ValueError(f"two {self.kind}s named {name!r}")
            cls.name = name  # type: ignore[attr-defined]
            self._classes[name] = cls
            return cls

        return register

    def __getitem__(self, name: str) -> type[T]:
        """The class registered as `name`.

        Raises:
            InputError: no class has that name.
        """
        self._load(name)
        try:
            return self._classes[name]
        except KeyError:
            raise _UnknownName(
                f"unknown {self.kind}",
                found=name,
                expected="one of " + ", ".join(sorted(self._classes)),
                hint=did_you_mean(name, self._classes),
            ) from None

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(self._classes)

    def __len__(self) -> int:
        self._load()
        return len(self._classes)

    def _load(self, name: str | None = None) -> None:
        """Import what registers itself, until `name` is registered; its own module, which may have
        that name, first: others may be large.
        """
        if not self._complete:
            package = importlib.import_module(self._package)
            modules = [module.name for module in pkgutil.iter_modules(package.__path__)]
            for module in sorted(modules, key=lambda one: one != name):
                if name in self._classes:
                    return
                importlib.import_module(f"{self._package}.{module}")
            self._complete = True
        _load_entry_points()


@cache
def _load_entry_points() -> None:
    """Import what installed packages register through entry points.

    Raises:
        InputError: one of them cannot be imported.
    """
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            entry.load()
        except Exception as error:
            package = "" if entry.dist is None else entry.dist.name
            raise InputError(
                f"an entry point of the installed package {package} cannot be loaded",
                field=ENTRY_POINTS,
                found=f"{entry.name} = {entry.value}: {type(error).__name__}: {error}",
                expected="a module that registers engines, clients, evaluators or launchers",
                hint=f"correct the package, or `pip uninstall {package}`",
            ) from error
