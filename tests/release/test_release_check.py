"""A policy held against runs: what is found of each test, and what it tells the shell."""

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import building
import made_checks
import made_runs
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from plain_records import record
from refusals import refused
from releases import AT, C1, C4, SCENARIO, SUITE, SUMS, changed, checked, of_test, policy, run
from tables import each

from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.core.measurement import MeasuredBuild
from perfgate.core.plain import to_plain
from perfgate.core.verdict import Verdict
from perfgate.release.certificate import check_lines
from perfgate.release.check_result import Finding, check_rows
from perfgate.release.policy import Floor, PolicyRefused, ReleasedBuild, Required, SetAside
from perfgate.release.release_check import check, status_of
from perfgate.release.release_status import ReleaseRefused
from perfgate.release.release_status import ReleaseStatus as Status
from perfgate.runs.ended_run import EndedRun
from perfgate.scenarios.probe import load_probes

BUILD = MeasuredBuild("llama.cpp", "1.3.0", "def456")
WAIVER = "waived by Ada up to a loss of 15.0 %, until 2026-12-01: known (https://bugs.example/1)"
LOSS = building.judgement().reason
LATE = AT + timedelta(days=7)
LOST = {C1: Verdict.REGRESSION}
WAIVES = policy(effects={"WAIVED": "pass"})


def waived(ends: str = "2026-12-01") -> dict[str, Any]:
    """A verdict that a waiver let pass."""
    judged = building.judgement(waiver=building.applied(WAIVER, date.fromisoformat(ends)))
    return {"verdict": "PASS", "judgements": to_plain((judged,))}


def measured(**fingerprint: str) -> EndedRun:
    """A run whose measurement of c1 has these facts."""
    made = run()
    fact = record("measurement", scenario="small", probe="c1", fingerprint=fingerprint)
    return replace(made, records=[fact, *made.records])


def of_documented(value: float) -> EndedRun:
    told = {"metric": "output_throughput", "value": value, "unit": "tokens/s", "source": "a.md"}
    return changed(run(), C1, documented=[told])


def part(**fields: Any) -> Any:
    return policy(Required("all", select="local", **fields))


def of_build(*names: str, **fields: Any) -> Any:
    return policy(build=ReleasedBuild("llama.cpp", *names, **fields))


def floor(metric: str, limit: float) -> Any:
    return part(floors=(Floor(C1, metric, limit),))


def judged(result: Any) -> EndedRun:
    return run(results={C1: result})


