"""The `perfgate` command: scenarios, forecasts, baselines, verdicts for numbers from anywhere.

Measuring is pytest's work (`pytest -m local`); of these commands only `calibrate` starts an engine.
"""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from perfgate import __doc__ as purpose
from perfgate.core.errors import PerfgateError

# Command → what it is for. The module of that name in perfgate.cli adds its options and runs it;
# only the chosen one is imported, so that --help is quick.
COMMANDS = {
    "init": "lay out a gate repository, for baselines and scenarios of your own",
    "scenarios": "list, show and validate scenarios; their commands",
    "plan": "what a gate could show and what it would cost, before GPU time is spent",
    "baseline": "list, show, compare, record, promote and retire baselines",
    "calibrate": "measure the noise of a scenario on this machine, for the gate to use",
    "judge": "a verdict for numbers from anywhere, given as options or as JSON lines",
    "compare": "the gate's verdicts for two runs, baselines or results of other tools",
    "doctor": "what this machine can run, and whether it is fit for it",
    "parse": "read results of benchmarks and evaluations, or the log of a failed run",
}

WRONG_USAGE = 2

_EPILOG = """\
the suite itself is run with pytest:
  pytest -m local                    what every machine can run
  pytest -m "b200 and throughput"    what scenarios are marked with
  pytest --gate -m h200              for a release: no verdict is a failure

exit status: 0 done; 1 the answer is no (doctor: a scenario cannot run here, a check failed;
parse: a file holds no usable result; judge, compare: a regression; calibrate: no usable starts);
2 wrong usage or unusable input; judge, compare and plan also have some of those of a pytest run:
docs/reference/verdicts.md
"""


def parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """The command line, with the options of the command that `words` begin with."""
    root = argparse.ArgumentParser(
        prog="perfgate",
        description=purpose,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = root.add_subparsers(required=True, metavar="COMMAND")
    chosen = next((word for word in words if not word.startswith("-")), None)
    for name, help_line in COMMANDS.items():
        command = commands.add_parser(
            name, help=help_line, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        if name == chosen:
            module = importlib.import_module(f"perfgate.cli.{name}")
            command.description = module.__doc__
            module.add_options(command)
    return root


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    words = sys.argv[1:] if argv is None else argv
    arguments = parser(words).parse_args(words)
    try:
        status: int = arguments.execute(arguments)
        sys.stdout.flush()
    except PerfgateError as error:
        print(f"perfgate: {error}", file=sys.stderr)
        return WRONG_USAGE
    except BrokenPipeError:
        # The reader has seen enough, as `| head` does; the interpreter flushes again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status


if __name__ == "__main__":
    sys.exit(main())
