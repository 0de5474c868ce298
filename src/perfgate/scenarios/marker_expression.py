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

Test = Callable[[Collection[str]], bool]

_TOKEN = re.compile(r"[ \t]*(?:(?P<paren>[()])|(?P<word>(?:\w|[-:+.\[\]\\/])+))")
_END = ""
_OPERATORS = frozenset({"and", "or", "not", "(", ")", _END})


@dataclass(frozen=True)
class MarkerExpression:
    """One parsed expression.

    Attributes:
        text: as it was written.
        names: every marker that it names.
    """

    text: str
    names: frozenset[str]
    _test: Test

    def matches(self, markers: Collection[str]) -> bool:
        """Whether something that has these markers, and no others, is selected."""
        return self._test(markers)


def parse(text: str) -> MarkerExpression:
    """Read an expression.

    Raises:
        InputError: it is malformed; the message shows the column.
    """
    parser = _Parser(text)
    try:
        test = parser.whole()
    except RecursionError:
        raise InputError(
            "marker expression nested too deeply", field="-m", found=f"{text[:60]}…"
        ) from None
    return MarkerExpression(text, frozenset(parser.names), test)


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


class _Parser:
    """Recursive descent, one method a rule of the grammar; each gives a test of markers."""

    def __init__(self, text: str) -> None:
        self.names: set[str] = set()
        self._text = text
        self._tokens = self._scan()
        self._column, self._token = next(self._tokens)

    def whole(self) -> Test:
        if self._token == _END:
            return lambda _: False
        test = self._any_of()
        self._require(_END, "and, or, or the end")
        return test

    def _any_of(self) -> Test:
        tests = [self._all_of()]
        while self._accept("or"):
            tests.append(self._all_of())
        return lambda markers: any(test(markers) for test in tests)

    def _all_of(self) -> Test:
        tests = [self._negation()]
        while self._accept("and"):
            tests.append(self._negation())
        return lambda markers: all(test(markers) for test in tests)

    def _negation(self) -> Test:
        if self._accept("not"):
            test = self._negation()
            return lambda markers: not test(markers)
        if self._accept("("):
            inner = self._any_of()
            self._require(")", "and, or, or a closing parenthesis")
            return inner
        return self._name()

    def _name(self) -> Test:
        name = self._token
        if name in _OPERATORS:
            raise self._malformed("a marker, not, or an opening parenthesis")
        self.names.add(name)
        self._advance()
        if self._token == "(":
            raise self._malformed(
                "no arguments: markers of scenarios have none", "select by the name alone"
            )
        return lambda markers: name in markers

    def _accept(self, token: str) -> bool:
        if self._token != token:
            return False
        self._advance()
        return True

    def _require(self, token: str, expected: str) -> None:
        if self._token != token:
            raise self._malformed(expected)
        if token != _END:
            self._advance()

    def _advance(self) -> None:
        self._column, self._token = next(self._tokens)

    def _scan(self) -> Iterator[tuple[int, str]]:
        """Column, counted from 1, and token; read as the grammar asks for them, the end last."""
        end = len(self._text.rstrip(" \t"))
        position = 0
        while position < end:
            found = _TOKEN.match(self._text, position)
            if found is None:
                rest = self._text[position:]
                self._column = position + len(rest) - len(rest.lstrip(" \t")) + 1
                raise self._malformed("a marker, and, or, not, or a parenthesis")
            yield found.end() - len(found[0].lstrip(" \t")) + 1, found[0].lstrip(" \t")
            position = found.end()
        yield len(self._text) + 1, _END

    def _malformed(self, expected: str, hint: str | None = None) -> InputError:
        at = self._text[self._column - 1 : self._column]
        found = repr(at) if at else "the end"
        return InputError(
            "malformed marker expression",
            field="-m",
            found=f"{found} at column {self._column}\n"
            f"    {self._text}\n    {' ' * (self._column - 1)}^",
            expected=expected,
            hint=hint,
        )
