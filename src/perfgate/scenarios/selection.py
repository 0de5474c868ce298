"""Choose among scenarios: by id, by id patterns, and by marker expressions."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.core.suggestion import did_you_mean
from perfgate.scenarios.marker_expression import parse
from perfgate.scenarios.markers import markers_of
from perfgate.scenarios.scenario import Scenario


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
    return InputError(
        "no scenario of that name",
        found=pattern,
        expected="an id, or a pattern such as b200-*",
        hint=did_you_mean(pattern, ids) or "`perfgate scenarios list` names them",
    )


def select_marked(
    scenarios: Sequence[Scenario], expression: str, declared: Mapping[str, str]
) -> tuple[Scenario, ...]:
    """The scenarios that a marker expression selects; an empty one selects all, as in pytest.

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
    unknown = [name for name in sorted(parsed.names) if name not in declared]
    if unknown:
        raise SeveralInputErrors([_no_marker(name, declared) for name in unknown])
    return tuple(scenario for scenario in scenarios if parsed.matches(markers_of(scenario)))


def _no_marker(name: str, declared: Mapping[str, str]) -> InputError:
    return InputError(
        "unknown marker",
        field="-m",
        found=name,
        expected="one of " + ", ".join(sorted(declared)),
        hint=did_you_mean(name, declared) or "`perfgate scenarios list --markers` explains them",
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
