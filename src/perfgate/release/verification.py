"""Verification: whether a pack is what its signer states, of the release asked for, today.

Whoever verifies or signs judges the pack again from its own files: verdicts, check, and what is
rendered of them. Nothing is stated, or holds, that these do not show.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.core.files.untrusted_files import opened_folder
from perfgate.core.verdict import Verdict, counted
from perfgate.plan.toolchain import registered
from perfgate.release.attestation import Attested, canonical, envelope, read_attestation, statement
from perfgate.release.check_result import Finding, ReleaseCheck
from perfgate.release.keys import as_policy_has_it, key_id, public_key_of
from perfgate.release.pack_archive import POLICY, RUNS, SCENARIOS, WAIVERS, Pack
from perfgate.release.pack_contents import ROLES, rendered_files
from perfgate.release.policy import (
    EFFECTS,
    Policy,
    PolicyRefused,
    SuiteTests,
    load_policy,
    requirements,
)
from perfgate.release.recomputation import Recomputed, recompute_run
from perfgate.release.release_check import check
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus
from perfgate.release.run_evidence import CLOCKS_DIFFER
from perfgate.runs.ended_run import EndedRun, read_run
from perfgate.scenarios.files import load_suite

_TOLD = 10  # differences in one message
_FOLDER = "perfgate-release-"
_ABANDONED_S = 60.0  # a folder is locked at once after it was made; younger ones are left alone


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
class Replayed:
    """What a pack's own files give.

    Attributes:
        check: the packed policy held against the packed runs, at the time of the manifest.
        verdicts: every verdict of the runs, computed again from their raw files.
        checked_at: the check as of another time; errors as of `release_check.check`.
    """

    check: ReleaseCheck
    verdicts: tuple[Recomputed, ...]
    checked_at: Callable[[datetime], ReleaseCheck]

    @property
    def tests(self) -> tuple[str, ...]:
        """Ids of the required tests, each once, in the policy's order."""
        return tuple(dict.fromkeys(test.test for test in self.check.tests))


@dataclass(frozen=True)
class Verified:
    """A pack that holds.

    Attributes:
        attested: what was stated, and by whom.
        replayed: what its files give, as attested: verdicts computed again, the check.
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
        ReleaseRefused: SIGNATURE, OTHER_RELEASE, NOT_REPRODUCED, EXPIRED, CLOCK, as
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
    _require_clock(pack, attested.signed_at, asked.now)
    _require_as_stated(pack, attested, again.check)
    _require_in_force(pack, asked, again)
    rows = tuple(_rows(pack, asked, attested, again))
    return Verified(attested, again, rows, tuple(_notes(asked, again)))


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
        ReleaseRefused: SIGNATURE: the policy does not name this signer. CLOCK: its runs end at a
            time still to come. INCOMPLETE: no digest names what was measured. Others as of
            `replay`.
    """
    again = replay(pack)
    _require_signer(again.check.policy, key.public_key(), key_file)
    _require_clock(pack, now, now)
    return again, envelope(statement(pack, again.check, now), [key])


def replay(pack: Pack) -> Replayed:
    """Judge a pack again. Nothing of it is believed but raw files, policy and scenarios.

    Raises:
        ReleaseRefused: OTHER_VERSION: another perfgate judged a run of it. NOT_REPRODUCED: a
            verdict, report or script is not what the raw files give, or it cannot be told. POLICY,
            MIXED, CLOCK: as of `check`.
        InputError, SeveralInputErrors: the packed scenarios name an engine, client or evaluator
            that is not registered here.
        RunError: there is no room to unpack it.
    """
    with _unpacked(pack) as folder:
        places = [path for path in (folder / SCENARIOS).glob("*") if path.name.isdecimal()]
        # in the order that the suite names them
        loaded = load_suite(sorted(places, key=lambda place: int(place.name)), registered())
        policy, suite = load_policy(folder / POLICY), SuiteTests.of(loaded)
        try:
            runs = tuple(read_run(folder / RUNS / name) for name in pack.manifest.runs)
            verdicts = tuple(verdict for run in runs for verdict in recompute_run(run, suite))
            checked_at = partial(check, policy, runs, suite)
            found = checked_at(pack.manifest.ended_at)
            _require_recomputed(pack, runs, verdicts, found)
            _require_rendered(pack, found, runs)
        except ReleaseRefused:
            raise
        except (InputError, SeveralInputErrors) as error:  # no fault of whoever verifies it
            raise _not_reproduced("no_judgement", pack, [str(error)]) from error
    return Replayed(found, verdicts, checked_at)


