"""Rerun: the command line that runs one test again, with everything that shaped its numbers."""

import os
import shlex
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from perfgate.core.environment_variables import PREFIX, VARIABLES
from perfgate.core.paths import BASELINES, SCENARIOS
from perfgate.core.redaction import mask_arguments
from perfgate.suite.options import OPTIONS, name_on_command_line, option_of, short_name

# What says how a run ends, where it is kept and how long it may wait: no number depends on it.
_SHAPES_NOTHING = frozenset(
    {"--gate", "--record", "--run-dir", "--resume", "--budget", "--shard", "--html"}
)
_OF_PROGRAMS = frozenset(one.name for one in VARIABLES if one.set_by == "perfgate")
# Variables that an option of the command line speaks for.
_FOLDERS = {SCENARIOS: "--scenarios", BASELINES: "--baselines"}


def rerun_line(config: pytest.Config, node: str, environment: Mapping[str, str]) -> str:
    """``NAME=value pytest TEST --option=value …``, as a shell takes it; secrets are masked.

    Args:
        config: the session's.
        node: the test's id.
        environment: the variables that the session was started with, secrets masked.
    """
    shaping = shaping_options(option_of(config), partial(name_on_command_line, config))
    settings = config.getoption("inifilename", None)  # the file that -c names
    options = [*(["-c", str(settings)] if settings else []), *shaping]
    options = mask_arguments(options)
    given = {short_name(word.partition("=")[0]) for word in options}
    variables = [
        f"{name}={shlex.quote(value)}"
        for name, value in sorted(environment.items())
        if name.startswith(PREFIX) and name not in _OF_PROGRAMS and _FOLDERS.get(name) not in given
    ]
    return " ".join([*variables, shlex.join(["pytest", _from_here(config, node), *options])])


def shaping_options(option: Callable[[str], Any], name_of: Callable[[str], str]) -> list[str]:
    """Every option of the suite that shapes a number and was given, as ``--name=value``.

    Args:
        option: the value of an option, by its short name.
        name_of: the name of an option on the command line, by its short name.
    """
    words: list[str] = []
    for short, settings in OPTIONS.items():
        value = option(short)
        if short in _SHAPES_NOTHING or value == settings.get("default") or not _is_given(value):
            continue
        name = name_of(short)
        if value is True:
            words.append(name)
        elif "nargs" in settings:
            words += [name, *value]
        else:
            words += [f"{name}={one}" for one in (value if isinstance(value, list) else [value])]
    return words


def _is_given(value: object) -> bool:
    return value is not None and value is not False and value != []


def _from_here(config: pytest.Config, node: str) -> str:
    """The test's id from the folder that the session was started in; ids are from the root's."""
    path, colons, rest = node.partition("::")
    start = config.invocation_params.dir
    return os.path.relpath(config.rootpath / path, start) + colons + rest
