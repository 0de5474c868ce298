"""Sessions of pytest that tests start: what they inherit, their plugins, the locks they hold.

What a session runs counts for the coverage of the tests, which costs half a second in each of its
processes; one that is killed, or whose like is counted elsewhere, does without.
"""

import fcntl
import os
from collections.abc import Mapping
from pathlib import Path

# Plugins of other installed packages take three seconds to import in each session.
ONLY_NEEDED_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
BENCHMARK = ("-p", "perfgate", "-p", "pytest_benchmark.plugin")
XDIST = ("-p", "xdist.plugin")


TRACES = ("COVERAGE_", "COV_CORE_")


def untraced(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without what starts coverage in a process of Python."""
    return {name: value for name, value in environment.items() if not name.startswith(TRACES)}


def inherited(*foreign: str) -> dict[str, str]:
    """This process's environment for a session of its own.

    Without what a worker of pytest knows itself by, which a session that inherits it would take
    itself for; and without the variables that begin with one of `foreign`.
    """
    left_out = ("PYTEST_", *foreign)
    return {name: value for name, value in os.environ.items() if not name.startswith(left_out)}


def is_held(lock: Path) -> bool:
    """Whether somebody holds the lock."""
    with lock.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
