"""What an installed program of an engine prints when it is asked: its version, its options."""

from functools import lru_cache

from perfgate.core.locations import Locations

LIMIT_S = 180.0  # importing torch and the bindings from a cold network disk takes minutes


@lru_cache(maxsize=64)
def answer(argv: tuple[str, ...], locations: Locations) -> str:
    """Everything that the program prints, log lines included; one that fails says why instead.

    Args:
        argv: a program of the engine, and what it is asked.
        locations: where it is.

    Raises:
        RunError, InputError, MissingProgram: the container that it is in cannot be had.
    """
    return locations.ask(argv, LIMIT_S, of_engine=True).text
