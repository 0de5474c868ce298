"""`perfgate release keygen`, `sign`, `verify`: keys, and what is signed with them."""

import argparse
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from perfgate.cli.output import add_format, described, print_json, print_table
from perfgate.cli.release.check import suite_tests_of, time_option
from perfgate.cli.scenario_choice import add_import
from perfgate.core.errors import InputError
from perfgate.core.plain import to_plain
from perfgate.core.redaction import visible
from perfgate.release.keys import (
    as_policy_has_it,
    key_id,
    make_keys,
    public_path,
    read_private_key,
    read_public_key,
)
from perfgate.release.pack_archive import Pack, open_pack, with_attestation
from perfgate.release.policy import load_policy
from perfgate.release.release_check import status_of
from perfgate.release.verification import Asked, Verified, sign, verify

_COMMIT = re.compile(r"[0-9a-f]{12,64}")
_SUBJECT = re.compile(r"(.{1,200})=sha256:([0-9a-f]{64})")
_KEYGEN_HELP = {"--output": "file of the private key; the public one ends in .pub"}
_SIGN_HELP = {
    "pack": "output of perfgate release pack",
    "--key": "file of the private key, mode 0600",
    "--output": "signed pack, a new file (default: PACK)",
}
_VERIFY_HELP = {
    "pack": "output of perfgate release sign",
    "--key": "public key of a signer; repeatable",
    "--policy": "required policy; its signers are trusted, too",
    "--commit": "required commit, 12 or more digits",
    "--subject": "required artifact; repeatable",
    "--scenarios": "your scenario files, which must require the same; repeatable",
    "--at": "time of a past release (default: now)",
}


def add_keygen(parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], int]:
    """Add the options of `keygen`; gives what runs it."""
    add = described(parser, _KEYGEN_HELP)
    add("--output", type=Path, metavar="KEY", required=True)
    return _keygen


def _keygen(arguments: argparse.Namespace) -> int:
    """`perfgate release keygen`: a pair of keys to sign releases with (docs/reference/release.md).

    KEY is the private one, for its owner alone (mode 0600); KEY.pub the public one, for everybody.
    No file is overwritten.

    exit status: 0 written; 2 one of the files is there already, or cannot be written
    """
    key = make_keys(arguments.output)
    print(visible(f"private key: {arguments.output} (mode 0600; hand it to nobody)"))
    print(visible(f"public key: {public_path(arguments.output)}"))
    print(f"key id: {key_id(key)}")
    print(f"in a policy, under signers: key: {as_policy_has_it(key)}")
    return 0


def add_sign(parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], int]:
    """Add the options of `sign`; gives what runs it."""
    add = described(parser, _SIGN_HELP)
    add("pack", type=Path, metavar="PACK")
    add("--key", type=Path, metavar="KEY", required=True)
    add("--output", type=Path, metavar="FILE.tar")
    add_import(parser)
    return _sign


def _sign(arguments: argparse.Namespace) -> int:
    """`perfgate release sign`: state what a pack shows, and sign it (docs/reference/release.md).

    Every verdict is computed again from the raw files, and the policy held against the runs again;
    what that gives is signed, PASSED, WARNED or FAILED. No option states a result.

    exit status: 0 signed, whatever the result; 2 unusable input; 21 no digest names what was
    measured; 24 the clock is before the runs' end; 25 the pack is damaged; 26 of another perfgate;
    27 the policy does not name this signer; 28 the key cannot be used; 29 the raw files
    give other verdicts, or the runs another report, certificate or script
    """
    key = read_private_key(arguments.key)
    target: Path = arguments.output or arguments.pack
    if arguments.output is not None and os.path.lexists(target):
        raise InputError(
            "there is a file already",
            file=target,
            field="--output",
            expected="a new file; without --output, PACK itself is signed",
        )
    pack = open_pack(arguments.pack)
    again, attestation = sign(pack, key, arguments.key, datetime.now(UTC))
    with_attestation(pack, attestation, target.resolve())
    print(
        visible(
            f"signed {target}: release {again.check.policy.release}, {again.check.result}, "
            f"{len(again.verdicts)} verdicts computed again, by key {key_id(key.public_key())}"
        )
    )
    return 0


