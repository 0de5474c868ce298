"""`perfgate release verify`: whether a signed pack holds (docs/reference/release.md).

Holds every byte against the manifest and the signatures against the keys that you trust; computes
every verdict anew from the raw files, and from those the result; compares that with the signed
one. Whom to trust comes from --key, or from the signers of --policy; never from the pack.

exit status: 0 it holds, PASSED or WARNED; 1 and 21 it holds, and the release failed; 2 unusable
input; 24 a time to come; 25 damaged; 26 of another form or rule; 27 no signature of a known signer;
28 no public key; 29 the raw files, or the statement, give another result; 30 of another build,
policy, artifact or suite than asked for; 31 a waiver has ended, or the evidence is too old
"""

import argparse
import re
from datetime import UTC, datetime
from pathlib import Path

from perfgate.cli.output import add_format, described, print_json, print_table
from perfgate.cli.release_check import suite_tests_of, time_option
from perfgate.cli.scenario_choice import add_import
from perfgate.core.plain import to_plain
from perfgate.core.redaction import visible
from perfgate.release.keys import key_id, read_public_key
from perfgate.release.pack_archive import Pack, open_pack
from perfgate.release.policy import load_policy
from perfgate.release.release_check import status_of
from perfgate.release.verification import Asked, Verified, verify

_COMMIT = re.compile(r"[0-9a-f]{12,64}")
_SUBJECT = re.compile(r"(.{1,200})=sha256:([0-9a-f]{64})")
_HELP = {
    "pack": "what perfgate release sign wrote",
    "--key": "public key of a signer; may be given again",
    "--policy": "the policy that it must have been held against; its signers are trusted, too",
    "--commit": "the commit that it must be about, 12 or more digits",
    "--subject": "an artifact that it must be about; may be given again",
    "--scenarios": "folder of your scenario files, which must require the same; may be given again",
    "--at": "the time of the release, to verify one of the past (default: now)",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    add = described(parser, _HELP)
    add("pack", type=Path, metavar="PACK")
    add("--key", type=Path, metavar="KEY.pub", action="append", default=[])
    add("--policy", type=Path, metavar="FILE")
    add("--commit", type=commit, metavar="SHA")
    add("--subject", type=subject, metavar="NAME=sha256:HEX", action="append", default=[])
    add("--scenarios", metavar="FOLDER", action="append")
    add("--at", type=time_option, metavar="TIME")
    add_format(parser)
    add_import(parser)
    parser.set_defaults(execute=_verify)


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
