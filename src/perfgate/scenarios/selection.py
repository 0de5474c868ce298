"""Choose among scenarios: by id, by id patterns, and by marker expressions."""

import fnmatch
from collections.abc import Collection, Mapping, Sequence
from itertools import chain

from perfgate.core.errors import InputError, SeveralInputErrors, did_you_mean
from perfgate.scenarios.marker_expression import parse
from perfgate.scenarios.markers import (
    EXPLORE,
    OPT_IN_MARKERS,
    kinds_of,
    markers_of_test,
    unknown_marker,
)
from perfgate.scenarios.scenario import Scenario

_SHOWN = 3  # ids of templates in a line


def select(scenarios: Sequence[Scenario], patterns: Sequence[str]) -> tuple[Scenario, ...]:
    """The scenarios whose id matches one of the glob patterns, in their order; no pattern: all.

    Raises:
        SeveralInputErrors: patterns that match no scenario.
    """
    ids = [scenario.id for scenario in scenarios]
    found = {pattern: fnmatch.filter(ids, pattern) for pattern in patterns or ["*"]}
    if unmatched := [pattern for pattern in patterns if not found[pattern]]:
        raise SeveralInputErrors([_no_match(pattern, ids) for pattern in unmatched])
    chosen = set(chain.from_iterable(found.values()))
    return tuple(scenario for scenario in scenarios if scenario.id in chosen)


def _no_match(pattern: str, ids: Sequence[str]) -> InputError:
    expected = "an id, or a pattern such as b200-*"
    hint = did_you_mean(pattern, ids) or "`perfgate scenarios list` names them"
    return InputError("no scenario of that name", found=pattern, expected=expected, hint=hint)


def select_marked(
    scenarios: Sequence[Scenario], expression: str, declared: Mapping[str, str]
) -> tuple[Scenario, ...]:
    """The scenarios with a test that a marker expression selects; an empty one selects all.

    Args:
        scenarios: what to select from.
        expression: what ``-m`` says.
        declared: every marker that may be named → its meaning.

    Raises:
        InputError: the expression is malformed.
        SeveralInputErrors: it names markers that are not declared.
    """
    if not expression:
        return tuple(scenarios)
    parsed = parse(expression)
    explained = "`perfgate scenarios list --markers` explains them"
    if unknown := sorted(parsed.names - declared.keys()):
        problems = (unknown_marker(("-m",), name, declared, explained) for name in unknown)
        raise SeveralInputErrors([one.error() for one in problems])
    return tuple(
        scenario
        for scenario in scenarios
        if any(parsed.matches(markers_of_test(scenario, kind)) for kind in kinds_of(scenario))
    )


def left_out(scenario: Scenario, asked: Collection[str]) -> bool:
    """Whether the scenario is a template and none of its markers that say so was asked for.

    Args:
        scenario: any scenario.
        asked: the markers that were named, by ``-m`` or otherwise.
    """
    own = OPT_IN_MARKERS.intersection(scenario.markers)
    return bool(own) and own.isdisjoint(asked)


def template_marker(scenario: Scenario) -> str:
    """The marker that a template is asked for with."""
    return min(OPT_IN_MARKERS.intersection(scenario.markers))


def left_out_lines(templates: Mapping[str, str]) -> list[str]:
    """What was left out, and how to ask for it: a line a marker.

    Args:
        templates: id of each → its `template_marker`.
    """
    of_marker: dict[str, list[str]] = {}
    for name, marker in sorted(templates.items()):
        of_marker.setdefault(marker, []).append(name)
    found = []
    for marker, names in sorted(of_marker.items()):
        count = "1 template" if len(names) == 1 else f"{len(names)} templates"
        shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
        asked = f"-m {marker} --shape ISL/OSL" if marker == EXPLORE else f"-m {marker}"
        found.append(f"{count} left out ({shown}): ask with {asked}")
    return found


def pick(scenarios: Sequence[Scenario], name: str) -> Scenario:
    """The one scenario whose id is `name`.

    Raises:
        InputError: there is none.
    """
    for scenario in scenarios:
        if scenario.id == name:
            return scenario
    raise _no_match(name, [scenario.id for scenario in scenarios])
