"""A policy held against runs: what is found of each test, and what it tells the shell."""

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import building
import made_runs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from releases import AT, C1, C4, POLICY, SCENARIO, SUMS, changed, checked, of_test, policy, run
from tables import each

from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.core.measured import MeasuredBuild
from perfgate.core.plain import to_plain
from perfgate.core.verdict import Verdict
from perfgate.release.check_result import Finding
from perfgate.release.policy import Floor, PolicyRefused, ReleasedBuild, Required, SetAside
from perfgate.release.release_check import check, status_of
from perfgate.release.release_status import ReleaseRefused, ReleaseStatus
from perfgate.scenarios.probe import load_probes

BUILD = MeasuredBuild("llama.cpp", "1.3.0", "def456")
WAIVER = "waived by Ada up to a loss of 15.0 %, until 2026-12-01: known (https://bugs.example/1)"


def waived(ends: str = "2026-12-01") -> dict[str, Any]:
    """A verdict that a waiver let pass."""
    judged = building.judgement(waiver=building.applied(WAIVER, date.fromisoformat(ends)))
    return {"verdict": "PASS", "judgements": to_plain((judged,))}


def test_a_release_whose_tests_all_passed() -> None:
    found = checked(run())
    assert [one.finding for one in found.tests] == [Finding.PASSED] * 3
    assert (found.result, found.metrics_checked, status_of(found)) == ("PASSED", 3, 0)
    assert found.machines == {"one": "node7, Grace"}
    assert all(one.run == "one" and not one.why for one in found.tests)


@each(
    ("result", "finding", "why"),
    [
        (Verdict.REGRESSION, Finding.REGRESSION, "output_throughput: 12.3 % lower"),
        (Verdict.INCONCLUSIVE, Finding.INCONCLUSIVE, "output_throughput: "),
        (Verdict.NO_BASELINE, Finding.NO_BASELINE, "the verdict is NO_BASELINE"),
        (Verdict.NOT_COMPARABLE, Finding.NOT_COMPARABLE, "output_throughput: "),
        (Verdict.ERROR, Finding.ERROR, "oom: out of memory"),
        ("budget", Finding.NOT_RUN, "budget: no GPU"),
        (None, Finding.NOT_RUN, "unfinished: the session ended first"),
    ],
)
def test_every_verdict_that_does_not_pass(result: Any, finding: Finding, why: str) -> None:
    found = checked(run(results={C1: result}))
    one = of_test(found)
    assert (one.finding, one.effect, found.result) == (finding, "fail", "FAILED")
    assert one.why.startswith(why), one.why
    lost = finding == Finding.REGRESSION
    assert status_of(found) == (ReleaseStatus.FAILED if lost else ReleaseStatus.INCOMPLETE)


def test_a_test_that_no_run_holds_is_missing() -> None:
    found = checked(made_runs.run("one", "08:00", {C1: Verdict.PASS, C4: Verdict.PASS}))
    assert of_test(found, SUMS).finding == Finding.MISSING
    assert status_of(found) == ReleaseStatus.INCOMPLETE


def test_what_a_policy_lets_through_warns() -> None:
    lenient = policy(effects={"INCONCLUSIVE": "warn"})
    found = checked(run(results={C1: Verdict.INCONCLUSIVE}), given=lenient)
    assert (of_test(found).effect, found.result) == ("warn", "WARNED")
    assert status_of(found) == ReleaseStatus.PASSED
    assert status_of(found, strict=True) == ReleaseStatus.WARNED


@pytest.mark.parametrize(
    ("effect", "status"),
    [("pass", ReleaseStatus.PASSED), ("warn", ReleaseStatus.WARNED), ("", ReleaseStatus.FAILED)],
)
def test_a_waived_regression_counts_as_the_policy_says(effect: Any, status: int) -> None:
    given = policy(effects={"WAIVED": effect}) if effect else POLICY
    found = checked(changed(run(), C1, **waived()), given=given)
    one = of_test(found)
    assert (one.finding, one.effect) == (Finding.WAIVED, effect or "fail")
    assert one.waivers == (f"output_throughput: {WAIVER}",)
    assert status_of(found, strict=True) == status


