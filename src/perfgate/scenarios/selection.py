"""Choose among scenarios: by id pattern, and by the markers that pytest knows them by."""

import difflib
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.scenarios.scenario import Scenario

# The marker of each hardware, besides those that a scenario names itself.
_MARKER_OF_GPU = {
    "none": "local",
    "A100": "a100",
    "H20": "h20",
    "H100": "h100",
    "H200": "h200",
    "B200": "b200",
    "GB200": "gb200",
}
HARDWARE_MARKERS = frozenset(_MARKER_OF_GPU.values())


def hardware_marker(scenario: Scenario) -> str:
    """The marker of the scenario's hardware: ``b200``, ``h200``, …, ``local`` without GPUs."""
    return _MARKER_OF_GPU[scenario.hardware.gpu]


def markers_of(scenario: Scenario) -> tuple[str, ...]:
    """The scenario's own markers and that of its hardware, sorted."""
    return tuple(sorted({hardware_marker(scenario), *scenario.markers}))


def all_markers(scenarios: Iterable[Scenario]) -> tuple[str, ...]:
    """The markers of any of the scenarios, sorted."""
    return tuple(sorted({marker for scenario in scenarios for marker in markers_of(scenario)}))


def select(scenarios: Sequence[Scenario], patterns: Sequence[str]) -> tuple[Scenario, ...]:
    """The scenarios whose id matches one of the glob patterns, in their order; no pattern: all.

    Raises:
        SeveralInputErrors: patterns that match no scenario.
    """
    ids = [scenario.id for scenario in scenarios]
    errors = [
        _no_match(pattern, ids)
        for pattern in patterns
        if not any(fnmatchcase(name, pattern) for name in ids)
    ]
    if errors:
        raise SeveralInputErrors(errors)
    if not patterns:
        return tuple(scenarios)
    return tuple(
        scenario
        for scenario in scenarios
        if any(fnmatchcase(scenario.id, pattern) for pattern in patterns)
    )


def _no_match(pattern: str, ids: Sequence[str]) -> InputError:
    close = difflib.get_close_matches(pattern, ids, n=1)
    return InputError(
        "no scenario of that name",
        found=pattern,
        expected="an id, or a pattern such as b200-*",
        hint=f"did you mean {close[0]}?" if close else "`perfgate scenarios list` names them",
    )


def pick(scenarios: Sequence[Scenario], name: str) -> Scenario:
    """The one scenario whose id is `name`.

    Raises:
        InputError: there is none.
    """
    for scenario in scenarios:
        if scenario.id == name:
            return scenario
    raise _no_match(name, [scenario.id for scenario in scenarios])
