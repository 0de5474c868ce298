"""Attestations: what is stated of a release, as in-toto statements derived from its check. Pure.

Sources: github.com/in-toto/attestation, `spec/v1/statement.md`, `spec/v1/resource_descriptor.md`,
`spec/predicates/test-result.md` (v0.1) and `spec/predicates/svr.md` (v0.2). Fields whose names
begin with ``perfgate_`` are this program's own, which other readers pass over.
"""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from perfgate.release.check_result import CheckedTest, ReleaseCheck
from perfgate.release.pack_layout import MANIFEST, POLICY, SUMMARY, TEST_RESULT, Manifest
from perfgate.release.policy import Effect, Subject
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus

STATEMENT = "https://in-toto.io/Statement/v1"
TEST_RESULT_TYPE = "https://in-toto.io/attestation/test-result/v0.1"
SUMMARY_TYPE = "https://in-toto.io/attestation/svr/v0.2"
VERIFIER = "https://perfgate.invalid/release/v1"  # names who judged, not a place
TYPES = {TEST_RESULT: TEST_RESULT_TYPE, SUMMARY: SUMMARY_TYPE}
_PROPERTY = "PERFGATE_"
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")  # SHA-1, SHA-256
_IMAGE = re.compile(r"(?:.*@)?sha256:([0-9a-f]{64})")
_CONFIGURATION = ("scenarios", "baseline", "noise", "waivers")
_EFFECTS: tuple[Effect, ...] = ("pass", "warn", "fail")  # the worst last


@dataclass(frozen=True)
class Stated:
    """What statements are derived from.

    Attributes:
        manifest: of the pack.
        manifest_sha256: of its file.
        check: the packed policy held against the packed runs, at the time of the manifest.
    """

    manifest: Manifest
    manifest_sha256: str
    check: ReleaseCheck


def statements(stated: Stated, at: datetime) -> dict[str, dict[str, Any]]:
    """Both statements: path in the pack → statement.

    Args:
        stated: what they are derived from.
        at: `timeCreated` of the summary; the other statement has no time.

    Raises:
        ReleaseRefused: status INCOMPLETE: no digest names what was measured.
    """
    subject = [_plain_subject(one) for one in subjects(stated.check)]
    return {
        TEST_RESULT: _statement(subject, TEST_RESULT_TYPE, _test_result(stated)),
        SUMMARY: _statement(subject, SUMMARY_TYPE, _summary(stated, at)),
    }


def payload(statement: Mapping[str, Any]) -> bytes:
    """The bytes of a statement that are signed: JSON with sorted fields."""
    return json.dumps(
        statement, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    ).encode(errors="backslashreplace")


def subjects(check: ReleaseCheck) -> tuple[Subject, ...]:
    """What is spoken of: the policy's subjects, and the builds that the runs recorded.

    Raises:
        ReleaseRefused: status INCOMPLETE: there is none with a digest.
    """
    found = list(check.policy.subjects)
    there = {(kind, digits) for one in found for kind, digits in one.digest.items()}
    for one in _measured(check):
        if not set(one.digest.items()) <= there:
            found.append(one)
            there |= set(one.digest.items())
    if found:
        return tuple(found)
    raise ReleaseRefused(
        ReleaseStatus.INCOMPLETE,
        "nothing says exactly what was measured, so there is nothing that could be signed",
        field="build",
        found=", ".join(_builds(check)) or "no build",
        expected="a commit as a full hash (40 or 64 hexadecimal digits) or an image's sha256",
        hint="name the package or image under `subjects` of the policy, with its sha256",
    )


def _measured(check: ReleaseCheck) -> Iterator[Subject]:
    for one in check.tests:
        build = one.result.build if one.result else None
        if build is None or build.name != check.policy.build.engine:
            continue
        if _COMMIT.fullmatch(build.commit):
            yield Subject(build.name, {"gitCommit": build.commit})
        if image := _IMAGE.fullmatch(build.digest):
            yield Subject(build.image or f"{build.name} image", {"sha256": image[1]})


def _builds(check: ReleaseCheck) -> list[str]:
    found = [one.result.build for one in check.tests if one.result and one.result.build]
    return list(dict.fromkeys(one.in_words for one in found))


def _plain_subject(one: Subject) -> dict[str, Any]:
    return {"name": one.name, "digest": dict(one.digest)}


