"""Release coverage: whether perfgate knows the release that a person says is under test."""

from collections.abc import Iterable

from perfgate.engines.base import engine
from perfgate.scenarios.scenario import Scenario


def uncovered(scenarios: Iterable[Scenario], version: str | None) -> tuple[str, ...]:
    """What is not known of the release, for each engine of the scenarios; empty: all is known.

    Args:
        scenarios: what is to be measured or rendered.
        version: as ``--engine-version`` says it; None: the programs are asked.

    Raises:
        InputError: it is no release of one of the engines.
    """
    if version is None:
        return ()
    names = sorted({scenario.engine.name for scenario in scenarios})
    return tuple(told for name in names if (told := engine[name]().uncovered(version)))