@contextmanager
def _unpacked(pack: Pack) -> Iterator[Path]:
    """The files of a pack in a folder that goes at the end; of a killed process, at the next call.

    Raises:
        ReleaseRefused, RunError: as of `Pack.extract`.
    """
    for path in Path(gettempdir()).glob(f"{_FOLDER}*"):
        with suppress(OSError, InputError), _locked(path, fcntl.LOCK_NB) as status:
            if status.st_uid == os.geteuid() and time.time() - status.st_mtime > _ABANDONED_S:
                shutil.rmtree(path)
    with TemporaryDirectory(prefix=_FOLDER) as made, ExitStack() as held:
        with suppress(OSError):  # no locks there: nobody removes it but this process
            held.enter_context(_locked(Path(made)))
        pack.extract(Path(made))
        yield Path(made)


@contextmanager
def _locked(folder: Path, how: int = 0) -> Iterator[os.stat_result]:
    """Hold the lock of a folder, which its process loses when it is killed."""
    handle = opened_folder(folder)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | how)
        yield os.fstat(handle)
    finally:
        os.close(handle)


def _require_recomputed(
    pack: Pack, runs: Sequence[EndedRun], verdicts: Sequence[Recomputed], found: ReleaseCheck
) -> None:
    """Check that verdicts are as recorded, and no test passes on the word of a record alone."""
    ids, listed = [run.id for run in runs], pack.manifest.runs
    if tuple(ids) != listed:
        raise _not_reproduced("run_names", pack, ids, expected=", ".join(listed))
    if different := [f"run {one.run}: {line}" for one in verdicts for line in one.differences]:
        raise _not_reproduced("verdict", pack, different)
    recomputed = {(one.run, one.test): one.verdict for one in verdicts}
    for test in found.tests:
        verdict = recomputed.get((test.run, test.test))
        if test.finding == Finding.PASSED and verdict not in (Verdict.PASS, Verdict.IMPROVEMENT):
            raise _not_reproduced("pass", pack, [verdict or "no verdict"], field=test.test)


def _require_rendered(pack: Pack, found: ReleaseCheck, runs: Sequence[EndedRun]) -> None:
    """Check that reports, certificates and scripts are what the runs give, and all is known."""
    sources = [file for file in pack.manifest.files if file.role not in ROLES]
    rendered = {one.path: one for one in pack.manifest.files if one.role in ROLES}
    folders = (f"{SCENARIOS}/", *(f"{RUNS}/{run}/" for run in pack.manifest.runs))
    known = (POLICY, WAIVERS)
    if strange := [
        source.path
        for source in sources
        if source.path not in known and not source.path.startswith(folders)
    ]:
        raise _not_reproduced("strange_file", pack, strange)
    again = {one.path: one.listed() for one in rendered_files(found, runs, sources)}
    either = sorted(again.keys() | rendered.keys())
    if other := [one for one in either if again.get(one) != rendered.get(one)]:
        raise _not_reproduced("rendered", pack, other)


def _not_reproduced(name: str, pack: Pack, found: Sequence[str], **fields: Any) -> ReleaseRefused:
    more = len(found) - _TOLD
    shown = "; ".join([*found[:_TOLD], *([f"{more} more"] if more > 0 else [])])
    return ReleaseStatus.NOT_REPRODUCED.refusal(name, file=pack.path, found=shown, **fields)


def _require_signer(policy: Policy, key: Ed25519PublicKey, file: Path) -> None:
    """Check that a policy lets this key sign; one that names nobody lets any.

    Raises:
        ReleaseRefused: status SIGNATURE.
    """
    if policy.signers and as_policy_has_it(key) not in {signer.key for signer in policy.signers}:
        named = ", ".join(f"{one.key} ({one.name})" for one in policy.signers)
        raise ReleaseStatus.SIGNATURE.refusal(
            "not_of_policy", file=file, found=as_policy_has_it(key), expected=named
        )


def _require_asked(pack: Pack, asked: Asked, attested: Attested) -> None:
    """Check that it is the release that was asked for: policy, commit, subjects."""
    stated = attested.subjects
    packed = next(file.sha256 for file in pack.manifest.files if file.path == POLICY)
    if asked.policy is not None and packed != asked.policy.sha256:
        raise _other("policy", pack, f"SHA-256 {packed}", f"SHA-256 {asked.policy.sha256}")
    commits = [digest["gitCommit"] for _, digest in stated if "gitCommit" in digest]
    if asked.commit and not any(commit.startswith(asked.commit) for commit in commits):
        raise _other("commit", pack, ", ".join(commits) or "no commit", asked.commit)
    for name, digits in (asked.subjects or {}).items():
        if not any(one == name and digest.get("sha256") == digits for one, digest in stated):
            found = "; ".join(_describe(*one) for one in stated)
            raise _other("artifact", pack, found, f"{name}=sha256:{digits}")


