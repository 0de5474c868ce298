"""`perfgate parse`: what the output of a benchmark says, as JSON; why, if it says nothing usable.

Exit status: 0 every file holds a result, 1 at least one does not, 2 wrong usage.
docs/reference/parse.md
"""

import argparse
from pathlib import Path

from perfgate.cli.output import print_json
from perfgate.evaluators.result_formats import parse_file


def add_options(command: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    command.add_argument("file", nargs="+", type=Path, help="a result or a log, text or JSON")
    command.add_argument(
        "--client",
        metavar="NAME",
        help="program that wrote it, e.g. trtllm-bench (default: detected)",
    )
    command.set_defaults(execute=_run)


def _run(arguments: argparse.Namespace) -> int:
    results = [parse_file(file, arguments.client) for file in arguments.file]
    if len(results) == 1:
        print_json(results[0].plain())
    else:
        files = zip(arguments.file, results, strict=True)
        print_json([{"file": str(file), **result.plain()} for file, result in files])
    return 0 if all(result.measurement for result in results) else 1
