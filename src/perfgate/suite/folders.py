"""Folders: what a session's options and settings name, for all that looks for them later.

They are put into the variables that `core.paths` reads: programs that the session starts, and
workers, take the same ones.
"""

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from perfgate.core.paths import (
    BASELINES,
    INI_BASELINES,
    INI_SCENARIOS,
    PACKAGED,
    SCENARIOS,
    setting_of,
)
from perfgate.suite.options import option_of


def settle_folders(config: pytest.Config) -> None:
    """Have options, else settings of pytest, name the folders of scenarios and baselines.

    What the environment names is weaker than an option and stronger than a setting. The variables
    are put back when the session ends.
    """
    option = option_of(config)
    _settle(config, SCENARIOS, option("--scenarios"), INI_SCENARIOS)
    baselines = option("--baselines")
    _settle(config, BASELINES, None if baselines is None else [str(baselines)], INI_BASELINES)


def _settle(config: pytest.Config, variable: str, given: list[str] | None, setting: str) -> None:
    if given:
        names = _absolute(given, config.invocation_params.dir)
    elif os.environ.get(variable) or config.inipath is None:
        return
    else:
        root = config.inipath.parent
        found = config.getini(setting)
        if not found or found == setting_of(root, setting):
            return  # nothing to add to what pyproject.toml says
        names = _absolute(found, root)
    patch = pytest.MonkeyPatch()
    patch.setenv(variable, os.pathsep.join(names))
    config.add_cleanup(patch.undo)


def _absolute(names: Iterable[str], start: Path) -> list[str]:
    return [name if name == PACKAGED else str(start / name) for name in names]
