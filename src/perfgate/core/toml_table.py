"""TOML tables of perfgate's own: facts that lie as data beside the module that uses them."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def toml_beside(module_file: str, name: str) -> dict[str, Any]:
    """The table ``NAME.toml`` in the folder of a module, read once.

    Args:
        module_file: ``__file__`` of the module.
        name: the table's name without its ending.
    """
    return tomllib.loads(Path(module_file).with_name(f"{name}.toml").read_text(encoding="utf-8"))
