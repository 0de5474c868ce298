"""What is stated of a release, all of it derived; and what is no signed statement."""

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import made_packs
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from refusals import refused
from releases import AT, C1, POLICY, checked, policy, run
from tables import each

from perfgate.core.verdict import Verdict
from perfgate.release.attestation import envelope, pae, read_attestation, statement, subjects
from perfgate.release.check_result import ReleaseCheck
from perfgate.release.pack_archive import Pack
from perfgate.release.policy import ReleasedBuild, Required, Subject
from perfgate.release.release_status import ReleaseStatus

WHEEL = Subject("engine.whl", {"sha256": "c" * 64})
COMMIT = "a" * 40
IMAGE = "sha256:" + "d" * 64
PACK = Pack(Path("evidence.tar"), made_packs.manifest(), "e" * 64, None)
KEY, OTHER = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
PUBLIC, OTHERS = KEY.public_key(), OTHER.public_key()


def of_build(commit: str, digest: str = "", **given: Any) -> ReleaseCheck:
    """A check of one run of a build."""
    found = checked(run(), given=policy(**given))
    results: Any = [one.result for one in found.tests]
    image = "engine:1" if digest else ""
    build = replace(results[0].build, commit=commit, digest=digest, image=image)
    made = zip(found.tests, (replace(one, build=build) for one in results), strict=True)
    return replace(found, tests=tuple(replace(one, result=result) for one, result in made))


def test_subjects_are_the_policys_and_what_the_runs_recorded() -> None:
    found = subjects(of_build(COMMIT, f"registry/engine@{IMAGE}", subjects=(WHEEL,)))
    digests = [{"sha256": "c" * 64}, {"gitCommit": COMMIT}, {"sha256": "d" * 64}]
    assert [dict(one.digest) for one in found] == digests
    same = Subject("llama.cpp", {"gitCommit": COMMIT})
    assert subjects(of_build(COMMIT, subjects=(same,))) == (same,)
    both = Subject("llama.cpp", {"gitCommit": COMMIT, "sha256": "c" * 64})
    assert subjects(of_build(COMMIT, subjects=(both,))) == (both,)
    # What the policy says of the build, where the runs know less.
    wanted = ReleasedBuild("llama.cpp", commit="def456" + "0" * 34, image=IMAGE)
    assert subjects(checked(run(), given=policy(build=wanted))) == (
        Subject("llama.cpp", {"gitCommit": wanted.commit}),
        Subject("llama.cpp image", {"sha256": "d" * 64}),
    )


@each("commit", ["1.3.0", "a" * 12, "A" * 40, "a" * 40 + "\n"])
def test_a_build_without_a_digest_is_no_subject(commit: str) -> None:
    error = refused(subjects, of_build(commit), match="nothing says exactly what was measured")
    assert error.status == ReleaseStatus.INCOMPLETE
    assert "`subjects` of the policy" in str(error)
    assert subjects(of_build(commit, subjects=(WHEEL,))) == (WHEEL,)


def test_the_statement_of_a_release() -> None:
    found = statement(PACK, of_build(COMMIT), AT)
    predicate = found["predicate"]
    assert predicate["passedTests"] == ["small/c1", "small/c4", "small/sums"]
    assert predicate["configuration"][0]["name"] == "perfgate release policy: engine 1.3"
    for one in predicate["configuration"]:
        assert {"uri", "digest", "content"} & set(one), one  # as resource_descriptor.md asks
    stated = ("PASSED", POLICY.release, {"sha256": "e" * 64}, "2026-11-23T12:00:00+00:00")
    names = ("result", "perfgate_release", "perfgate_manifest", "perfgate_signedAt")
    assert tuple(predicate[name] for name in names) == stated
    assert found["_type"] == "https://in-toto.io/Statement/v1"
    assert found["subject"] == [{"name": "llama.cpp", "digest": {"gitCommit": COMMIT}}]
    # Of a test that two parts require, the worst is stated.
    parts = (Required("speed", tests=(C1,)), Required("all", tests=(C1, "small-c4")))
    lost = checked(run(results={C1: Verdict.REGRESSION}), given=policy(*parts, subjects=(WHEEL,)))
    predicate = statement(PACK, lost, AT)["predicate"]
    assert (predicate["result"], predicate["failedTests"]) == ("FAILED", ["small/c1"])
    assert predicate["passedTests"] == ["small/c4"]
    assert predicate["perfgate_counts"]["failed"] == 1


