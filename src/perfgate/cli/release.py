"""`perfgate release`: hold runs against a policy, pack the evidence, sign it, verify it.

Each verb is a module of its own: `release_check`, …; docs/reference/release.md has their statuses.
"""

import argparse
import importlib
import sys
from collections.abc import Callable

from perfgate.release.release_status import ReleaseRefused

# Verb → what it is for. The module `release_<verb>` adds its options and runs it.
VERBS: dict[str, str] = {
    "check": "hold runs against a release policy: what is required, found, missing, why",
    "pack": "collect the evidence of a release in one file that tells its own tampering",
    "keygen": "make a pair of keys to sign releases with",
    "sign": "state what a pack shows, as computed anew from it, and sign that",
    "verify": "whether a signed pack holds: bytes, signer, verdicts, result, age",
}


def add_options(command: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    verbs = command.add_subparsers(required=True, metavar="VERB")
    for name, help_line in VERBS.items():
        verb = verbs.add_parser(
            name, help=help_line, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        module = importlib.import_module(f"perfgate.cli.release_{name}")
        verb.description = module.__doc__
        module.add_options(verb)
        verb.set_defaults(execute=_with_its_status(verb.get_default("execute")))


def _with_its_status(
    execute: Callable[[argparse.Namespace], int],
) -> Callable[[argparse.Namespace], int]:
    """The verb, with a refusal told by the status of its own."""

    def run(arguments: argparse.Namespace) -> int:
        try:
            return execute(arguments)
        except ReleaseRefused as refused:
            print(f"perfgate: {refused}", file=sys.stderr)
            return refused.status.value

    return run
