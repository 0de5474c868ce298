"""What is stated of a release: subjects, result, properties; all of it derived."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import made_packs
import pytest
from releases import AT, C1, POLICY, checked, policy, run

from perfgate.core.verdict import Verdict
from perfgate.release.attestations import Stated, statements, subjects
from perfgate.release.check_result import ReleaseCheck
from perfgate.release.pack_layout import SUMMARY, TEST_RESULT
from perfgate.release.policy import Required, Subject
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus

WHEEL = Subject("engine.whl", {"sha256": "c" * 64})
COMMIT = "a" * 40
IMAGE = "sha256:" + "d" * 64


def of_build(commit: str, digest: str = "", **given: Any) -> ReleaseCheck:
    """A check of one run of a build."""
    found = checked(run(), given=policy(**given))
    build = next(one.result.build for one in found.tests if one.result)
    assert build is not None
    other = replace(build, commit=commit, digest=digest, image="engine:1" if digest else "")
    tests = tuple(
        replace(one, result=replace(one.result, build=other) if one.result else None)
        for one in found.tests
    )
    return replace(found, tests=tests)


def stated(check: ReleaseCheck, at: datetime = AT) -> dict[str, dict[str, Any]]:
    return statements(Stated(made_packs.manifest(), "e" * 64, check), at)


def test_subjects_are_the_policys_and_what_the_runs_recorded() -> None:
    found = subjects(of_build(COMMIT, f"registry/engine@{IMAGE}", subjects=(WHEEL,)))
    assert [dict(one.digest) for one in found] == [
        {"sha256": "c" * 64},
        {"gitCommit": COMMIT},
        {"sha256": "d" * 64},
    ]
    same = Subject("llama.cpp", {"gitCommit": COMMIT})
    assert subjects(of_build(COMMIT, subjects=(same,))) == (same,)


@pytest.mark.parametrize("commit", ["1.3.0", "a" * 12, "A" * 40, "a" * 40 + "\n"])
def test_a_build_without_a_digest_is_no_subject(commit: str) -> None:
    with pytest.raises(ReleaseRefused, match="nothing says exactly what was measured") as told:
        subjects(of_build(commit))
    assert told.value.status == ReleaseStatus.INCOMPLETE
    assert "`subjects` of the policy" in str(told.value)
    assert subjects(of_build(commit, subjects=(WHEEL,))) == (WHEEL,)


def test_the_statements_of_a_release_that_passed() -> None:
    found = stated(of_build(COMMIT))
    result, summary = (found[name]["predicate"] for name in (TEST_RESULT, SUMMARY))
    assert result["result"] == "PASSED"
    assert result["passedTests"] == ["small/c1", "small/c4", "small/sums"]
    assert result["configuration"][0]["name"] == f"perfgate release policy: {POLICY.release}"
    for one in result["configuration"]:
        assert {"uri", "digest", "content"} & set(one), one  # as resource_descriptor.md asks
    assert result["perfgate_manifest"] == summary["perfgate_manifest"] == {"sha256": "e" * 64}
    assert summary["timeCreated"] == "2026-11-23T12:00:00Z"
    assert summary["properties"] == [
        "PERFGATE_RELEASE_POLICY_PASSED",
        "PERFGATE_REQUIREMENT_ALL_OF_IT_PASSED",
    ]
    for one in found.values():
        assert one["_type"] == "https://in-toto.io/Statement/v1"
        assert one["subject"] == [{"name": "llama.cpp", "digest": {"gitCommit": COMMIT}}]


def test_properties_only_where_they_are_true() -> None:
    parts = (Required("speed!", tests=(C1,)), Required("Speed", tests=("small-c4",)))
    lost = checked(run(results={C1: Verdict.REGRESSION}), given=policy(*parts, subjects=(WHEEL,)))
    assert stated(lost)[SUMMARY]["predicate"]["properties"] == []  # two parts, one name: both
    parts = (Required("speed", tests=(C1,)), Required("sums", tests=("small-sums",)))
    lost = checked(run(results={C1: Verdict.REGRESSION}), given=policy(*parts, subjects=(WHEEL,)))
    found = stated(lost)
    assert found[SUMMARY]["predicate"]["properties"] == ["PERFGATE_REQUIREMENT_SUMS_PASSED"]
    result = found[TEST_RESULT]["predicate"]
    assert (result["result"], result["failedTests"]) == ("FAILED", ["small/c1"])
    assert result["perfgate_counts"]["failed"] == 1
