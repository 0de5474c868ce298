"""Small releases for tests: a scenario of two points and a task, its policy, and runs of it."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import building
import made_runs
from plain_records import record

from perfgate.core.plain import to_plain
from perfgate.core.verdict import Verdict
from perfgate.release.check_result import CheckedTest, ReleaseCheck
from perfgate.release.policy import Policy, ReleasedBuild, Required, SuiteTests
from perfgate.release.release_check import check
from perfgate.runs.ended_run import EndedRun

SCENARIO = replace(building.SCENARIO, id="small")
C1, C4, SUMS = "small-c1", "small-c4", "small-sums"
AT = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
SUITE = SuiteTests([SCENARIO], (), {"local", "b200", "streaming", "claim"})
ALL = Required("all of it", select="local")
POLICY = Policy("small 1.3.0", ReleasedBuild("llama.cpp", "1.3.0"), (ALL,))
PASSED: dict[str, Verdict | str | None] = dict.fromkeys((C1, C4, SUMS), Verdict.PASS)


def policy(*required: Required, **changes: Any) -> Policy:
    """A policy with these parts; none: all tests."""
    return replace(POLICY, required=required or POLICY.required, **changes)


def run(name: str = "one", started: str = "08:00", **changes: Any) -> EndedRun:
    """A run in which all passed, but what `results` says."""
    results = {**PASSED, **changes.pop("results", {})}
    return made_runs.run(name, started, results, **changes)


def checked(*runs: EndedRun, given: Policy = POLICY, at: datetime = AT) -> ReleaseCheck:
    """A policy held against runs."""
    return check(given, runs, SUITE, at)


def of_test(found: ReleaseCheck, test: str = C1) -> CheckedTest:
    """What became of one test."""
    (one,) = [one for one in found.tests if one.test == test]
    return one


def changed(found: EndedRun, test: str, **changes: Any) -> EndedRun:
    """The run with fields of one test's verdict changed."""
    records = [*found.records]
    (at,) = [at for at, one in enumerate(records) if getattr(one, "test", "") == test]
    records[at] = record("verdict", {**to_plain(records[at]), **changes})
    return replace(found, records=records)