LOW, OTHER = Finding.BELOW_FLOOR, Finding.WRONG_BUILD
PINNED = MeasuredBuild("llama.cpp", "1.3.0", "0123456789ab", "e:1", "example/e@sha256:77")
# A run and a policy: what is found of c1, the start of why, and the status.
FOUND: list[tuple[EndedRun, Any, Finding, str, int]] = [
    (run(), policy(), Finding.PASSED, "", 0),
    (judged(Verdict.REGRESSION), policy(), Finding.REGRESSION, "output_throughput: 12.3 %", 1),
    (judged(Verdict.INCONCLUSIVE), policy(), Finding.INCONCLUSIVE, "output_throughput: ", 21),
    (judged(Verdict.NO_BASELINE), policy(), Finding.NO_BASELINE, "the verdict is NO_", 21),
    (judged(Verdict.NOT_COMPARABLE), policy(), Finding.NOT_COMPARABLE, "output_throughput", 21),
    (judged(Verdict.ERROR), policy(), Finding.ERROR, "oom: out of memory", 21),
    (judged("budget"), policy(), Finding.NOT_RUN, "budget: no GPU", 21),
    (judged(None), policy(), Finding.NOT_RUN, "unfinished: the session ended first", 21),
    # Waivers; one that ended lets nothing through.
    (changed(run(), C1, **waived()), policy(), Finding.WAIVED, f"output_throughput: {WAIVER}", 1),
    (changed(run(), C1, **waived()), policy(effects={"WAIVED": "warn"}), Finding.WAIVED, "", 20),
    (changed(run(), C1, **waived("2026-11-23")), WAIVES, Finding.WAIVED, "", 0),
    (changed(run(), C1, **waived("2026-11-22")), WAIVES, Finding.REGRESSION)
    + (f"output_throughput: {LOSS}; the waiver of Ada ended on 2026-11-22", 1),
    # Runs that are no evidence, or did not come to their end; a loss that was shown is one.
    (run(changes={"synthetic": True}), policy(), Finding.SYNTHETIC, "mock programs made", 21),
    (run(changes={"injected": ["a=0.1"]}), policy(), Finding.INJECTED, "run one changed", 21),
    (run(changes={"ab": {"a": "one", "b": "two"}}), policy(), Finding.MISSING, "run one comp", 21),
    (run(end=None), policy(), Finding.ERROR, "run one did not end", 21),
    (run(end=15), policy(), Finding.ERROR, "run one ended in a bug of perfgate", 21),
    (run(end=None, results=LOST), policy(), Finding.REGRESSION, "", 1),
    # Another build.
    (run(), of_build("1.4.0"), OTHER, "run one: version 1.3.0, not 1.4.0", 23),
    (run(), of_build(commit="0123456789ab"), OTHER, "run one: commit def456, not 01", 23),
    (run(), of_build(image="sha256:00"), OTHER, "run one: image not known, not sha256:00", 23),
    (run(build=PINNED), of_build(commit="0123456789ab" + "c" * 28, image="sha256:77"))
    + (Finding.PASSED, "", 0),
    # Another workload.
    (measured(content="0123456789abcdef"), policy(), Finding.MISSING, "run one measured small", 21),
    (measured(content=load_probes(SCENARIO)[0].content_hash()), policy(), Finding.PASSED, "", 0),
    # Numbers that must be reached.
    (run(), part(starts=3), Finding.FEW_STARTS, "2 fresh starts, at least 3 are required", 21),
    (run(), part(starts=2), Finding.PASSED, "", 0),
    (run(), floor("output_throughput", 1000.0), Finding.PASSED, "", 0),
    (run(), floor("output_throughput", 1100.0), LOW, "output_throughput is 1082.7 tokens/s; at", 1),
    (run(), floor("ttft_mean_ms", 400.0), Finding.PASSED, "", 0),
    (run(), floor("ttft_mean_ms", 299.0), LOW, "ttft_mean_ms is 300 ms; at most 299", 1),
    (run(), floor("tpot_mean_ms", 10.0), LOW, "tpot_mean_ms was not measured", 1),
    (of_documented(1000.0), part(documented=True), Finding.PASSED, "", 0),
    (of_documented(1100.0), part(documented=True), Finding.BELOW_DOCUMENTED, "output_thr", 1),
    (of_documented(1100.0), policy(), Finding.PASSED, "", 0),
]


@each("made, given, finding, why, status", FOUND, ids=[f"{one[2:]}" for one in FOUND])
def test_what_is_found_of_a_test(made, given, finding, why, status) -> None:
    found = checked(made, given=given)
    one = of_test(found)
    assert (one.finding, status_of(found, strict=True)) == (finding, status), one.why
    assert one.why.startswith(why), one.why
    assert (found.result, one.effect) == {0: ("PASSED", "pass"), 20: ("WARNED", "warn")}.get(
        status, ("FAILED", "fail")
    )
    assert status_of(found) == (0 if status == 20 else status)


def test_a_floor_is_of_one_test_alone() -> None:
    found = checked(run(), given=floor("ttft_mean_ms", 299.0))
    assert [one.finding for one in found.tests] == [LOW, Finding.PASSED, Finding.PASSED]


def test_a_part_may_allow_another_age_and_a_regression_has_none() -> None:
    assert of_test(checked(run(), at=LATE)).finding == Finding.STALE
    assert checked(run(), at=LATE, given=part(max_age_days=8.0)).result == "PASSED"
    assert of_test(checked(judged(Verdict.REGRESSION), at=LATE)).finding == Finding.REGRESSION


