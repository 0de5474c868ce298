"""Sessions of pytest that tests start: what they inherit, and which plugins they load."""

import os

# Plugins of other installed packages take three seconds to import in each session.
ONLY_NEEDED_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
BENCHMARK = ("-p", "pytest_benchmark.plugin")
XDIST = ("-p", "xdist.plugin")


def inherited(*foreign: str) -> dict[str, str]:
    """This process's environment for a session of its own.

    Without what a worker of pytest knows itself by, which a session that inherits it would take
    itself for; and without the variables that begin with one of `foreign`.
    """
    left_out = ("PYTEST_", *foreign)
    return {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
