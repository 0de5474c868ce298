from dataclasses import replace

from building import SCENARIO, SUMS

from perfgate.scenarios.probe import all_probes, load_probes, order
from perfgate.scenarios.scenario import AccuracyTask, GatePolicy, Scenario, Smoke


def test_one_per_sweep_point_and_one_per_task() -> None:
    bare = replace(SCENARIO, workload=None, accuracy=())
    assert load_probes(bare) == all_probes(bare) == ()
    assert [(probe.id, probe.is_load) for probe in all_probes(SCENARIO)] == [
        ("small-serve-c1", True),
        ("small-serve-c4", True),
        ("small-serve-sums", False),
    ]


def test_gating_metrics_are_those_that_the_probe_gives() -> None:
    point, _, task = all_probes(SCENARIO)
    assert point.gating_metrics() == ("output_throughput", "tpot_mean_ms")
    assert task.gating_metrics() == (SUMS,)


def test_a_task_does_not_answer_for_one_whose_name_begins_alike() -> None:
    other = "accuracy:sums_hard:exact_match:strict-match"
    both = replace(SCENARIO, gate=GatePolicy((SUMS, other)))
    *_, task = all_probes(both)
    assert task.gating_metrics() == (SUMS,)


def test_equal_probes_are_one_key_and_show_their_name() -> None:
    one, _ = load_probes(SCENARIO)
    assert {one: 1}[load_probes(replace(SCENARIO))[0]] == 1
    assert repr(one) == "Probe(small-serve-c1)"


def hashes(scenario: Scenario) -> dict[str, str]:
    return {probe.label: probe.content_hash() for probe in all_probes(scenario)}


def test_a_change_touches_only_the_probes_it_shapes() -> None:
    assert SCENARIO.workload
    before = hashes(SCENARIO)
    assert len(set(before.values())) == 3
    longer = hashes(replace(SCENARIO, workload=replace(SCENARIO.workload, osl=64)))
    assert longer["sums"] == before["sums"]
    assert longer["c1"] != before["c1"]
    task = replace(SCENARIO.accuracy[0], fewshot=0)
    fewer = hashes(replace(SCENARIO, accuracy=(task, AccuracyTask("lm_eval", "new", 0))))
    assert fewer["c4"] == before["c4"]
    assert fewer["sums"] != before["sums"]
    swept = hashes(replace(SCENARIO, workload=replace(SCENARIO.workload, concurrency=(1, 4, 8))))
    assert {name: swept[name] for name in before} == before


def test_a_start_goes_from_what_is_cheap_and_can_end_it_to_what_takes_long() -> None:
    tasks = (
        AccuracyTask("lm_eval", "all", fewshot=5),
        AccuracyTask("lm_eval", "some", fewshot=5, limit=100),
        AccuracyTask("lm_eval", "few", fewshot=5, limit=20),
    )
    load = replace(SCENARIO.workload, concurrency=(4, 1)) if SCENARIO.workload else None
    scenario = replace(
        SCENARIO, accuracy=tasks, workload=load, smoke=Smoke("completion", ("Hello",))
    )
    ordered = sorted(all_probes(scenario), key=order)
    assert [probe.label for probe in ordered] == ["smoke", "few", "some", "c1", "c4", "all"]