def add_verify(parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace], int]:
    """Add the options of `verify`; gives what runs it."""
    add = described(parser, _VERIFY_HELP)
    add("pack", type=Path, metavar="PACK")
    add("--key", type=Path, metavar="KEY.pub", action="append", default=[])
    add("--policy", type=Path, metavar="FILE")
    add("--commit", type=commit, metavar="SHA")
    add("--subject", type=subject, metavar="NAME=sha256:HEX", action="append", default=[])
    add("--scenarios", metavar="FOLDER", action="append")
    add("--at", type=time_option, metavar="TIME")
    add_format(parser)
    add_import(parser)
    return _verify


def commit(text: str) -> str:
    """A commit.

    Raises:
        ArgumentTypeError: it is none, or too short.
    """
    if not _COMMIT.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"not a commit: {text!r}; write 12 to 64 of its digits, 0-9a-f"
        )
    return text


def subject(text: str) -> tuple[str, str]:
    """Name and SHA-256 of an artifact.

    Raises:
        ArgumentTypeError: it is not of that form.
    """
    found = _SUBJECT.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"not NAME=sha256:HEX with 64 digits: {text!r}")
    return found[1], found[2]


def _verify(arguments: argparse.Namespace) -> int:
    """`perfgate release verify`: whether a signed pack holds (docs/reference/release.md).

    Holds every byte against the manifest and the signatures against the keys that you trust;
    computes every verdict again from the raw files, and from those the result; compares that with
    the signed one. Whom to trust comes from --key, or from the signers of --policy; never from the
    pack.

    exit status: 0 it holds, PASSED or WARNED; 1 and 21 it holds, and the release failed; 2 unusable
    input; 24 a time to come; 25 damaged; 26 of another perfgate; 27 no signature of a known
    signer; 28 no public key; 29 the raw files, or the statement, give another result; 30 of another
    build, policy, artifact or suite than asked for; 31 a waiver has ended, or the evidence is too
    old
    """
    asked = Asked(
        datetime.now(UTC),
        tuple(map(read_public_key, arguments.key)),
        None if arguments.policy is None else load_policy(arguments.policy),
        arguments.commit or "",
        dict(arguments.subject),
        arguments.at,
        suite_tests_of(arguments.scenarios) if arguments.scenarios else None,
    )
    pack = open_pack(arguments.pack)
    found = verify(pack, asked)
    if arguments.format == "json":
        print_json(_plain(pack, found))
    else:
        print(visible(f"release {found.replayed.check.policy.release}"))
        print_table(("what", "found"), [tuple(map(visible, row)) for row in found.rows])
        for note in found.notes:
            print(visible(note))
    return status_of(found.replayed.check).value


def _plain(pack: Pack, found: Verified) -> object:
    verdicts = found.replayed.verdicts
    return {
        "release": found.replayed.check.policy.release,
        "result": found.replayed.check.result,
        "status": status_of(found.replayed.check).value,
        "manifest_sha256": pack.manifest_sha256,
        "policy_sha256": found.replayed.check.policy.sha256,
        "required_sha256": found.replayed.check.required_sha256,
        "signed": found.attested.signed_at.isoformat(),
        "signers": [key_id(found.attested.signer)],
        "files": len(pack.manifest.files),
        "verdicts": len(verdicts),
        "verdicts_recomputed": sum(one.verdict is not None for one in verdicts),
        "metrics_recomputed": sum(one.metrics for one in verdicts),
        "verified": [{"what": what, "found": told} for what, told in found.rows],
        "notes": list(found.notes),
        "tests": to_plain(
            [
                {"test": one.test, "finding": one.finding, "effect": one.effect}
                for one in found.replayed.check.tests
            ]
        ),
    }
