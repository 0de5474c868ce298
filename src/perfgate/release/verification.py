"""Verification: whether a pack is what its signer states, of the release asked for, today.

Whoever signs judges the pack again likewise: nothing is stated that the pack does not show.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from perfgate.core.errors import InputError
from perfgate.core.verdict import counted
from perfgate.release.attestation import Attested, canonical, envelope, read_attestation, statement
from perfgate.release.check_result import ReleaseCheck
from perfgate.release.keys import as_policy_has_it, key_id, public_key_of
from perfgate.release.pack_archive import Pack
from perfgate.release.pack_manifest import POLICY
from perfgate.release.policy import EFFECTS, Policy
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus
from perfgate.release.rendered_files import ROLES
from perfgate.release.replay import Replayed, replay
from perfgate.release.required_tests import (
    SuiteTests,
    broken_suite_rules,
    required_sha256,
    required_tests,
)
from perfgate.release.run_evidence import CLOCKS_DIFFER
from perfgate.scenarios.problem import dotted

_TOLD = 5


@dataclass(frozen=True)
class Asked:
    """What a person asks of a pack, and whom that person trusts. Nothing of it is from the pack.

    Attributes:
        now: the time of the verification.
        keys: of signers.
        policy: the one that the release must have been held against; None: not asked.
        commit: a commit that must be a subject, whole or its first 12 or more digits; empty: none.
        subjects: name → SHA-256, each of which must be a subject.
        at: the time of the release; None: now.
        suite: what the policy must require of it the same; None: not asked.
    """

    now: datetime
    keys: tuple[Ed25519PublicKey, ...] = ()
    policy: Policy | None = None
    commit: str = ""
    subjects: Mapping[str, str] | None = None
    at: datetime | None = None
    suite: SuiteTests | None = None

    @property
    def trusted(self) -> tuple[Ed25519PublicKey, ...]:
        """The keys that may have signed: those given, and those of the given policy."""
        named = self.policy.signers if self.policy else ()
        return (*self.keys, *(public_key_of(one.key) for one in named))


@dataclass(frozen=True)
class Verified:
    """A pack that holds.

    Attributes:
        attested: what was stated, and by whom.
        replayed: what its files give, as attested: verdicts computed anew, the check.
        rows: what was verified, and how it was found, in the order in which it was.
        notes: what was not, one sentence each.
    """

    attested: Attested
    replayed: Replayed
    rows: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def verify(pack: Pack, asked: Asked) -> Verified:
    """Verify a pack, whose bytes have been held against its manifest already.

    Raises:
        ReleaseRefused: SIGNATURE, OTHER_RELEASE, OTHER_VERSION, NOT_REPRODUCED, EXPIRED, CLOCK, as
            `ReleaseStatus` has them.
        InputError: nobody is named whose signature would count.
    """
    if not asked.trusted:
        raise InputError(
            "nobody is named whose signature would count",
            field="--key",
            expected="the public key of the signer, or a --policy that names signers",
            hint="a pack cannot say itself whom to trust",
        )
    attested = read_attestation(pack, asked.trusted)
    _require_asked(pack, asked, attested)
    again = replay(pack)
    _require_suite(pack, asked, again)
    _require_signer(again.check.policy, attested.signer, pack.path)
    _require_clock(pack, asked, attested)
    _require_as_stated(pack, attested, again.check)
    _require_in_force(pack, asked, again)
    rows = tuple(_rows(pack, asked, attested, again))
    return Verified(attested, again, rows, tuple(_notes(pack, asked, again)))


def sign(
    pack: Pack, key: Ed25519PrivateKey, key_file: Path, now: datetime
) -> tuple[Replayed, bytes]:
    """State what a pack shows, judged again from its own files.

    Args:
        pack: the pack.
        key: the signer's.
        key_file: where it lies.
        now: the time of the signature.

    Returns:
        What the pack shows, and the signed statement of it.

    Raises:
        ReleaseRefused: OTHER_VERSION: another perfgate rendered its reports. SIGNATURE: the policy
            does not name this signer. CLOCK: its runs end at a time still to come. INCOMPLETE: no
            digest names what was measured. Others as of `replay`.
    """
    again = replay(pack)
    if again.not_compared:
        packed_by = pack.manifest.perfgate
        raise ReleaseRefused(
            ReleaseStatus.OTHER_VERSION,
            "another perfgate rendered the pack's reports and certificates, so they cannot be "
            "compared",
            file=pack.path,
            field="manifest.json: perfgate",
            found=packed_by,
            expected=version("perfgate"),
            hint=f"sign it with perfgate {packed_by}, or pack the runs again with this one",
        )
    _require_signer(again.check.policy, key.public_key(), key_file)
    if now < pack.manifest.ended_at:
        raise ReleaseRefused(
            ReleaseStatus.CLOCK,
            "the runs of the pack end at a time that is still to come",
            file=pack.path,
            found=pack.manifest.ended,
            expected=f"a time before now, {now.isoformat(timespec='seconds')}",
            hint="set the clock of this machine, or measure again where it was wrong",
        )
    return again, envelope(statement(pack, again.check, now), [key])


def _require_signer(policy: Policy, key: Ed25519PublicKey, file: Path) -> None:
    """Check that a policy lets this key sign; one that names nobody lets any.

    Raises:
        ReleaseRefused: status SIGNATURE.
    """
    if policy.signers and as_policy_has_it(key) not in {one.key for one in policy.signers}:
        raise ReleaseRefused(
            ReleaseStatus.SIGNATURE,
            "the signer is not among those whom the pack's policy names",
            file=file,
            field="signers",
            found=as_policy_has_it(key),
            expected=", ".join(f"{one.key} ({one.name})" for one in policy.signers),
        )


def _require_asked(pack: Pack, asked: Asked, attested: Attested) -> None:
    """Check that it is the release that was asked for: policy, commit, subjects."""
    packed = next(one.sha256 for one in pack.manifest.files if one.path == POLICY)
    if asked.policy is not None and packed != asked.policy.sha256:
        raise _other(
            pack, "--policy", "the release was held against another policy",
            f"SHA-256 {packed}", f"SHA-256 {asked.policy.sha256}",
        )  # fmt: skip
    commits = [digest["gitCommit"] for _, digest in attested.subjects if "gitCommit" in digest]
    if asked.commit and not any(one.startswith(asked.commit) for one in commits):
        raise _other(
            pack, "--commit", "the pack is of another build",
            ", ".join(commits) or "no commit", asked.commit,
        )  # fmt: skip
    for name, digits in (asked.subjects or {}).items():
        if not any(
            one == name and there.get("sha256") == digits for one, there in attested.subjects
        ):
            raise _other(
                pack, "--subject", "the pack does not speak of this artifact",
                "; ".join(_in_words(*one) for one in attested.subjects),
                f"{name}=sha256:{digits}",
            )  # fmt: skip


def _require_suite(pack: Pack, asked: Asked, again: Replayed) -> None:
    """Check that the policy requires of the given scenarios what it requires of the packed ones."""
    if asked.suite is None:
        return
    policy, packed = again.check.policy, f"SHA-256 {again.check.required_sha256}"
    if problem := next(broken_suite_rules(policy, asked.suite), None):
        given = f"{dotted(problem.path)}: {problem.problem}"
    else:
        given = f"SHA-256 {required_sha256(required_tests(policy, asked.suite), asked.suite)}"
    if given != packed:
        raise _other(
            pack, "--scenarios", "the pack's scenarios are not the given ones: it requires other "
            "tests, or the same with other bands or workloads",
            f"{counted(len(again.tests), 'test')}, {packed}", given,
        )  # fmt: skip


def _in_words(name: str, digest: Mapping[str, str]) -> str:
    return " ".join([name, *(f"{kind}:{digits}" for kind, digits in digest.items())])


def _require_clock(pack: Pack, asked: Asked, attested: Attested) -> None:
    earliest = pack.manifest.ended_at - CLOCKS_DIFFER
    if not earliest <= attested.signed_at <= asked.now + CLOCKS_DIFFER:
        raise ReleaseRefused(
            ReleaseStatus.CLOCK,
            "it was signed before its runs ended, or is signed at a time still to come",
            file=pack.path,
            field="perfgate_signedAt",
            found=attested.signed_at.isoformat(timespec="seconds"),
            expected=f"between {pack.manifest.ended} and now, {asked.now:%Y-%m-%dT%H:%M:%SZ}",
        )


def _require_as_stated(pack: Pack, attested: Attested, check: ReleaseCheck) -> None:
    """Check that the statement is the one that the pack's own files give."""
    expected = statement(pack, check, attested.signed_at)
    given = attested.statement
    if canonical(given["subject"]) != canonical(expected["subject"]):
        raise _other(
            pack, "subject", "the statement speaks of another artifact than the runs measured",
            canonical(given["subject"]), canonical(expected["subject"]),
        )  # fmt: skip
    stated = {**given, **given["predicate"], "predicate": ""}
    right = {**expected, **expected["predicate"], "predicate": ""}
    for field in sorted(stated.keys() | right.keys(), key=lambda one: (one != "result", one)):
        if canonical(stated.get(field)) != canonical(right.get(field)):
            raise ReleaseRefused(
                ReleaseStatus.NOT_REPRODUCED,
                "the statement says what the pack's own files do not give",
                file=pack.path,
                field=field,
                found=canonical(stated.get(field))[:300],
                expected=canonical(right.get(field))[:300],
            )


