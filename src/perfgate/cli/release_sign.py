"""`perfgate release sign`: state what a pack shows, and sign it (docs/reference/release.md).

Every verdict is computed anew from the raw files, and the policy held against the runs again; what
that gives is signed, PASSED, WARNED or FAILED. No option states a result.

exit status: 0 signed, whatever the result; 2 unusable input; 21 no digest names what was measured;
24 the clock is before the runs' end; 25 the pack is damaged; 26 of another perfgate or rule; 27 the
policy does not name this signer; 28 the key cannot be used; 29 the raw files give other verdicts,
or the runs another report, certificate or script
"""

import argparse
import os
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from perfgate.cli.output import described
from perfgate.cli.scenario_choice import add_import
from perfgate.core.errors import InputError
from perfgate.core.redaction import visible
from perfgate.release.attestation import envelope, statement
from perfgate.release.keys import key_id, read_private_key
from perfgate.release.pack_archive import Pack, open_pack, with_attestation
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus
from perfgate.release.replay import replay
from perfgate.release.verification import require_signer

_HELP = {
    "pack": "what perfgate release pack wrote",
    "--key": "file of the private key, mode 0600",
    "--output": "the signed pack, a new file (default: PACK itself)",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this verb's options."""
    add = described(parser, _HELP)
    add("pack", type=Path, metavar="PACK")
    add("--key", type=Path, metavar="KEY", required=True)
    add("--output", type=Path, metavar="FILE.tar")
    add_import(parser)
    parser.set_defaults(execute=_sign)


def _sign(arguments: argparse.Namespace) -> int:
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
    again = replay(pack)
    if again.not_compared:
        raise _of_another_perfgate(pack)
    require_signer(again.check.policy, key.public_key(), file=arguments.key)
    now = datetime.now(UTC)
    _require_later(pack, now)
    signed = envelope(statement(pack, again.check, now), [key])
    with_attestation(pack, signed, target.resolve())
    print(
        visible(
            f"signed {target}: release {again.check.policy.release}, {again.check.result}, "
            f"{len(again.verdicts)} verdicts computed anew, by key {key_id(key.public_key())}"
        )
    )
    return 0


def _of_another_perfgate(pack: Pack) -> ReleaseRefused:
    packed_by = pack.manifest.perfgate
    return ReleaseRefused(
        ReleaseStatus.OTHER_VERSION,
        "another perfgate rendered the pack's reports and certificates, so they cannot be compared",
        file=pack.path,
        field="manifest.json: perfgate",
        found=packed_by,
        expected=version("perfgate"),
        hint=f"sign it with perfgate {packed_by}, or pack the runs again with this one",
    )


def _require_later(pack: Pack, now: datetime) -> None:
    if now < pack.manifest.ended_at:
        raise ReleaseRefused(
            ReleaseStatus.CLOCK,
            "the runs of the pack end at a time that is still to come",
            file=pack.path,
            found=pack.manifest.ended,
            expected=f"a time before now, {now.isoformat(timespec='seconds')}",
            hint="set the clock of this machine, or measure again where it was wrong",
        )
