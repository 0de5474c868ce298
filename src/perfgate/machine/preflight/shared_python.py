"""Shared Python: whether perfgate is installed into an engine's own environment."""

import sys
from importlib.metadata import PackageNotFoundError, version

from perfgate.engines.base import engine

HINT = (
    "install perfgate into an environment of its own; it finds the engine's programs on PATH, by "
    "PERFGATE_PROGRAM_<NAME>, or in a container"
)


def shared_python() -> str | None:
    """Which engines are in perfgate's own Python, and what that does; None: none is.

    Only the metadata of packages is read: importing an engine takes a minute, and a GPU.
    """
    names = [known.distribution for known in engine.values() if known.distribution]
    found = [f"{name} {one}" for name in names if (one := _version(name)) is not None]
    if not found:
        return None
    return (
        f"perfgate shares its Python ({sys.executable}) with {', '.join(found)}: what perfgate "
        "needs replaces packages of the engine under test, such as numpy and huggingface_hub"
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