def _require_in_force(pack: Pack, asked: Asked, again: Replayed) -> None:
    """Check that nothing has ended since: a waiver, or the age that the policy allows."""
    if again.check.result == "FAILED":
        return
    at = asked.at or asked.now
    later = again.checked_at(at)
    ended = [
        f"{then.test}: {then.finding} on {again.check.at:%Y-%m-%d}, now {now.finding} ({now.why})"
        for then, now in zip(again.check.tests, later.tests, strict=True)
        if EFFECTS.index(now.effect) > EFFECTS.index(then.effect)
    ]
    if ended or later.result == "FAILED":
        raise ReleaseRefused(
            ReleaseStatus.EXPIRED,
            "the evidence is older than the policy allows, or a waiver has ended",
            file=pack.path,
            found="; ".join(ended[:_TOLD] or later.faults),
            expected=f"evidence in force at {at.isoformat(timespec='seconds')}",
            hint="measure again; or to verify a release of the past, give its time: --at TIME",
        )


def _rows(
    pack: Pack, asked: Asked, attested: Attested, again: Replayed
) -> Iterator[tuple[str, str]]:
    verdicts = again.verdicts
    anew = [one for one in verdicts if one.verdict is not None]
    yield "files", f"{len(pack.manifest.files)} are as the manifest lists them, none is extra"
    yield "manifest", f"SHA-256 {pack.manifest_sha256}, the signed one"
    yield "signature", f"by {_signer(attested.signer, asked, again.check.policy)}"
    for name, digest in attested.subjects:
        yield "subject", _in_words(name, digest)
    yield (
        "policy",
        f"SHA-256 {again.check.policy.sha256}" + (", the given one" if asked.policy else ""),
    )
    yield "required", _required(asked, again)
    yield from (("required test", name) for name in again.tests)
    yield (
        "verdicts",
        f"{len(anew)} of {len(verdicts)} computed anew from raw files, all as recorded",
    )
    yield "metrics", f"{sum(one.metrics for one in verdicts)} judged anew"
    rendered = sum(one.role in ROLES for one in pack.manifest.files)
    if not again.not_compared:
        yield "rendered", f"{rendered} reports, certificates and scripts again, all as packed"
    yield "rule", f"version {pack.manifest.rule}"
    yield "in force", _in_force(asked, again)
    yield "result", f"{again.check.result}, as stated on {attested.signed_at:%Y-%m-%d %H:%M:%SZ}"