def test_what_is_signed_is_as_the_protocol_has_it() -> None:
    # protocol.md, "Test Vectors"; lengths are those of bytes.
    expected = b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    assert pae("http://example.com/HelloWorld", b"hello world") == expected
    assert pae("é", b"") == b"DSSEv1 2 \xc3\xa9 0 "


STATED, SIGNED = statement(PACK, of_build(COMMIT), AT), "A" * 86 + "=="


def signed(text: bytes, *keys: Any) -> Any:
    return read_attestation(replace(PACK, attestation=text), keys)


def unsigned(text: bytes, *keys: Any) -> str:
    error = refused(signed, text, *keys)
    assert error.status == ReleaseStatus.SIGNATURE
    return str(error)


def test_any_signature_of_a_known_key_counts_whatever_its_keyid() -> None:
    both = envelope(STATED, [OTHER, KEY])
    assert both == envelope(STATED, [OTHER, KEY])
    assert signed(both, PUBLIC).signer is PUBLIC
    assert signed(both, OTHERS, PUBLIC).signer is OTHERS
    assert (signed(both, PUBLIC).signed_at, signed(both, PUBLIC).statement) == (AT, STATED)
    assert "no signature of a known signer" in unsigned(both)
    plain = json.loads(envelope(STATED, [OTHER]))
    plain["signatures"][0]["keyid"] = json.loads(both)["signatures"][1]["keyid"]
    assert "by none of the known keys" in unsigned(json.dumps(plain).encode(), PUBLIC)
    plain["signatures"][0].pop("keyid")
    assert signed(json.dumps(plain).encode(), OTHERS).signer is OTHERS


@each(
    "changes, told",
    [
        ({"extra": 1}, "unknown field `extra`"),
        ({"payloadType": "text/plain"}, "payloadType"),
        ({"payload": "e30"}, "Invalid base64"),
        ({"payload": "e31="}, "not base64 as it is written"),
        ({"payload": 1}, "payload"),
        ({"payload": base64.b64encode(b'{"result":"PASSED"}').decode()}, "no signature of"),
        ({"signatures": []}, "length >= 1"),
        ({"signatures": [{"sig": SIGNED}] * 17}, "length <= 16"),
        ({"signatures": [{"sig": "e30="}]}, "length >= 64"),
        ({"signatures": [{"sig": SIGNED, "cert": ""}]}, "unknown field `cert`"),
    ],
)
def test_what_is_no_envelope_is_refused(changes: dict[str, Any], told: str) -> None:
    text = envelope(STATED, [KEY])
    plain = {**json.loads(text), **changes}
    assert told in unsigned(json.dumps(plain).encode(), PUBLIC)
    twice = text.replace(b'"payload":', b'"payload": "e30=", "payload":', 1)
    for bad in (twice, text + text, b"", b"[]", b"\xff"):
        assert "not a signed statement" in unsigned(bad, PUBLIC)


@each(
    "change",
    [
        {"_type": "https://in-toto.io/Statement/v0.1"},
        {"predicateType": "https://in-toto.io/attestation/svr/v0.2"},
        {"predicate": {}},
        {"predicate": {**STATED["predicate"], "perfgate_signedAt": "2026-11-23T12:00:00"}},
        {"predicate": {**STATED["predicate"], "perfgate_manifest": "e" * 64}},
        {"subject": 1},
        {"subject": [{"name": "x", "digest": "y"}]},
    ],
)
def test_what_is_no_statement_of_perfgates_is_refused(change: dict[str, Any]) -> None:
    told = unsigned(envelope({**STATED, **change}, [KEY]), PUBLIC)
    assert "not a statement of perfgate's" in told
