"""Attestation: what is stated of a pack, as one signed in-toto statement; written, read strictly.

Sources: github.com/in-toto/attestation, `spec/v1/statement.md`, `spec/v1/resource_descriptor.md`,
`spec/predicates/test-result.md` (v0.1); github.com/secure-systems-lab/dsse, `protocol.md` and
`envelope.md`, version 1.0.2. Stricter than those ask for: one spelling of base64, no unknown
fields, no field twice. Fields whose names begin with ``perfgate_`` are this program's own.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, get_args

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from msgspec import Meta, Struct

from perfgate.core.files.json_text import parse
from perfgate.release.check_result import ReleaseCheck
from perfgate.release.keys import is_signed, key_id
from perfgate.release.pack_archive import (
    LARGEST_ATTESTATION,
    MANIFEST,
    POLICY,
    Configuration,
    Pack,
    packed_json,
)
from perfgate.release.policy import EFFECTS, Effect, Subject
from perfgate.release.release_status import ReleaseStatus
from perfgate.release.run_evidence import moment

PAYLOAD_TYPE: Literal["application/vnd.in-toto+json"] = "application/vnd.in-toto+json"
MOST_SIGNATURES = 16
_STATEMENT = "https://in-toto.io/Statement/v1"
_TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")  # SHA-1, SHA-256
_IMAGE = re.compile(r"(?:.*@)?sha256:([0-9a-f]{64})")


class _Signature(Struct, forbid_unknown_fields=True):
    sig: Annotated[bytes, Meta(min_length=64, max_length=64)]  # RFC 8032, section 5.1.6
    keyid: str | msgspec.UnsetType = msgspec.UNSET


class _Envelope(Struct, forbid_unknown_fields=True):
    payload: bytes
    signatures: Annotated[list[_Signature], Meta(min_length=1, max_length=MOST_SIGNATURES)]
    payloadType: Literal["application/vnd.in-toto+json"]  # noqa: N815


@dataclass(frozen=True)
class Attested:
    """What a trusted signer states of a pack.

    Attributes:
        statement: as it was signed.
        signer: the key that signed it.
        signed_at: when, by the signer's clock.
    """

    statement: Mapping[str, Any]
    signer: Ed25519PublicKey
    signed_at: datetime

    @property
    def subjects(self) -> list[tuple[str, dict[str, str]]]:
        """Name and digests of each subject."""
        return [(one["name"], one["digest"]) for one in self.statement["subject"]]


def statement(pack: Pack, check: ReleaseCheck, at: datetime) -> dict[str, Any]:
    """What is stated of a pack.

    Args:
        pack: the pack.
        check: its policy held against its runs, at the time of its manifest.
        at: when it is signed.

    Raises:
        ReleaseRefused: status INCOMPLETE: no digest names what was measured.
    """
    tests = _tests_by_effect(check)
    return {
        "_type": _STATEMENT,
        "subject": [
            {"name": subject.name, "digest": dict(subject.digest)} for subject in subjects(check)
        ],
        "predicateType": _TEST_RESULT,
        "predicate": {
            "result": check.result,
            "configuration": list(_configuration(pack, check)),
            "passedTests": tests["pass"],
            "warnedTests": tests["warn"],
            "failedTests": tests["fail"],
            "perfgate_release": check.policy.release,
            "perfgate_manifest": {"sha256": pack.manifest_sha256},
            "perfgate_checkedAt": pack.manifest.ended,
            "perfgate_signedAt": at.astimezone(UTC).isoformat(timespec="seconds"),
            "perfgate_counts": {
                "metrics": check.metrics_checked,
                "files": len(pack.manifest.files),
                "runs": len(pack.manifest.runs),
                "passed": len(tests["pass"]),
                "warned": len(tests["warn"]),
                "failed": len(tests["fail"]),
            },
        },
    }


def canonical(value: object) -> str:
    """JSON with sorted fields and no blanks: as a statement is signed, and compared."""
    return json.dumps(
        value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )


def envelope(stated: Mapping[str, Any], keys: Sequence[Ed25519PrivateKey]) -> bytes:
    """A statement signed by each of the keys; the same input gives the same bytes."""
    payload = canonical(stated).encode(errors="backslashreplace")
    message = pae(PAYLOAD_TYPE, payload)
    signatures = [_Signature(key.sign(message), key_id(key.public_key())) for key in keys]
    return packed_json(_Envelope(payload, signatures, PAYLOAD_TYPE)).encode()


def pae(payload_type: str, payload: bytes) -> bytes:
    """The bytes that are signed: pre-authentication encoding of `protocol.md`.

    Args:
        payload_type: of what kind the payload is.
        payload: the statement.
    """
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def read_attestation(pack: Pack, keys: Sequence[Ed25519PublicKey]) -> Attested:
    """The statement of a pack, of this very manifest, signed by one of these keys.

    Raises:
        ReleaseRefused: status SIGNATURE: it is missing, malformed, not signed by one of the keys,
            or of another pack.
    """
    if pack.attestation is None:
        raise ReleaseStatus.SIGNATURE.refusal("unsigned", file=pack.path)
    try:
        plain = parse(pack.attestation, limit=LARGEST_ATTESTATION, own=True)
        envelope = msgspec.convert(plain, _Envelope)
        if msgspec.to_builtins(envelope) != plain:
            raise ValueError("not base64 as it is written, with nothing left over")
    except (msgspec.MsgspecError, ValueError) as error:
        raise ReleaseStatus.SIGNATURE.refusal(
            "no_envelope", file=pack.path, found=str(error)
        ) from error
    message = pae(PAYLOAD_TYPE, envelope.payload)
    # A keyid decides nothing: anybody writes one.
    signed = [signature.sig for signature in envelope.signatures]
    signer = next(
        (key for key in keys if any(is_signed(key, one, message) for one in signed)), None
    )
    if signer is None:
        found = f"{len(signed)} signature(s), by none of the known keys"
        raise ReleaseStatus.SIGNATURE.refusal(
            "unknown_signer", file=pack.path, found=found, keys=len(keys)
        )
    try:
        stated: Any = parse(envelope.payload, own=True)
        predicate = stated["predicate"]
        kind, manifest = stated["predicateType"], predicate["perfgate_manifest"]["sha256"]
        attested = Attested(stated, signer, moment(predicate["perfgate_signedAt"]))
        if stated["_type"] != _STATEMENT or kind != _TEST_RESULT:
            raise ValueError(f"a statement of kind {str(kind)[:100]}")
        _ = [(str(name), dict(digest)) for name, digest in attested.subjects]
    except (LookupError, TypeError, ValueError) as error:
        raise ReleaseStatus.SIGNATURE.refusal(
            "no_statement", file=pack.path, found=str(error), expected=_TEST_RESULT
        ) from error
    if manifest != pack.manifest_sha256:
        other = str(predicate.get("perfgate_release"))[:100]
        raise ReleaseStatus.SIGNATURE.refusal(
            "other_manifest",
            file=pack.path,
            found=f"a statement about release {other}, manifest {str(manifest)[:100]}",
            expected=f"release {pack.manifest.release}, manifest {pack.manifest_sha256}",
        )
    return attested


def subjects(check: ReleaseCheck) -> tuple[Subject, ...]:
    """What is spoken of: the policy's subjects, and the builds that the runs recorded.

    Raises:
        ReleaseRefused: status INCOMPLETE: there is none with a digest.
    """
    wanted, found = check.policy.build, list(check.policy.subjects)
    builds = [test.result.build for test in check.tests if test.result and test.result.build]
    candidates = [*_subjects(wanted.engine, wanted.commit or "", wanted.image or "", "")]
    for build in builds:
        if build.name == wanted.engine:
            candidates += _subjects(build.name, build.commit, build.digest, build.image)
    for candidate in candidates:
        if not any(candidate.digest.items() <= other.digest.items() for other in found):
            found.append(candidate)
    if found:
        return tuple(found)
    builds_text = ", ".join(dict.fromkeys(one.description for one in builds)) or "no build"
    raise ReleaseStatus.INCOMPLETE.refusal("no_subject", found=builds_text)


def _subjects(name: str, commit: str, digest: str, image: str) -> Iterator[Subject]:
    """What a build is known by for sure: a whole commit, an image's digest."""
    if _COMMIT.fullmatch(commit):
        yield Subject(name, {"gitCommit": commit})
    if found := _IMAGE.fullmatch(digest):
        yield Subject(image or f"{name} image", {"sha256": found[1]})