def test_a_waiver_that_ended_lets_nothing_through() -> None:
    given = policy(effects={"WAIVED": "pass"})
    found = checked(changed(run(), C1, **waived("2026-11-22")), given=given)
    assert of_test(found).finding == Finding.REGRESSION
    assert "the waiver of Ada ended on 2026-11-22" in of_test(found).why
    assert (
        of_test(checked(changed(run(), C1, **waived("2026-11-23")), given=given)).effect == "pass"
    )


def test_stale() -> None:
    late = AT + timedelta(days=7)
    found = checked(run(), at=late)
    assert of_test(found).finding == Finding.STALE
    assert "7.2 days old, at most 7 are allowed" in of_test(found).why
    assert (found.metrics_checked, status_of(found)) == (0, ReleaseStatus.INCOMPLETE)
    assert checked(run(), at=late, given=policy(max_age_days=8.0)).result == "PASSED"
    part = Required("all of it", select="local", max_age_days=8.0)
    assert checked(run(), at=late, given=policy(part)).result == "PASSED"


def test_a_regression_does_not_grow_stale() -> None:
    found = checked(run(results={C1: Verdict.REGRESSION}), at=AT + timedelta(days=30))
    assert of_test(found).finding == Finding.REGRESSION


@pytest.mark.parametrize(
    ("changes", "finding"),
    [
        ({"synthetic": True}, Finding.SYNTHETIC),
        ({"injected": ["kv_cache_fraction=0.1"]}, Finding.INJECTED),
        ({"ab": {"a": "one", "b": "two"}}, Finding.MISSING),
    ],
)
def test_runs_that_are_no_evidence(changes: dict[str, Any], finding: Finding) -> None:
    found = checked(run(changes=changes))
    assert {one.finding for one in found.tests} == {finding}
    assert found.notes[0].startswith("run one ")
    assert (found.metrics_checked, status_of(found)) == (0, ReleaseStatus.INCOMPLETE)


@pytest.mark.parametrize(
    ("end", "why"), [(None, "did not end"), (15, "ended in a bug of perfgate")]
)
def test_a_run_that_did_not_come_to_its_end(end: Any, why: str) -> None:
    found = checked(run(end=end))
    assert {one.finding for one in found.tests} == {Finding.ERROR}
    assert why in of_test(found).why
    assert why in found.notes[0]
    lost = checked(run(end=end, results={C1: Verdict.REGRESSION}))
    assert of_test(lost).finding == Finding.REGRESSION, "a loss that was shown is one"


def test_a_run_of_uncommitted_files_is_told() -> None:
    found = checked(run(changes={"git": {"commit": "c0ffee", "dirty": True}}))
    assert found.notes == ("run one was made with uncommitted changes of the gate repository",)
    assert found.result == "PASSED"


def test_a_run_that_only_recorded() -> None:
    only = run(recording=True, results=dict.fromkeys((C1, C4, SUMS), Verdict.NO_BASELINE))
    found = checked(only)
    assert {one.finding for one in found.tests} == {Finding.NO_BASELINE}
    assert "run one only recorded (--record)" in found.notes


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (ReleasedBuild("llama.cpp", "1.4.0"), "version 1.3.0, not 1.4.0"),
        (ReleasedBuild("llama.cpp", commit="0123456789ab"), "commit def456, not 0123456789ab"),
        (ReleasedBuild("llama.cpp", image="sha256:00"), "image not known, not sha256:00"),
    ],
)
def test_another_build(wanted: ReleasedBuild, why: str) -> None:
    found = checked(run(), given=policy(build=wanted))
    assert {one.finding for one in found.tests} == {Finding.WRONG_BUILD}
    assert why in of_test(found).why
    assert status_of(found) == ReleaseStatus.MIXED


