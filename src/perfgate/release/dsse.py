"""DSSE: envelopes of signed statements, written and strictly read. Pure.

Source: github.com/secure-systems-lab/dsse, `protocol.md` and `envelope.md`, version 1.0.2. Stricter
than those ask for: one spelling of base64, no unknown fields, no field twice.
"""

import base64
import binascii
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from perfgate.core.json_text import JsonError, parse
from perfgate.release.keys import is_signed, key_id

PAYLOAD_TYPE = "application/vnd.in-toto+json"
MOST_SIGNATURES = 16
_LARGEST = 16 * 2**20  # bytes, as of an attestation
_SIGNATURE_BYTES = 64  # RFC 8032, section 5.1.6


class BadEnvelope(ValueError):
    """What was read is no envelope of an in-toto statement."""


@dataclass(frozen=True)
class Envelope:
    """A payload with what is said to be signatures of it.

    Attributes:
        payload: bytes of the statement.
        signatures: 64 bytes each. Whose each is, only the keys can tell.
    """

    payload: bytes
    signatures: tuple[bytes, ...]

    def signer(self, keys: Iterable[Ed25519PublicKey]) -> Ed25519PublicKey | None:
        """The first of these keys that signed the payload; None: none did."""
        message = pae(PAYLOAD_TYPE, self.payload)
        for key in keys:
            if any(is_signed(key, one, message) for one in self.signatures):
                return key
        return None


def pae(payload_type: str, payload: bytes) -> bytes:
    """The bytes that are signed: pre-authentication encoding of `protocol.md`.

    Args:
        payload_type: of what kind the payload is.
        payload: the statement.
    """
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def envelope_text(payload: bytes, keys: Sequence[Ed25519PrivateKey]) -> bytes:
    """An envelope of a payload, signed by each of the keys; the same input gives the same bytes."""
    message = pae(PAYLOAD_TYPE, payload)
    plain = {
        "payload": _base64(payload),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [
            {"keyid": key_id(key.public_key()), "sig": _base64(key.sign(message))} for key in keys
        ],
    }
    return (json.dumps(plain, indent=1, sort_keys=True) + "\n").encode()


def read_envelope(content: bytes) -> Envelope:
    """An envelope, not yet held against any key.

    Raises:
        BadEnvelope: it is none, in one sentence.
    """
    try:
        plain: Any = parse(content, limit=_LARGEST, own=True)
    except JsonError as error:
        raise BadEnvelope(f"it {error.problem}") from error
    if not isinstance(plain, dict) or set(plain) != {"payload", "payloadType", "signatures"}:
        raise BadEnvelope("it has not exactly payload, payloadType and signatures")
    if plain["payloadType"] != PAYLOAD_TYPE:
        raise BadEnvelope(f"its payloadType is not {PAYLOAD_TYPE}")
    signatures = plain["signatures"]
    if not isinstance(signatures, list) or not 0 < len(signatures) <= MOST_SIGNATURES:
        raise BadEnvelope(f"it has not 1 to {MOST_SIGNATURES} signatures")
    return Envelope(_bytes(plain["payload"], "payload"), tuple(map(_signature, signatures)))


def _signature(plain: Any) -> bytes:
    if not isinstance(plain, dict) or not {"sig"} <= set(plain) <= {"keyid", "sig"}:
        raise BadEnvelope("a signature has not exactly keyid and sig")
    found = _bytes(plain["sig"], "sig")
    if len(found) != _SIGNATURE_BYTES:
        raise BadEnvelope(f"a signature has {len(found)} bytes, not {_SIGNATURE_BYTES}")
    return found


def _bytes(text: Any, field: str) -> bytes:
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise BadEnvelope(f"its {field} is not base64") from error
    if _base64(found) != text:
        raise BadEnvelope(f"its {field} is not base64 as it is written, with nothing left over")
    return found


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