def _tests_by_effect(check: ReleaseCheck) -> dict[Effect, list[str]]:
    """Effect → names of tests as ``scenario/probe``; of one that two parts require, the worst."""
    worst: dict[str, Effect] = {}
    for test in check.tests:
        name = f"{test.scenario}/{test.test.removeprefix(f'{test.scenario}-')}"
        worst[name] = max(worst.get(name, "pass"), test.effect, key=EFFECTS.index)
    return {
        effect: sorted(name for name, found in worst.items() if found == effect)
        for effect in EFFECTS
    }


def _configuration(pack: Pack, check: ReleaseCheck) -> Iterator[dict[str, Any]]:
    """What the result rests on; the first names the test, as Conforma reads it."""
    yield _file(
        POLICY, check.policy.sha256, name=f"perfgate release policy: {pack.manifest.release}"
    )
    yield _file(MANIFEST, pack.manifest_sha256, mediaType="application/json")
    for file in pack.manifest.files:
        if file.role in get_args(Configuration) and file.path != POLICY:
            yield _file(file.path, file.sha256, annotations={"role": file.role})


def _file(path: str, sha256: str, **more: Any) -> dict[str, Any]:
    return {"name": path, "uri": f"perfgate:{path}", "digest": {"sha256": sha256}, **more}
