"""`perfgate judge`: a verdict for numbers from anywhere, by the rule of the gate.

With --metric one judgement of the values given as options. Without it JSON lines on standard
input, {"metric", "baseline": […], "new": […]} and perhaps "band", "sigma", "max_runs",
"questions", "sessions", "controls"; each is answered by one JSON line, at once.

Exit status: 0 every verdict is PASS or IMPROVEMENT; 2 something could not be judged; else 1 a
REGRESSION, or 10 an INCONCLUSIVE. docs/reference/compare.md
"""

import argparse
import itertools
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from perfgate.cli.output import add_format, json_text, print_json
from perfgate.core.errors import InputError
from perfgate.core.verdict import Judgement, Verdict
from perfgate.judging.comparison.numbers import (
    FIELDS,
    LARGEST_LINE,
    LISTS,
    answer,
    judge_numbers,
    read_fields,
    read_line,
)
from perfgate.reports.outcome_text import table
from perfgate.runs.exit_status import exit_status

_INPUT = Path("<standard input>")
_UNJUDGED = 2


def add_options(command: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    add = command.add_argument
    add("--metric", help="canonical name (default: read JSON lines from standard input)")
    add("--baseline", metavar="X,…", help="accepted values, one per fresh start")
    add("--new", metavar="X,…", help="new values, one per fresh start, in order")
    add("--band", metavar="B", help="the loss that counts, e.g. 0.02 (default: the metric's own)")
    add("--sigma", metavar="S", help="noise of one run, e.g. 0.005 (default: the metric's own)")
    add("--max-runs", metavar="N", help="most new values to use (default: 5)")
    add("--questions", metavar="N", help="accuracy: questions behind each value")
    add(
        "--sessions", metavar="N", help="sessions behind the baseline (default: one for each value)"
    )
    add(
        "--controls",
        metavar="X,…",
        help="values of the baseline's build in this session; none: not started",
    )
    add_format(command)
    command.set_defaults(execute=_run)


def _run(arguments: argparse.Namespace) -> int:
    given = {name: text for name in FIELDS if (text := getattr(arguments, name)) is not None}
    if "metric" not in given:
        return _judge_lines(given)
    judgement = _judge_options(given)
    if arguments.format == "json":
        print_json(answer(judgement))
    else:
        print(f"{judgement.verdict.value}: {judgement.metric} {judgement.reason}")
        for note in judgement.notes:
            print(f"  note: {note}")
        print(f"\n{table([judgement])}")
    return exit_status([judgement.verdict], gate=True).value


def _judge_options(given: Mapping[str, str]) -> Judgement:
    """The judgement of the options' values, read as if they were a line."""
    fields: dict[str, object] = {**given}
    for name in LISTS:
        if text := given.get(name):
            fields[name] = [] if text == "none" else [part.strip() for part in text.split(",")]
    try:
        return judge_numbers(read_fields(fields, are_texts=True))
    except InputError as error:
        error.field = error.field and _option(error.field)
        raise


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _judge_lines(given: Mapping[str, str]) -> int:
    """Answer each line of standard input; the worst status, a line without a verdict above all."""
    if given:
        name = next(iter(given))
        raise InputError(
            "the option needs --metric",
            field=_option(name),
            expected=f"--metric beside {_option(name)}, or the field {name} in each line of input",
        )
    if sys.stdin is not None and sys.stdin.isatty():
        print("perfgate judge: JSON lines from the keyboard, to its end (Ctrl-D)", file=sys.stderr)
    verdicts = set[Verdict | None]()
    for number, line in enumerate(_input_lines(), start=1):
        if not line.strip():
            continue
        try:
            judgement = judge_numbers(read_line(line))
        except InputError as error:
            error.file, error.line = _INPUT, number
            verdict, plain = None, {"error": str(error), "line": number}
        else:
            verdict, plain = judgement.verdict, answer(judgement)
        # At once: the caller may wait for this answer before it sends the next line.
        print(json_text(plain), flush=True)
        verdicts.add(verdict)
    if not verdicts:
        raise InputError(
            "nothing to judge: the input has no line",
            file=_INPUT,
            expected='{"metric": …, "baseline": […], "new": […]}, one a line',
            hint="look at the program that should have written it, or give --metric",
        )
    return _UNJUDGED if None in verdicts else exit_status(verdicts, gate=True).value


def _input_lines() -> Iterator[bytes]:
    """The lines of standard input, as they come.

    Raises:
        InputError: it is closed, cannot be read, or a line of it has no end.
    """
    if sys.stdin is None:
        raise InputError("it is closed", file=_INPUT, hint="give --metric, or JSON lines")
    try:
        for number in itertools.count(1):
            line = sys.stdin.buffer.readline(LARGEST_LINE + 1)
            if not line:
                return
            if len(line) > LARGEST_LINE:
                raise InputError(
                    "the line is too large",
                    file=_INPUT,
                    line=number,
                    found=f"more than {LARGEST_LINE} bytes",
                    expected=f"at most {LARGEST_LINE} bytes (docs/reference/settings.md)",
                )
            yield line
    except OSError as error:
        raise InputError("it cannot be read", file=_INPUT, found=error.strerror) from error
