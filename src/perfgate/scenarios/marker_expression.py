r"""Marker expression: what ``-m`` says, in the grammar that pytest documents for it.

::

    expression: expr? end
    expr:       and_expr ("or" and_expr)*
    and_expr:   not_expr ("and" not_expr)*
    not_expr:   "not" not_expr | "(" expr ")" | name
    name:       (\w|:|+|-|.|[|]|\|/)+

An empty expression matches nothing. ``True``, ``False`` and ``None`` are names like any other.
pytest's ``name(key=value)`` asks for a marker's arguments; those of scenarios have none, so it is
refused. Tests hold this module against pytest's own.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from perfgate.core.errors import InputError, PerfgateError, did_you_mean

_TOKEN = re.compile(r"([()]|(?:\w|[-:+.\[\]\\/])+)|[^ \t]")
_END = ""
_BINDS = {"(": 0, "or": 1, "and": 2, "not": 3}
_DEEPEST = 200  # what is open at once: pytest's own parser calls itself for each


@dataclass(frozen=True)
class MarkerExpression:
    """One parsed expression.

    Attributes:
        text: as it was written.
        names: every marker that it names.
    """

    text: str
    names: frozenset[str]
    _steps: tuple[str, ...]  # each operator behind what it is about

    def matches(self, markers: Collection[str]) -> bool:
        """Whether something that has these markers, and no others, is selected."""
        held: list[bool] = []
        for step in self._steps:
            if step == "not":
                held.append(not held.pop())
            elif step in _BINDS:
                right, left = held.pop(), held.pop()
                held.append(left and right if step == "and" else left or right)
            else:
                held.append(step in markers)
        return held == [True]


def parse(text: str) -> MarkerExpression:
    """Read an expression: an operator waits until one follows that binds less than it does.

    Raises:
        InputError: it is malformed; the message shows the column.
    """
    steps: list[str] = []
    waiting: list[str] = []
    before = "("
    for column, token in _tokens(text) if text.strip(" \t") else ():
        if before in _BINDS and token in ("not", "("):
            waiting.append(token)
        elif before in _BINDS:
            if token in (*_BINDS, ")", _END):
                raise _malformed(text, column, "a marker, not, or an opening parenthesis")
            steps.append(token)
        elif token in ("and", "or"):
            while waiting and _BINDS[waiting[-1]] >= _BINDS[token]:
                steps.append(waiting.pop())
            waiting.append(token)
        elif token == (")" if "(" in waiting else _END):
            while waiting and (last := waiting.pop()) != "(":
                steps.append(last)
        else:
            end = "a closing parenthesis" if "(" in waiting else "the end"
            asks = token == "(" and before != ")"  # for a marker's arguments
            expected = "no arguments: markers of scenarios have none" if asks else ""
            hint = "select by the name alone" if asks else None
            raise _malformed(text, column, expected or f"and, or, or {end}", hint)
        if len(waiting) > _DEEPEST:
            found = f"{text[:60]}…"
            raise InputError("marker expression nested too deeply", field="-m", found=found)
        before = token
    return MarkerExpression(text, frozenset(steps) - _BINDS.keys(), tuple(steps))


def named_in_expression(text: str) -> frozenset[str]:
    """The markers that an expression names; none of one that is empty or malformed."""
    try:
        return parse(text).names if text else frozenset()
    except InputError:
        return frozenset()


def unknown_markers(
    text: str, registered: Iterable[str], declared: Callable[[], Collection[str]]
) -> list[str]:
    """A line for each marker of an expression that neither pytest nor the suite knows.

    Args:
        text: what ``-m`` says; one that pytest refuses gives no line.
        registered: pytest's own lines, each a marker, its arguments and its meaning.
        declared: reads the markers of the suite; where these are unusable there is no line.
    """
    known = {line.partition(":")[0].partition("(")[0].strip() for line in registered}
    names = named_in_expression(text) - known
    try:
        known |= {*declared()} if names else set()
    except PerfgateError:
        return []  # told elsewhere
    return [
        f"-m: no marker {name} is known; "
        + (did_you_mean(name, known) or "`pytest --markers` lists those that are")
        for name in sorted(names - known)
    ]


def _tokens(text: str) -> Iterator[tuple[int, str]]:
    """Column, counted from 1, and token; the end last."""
    for found in _TOKEN.finditer(text):
        if found[1] is None:
            raise _malformed(text, found.start() + 1, "a marker, and, or, not, or a parenthesis")
        yield found.start() + 1, found[1]
    yield len(text) + 1, _END


def _malformed(text: str, column: int, expected: str, hint: str | None = None) -> InputError:
    at = text[column - 1 : column]
    found = f"{repr(at) if at else 'the end'} at column {column}\n"
    found += f"    {text}\n    {' ' * (column - 1)}^"
    problem = "malformed marker expression"
    return InputError(problem, field="-m", found=found, expected=expected, hint=hint)
