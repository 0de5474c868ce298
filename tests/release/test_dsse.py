"""DSSE envelopes: the published vector, several signatures, and everything that is none."""

import base64
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tables import each

from perfgate.release.dsse import (
    MOST_SIGNATURES,
    BadEnvelope,
    envelope_text,
    pae,
    read_envelope,
)

KEY, OTHER = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
PUBLIC, OTHERS = KEY.public_key(), OTHER.public_key()


def test_what_is_signed_is_as_the_protocol_has_it() -> None:
    # protocol.md, "Test Vectors"; lengths are those of bytes.
    expected = b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    assert pae("http://example.com/HelloWorld", b"hello world") == expected
    assert pae("é", b"") == b"DSSEv1 2 \xc3\xa9 0 "


def test_any_signature_of_a_known_key_counts() -> None:
    envelope = read_envelope(envelope_text(b"{}", [OTHER, KEY]))
    assert envelope.payload == b"{}"
    assert envelope.signer([PUBLIC]) is PUBLIC
    assert envelope.signer([OTHERS]) is OTHERS
    assert envelope.signer([]) is None
    assert read_envelope(envelope_text(b"{}", [OTHER])).signer([PUBLIC]) is None


def test_the_name_of_a_key_proves_nothing() -> None:
    plain = json.loads(envelope_text(b"{}", [OTHER]))
    plain["signatures"][0]["keyid"] = json.loads(envelope_text(b"", [KEY]))["signatures"][0][
        "keyid"
    ]
    assert read_envelope(json.dumps(plain).encode()).signer([PUBLIC]) is None


def test_the_same_input_gives_the_same_envelope() -> None:
    assert envelope_text(b"{}", [KEY]) == envelope_text(b"{}", [KEY])


@each(
    ("changes", "told"),
    [
        ({"extra": 1}, "not exactly"),
        ({"payloadType": "text/plain"}, "payloadType is not"),
        ({"payload": "e30"}, "not base64"),
        ({"payload": "e31="}, "not base64"),
        ({"payload": "e3 0="}, "not base64"),
        ({"payload": 1}, "not base64"),
        ({"payload": ["e30="]}, "not base64"),
        ({"signatures": []}, "1 to 16"),
        ({"signatures": [{}] * (MOST_SIGNATURES + 1)}, "1 to 16"),
        ({"signatures": [{"sig": "e30="}]}, "2 bytes, not 64"),
        ({"signatures": [{"sig": "e30=", "cert": ""}]}, "not exactly keyid and sig"),
        ({"signatures": ["x"]}, "not exactly keyid and sig"),
    ],
)
def test_what_is_no_envelope_is_refused(changes: dict[str, Any], told: str) -> None:
    plain = {**json.loads(envelope_text(b"{}", [KEY])), **changes}
    with pytest.raises(BadEnvelope, match=told):
        read_envelope(json.dumps(plain).encode())


def test_a_field_twice_and_two_documents_are_refused() -> None:
    text = envelope_text(b"{}", [KEY])
    twice = text.replace(b'"payload":', b'"payload": "e30=", "payload":', 1)
    for bad in (twice, text + text, b"", b"[]", b"\xff"):
        with pytest.raises(BadEnvelope):
            read_envelope(bad)


def test_a_changed_payload_is_not_signed() -> None:
    plain = json.loads(envelope_text(b'{"result":"FAILED"}', [KEY]))
    plain["payload"] = base64.b64encode(b'{"result":"PASSED"}').decode()
    assert read_envelope(json.dumps(plain).encode()).signer([PUBLIC]) is None
