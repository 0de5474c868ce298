"""`perfgate judge`: a verdict for numbers from anywhere, by the rule of the gate.

With --metric one judgement of the values given as options. Without it JSON lines on standard
input, {"metric", "baseline": […], "new": […]} and perhaps "band", "sigma", "max_runs",
"questions", "sessions", "controls"; each is answered by one JSON line, at once.

Exit status: 0 every verdict is PASS or IMPROVEMENT; 2 something could not be judged; else 1 a
REGRESSION, or 10 an INCONCLUSIVE. docs/reference/judge.md
"""

import argparse
import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from perfgate.cli.output import add_format, json_text, print_json
from perfgate.core.errors import InputError
from perfgate.core.verdict import Judgement, Verdict
from perfgate.judging.comparison.numbers import (
    FIELDS,
    LARGEST_LINE,
    REQUIRED,
    NumberTest,
    answer,
    judge_question,
    read_fields,
    read_question,
)
from perfgate.reports.outcome_text import table
from perfgate.runs.exit_status import exit_status

_INPUT = Path("<standard input>")
_UNJUDGED = 2


def add_options(command: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    add = command.add_argument
    add("--metric", help="canonical name; without it JSON lines are read from standard input")
    add("--baseline", metavar="X,…", help="accepted values, one per fresh start")
    add("--new", metavar="X,…", help="new values, one per fresh start, in the order measured")
    add("--band", metavar="B", help="the loss that counts, e.g. 0.02 (default: the metric's own)")
    add("--sigma", metavar="S", help="noise of one run, e.g. 0.005 (default: the metric's own)")
    add("--max-runs", metavar="N", help="new values that may be used, at most (default: 5)")
    add("--questions", metavar="N", help="of an accuracy: the questions behind each value")
    add(
        "--sessions", metavar="N", help="sessions behind the baseline (default: one for each value)"
    )
    add(
        "--controls",
        metavar="X,…",
        help="values of the baseline's build in the session of the new ones; none: it can be "
        "started, and was not yet",
    )
    add_format(command)
    command.set_defaults(execute=_run)


def _run(arguments: argparse.Namespace) -> int:
    given = {name: text for name in FIELDS if (text := getattr(arguments, name)) is not None}
    if "metric" not in given:
        return _judge_lines(given)
    judgement = judge_question(_question(given))
    if arguments.format == "json":
        print_json(answer(judgement))
    else:
        _print_text(judgement)
    return _status([judgement.verdict.value])


def _question(given: Mapping[str, str]) -> NumberTest:
    """The question that the options ask, read as if it were a line."""
    for name in REQUIRED:
        if name not in given:
            raise InputError(
                "the option is missing",
                field=_option(name),
                expected=f"{_option(name)} VALUE,…  beside --metric",
            )
    try:
        return read_fields({name: _plain(name, text) for name, text in given.items()})
    except InputError as error:
        error.field = _option(str(error.field))
        raise


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _plain(name: str, text: str) -> object:
    """The value that a line of JSON would have for an option's text."""
    if name == "metric":
        return text
    if name in ("max_runs", "questions", "sessions"):
        return int(text) if text.isascii() and text.isdigit() and len(text) <= 12 else text
    if name in ("band", "sigma"):
        return _number(name, text, "a number, e.g. 0.02")
    if name == "controls" and text == "none":
        return []
    several = "numbers with commas between them, e.g. 101,99.7,100.4"
    return [_number(name, part, several) for part in text.split(",")]


def _number(name: str, text: str, expected: str) -> float:
    """A float; what it must be, the gate says."""
    try:
        return float(text)
    except ValueError:
        raise InputError("not a number", field=name, found=repr(text), expected=expected) from None


def _print_text(judgement: Judgement) -> None:
    print(f"{judgement.verdict.value}: {judgement.metric} {judgement.reason}")
    for note in judgement.notes:
        print(f"  note: {note}")
    print(f"\n{table([judgement])}")


def _judge_lines(given: Mapping[str, str]) -> int:
    if given:
        name = next(iter(given))
        raise InputError(
            "the option needs --metric",
            field=_option(name),
            expected=f"--metric beside {_option(name)}, or the field {name} in each line of input",
        )
    if sys.stdin is not None and sys.stdin.isatty():
        print("perfgate judge: JSON lines from the keyboard, to its end (Ctrl-D)", file=sys.stderr)
    verdicts = []
    for one in _answers(_input_lines()):
        # At once: who asks may wait for this answer before asking on.
        print(json_text(one), flush=True)
        verdicts.append(str(one.get("verdict", "")))
    if not verdicts:
        raise InputError(
            "nothing to judge: the input has no line",
            file=_INPUT,
            expected='{"metric": …, "baseline": […], "new": […]}, one a line',
            hint="look at the program that should have written it, or give --metric",
        )
    return _status(verdicts)


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
                    expected=f"at most {LARGEST_LINE} bytes (docs/reference/limits.md)",
                )
            yield line
    except OSError as error:
        raise InputError("it cannot be read", file=_INPUT, found=error.strerror) from error


def _answers(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """One answer per line that is not blank; of a line that cannot be judged, its error."""
    for number, raw in enumerate(lines, start=1):
        try:
            text = raw.decode().removeprefix("\ufeff")
            if text.strip():
                yield answer(judge_question(read_question(text)))
            continue
        except UnicodeDecodeError:
            wrong = InputError("the line is not UTF-8 text")
        except InputError as error:
            wrong = error
        wrong.file, wrong.line = _INPUT, number
        yield {"error": str(wrong), "line": number}


def _status(verdicts: Iterable[str]) -> int:
    """The worst first; a line without a verdict outweighs all: not everything was judged."""
    seen = set(verdicts)
    if "" in seen:
        return _UNJUDGED
    return exit_status([Verdict(one) for one in seen], gate=True).value