def _statement(subject: list[Any], kind: str, predicate: Mapping[str, Any]) -> dict[str, Any]:
    return {"_type": STATEMENT, "subject": subject, "predicateType": kind, "predicate": predicate}


def _test_result(stated: Stated) -> dict[str, Any]:
    check = stated.check
    named = _names_by_effect(check)
    return {
        "result": check.result,
        "configuration": list(_configuration(stated)),
        "passedTests": named["pass"],
        "warnedTests": named["warn"],
        "failedTests": named["fail"],
        **_own_fields(stated),
    }


def _summary(stated: Stated, at: datetime) -> dict[str, Any]:
    policy = {"uri": f"perfgate:{POLICY}", "digest": {"sha256": stated.check.policy.sha256}}
    return {
        "verifier": {"id": VERIFIER, "policies": [policy]},
        "timeCreated": at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "properties": _properties(stated.check),
        **_own_fields(stated),
    }


def _own_fields(stated: Stated) -> dict[str, Any]:
    check = stated.check
    named = _names_by_effect(check)
    return {
        "perfgate_release": check.policy.release,
        "perfgate_manifest": {"sha256": stated.manifest_sha256},
        "perfgate_checkedAt": stated.manifest.ended,
        "perfgate_counts": {
            "metrics": check.metrics_checked,
            "files": len(stated.manifest.files),
            "runs": len(stated.manifest.runs),
            "passed": len(named["pass"]),
            "warned": len(named["warn"]),
            "failed": len(named["fail"]),
        },
    }


def _names_by_effect(check: ReleaseCheck) -> dict[Effect, list[str]]:
    """Effect → names of tests as ``scenario/probe``; of one that two parts require, the worst."""
    worst: dict[str, Effect] = {}
    for one in check.tests:
        name = _name(one)
        worst[name] = max(worst.get(name, "pass"), one.effect, key=_EFFECTS.index)
    return {
        effect: sorted(name for name, found in worst.items() if found == effect)
        for effect in _EFFECTS
    }


def _name(test: CheckedTest) -> str:
    return f"{test.scenario}/{test.test.removeprefix(f'{test.scenario}-')}"


def _properties(check: ReleaseCheck) -> list[str]:
    """Only what is true: the whole, and each part of the policy of which all passed."""
    if check.faults or not check.metrics_checked:
        return []
    parts: dict[str, bool] = {}
    for one in check.tests:
        name = re.sub(r"[^A-Z0-9]+", "_", one.requirement.upper()).strip("_") or "UNNAMED"
        parts[name] = parts.get(name, True) and one.effect == "pass"
    found = [f"{_PROPERTY}REQUIREMENT_{name}_PASSED" for name, passed in parts.items() if passed]
    whole = [f"{_PROPERTY}RELEASE_POLICY_PASSED"] if check.result == "PASSED" else []
    return [*whole, *sorted(found)]


def _configuration(stated: Stated) -> Iterator[dict[str, Any]]:
    """What the result rests on; the first names the test, as Conforma reads it."""
    manifest, check = stated.manifest, stated.check
    yield {
        "name": f"perfgate release policy: {check.policy.release}",
        "uri": f"perfgate:{POLICY}",
        "digest": {"sha256": check.policy.sha256},
    }
    yield {
        "name": MANIFEST,
        "uri": f"perfgate:{MANIFEST}",
        "digest": {"sha256": stated.manifest_sha256},
        "mediaType": "application/json",
    }
    rule = {
        "name": "perfgate rule",
        "content": base64.b64encode(manifest.rule.encode()).decode(),
        "annotations": {"version": manifest.rule},
    }
    yield {"name": "perfgate", "uri": f"pkg:pypi/perfgate@{manifest.perfgate}"}
    yield rule
    yield from _checkouts(check)
    for one in manifest.files:
        if one.role in _CONFIGURATION:
            yield {
                "name": one.path,
                "uri": f"perfgate:{one.path}",
                "digest": {"sha256": one.sha256},
                "annotations": {"role": one.role},
            }


def _checkouts(check: ReleaseCheck) -> Iterator[dict[str, Any]]:
    """The commits of the checkouts that the runs were started in."""
    seen = set()
    for run in check.runs:
        commit = str(run.git.get("commit") or "")
        if _COMMIT.fullmatch(commit) and commit not in seen:
            seen.add(commit)
            yield {
                "name": "checkout of the suite",
                "digest": {"gitCommit": commit},
                "annotations": {"dirty": bool(run.git.get("dirty"))},
            }
