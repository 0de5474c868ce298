"""How `perfgate baseline` shows what moved: tables for people, also as Markdown."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from perfgate.cli import output

if TYPE_CHECKING:
    from perfgate.baselines.difference import ProbeChanges

CHANGE_COLUMNS = ("probe", "metric", "unit", "before", "after", "change", "interval", "answers")


def add_format(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--format",
        choices=["text", "json", "markdown"],
        default="text",
        help="for people, for scripts, or for a comment on a change",
    )


def print_table(how: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table without its empty columns."""
    kept = [number for number, _ in enumerate(columns) if any(row[number] for row in rows)]
    shown = [[row[number] for number in kept] for row in (columns, *rows)]
    if how != "markdown":
        output.print_table(shown[0], shown[1:])
        return
    for number, row in enumerate(shown):
        print("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
        if number == 0:
            print("|" + "---|" * len(row))


def change_rows(probes: "Sequence[ProbeChanges]") -> list[tuple[str, ...]]:
    from perfgate.core.metrics import lookup
    from perfgate.reports.outcome_text import number

    return [
        (
            one.probe,
            one.metric,
            lookup(one.metric).unit,
            number(one.before),
            number(one.after),
            signed(one.metric, one.change),
            "-"
            if one.interval is None
            else " … ".join(signed(one.metric, bound) for bound in one.interval),
            "" if one.lost is None else f"{one.lost} lost, {one.gained} gained",
        )
        for probe in probes
        for one in probe.metrics
    ]


def signed(metric: str, value: float | None) -> str:
    """A change as a signed percentage; of an accuracy as points."""
    from perfgate.core.metrics import is_accuracy

    if value is None:
        return "-"
    return f"{round(100 * value, 1) + 0.0:+.1f} {'points' if is_accuracy(metric) else '%'}"
