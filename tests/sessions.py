"""Sessions of pytest that tests start: what they inherit, their plugins, the locks they hold."""

import fcntl
import os
from pathlib import Path

import coverage

ROOT = Path(__file__).parents[1]
# Plugins of other installed packages take three seconds to import in each session.
ONLY_NEEDED_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
BENCHMARK = ("-p", "perfgate", "-p", "pytest_benchmark.plugin")
XDIST = ("-p", "xdist.plugin")


def tracing() -> dict[str, str]:
    """What a process of Python counts by for the coverage of the tests, where that is measured.

    It costs as much time again as the process takes; few do.
    """
    measured = coverage.Coverage.current()
    if measured is None:
        return {}
    file = ROOT / str(measured.get_option("run:data_file"))
    return {"COVERAGE_PROCESS_START": str(ROOT / "pyproject.toml"), "COVERAGE_FILE": str(file)}


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