def _require_suite(pack: Pack, asked: Asked, again: Replayed) -> None:
    """Check that the policy requires of the given scenarios what it requires of the packed ones."""
    if asked.suite is None:
        return
    policy, packed = again.check.policy, f"SHA-256 {again.check.required_sha256}"
    try:
        given = f"SHA-256 {requirements(policy, asked.suite)[1]}"
    except PolicyRefused as refused:
        given = f"{refused.field}: {refused.problem}"
    if given != packed:
        raise _other("suite", pack, f"{counted(len(again.tests), 'test')}, {packed}", given)


def _describe(name: str, digest: Mapping[str, str]) -> str:
    return " ".join([name, *(f"{kind}:{digits}" for kind, digits in digest.items())])


def _require_clock(pack: Pack, signed_at: datetime, now: datetime) -> None:
    if not pack.manifest.ended_at - CLOCKS_DIFFER <= signed_at <= now + CLOCKS_DIFFER:
        raise ReleaseStatus.CLOCK.refusal(
            "signed_too_early_or_late",
            file=pack.path,
            found=signed_at.isoformat(timespec="seconds"),
            expected=f"between {pack.manifest.ended} and now, {now:%Y-%m-%dT%H:%M:%SZ}",
        )


def _require_as_stated(pack: Pack, attested: Attested, check: ReleaseCheck) -> None:
    """Check that the statement is the one that the pack's own files give."""
    given, right = attested.statement, statement(pack, check, attested.signed_at)
    stated = {**given, **given["predicate"], "predicate": ""}
    expected = {**right, **right["predicate"], "predicate": ""}
    # Of several, the first: what it speaks of, then the result.
    fields = sorted(stated | expected, key=lambda one: (one != "subject", one != "result", one))
    for field in fields:
        found, wanted = (canonical(one.get(field)) for one in (stated, expected))
        if found == wanted:
            continue
        if field == "subject":
            raise _other("subject", pack, found, wanted)
        found, wanted = found[:300], wanted[:300]
        raise _not_reproduced("statement", pack, [found], field=field, expected=wanted)


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
        found, when = "; ".join(ended[:5] or later.faults), at.isoformat(timespec="seconds")
        raise ReleaseStatus.EXPIRED.refusal("evidence", file=pack.path, found=found, at=when)


def _rows(
    pack: Pack, asked: Asked, attested: Attested, again: Replayed
) -> Iterator[tuple[str, str]]:
    verdicts, check = again.verdicts, again.check
    judged = sum(verdict.verdict is not None for verdict in verdicts)
    yield "files", f"{len(pack.manifest.files)} are as the manifest lists them, none is extra"
    yield "manifest", f"SHA-256 {pack.manifest_sha256}, the signed one"
    yield "signature", f"by {_signer(attested.signer, asked, check.policy)}"
    yield from (("subject", _describe(*subject)) for subject in attested.subjects)
    yield "policy", f"SHA-256 {check.policy.sha256}" + (", the given one" if asked.policy else "")
    required = f"{counted(len(again.tests), 'test')}, SHA-256 {check.required_sha256}"
    if asked.suite is not None:
        required += ", as the given scenarios have it"
    elif check.policy.required_sha256:
        required += ", as the policy has it"
    yield "required", required
    yield from (("required test", name) for name in again.tests)
    yield "verdicts", f"{judged} of {len(verdicts)} computed again from raw files, all as recorded"
    yield "metrics", f"{sum(one.metrics for one in verdicts)} judged again"
    rendered = sum(file.role in ROLES for file in pack.manifest.files)
    yield "rendered", f"{rendered} reports, certificates and scripts again, all as packed"
    yield "rule", f"version {pack.manifest.rule}"
    in_force = f"today, {asked.now:%Y-%m-%d}"
    if check.result == "FAILED":
        in_force = "not asked of a release that failed"
    elif asked.at is not None:
        in_force = f"at {asked.at.isoformat(timespec='seconds')}, as --at states; not of today"
    yield "in force", in_force
    yield "result", f"{check.result}, as stated on {attested.signed_at:%Y-%m-%d %H:%M:%SZ}"


def _signer(key: Ed25519PublicKey, asked: Asked, policy: Policy) -> str:
    named = [*(asked.policy.signers if asked.policy else ()), *policy.signers]
    name = next((one.name for one in named if one.key == as_policy_has_it(key)), "")
    return f"{name} (key {key_id(key)})" if name else f"key {key_id(key)}"


def _notes(asked: Asked, again: Replayed) -> Iterator[str]:
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
    for told in dict.fromkeys(
        line for verdict in again.verdicts for line in verdict.not_recomputed
    ):
        yield f"taken from the records, as no raw file holds it: {told}"
    yield from again.check.warnings
    yield from again.check.notes


def _other(name: str, pack: Pack, found: str, expected: str) -> ReleaseRefused:
    fields = {"file": pack.path, "found": found, "expected": expected}
    return ReleaseStatus.OTHER_RELEASE.refusal(name, **fields)
