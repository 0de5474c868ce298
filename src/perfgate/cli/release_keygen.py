"""`perfgate release keygen`: a pair of keys to sign releases with (docs/reference/release.md).

KEY is the private one, for its owner alone (mode 0600); KEY.pub the public one, for everybody. No
file is overwritten.

exit status: 0 written; 2 one of the files is there already, or cannot be written
"""

import argparse
from pathlib import Path

from perfgate.cli.output import described
from perfgate.core.redaction import visible
from perfgate.release.keys import as_policy_has_it, key_id, make_keys, public_path

_HELP = {"--output": "file of the private key; the public one gets .pub behind its name"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    add = described(parser, _HELP)
    add("--output", type=Path, metavar="KEY", required=True)
    parser.set_defaults(execute=_make)


def _make(arguments: argparse.Namespace) -> int:
    key = make_keys(arguments.output)
    print(visible(f"private key: {arguments.output} (mode 0600; hand it to nobody)"))
    print(visible(f"public key: {public_path(arguments.output)}"))
    print(f"key id: {key_id(key)}")
    print(f"in a policy, under signers: key: {as_policy_has_it(key)}")
    return 0
