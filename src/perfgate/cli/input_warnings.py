"""Input warnings: what a person may not have meant, each in a line on standard error."""

import os
import sys
from collections.abc import Iterable

from perfgate.core.environment_variables import unknown_variables
from perfgate.plan.release_coverage import uncovered
from perfgate.scenarios.scenario import Scenario


def warn(lines: Iterable[str]) -> None:
    """Write the lines to standard error."""
    for line in lines:
        print(f"perfgate: warning: {line}", file=sys.stderr)


def warn_of_variables() -> None:
    """Warn of variables that look like perfgate's and are not."""
    warn(unknown_variables(os.environ))


def warn_of_release(scenarios: Iterable[Scenario], version: str | None) -> None:
    """Warn of a release that no table covers.

    Raises:
        InputError: it is no release.
    """
    warn(uncovered(scenarios, version))
