"""Registry: named implementations of one kind (engines, clients, evaluators, launchers)."""

import difflib
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from perfgate.errors import InputError

T = TypeVar("T")


class Registry(Mapping[str, type[T]], Generic[T]):
    """Name → class, filled by a decorator; an unknown name gets an error that lists the known."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._classes: dict[str, type[T]] = {}

    def __call__(self, name: str) -> Callable[[type[T]], type[T]]:
        """Register the decorated class under `name`."""

        def register(cls: type[T]) -> type[T]:
            if name in self._classes:
                raise ValueError(f"two {self.kind}s named {name!r}")
            self._classes[name] = cls
            return cls

        return register

    def __getitem__(self, name: str) -> type[T]:
        """The class registered as `name`.

        Raises:
            InputError: no class has that name.
        """
        try:
            return self._classes[name]
        except KeyError:
            close = difflib.get_close_matches(name, self._classes, n=1)
            raise InputError(
                f"unknown {self.kind}",
                found=name,
                expected="one of " + ", ".join(sorted(self._classes)),
                hint=f"did you mean {close[0]}?" if close else None,
            ) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)