def test_an_abbreviated_commit_and_a_digest_with_its_repository() -> None:
    build = MeasuredBuild("llama.cpp", "1.3.0", "0123456789ab", "e:1", "example/e@sha256:77")
    wanted = ReleasedBuild("llama.cpp", commit="0123456789ab" + "c" * 28, image="sha256:77")
    assert checked(run(build=build), given=policy(build=wanted)).result == "PASSED"


def test_other_hardware() -> None:
    scenario = replace(SCENARIO, hardware=replace(SCENARIO.hardware, gpu="B200", gpus=8))
    measured = {
        "record": "measurement",
        "scenario": "small",
        "probe": "c1",
        "role": "new",
        "fingerprint": {"gpus": "NVIDIA H200, NVIDIA H200"},
    }
    made = run()
    made = replace(made, records=[measured, *made.records])
    given = policy(Required("all", tests=("small",), hardware="8xB200"))
    found = check(given, [made], [scenario], (), AT)
    assert of_test(found).finding == Finding.WRONG_HARDWARE
    assert "NVIDIA H200, NVIDIA H200, not 8xB200" in of_test(found).why
    assert of_test(found, C4).finding == Finding.PASSED


def test_a_scenario_that_was_changed_since() -> None:
    line = {"record": "measurement", "scenario": "small", "probe": "c1", "role": "new"}
    old, same = (
        replace(run(), records=[{**line, "fingerprint": {"content": content}}, *run().records])
        for content in ("0123456789abcdef", load_probes(SCENARIO)[0].content_hash())
    )
    assert of_test(checked(old)).finding == Finding.MISSING
    assert checked(same).result == "PASSED"


def test_few_starts() -> None:
    found = checked(run(), given=policy(Required("all", select="local", starts=3)))
    assert [one.finding for one in found.tests] == [Finding.FEW_STARTS] * 2 + [Finding.PASSED]
    assert of_test(found).why == "2 fresh starts, at least 3 are required"
    enough = checked(run(), given=policy(Required("all", select="local", starts=2)))
    assert enough.result == "PASSED"


@pytest.mark.parametrize(
    ("metric", "limit", "finding"),
    [
        ("output_throughput", 1000.0, Finding.PASSED),
        ("output_throughput", 1100.0, Finding.BELOW_FLOOR),
        ("ttft_mean_ms", 400.0, Finding.PASSED),
        ("ttft_mean_ms", 299.0, Finding.BELOW_FLOOR),
        ("tpot_mean_ms", 10.0, Finding.BELOW_FLOOR),
    ],
)
def test_floors(metric: str, limit: float, finding: Finding) -> None:
    given = policy(Required("all", select="local", floors=(Floor(C1, metric, limit),)))
    found = checked(run(), given=given)
    assert of_test(found).finding == finding
    assert (status_of(found) == ReleaseStatus.FAILED) == (finding != Finding.PASSED)


@pytest.mark.parametrize(
    ("value", "finding"), [(1000.0, Finding.PASSED), (1100.0, Finding.BELOW_DOCUMENTED)]
)
def test_documented_values(value: float, finding: Finding) -> None:
    told = [
        {"metric": "output_throughput", "value": value, "unit": "tokens/s", "source": "guide.md"}
    ]
    made = changed(run(), C1, documented=told)
    asked = policy(Required("all", select="local", documented=True))
    assert of_test(checked(made, given=asked)).finding == finding
    assert of_test(checked(made)).finding == Finding.PASSED, "the policy does not ask for it"


