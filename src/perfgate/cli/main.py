"""The `perfgate` command: scenarios, forecasts, baselines, verdicts for numbers from anywhere.

Measuring is pytest's work (`pytest -m local`); none of these commands starts an engine.
"""

import argparse
import importlib
import sys
import traceback
from collections.abc import Sequence

from perfgate import __doc__ as purpose
from perfgate.cli.command_parser import CommandParser, PrintCompletion, PrintVersion, verb_first
from perfgate.core.errors import PerfgateError
from perfgate.core.files.durable_files import cannot_write, is_unwritable
from perfgate.core.files.paths import packaged
from perfgate.core.output_stream import standard_streams
from perfgate.runs.exit_status import ExitStatus

# Command → what it is for. The module or package of that name in perfgate.cli adds its options and
# runs it; only the chosen one is imported, so that --help is quick.
COMMANDS = {
    "init": "lay out a gate repository for your baselines and scenarios",
    "scenarios": "list, show and validate scenarios; their commands",
    "plan": "forecast what a gate detects and costs, before GPU time is spent",
    "baseline": "list, show, compare, record, promote and retire baselines",
    "judge": "judge numbers of any source, given as options or JSON lines",
    "compare": "judge two runs, baselines or results of other tools",
    "report": "report one run, or several merged, with one exit status",
    "release": "compare runs with a release policy; pack, sign and verify the evidence",
    "ci": "print jobs, decisions and GitLab's child pipeline, for CI",
    "doctor": "check what this machine can run, and whether it is fit",
    "parse": "read results of benchmarks and evaluations, or the log of a failed run",
}

WRONG_USAGE = 2
INTERRUPTED = 130  # as shells call it when Ctrl-C ended a program

_EPILOG = """\
the suite itself is run with pytest:
  pytest -m local                    what every machine can run
  pytest -m "b200 and throughput"    what scenarios are marked with
  pytest --gate -m h200              for a release: no verdict is a failure

--format, --scenarios and --import may also stand before the command: perfgate --format json plan

exit status: 0 done; 1 the answer is no (doctor: a scenario cannot run here, a check failed;
parse: a file holds no usable result; judge, compare: a regression);
2 wrong usage or unusable input; 15 perfgate itself failed: a bug, nothing is claimed; 16 standard
output, or a file, could not be written: closed, full, read-only …; 130 interrupted. judge and
compare also have 10 undecided, compare 11 a failed probe and 13 numbers of mocks, compare and
plan 12 something got no verdict. All, with those of a pytest run: docs/reference/verdicts.md

the documents that are named docs/...: {docs}
"""


def parser(words: Sequence[str], *, whole: bool = False) -> argparse.ArgumentParser:
    """The command line, with the options of the command that `words` begin with.

    Args:
        words: the words of the command line.
        whole: with the options of all commands.
    """
    root = CommandParser(
        prog="perfgate",
        description=purpose,
        epilog=_EPILOG.format(docs=packaged() / "docs"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    root.add_argument(
        "--version", action=PrintVersion, help="print versions and places of perfgate and Python"
    )
    root.add_argument(
        "--print-completion",
        action=PrintCompletion,
        whole=lambda: parser((), whole=True),
        metavar="SHELL",
        help="print a completion script",
    )
    commands = root.add_subparsers(required=True, metavar="COMMAND")
    chosen = next((word for word in words if not word.startswith("-")), None)
    for name, help_line in COMMANDS.items():
        command = commands.add_parser(
            name, help=help_line, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        if whole or name == chosen:
            module = importlib.import_module(f"perfgate.cli.{name}")
            command.description = module.__doc__
            module.add_options(command)
    return root


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status.

    Raises:
        SystemExit: with the status that argparse gives to a help or to wrong usage.
    """
    words = verb_first(sys.argv[1:] if argv is None else argv)
    leaving: SystemExit | None = None
    with standard_streams() as (out, _):
        try:
            status = _status(words)
        except SystemExit as error:  # argparse, after a help or wrong usage
            leaving = error
        if problem := out.problem():
            print(f"perfgate: standard output cannot be written: {problem}", file=sys.stderr)
            return ExitStatus.UNWRITABLE
    if leaving is not None:
        raise leaving
    return status


def _status(words: Sequence[str]) -> int:
    """Run one command; what becomes of an error, whichever it is, is no verdict's status."""
    try:
        arguments = parser(words).parse_args(words)
        status: int = arguments.execute(arguments)
    except PerfgateError as error:
        print(f"perfgate: {error}", file=sys.stderr)
        return ExitStatus.UNWRITABLE if is_unwritable(error) else WRONG_USAGE
    except OSError as error:
        if is_unwritable(error):
            print(f"perfgate: {cannot_write(error.filename, error)}", file=sys.stderr)
            return ExitStatus.UNWRITABLE
        if error.filename is None:
            return _internal_error(error)
        # Not expected where it happened, but no bug: a right, a device, a path.
        print(f"perfgate: {error.filename}: {error.strerror}", file=sys.stderr)
        return WRONG_USAGE
    except KeyboardInterrupt:
        print("\nperfgate: interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        return _internal_error(error)
    return status


def _internal_error(error: Exception) -> int:
    """Say that perfgate has a bug, and where; to be called while `error` is handled."""
    what = " ".join(f"{type(error).__name__}: {error}".split())
    print(
        f"perfgate: internal error: {what}; this is a bug of perfgate, nothing is claimed; "
        "the traceback follows",
        file=sys.stderr,
    )
    traceback.print_exception(error)
    return ExitStatus.INTERNAL_ERROR


if __name__ == "__main__":
    sys.exit(main())
