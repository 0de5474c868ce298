"""Policy rules: what a policy's schema cannot say, seen from its file alone. Pure.

What the suite must have of it is in `suite_rules`.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perfgate.core.errors import InputError
from perfgate.core.metrics import lookup
from perfgate.scenarios.marker_expression import parse
from perfgate.scenarios.metric_rules import unknown_metric
from perfgate.scenarios.problem import Keys, Problem

_KEY_BYTES = 32  # of an Ed25519 public key (RFC 8032)
Plain = Mapping[str, Any]


def broken_policy_rules(policy: Plain) -> Iterator[Problem]:
    """All that contradicts itself in a policy that its schema takes."""
    yield from _named_once(policy["required"])
    for number, group in enumerate(policy["required"]):
        yield from _selects_by_something(("required", number), group)
        yield from _floors_are_of_metrics(("required", number, "floors"), group)
    yield from _one_limit_each(policy["required"])
    yield from _one_commit(policy)
    for number, signer in enumerate(policy.get("signers", ())):
        yield from _is_a_key(("signers", number, "key"), signer["key"])
    yield from _set_aside_once(policy.get("set_aside", ()))


def malformed_selection(path: Keys, expression: str) -> Problem | None:
    """Why pytest could not select with the expression; None: it can."""
    try:
        parse(expression)
    except InputError as error:
        return Problem(path, error.problem, error.found, error.expected, error.hint)
    return None


def _named_once(groups: Sequence[Plain]) -> Iterator[Problem]:
    seen: set[str] = set()
    for number, group in enumerate(groups):
        if group["name"] in seen:
            yield Problem(
                ("required", number, "name"),
                "two groups of one name",
                group["name"],
                "a name of its own for each group",
            )
        seen.add(group["name"])


def _selects_by_something(path: Keys, group: Plain) -> Iterator[Problem]:
    if "select" not in group and "tests" not in group:
        yield Problem(
            path,
            "selects nothing",
            f"neither select nor tests in {group['name']}",
            "select (an expression of markers), tests (a list of ids), or both",
        )
    elif problem := malformed_selection((*path, "select"), group.get("select", "local")):
        yield problem


def _floors_are_of_metrics(path: Keys, group: Plain) -> Iterator[Problem]:
    for number, floor in enumerate(group.get("floors", ())):
        if problem := unknown_metric((*path, number, "metric"), floor["metric"]):
            yield problem
        elif lookup(floor["metric"]).unit == "fraction" and floor["limit"] > 1:
            yield Problem(
                (*path, number, "limit"), "out of range", floor["limit"], "a fraction, at most 1"
            )


def _one_limit_each(groups: Sequence[Plain]) -> Iterator[Problem]:
    first: dict[tuple[str, str], float] = {}
    for number, group in enumerate(groups):
        for place, floor in enumerate(group.get("floors", ())):
            key = (floor["test"], floor["metric"])
            if key in first:
                yield Problem(
                    ("required", number, "floors", place, "limit"),
                    "two limits for one metric",
                    f"{floor['limit']:g} for {floor['metric']} of {floor['test']}",
                    f"one limit; {first[key]:g} stands before",
                    "keep one of the two",
                )
            first.setdefault(key, floor["limit"])


def _one_commit(policy: Plain) -> Iterator[Problem]:
    commit = policy["build"].get("commit")
    for number, subject in enumerate(policy.get("subjects", ())):
        other = subject["digest"].get("gitCommit")
        if commit and other and not other.startswith(commit):
            yield Problem(
                ("subjects", number, "digest", "gitCommit"),
                "not the commit of the build",
                other,
                f"one that begins with {commit}, as build.commit says",
            )


def _is_a_key(path: Keys, key: str) -> Iterator[Problem]:
    expected = f"the base64 of the {_KEY_BYTES} bytes of an Ed25519 public key"
    hint = "`perfgate release keygen` prints it, behind 'under signers'"
    try:
        length = len(base64.b64decode(key, validate=True))
    except (binascii.Error, ValueError):
        yield Problem(path, "not a key: no base64", None, expected, hint)
        return
    if length != _KEY_BYTES:
        yield Problem(path, f"not a key: {length} bytes", None, expected, hint)


def _set_aside_once(those: Sequence[Plain]) -> Iterator[Problem]:
    seen: set[tuple[str, str]] = set()
    for number, one in enumerate(those):
        key = (one["run"], one["test"])
        if key in seen:
            yield Problem(
                ("set_aside", number), "set aside twice", f"{one['test']} of run {one['run']}"
            )
        seen.add(key)