def test_what_is_peculiar_of_a_run_is_told() -> None:
    found = checked(run())
    assert (found.metrics_checked, found.machines, found.notes) == (3, {"one": "node7, Grace"}, ())
    changes = {"synthetic": True, "git": {"commit": "c0ffee", "dirty": True}}
    assert checked(run(changes=changes)).notes == (
        "run one is a rehearsal: mock programs made its numbers",
        "run one was made with uncommitted changes of the gate repository",
    )
    only = run(recording=True, results=dict.fromkeys((C1, C4, SUMS), Verdict.NO_BASELINE))
    assert "run one only recorded (--record)" in checked(only).notes
    faulty = checked(run(faults=["waivers.yaml:3: the waiver is no longer needed"], end=14))
    assert faulty.result == "WARNED"
    assert faulty.warnings == ("run one: waivers.yaml:3: the waiver is no longer needed",)


def test_other_hardware() -> None:
    scenario = replace(SCENARIO, hardware=replace(SCENARIO.hardware, gpu="B200", gpus=8))
    given = policy(Required("all", tests=("small",), hardware="8xB200"))
    made = measured(gpus="NVIDIA H200, NVIDIA H200")
    found = check(given, [made], replace(SUITE, scenarios=[scenario]), AT)
    assert of_test(found).finding == Finding.WRONG_HARDWARE
    assert "NVIDIA H200, NVIDIA H200, not 8xB200" in of_test(found).why
    assert of_test(found, C4).finding == Finding.PASSED


def test_a_verdict_without_numbers_checked_nothing() -> None:
    empty = to_plain((building.judgement(verdict=Verdict.PASS, runs_used=0),))
    made = run()
    for test in (C1, C4, SUMS):
        made = changed(made, test, judgements=empty)
    found = checked(made)
    assert {one.finding for one in found.tests} == {Finding.NOTHING_CHECKED}
    assert found.faults == ("no metric was checked, so nothing is claimed",)
    assert (found.result, status_of(found)) == ("FAILED", Status.INCOMPLETE)


def test_a_policy_can_name_what_it_requires() -> None:
    found = checked(run())
    named = policy(required_sha256=found.required_sha256)
    assert checked(run(), given=named).result == "PASSED"
    wider = replace(SCENARIO, gate=replace(SCENARIO.gate, bands={"output_throughput": 0.5}))
    for scenario in (wider, replace(SCENARIO, title="another")):
        error = refused(check, named, [run()], replace(SUITE, scenarios=[scenario]), AT)
        assert (type(error), error.status) == (PolicyRefused, Status.POLICY)
        assert found.required_sha256 in str(error)


def at_end(made: EndedRun, at: str) -> EndedRun:
    return replace(made, records=[*made.records[:-1], structs.replace(made.records[-1], at=at)])


FIRST = run(build=BUILD)
OF_OTHER = run("two", "09:00", build=replace(BUILD, version="1.3.1", commit="a"))
BY_NEWER = run("two", "09:00", build=BUILD, changes={"versions": {"perfgate": "0.2.0"}})
REFUSED: list[tuple[list[EndedRun], type[Exception], int | None, str]] = [
    ([FIRST, OF_OTHER], ReleaseRefused, Status.MIXED, "one: llama.cpp 1.3.0.*two: llama.cpp 1.3.1"),
    ([FIRST, BY_NEWER], ReleaseRefused, Status.MIXED, "one: perfgate 0.1.0; run two: perfgate 0.2"),
    ([run(started="12:02")], ReleaseRefused, Status.CLOCK, "still to come"),
    ([at_end(run(), "2027-01-01T00:00+00:00")], ReleaseRefused, Status.CLOCK, "still to come"),
    ([at_end(run(), "noon")], InputError, None, "/records.jsonl: ended.at: not a time"),
    ([at_end(run(), "2026-11-23T09:00:00")], InputError, None, "/records.jsonl: ended.at: not"),
    ([run(changes={"started": "noon"})], InputError, None, "/run.json: started: not a time"),
    ([run(), run()], InputError, None, "a run is named twice"),
    ([run(shard=made_runs.SHARDS[0])], SeveralInputErrors, None, "shard 2/2 is missing"),
]