def test_a_verdict_without_numbers_checked_nothing() -> None:
    empty = to_plain((building.judgement(verdict=Verdict.PASS, runs_used=0),))
    made = run()
    for test in (C1, C4, SUMS):
        made = changed(made, test, judgements=empty)
    found = checked(made)
    assert {one.finding for one in found.tests} == {Finding.NOTHING_CHECKED}
    assert found.faults == ("no metric was checked, so nothing is claimed",)
    assert (found.result, status_of(found)) == ("FAILED", ReleaseStatus.INCOMPLETE)


def test_a_policy_can_name_what_it_requires() -> None:
    found = checked(run())
    named = policy(required_sha256=found.required_sha256)
    assert checked(run(), given=named).result == "PASSED"
    wider = replace(SCENARIO, gate=replace(SCENARIO.gate, bands={"output_throughput": 0.5}))
    for scenario in (wider, replace(SCENARIO, title="another")):
        with pytest.raises(PolicyRefused, match="other tests, or other scenarios") as caught:
            check(named, [run()], [scenario], (), AT)
        assert caught.value.status == ReleaseStatus.POLICY
        assert found.required_sha256 in str(caught.value)


def test_runs_of_two_builds_are_refused() -> None:
    other = MeasuredBuild("llama.cpp", "1.3.1", "abc123")
    with pytest.raises(ReleaseRefused) as caught:
        checked(run(build=BUILD), run("two", "09:00", build=other))
    assert caught.value.status == ReleaseStatus.MIXED
    assert "run one: llama.cpp 1.3.0" in str(caught.value)
    assert "run two: llama.cpp 1.3.1" in str(caught.value)


def test_runs_of_two_releases_of_perfgate_are_refused() -> None:
    with pytest.raises(ReleaseRefused, match=r"perfgate 0\.2\.0") as caught:
        checked(run(), run("two", "09:00", changes={"versions": {"perfgate": "0.2.0"}}))
    assert caught.value.status == ReleaseStatus.MIXED


@pytest.mark.parametrize("started", ["12:02", "23:59"])
def test_a_run_of_a_time_to_come_is_refused(started: str) -> None:
    with pytest.raises(ReleaseRefused, match=f"{started}:00") as caught:
        checked(run(started=started))
    assert caught.value.status == ReleaseStatus.CLOCK


def test_a_run_that_ends_in_time_to_come_is_refused() -> None:
    made = run()
    made = replace(
        made, records=[*made.records[:-1], {**made.records[-1], "at": "2027-01-01T00:00+00:00"}]
    )
    with pytest.raises(ReleaseRefused) as caught:
        checked(made)
    assert caught.value.status == ReleaseStatus.CLOCK


def test_a_run_named_twice_and_a_missing_shard_are_refused() -> None:
    with pytest.raises(InputError, match="a run is named twice"):
        checked(run(), run())
    with pytest.raises(SeveralInputErrors, match="shard 2/2 is missing"):
        checked(run(shard=made_runs.SHARDS[0]))


@each(
    ("earlier", "later", "finding", "of"),
    [
        (Verdict.PASS, Verdict.INCONCLUSIVE, Finding.INCONCLUSIVE, "two"),
        (Verdict.INCONCLUSIVE, Verdict.PASS, Finding.PASSED, "two"),
        (Verdict.PASS, Verdict.ERROR, Finding.PASSED, "one"),
        (Verdict.ERROR, Verdict.PASS, Finding.PASSED, "two"),
        (Verdict.ERROR, None, Finding.NOT_RUN, "two"),
        (Verdict.REGRESSION, Verdict.PASS, Finding.REGRESSION, "one"),
        (Verdict.PASS, Verdict.REGRESSION, Finding.REGRESSION, "two"),
    ],
)
def test_which_of_two_runs_counts(earlier: Any, later: Any, finding: Finding, of: str) -> None:
    pair = run(results={C1: earlier}), run("two", "09:00", results={C1: later})
    for order in (pair, pair[::-1]):
        one = of_test(checked(*order))
        assert (one.finding, one.run) == (finding, of)


