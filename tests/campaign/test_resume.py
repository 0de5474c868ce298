"""Resuming: what is replayed, and when a run may not be gone on with."""

from dataclasses import replace
from typing import Any

from building import SCENARIO, judgement, outcome
from msgspec import structs
from plain_records import fields_of, record
from refusals import refused
from tables import each

from perfgate.campaign.resume import (
    call_of,
    kept_of,
    replayed,
    require_same,
    require_same_groups,
    require_same_selection,
    resuming_call,
)
from perfgate.core.errors import MissingProgram, RunError
from perfgate.core.measurement import Change, MeasuredBuild, MeasuredControl
from perfgate.core.verdict import Verdict
from perfgate.engines.base import EngineBuild
from perfgate.runs.record import Record, VerdictRecord
from perfgate.scenarios.probe import load_probes
from perfgate.scenarios.scenario import Scenario

FACTS: dict[str, Any] = {
    "id": "one",
    "arguments": ["/bin/pytest", "-m", "b200", "--run-dir", "/runs/one", "--api-key=***"],
    "synthetic": False,
    "launcher": "local",
    "injected": [],
    "control": ["auto"],
    "site_commands": {"before": "set it"},
    "fingerprint": {"cpu": "Grace", "cores": "72"},
}
C4 = load_probes(SCENARIO)[1].label


# What is replayed.


def recorded(**changes: Any) -> VerdictRecord:
    """The record of an outcome, as it comes back from the run folder."""
    made = record("verdict", {"test": "t", **fields_of(outcome(**changes))})
    assert isinstance(made, VerdictRecord)
    return made


@each(
    "changes",
    [
        {},
        {"judgements": (judgement(interval=None, notes=("one",)),), "notes": ("two",)},
        {"verdict": Verdict.NO_BASELINE, "judgements": (), "reason": "none yet", "folder": None},
        {"observed": (Change("ttft_p99_ms", 1.0, 2.0, 1.0, (0.5, 1.5), 1, 0.01),)},
        {"injected": ("a=1",), "synthetic": True},
        {
            "verdict": Verdict.ERROR,
            "judgements": (),
            "error": RunError("oom", "it ended", evidence=("CUDA",), hint="take less"),
        },
        {
            "verdict": Verdict.PASS,
            "judgements": (judgement(verdict=Verdict.PASS, mark="HOST_SHIFT", controls_used=2),),
            "controls": (
                MeasuredControl("baseline", MeasuredBuild("llama.cpp", "1.2.0", "abc"), 2),
                MeasuredControl("anchor", None, 0, "its image is gone"),
            ),
        },
    ],
)
def test_an_outcome_comes_back_from_its_record(changes) -> None:
    before = outcome(**changes)
    found = replayed(recorded(**changes), before.probe, before.measurements)
    assert str(found.error) == str(before.error)
    assert replace(found, error=before.error) == before


def of_a_run() -> list[Record]:
    """A run of two scenarios, one of them finished, which was recorded at "first"."""
    common = {"scenario": SCENARIO.id, "probe": C4, "metrics": {"output_throughput": 5.0}}
    return [
        record("selected", tests=["t", "other"]),
        record("measurement", common, role="reference"),
        record("measurement", common, disturbed=["heat"]),
        record("measurement", common),
        record("measurement", common, metrics={"output_throughput": 6.0}),
        structs.replace(recorded(), at="first"),
        record("group", scenario=SCENARIO.id, tests=["t"], content={"c1": "a", "sums": "b"}),
        record("measurement", common, scenario="other"),
        structs.replace(recorded(), test="other", name="other-c1"),
    ]


def test_a_finished_group_keeps_its_verdicts_and_the_starts_that_they_rest_on() -> None:
    kept = kept_of(of_a_run())
    assert list(kept.groups) == [SCENARIO.id]
    assert list(kept.verdicts) == ["t"]
    probe = load_probes(SCENARIO)[1]
    found: Any = kept.outcome(probe, [probe])
    assert found.verdict == Verdict.REGRESSION
    assert [one.metrics["output_throughput"] for one in found.measurements] == [5.0, 6.0]
    assert found.resumed_from == "first"
    others = (load_probes(SCENARIO)[0], load_probes(replace(SCENARIO, id="other"))[0])
    assert [kept.outcome(one, [one]) for one in others] == [None, None], "which are run"


def test_a_claim_gets_the_measurements_of_a_finished_group() -> None:
    kept = kept_of([one for one in of_a_run() if not isinstance(one, VerdictRecord)])
    first, second = load_probes(SCENARIO)
    assert len(kept.measured(second).measurements) == 2
    missing = kept.measured(first)
    assert (missing.verdict, [*missing.measurements]) == (Verdict.ERROR, [])


# Whether the session may go on with the run.


def test_another_selection_is_refused_with_the_first_arguments() -> None:
    require_same_selection(FACTS, ["a", "b"], ["b", "a"])
    require_same_selection(FACTS, [], ["a"])  # a run that selected nothing yet
    told = r"4 missing: a, b, c, …; 1 more: f[^§]*repeat its arguments: pytest -m b200 '--api-key="
    refused(require_same_selection, FACTS, list("abcde"), ["e", "f"], match=told)


@each(
    "change, found, expected",
    [
        ({"control": ["/opt/old"]}, "found: /opt/old", "expected: auto"),
        ({"synthetic": True}, "found: True", "expected: False"),
        ({"launcher": "slurm"}, "found: slurm", "expected: local"),
        ({"site_commands": {}}, "found: nothing", "expected: before set it"),
        ({"fingerprint": {"cpu": "Xeon"}}, "found: cpu Xeon", "expected: cpu Grace, cores 72"),
    ],
)
def test_what_shapes_all_numbers_must_be_as_it_was(change, found, expected) -> None:
    require_same(FACTS, FACTS)
    elsewhere = {name: fact for name, fact in FACTS.items() if name != "fingerprint"}
    require_same(FACTS, elsewhere)  # the engine runs on another machine
    told = f"differs from run one[^§]*{found}[^§]*{expected}"
    refused(require_same, FACTS, {**FACTS, **change}, match=told)


def test_a_finished_group_whose_build_is_not_known_now_is_refused() -> None:
    """Another build, and another scenario: tests/suite/test_resume_road.py."""

    def gone(_: Scenario) -> EngineBuild:
        raise MissingProgram("not here")

    groups, scenarios = (
        {SCENARIO.id: record("group", scenario=SCENARIO.id)},
        {SCENARIO.id: SCENARIO},
    )
    told = "measured with now is not known: not here"
    refused(require_same_groups, groups, scenarios, gone, match=told)


def test_the_call_that_goes_on_names_the_run_and_nothing_twice() -> None:
    assert call_of(FACTS) == "pytest -m b200 '--api-key=***'"
    assert resuming_call(FACTS) == "pytest -m b200 '--api-key=***' --resume=/runs/one"
    plain = {"id": "20261105-1", "arguments": ["pytest", "--resume=older", "-m", "local"]}
    assert resuming_call({**plain, "arguments": ["pytest"]}) == "pytest --resume=20261105-1"
    assert resuming_call(plain) == "pytest -m local --resume=older"
    words = ["--perfgate-run-dir", "/runs/long", "--perfgate-record"]
    long = {**plain, "arguments": ["pytest", *words]}
    assert call_of(long) == "pytest --perfgate-record"
    assert resuming_call(long) == "pytest --perfgate-record --resume=/runs/long"
