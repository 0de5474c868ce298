"""The verbs of `perfgate release`; a refusal ends each with a status of its own."""

import argparse
import functools
import inspect
import sys
from collections.abc import Callable

from perfgate.cli.output import verb_maker
from perfgate.cli.release.check import add_check
from perfgate.cli.release.pack import add_pack
from perfgate.cli.release.signature import add_keygen, add_sign, add_verify
from perfgate.release.release_status import ReleaseRefused

Verb = Callable[[argparse.Namespace], int]

# Verb → what adds its options and gives what runs it; what the verb is for.
_VERBS: dict[str, tuple[Callable[[argparse.ArgumentParser], Verb], str]] = {
    "check": (add_check, "compare runs with a release policy"),
    "pack": (add_pack, "collect the evidence of a release in one file that shows changes"),
    "keygen": (add_keygen, "make a pair of keys to sign releases with"),
    "sign": (add_sign, "compute again what a pack shows, and sign that"),
    "verify": (add_verify, "check a signed pack: bytes, signer, verdicts, result, age"),
}


def add_options(command: argparse.ArgumentParser) -> None:
    """Add this command's verbs; the help of each is the docstring of what runs it."""
    make = verb_maker(command)
    for name, (add_verb, summary) in _VERBS.items():
        verb = make(name, summary)
        execute = add_verb(verb)
        verb.description = inspect.getdoc(execute)
        verb.set_defaults(execute=_with_its_status(execute))


def _with_its_status(execute: Verb) -> Verb:
    """The verb, with a refusal reported by the status of its own."""

    @functools.wraps(execute)
    def run(arguments: argparse.Namespace) -> int:
        try:
            return execute(arguments)
        except ReleaseRefused as refused:
            print(f"perfgate: {refused}", file=sys.stderr)
            return refused.status.value

    return run