def test_running_again_does_not_clear_a_regression_but_a_person_can() -> None:
    runs = run(results={C1: Verdict.REGRESSION}), run("two", "09:00")
    one = of_test(checked(*runs))
    assert one.why.endswith("running again does not clear it (run two: PASS)")
    aside = SetAside("one", C1, "a fan had failed", "Ada", "https://bugs.example/2")
    found = checked(*runs, given=policy(set_aside=(aside,)))
    one = of_test(found)
    assert (one.finding, one.effect, one.run) == (Finding.PASSED, "warn", "two")
    told = "REGRESSION of run one set aside by Ada: a fan had failed (https://bugs.example/2)"
    assert (one.why, found.result) == (told, "WARNED")
    alone = checked(runs[0], given=policy(set_aside=(aside,)))
    assert of_test(alone).finding == Finding.MISSING


def test_nothing_but_a_regression_can_be_set_aside() -> None:
    aside = SetAside("two", C1, "too slow for us", "Ada", "https://bugs.example/2")
    runs = run(), run("two", "09:00", results={C1: Verdict.INCONCLUSIVE})
    found = checked(*runs, given=policy(set_aside=(aside,)))
    assert of_test(found).finding == Finding.INCONCLUSIVE


def test_a_waiver_of_a_later_run_clears_a_regression() -> None:
    later = changed(run("two", "09:00"), C1, **waived())
    found = checked(run(results={C1: Verdict.REGRESSION}), later)
    assert (of_test(found).finding, of_test(found).run) == (Finding.WAIVED, "two")
    ended = changed(run("two", "09:00"), C1, **waived("2026-11-22"))
    found = checked(run(results={C1: Verdict.REGRESSION}), ended)
    assert (of_test(found).finding, of_test(found).run) == (Finding.REGRESSION, "one")


def test_a_fault_of_a_waiver_warns() -> None:
    found = checked(run(faults=["waivers.yaml:3: the waiver is no longer needed"], end=14))
    assert found.result == "WARNED"
    assert found.warnings == ("run one: waivers.yaml:3: the waiver is no longer needed",)


def test_false_alarms_that_are_likelier_than_allowed_fail_with_both_numbers() -> None:
    found = checked(run())
    assert found.error_rates is not None
    rate = found.error_rates.false_alarm
    assert 0 < rate < 0.01
    strict = checked(run(), given=policy(false_alarms=rate / 2))
    (fault,) = strict.faults
    assert f"{rate:.3g}" in fault
    assert f"{rate / 2:g}" in fault
    assert (strict.result, status_of(strict)) == ("FAILED", ReleaseStatus.INCOMPLETE)
    assert {one.effect for one in strict.tests} == {"pass"}


_RESULTS = st.sampled_from([*Verdict, None, "budget"])


@settings(max_examples=30)
@given(
    st.lists(
        st.fixed_dictionaries({C1: _RESULTS, C4: _RESULTS, SUMS: _RESULTS}), min_size=1, max_size=3
    ),
    st.permutations(range(3)),
)
def test_whatever_the_runs_hold(results: list[dict[str, Any]], order: list[int]) -> None:
    runs = [run(f"run-{n}", f"0{n}:00", results=one) for n, one in enumerate(results)]
    found = checked(*runs)
    lost = {test for one in results for test, verdict in one.items() if verdict == "REGRESSION"}
    assert {one.test for one in found.tests if one.finding == Finding.REGRESSION} == lost
    assert (status_of(found) == ReleaseStatus.FAILED) == bool(lost)
    good = {Verdict.PASS, Verdict.IMPROVEMENT}
    newest = {
        test: [one[test] for one in results if one[test] not in (None, "budget", Verdict.ERROR)][
            -1:
        ]
        for test in (C1, C4, SUMS)
    }
    passed = not lost and all(one and one[0] in good for one in newest.values())
    assert (found.result == "PASSED") == passed
    assert checked(*(runs[n] for n in order if n < len(runs))) == found
