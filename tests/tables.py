"""Tables of like cases: one test tries every row and reports each failing row by its id."""

import functools
import inspect
import tomllib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet

Test = Callable[..., None]


def tables_of(name: str) -> dict[str, Any]:
    """The tables of tests/data/NAME.toml."""
    return tomllib.loads((Path(__file__).parent / "data" / f"{name}.toml").read_text("utf-8"))


def each(
    names: str | Sequence[str],
    rows: Iterable[Any],
    *,
    ids: Callable[[Any], object] | Iterable[str] | None = None,
) -> Callable[[Test], Test]:
    """Like `pytest.mark.parametrize`, but one pytest item: each row is a subtest of it.

    For rows that need no fixture of their own: fixtures are set up once for all rows. Only
    `tmp_path` is a new, empty folder for each row.

    Raises:
        ValueError: there are no rows, or a row has too few or too many values.
    """
    if isinstance(names, str):
        names = [name.strip() for name in names.split(",")]
    arguments = list(names)
    table = [_values(row, len(arguments)) for row in rows]
    if not table:
        raise ValueError(f"a table without rows: {names}")
    labels = _labels(table, ids)

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)
        inner = "subtests" in signature.parameters

        @functools.wraps(test)
        def over_all_rows(*args: object, subtests: pytest.Subtests, **fixtures: object) -> None:
            if inner:
                fixtures["subtests"] = subtests
            folder = fixtures.get("tmp_path")
            for number, (values, label) in enumerate(zip(table, labels, strict=True)):
                if isinstance(folder, Path):
                    fixtures["tmp_path"] = folder / f"row{number}"
                    (folder / f"row{number}").mkdir()
                with subtests.test(label):
                    test(*args, **dict(zip(arguments, values, strict=True)), **fixtures)

        left = [p for p in signature.parameters.values() if p.name not in (*arguments, "subtests")]
        own = inspect.Parameter("subtests", inspect.Parameter.KEYWORD_ONLY)
        over_all_rows.__signature__ = signature.replace(parameters=[*left, own])  # type: ignore[attr-defined]
        return over_all_rows

    return decorate


def _values(row: object, count: int) -> tuple[Any, ...]:
    values: tuple[Any, ...]
    if isinstance(row, ParameterSet):
        values = tuple(row.values)
    else:
        values = tuple(row) if count > 1 else (row,)  # type: ignore[arg-type]
    if len(values) != count:
        raise ValueError(f"a row of {len(values)} values for {count} arguments: {values!r}")
    return values


def _labels(
    table: list[tuple[Any, ...]], ids: Callable[[Any], object] | Iterable[str] | None
) -> list[str]:
    if ids is None:
        return [", ".join(map(repr, values))[:200] for values in table]
    if callable(ids):
        return [", ".join(str(ids(value)) for value in values) for values in table]
    return list(ids)
