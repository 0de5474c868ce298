"""Attested: the signed statements of a pack, believed only where a trusted key signed each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from perfgate.core.json_text import JsonError, parse
from perfgate.release.attestations import STATEMENT, TYPES
from perfgate.release.dsse import BadEnvelope, read_envelope
from perfgate.release.pack_layout import SUMMARY, TEST_RESULT
from perfgate.release.pack_reader import Pack
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus


@dataclass(frozen=True)
class Attested:
    """What trusted signers state of a pack.

    Attributes:
        statements: path in the pack → statement.
        signers: path in the pack → the key that signed it.
        created: `timeCreated` of the summary.
    """

    statements: Mapping[str, Mapping[str, Any]]
    signers: Mapping[str, Ed25519PublicKey]
    created: datetime

    @property
    def result(self) -> str:
        """The stated result."""
        return str(self.statements[TEST_RESULT]["predicate"].get("result"))


def read_attested(pack: Pack, keys: Sequence[Ed25519PublicKey]) -> Attested:
    """The statements of a pack, of this very manifest, each signed by one of these keys.

    Raises:
        ReleaseRefused: status SIGNATURE: a statement is missing, malformed, not signed by one of
            the keys, or of another pack.
    """
    statements: dict[str, Mapping[str, Any]] = {}
    signers: dict[str, Ed25519PublicKey] = {}
    for name, kind in TYPES.items():
        if name not in pack.attestations:
            raise _refused(
                pack, name, "the pack is not signed", hint="perfgate release sign signs it"
            )
        try:
            envelope = read_envelope(pack.attestations[name])
        except BadEnvelope as error:
            raise _refused(
                pack, name, "not a signed statement", found=str(error), expected="a DSSE envelope"
            ) from error
        signer = envelope.signer(keys)
        if signer is None:
            raise _refused(
                pack,
                name,
                "no signature of a known signer",
                found=f"{len(envelope.signatures)} signature(s), by none of the known keys",
                expected=f"a signature by one of {len(keys)} known key(s)",
                hint="have the signer's public key from the signer, not from whoever gave the pack",
            )
        statements[name] = _statement(pack, name, kind, envelope.payload)
        signers[name] = signer
    return Attested(statements, signers, _created(pack, statements[SUMMARY]))


def _statement(pack: Pack, name: str, kind: str, payload: bytes) -> Mapping[str, Any]:
    try:
        found: Any = parse(payload, own=True)
    except JsonError as error:
        raise _refused(pack, name, f"the statement {error.problem}") from error
    whole = isinstance(found, dict) and isinstance(found.get("predicate"), dict)
    if not whole or found.get("_type") != STATEMENT or found.get("predicateType") != kind:
        raise _refused(pack, name, "a statement of another kind", expected=kind)
    stated = found["predicate"].get("perfgate_manifest")
    if stated != {"sha256": pack.manifest_sha256}:
        other = found["predicate"].get("perfgate_release")
        raise _refused(
            pack,
            name,
            "the signature is of another pack: the signed manifest is not this one",
            found=f"a statement about release {str(other)[:100]}, manifest {str(stated)[:100]}",
            expected=f"release {pack.manifest.release}, manifest {pack.manifest_sha256}",
            hint="the pack was changed after it was signed, or a signature was put into it",
        )
    return dict(found)


def _created(pack: Pack, summary: Mapping[str, Any]) -> datetime:
    text = str(summary["predicate"].get("timeCreated"))
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise _refused(pack, SUMMARY, "timeCreated is no time", found=text[:60])
    return found


def _refused(pack: Pack, name: str, problem: str, **told: Any) -> ReleaseRefused:
    return ReleaseRefused(ReleaseStatus.SIGNATURE, problem, file=pack.path, field=name, **told)