def _required(asked: Asked, again: Replayed) -> str:
    told = f"{counted(len(again.tests), 'test')}, SHA-256 {again.check.required_sha256}"
    if asked.suite is not None:
        told += ", as the given scenarios have it"
    elif again.check.policy.required_sha256:
        told += ", as the policy has it"
    return told


def _in_force(asked: Asked, again: Replayed) -> str:
    if again.check.result == "FAILED":
        return "not asked of a release that failed"
    if asked.at is not None:
        return f"at {asked.at.isoformat(timespec='seconds')}, as --at states; not of today"
    return f"today, {asked.now:%Y-%m-%d}"


def _signer(key: Ed25519PublicKey, asked: Asked, policy: Policy) -> str:
    named = [*(asked.policy.signers if asked.policy else ()), *policy.signers]
    name = next((one.name for one in named if one.key == as_policy_has_it(key)), "")
    return f"{name} (key {key_id(key)})" if name else f"key {key_id(key)}"


def _notes(pack: Pack, asked: Asked, again: Replayed) -> Iterator[str]:
    if not (asked.policy or asked.commit or asked.subjects):
        yield (
            "which release this is was not checked: --policy, --commit or --subject says which is "
            "wanted"
        )
    if asked.suite is None and not (asked.policy and asked.policy.required_sha256):
        yield (
            "which tests are required was not checked: it follows from the pack's own scenarios; "
            "--scenarios compares them with yours, or a --policy with required_sha256 names them"
        )
    if again.not_compared:
        yield (
            f"not rendered again, as perfgate {pack.manifest.perfgate} made them and this is "
            f"{version('perfgate')}: {', '.join(again.not_compared)}"
        )
    for told in dict.fromkeys(line for one in again.verdicts for line in one.not_recomputed):
        yield f"taken from the records, as no raw file holds it: {told}"
    yield from again.check.warnings
    yield from again.check.notes


def _other(pack: Pack, field: str, problem: str, found: str, expected: str) -> ReleaseRefused:
    return ReleaseRefused(
        ReleaseStatus.OTHER_RELEASE,
        problem,
        file=pack.path,
        field=field,
        found=found,
        expected=expected,
    )
