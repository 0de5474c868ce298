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

# Each module of perfgate.cli adds its own parser and runs its own command; the modules
# import what they need when they run, so that --help is quick.
COMMANDS = ("scenarios", "plan", "baseline", "calibrate", "judge", "compare", "doctor", "parse")

WRONG_USAGE = 2

_EPILOG = """\
the suite itself is run with pytest:
  pytest -m local                    what every machine can run
  pytest -m "b200 and throughput"    what scenarios are marked with
  pytest --gate -m h200              for a release: no verdict is a failure

exit status: 0 done; 1 the answer is no (doctor: a scenario cannot run here, a check failed;
parse: a file holds no usable result; judge, compare: a regression; calibrate: no usable starts);
2 wrong usage or unusable input; judge, compare and plan also have some of those of a pytest run:
docs/verdicts.md
"""


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    root = argparse.ArgumentParser(
        prog="perfgate",
        description=purpose,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = root.add_subparsers(required=True, metavar="COMMAND")
    for name in COMMANDS:
        importlib.import_module(f"perfgate.cli.{name}").add_to(commands)
    return root


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    arguments = parser().parse_args(argv)
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