@each("runs, kind, status, told", REFUSED)
def test_runs_that_are_no_evidence_of_one_release_are_refused(runs, kind, status, told) -> None:
    error = refused(checked, *runs, error=kind, match=told)
    assert getattr(error, "status", None) == status


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
    runs = run(results=LOST), run("two", "09:00")
    assert of_test(checked(*runs)).why.endswith("does not clear it (run two: PASS)")
    aside = SetAside("one", C1, "a fan had failed", "Ada", "https://bugs.example/2")
    found = checked(*runs, given=policy(set_aside=(aside,)))
    one = of_test(found)
    assert (one.finding, one.effect, one.run) == (Finding.PASSED, "warn", "two")
    told = "REGRESSION of run one set aside by Ada: a fan had failed (https://bugs.example/2)"
    assert (one.why, found.result) == (told, "WARNED")
    alone = of_test(checked(runs[0], given=policy(set_aside=(aside,))))
    assert (alone.finding, alone.why) == (Finding.MISSING, f"no other run holds it; {told}")
    other = replace(aside, run="two")  # nothing but a regression can be set aside
    pair = run(), run("two", "09:00", results={C1: Verdict.INCONCLUSIVE})
    found = checked(*pair, given=policy(set_aside=(other,)))
    assert of_test(found).finding == Finding.INCONCLUSIVE


@each(("ends", "finding", "of"), [("12-01", "waived", "two"), ("11-22", "regression", "one")])
def test_a_waiver_of_a_later_run_clears_a_regression(ends: str, finding: str, of: str) -> None:
    later = changed(run("two", "09:00"), C1, **waived(f"2026-{ends}"))
    one = of_test(checked(run(results=LOST), later))
    assert (one.finding, one.run) == (finding, of)


def test_false_alarms_that_are_likelier_than_allowed_fail_with_both_numbers() -> None:
    found = checked(run())
    assert found.error_rates is not None
    rate = found.error_rates.false_alarm
    strict = checked(run(), given=policy(false_alarms=rate / 2))
    (fault,) = strict.faults
    assert f"is {rate:.3g}; the policy allows {rate / 2:g}" in fault
    assert {f"fails: {fault}", "result: FAILED"} <= {*check_lines(strict)}
    assert (status_of(strict), {one.effect for one in strict.tests}) == (21, {"pass"})


_RESULTS = dict.fromkeys((C1, C4, SUMS), st.sampled_from([*Verdict, None, "budget"]))
_RUNS = st.lists(st.fixed_dictionaries(_RESULTS), min_size=1, max_size=3)


@settings(max_examples=30)
@given(_RUNS, st.permutations(range(3)))
def test_whatever_the_runs_hold(results: list[dict[str, Any]], order: list[int]) -> None:
    runs = [run(f"run-{n}", f"0{n}:00", results=one) for n, one in enumerate(results)]
    found = checked(*runs)
    lost = {test for one in results for test, verdict in one.items() if verdict == "REGRESSION"}
    assert {one.test for one in found.tests if one.finding == Finding.REGRESSION} == lost
    assert (status_of(found) == Status.FAILED) == bool(lost)
    unjudged, good = (None, "budget", Verdict.ERROR), {Verdict.PASS, Verdict.IMPROVEMENT}
    judged = (
        [one[test] for one in results if one[test] not in unjudged] for test in (C1, C4, SUMS)
    )
    passed = not lost and all(one and one[-1] in good for one in judged)
    assert (found.result == "PASSED") == passed
    assert checked(*(runs[n] for n in order if n < len(runs))) == found


def test_the_worst_come_first_and_what_passed_is_one_row_a_part() -> None:
    kinds = ("missing", "waived", "error", "regression", "inconclusive", "passed", "passed")
    tests = [made_checks.checked(place, Finding(kind)) for place, kind in enumerate(kinds)]
    tests.append(made_checks.checked(9, requirement="night"))
    rows = check_rows(made_checks.check(*tests))
    bad = ["regression", "error", "missing", "inconclusive", "waived"]
    assert [row[3] for row in rows] == [*bad, "passed", "passed"]
    assert [row[:2] for row in rows[-2:]] == [("serving", "2 tests"), ("night", "1 test")]
