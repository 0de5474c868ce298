"""`perfgate compare A B`: the gate's verdicts for two things that were measured.

A is the reference, B the new one. Each is a run folder, a baseline file, a result of another tool
(`perfgate parse` reads it), or a folder with several results of one program, one per fresh start.

Exit status: 0 all passed; 1 a regression; 2 wrong usage or unusable input; 10 undecided; 11 a probe
of one side failed; 12 something or all could not be compared; 13 numbers of mock programs, no
regression. docs/reference/compare.md
"""

import argparse
from functools import partial
from pathlib import Path

from perfgate.cli.output import add_format, answer, described
from perfgate.core.errors import InputError
from perfgate.core.metrics import lookup
from perfgate.judging.comparison.comparison import ComparisonOptions, compare
from perfgate.judging.comparison.sides import read_side
from perfgate.reports.comparison import plain, status_of, text

_HELP = {
    "a": "the reference",
    "b": "the new one",
    "--band": "loss that counts (default: the metric's own); repeatable",
    "--metric": "judge only these metrics (default: all with a band)",
    "--across": "facts that may differ, e.g. driver or gpus; scenario: match probes by label",
    "--probe": "only these probes, by name or label",
}


def add_options(command: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    add = described(command, _HELP)
    add("a", type=Path, metavar="A")
    add("b", type=Path, metavar="B")
    add("--band", action="append", default=[], metavar="METRIC=FRACTION")
    add("--metric", action="append", default=[], metavar="NAME,…")
    add("--across", action="append", default=[], metavar="FACT,…")
    add("--probe", action="append", default=[], metavar="NAME,…")
    add_format(command, markdown=True)
    command.set_defaults(execute=_run)


def _run(arguments: argparse.Namespace) -> int:
    options = ComparisonOptions(
        _bands(arguments.band),
        frozenset(_words("--across", arguments.across)),
        tuple(_words("--probe", arguments.probe)),
        tuple(_words("--metric", arguments.metric)),
    )
    result = compare(read_side(arguments.a), read_side(arguments.b), options)
    shown = partial(text, result, markdown=arguments.format == "markdown")
    return answer(arguments, plain(result), shown, status=status_of(result).value)


def _words(option: str, given: list[str]) -> list[str]:
    words = [word.strip() for names in given for word in names.split(",")]
    if not all(words):
        raise InputError("a name is empty", field=option, found=repr(",".join(given)))
    return words


def _bands(given: list[str]) -> dict[str, float]:
    bands: dict[str, float] = {}
    for word in given:
        metric, _, fraction = word.rpartition("=")
        lookup(metric)
        try:
            band = float(fraction)
        except ValueError:
            band = 0.0
        if not 0 < band < 1:
            raise InputError(
                f"the band of {metric} cannot be used",
                field="--band",
                found=repr(fraction),
                expected="METRIC=FRACTION with a fraction between 0 and 1, e.g. tpot_mean_ms=0.03",
            )
        if metric in bands:
            raise InputError("two bands for one metric", field="--band", found=metric)
        bands[metric] = band
    return bands
