"""Learnt noise: what verdicts believe of a start's noise, and where they say it is from."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import building
import pytest

from perfgate.baselines import BaselineRun, Entry, suite_store
from perfgate.baselines.hardware_noise import NO_HISTORY
from perfgate.baselines.noise_history import NoiseRun, NoiseSeries, save
from perfgate.core.measurement import Measurement
from perfgate.gate.noise import OWN_SIGMA
from perfgate.gate.probe import RunNoise
from perfgate.gate.rule import Rule
from perfgate.gate.verdict import Verdict
from perfgate.scenarios.probe import load_probes
from perfgate.scenarios.scenario import Hardware, Scenario
from perfgate.verdicts.judgement import Reference, judge
from perfgate.verdicts.learnt_noise import read_noise, run_noises

METRIC = "output_throughput"
SCENARIO = replace(
    building.SCENARIO,
    hardware=Hardware("H200", 8),
    gate=replace(building.SCENARIO.gate, metrics=(METRIC, building.SUMS)),
)


@pytest.fixture(autouse=True)
def checkout(suite_root: Path) -> Path:
    return suite_root


def keep(run: str, *values: float, hardware: str = "8xH200", **changes: Any) -> None:
    series = NoiseSeries("small-serve", "c1", "a", "abc", {METRIC: values})
    at = "2026-11-20T08:00:00+00:00"
    own = changes.get("own", False)
    save(NoiseRun(hardware, run, at, "run", (replace(series, **changes),)), own=own)


def learnt(scenario: Scenario = SCENARIO) -> dict[str, RunNoise]:
    return run_noises(read_noise(scenario, building.MACHINE), scenario, scenario.gate.metrics)


def test_without_history_it_is_the_familys_prior_and_says_so() -> None:
    (found,) = learnt().values()
    assert found.sigma == pytest.approx(0.005)
    assert replace(found, sigma=None) == RunNoise(between=0.3, note=NO_HISTORY)
    on_nodes = replace(SCENARIO, hardware=Hardware("H200", 16, nodes=2))
    assert learnt(on_nodes)[METRIC].sigma == pytest.approx(0.016)


def test_with_history_it_is_what_the_hardware_showed() -> None:
    keep("a", *[100.0 + 4 * (-1) ** n for n in range(30)])
    found = learnt()[METRIC]
    assert found.sigma is not None
    assert found.sigma > 0.02
    assert (found.note, found.differences) == ("", 29)


def test_what_was_left_out_is_told_but_not_all_of_it() -> None:
    keep("good", 100.0, 101.0)
    for number in range(4):
        keep(f"bad{number}", 1.0, 0.0, probe=f"c{number}")
    note = learnt()[METRIC].note
    assert note.startswith("noise: left out of the history: small-serve-c0: ")
    assert note.endswith("; and 2 more")


def test_a_machine_that_measures_its_own_noise_has_its_own_history() -> None:
    gate = replace(SCENARIO.gate, noise="measured", reference="self")
    own = replace(SCENARIO, hardware=Hardware("none", 0), gate=gate)
    keep("other", 100.0, 150.0, hardware="cpu")
    assert learnt(own) == {}
    keep("mine", 100.0, 150.0, hardware="cpu", own=True)
    found = learnt(own)[METRIC]
    assert found.sigma is not None
    assert OWN_SIGMA < found.sigma < 2 * OWN_SIGMA


def entry(*values: float) -> Entry:
    runs = [
        BaselineRun(f"run-{day}", f"2026-11-{day:02}T08:00:00+00:00", {METRIC: value})
        for day, value in enumerate(values, start=1)
    ]
    return Entry({"cpu": "Grace"}, tuple(runs))


def verdict_of(*new: float, facts: dict[str, Any] | None = None) -> Any:
    probe = load_probes(SCENARIO)[0]
    known = read_noise(SCENARIO, None)
    noise = run_noises(known, SCENARIO, [METRIC])
    far = {node: str(one) for node, one in known.far_nodes([METRIC]).items()}
    reference = Reference(entry(100.0, 101.0, 99.0, 100.0), noise=noise, far_nodes=far)
    starts = [Measurement({METRIC: value}, facts=facts or {}) for value in new]
    return judge(probe, reference, starts, {"cpu": "Grace"}, Rule())


def test_a_verdict_says_that_nothing_is_known_of_the_hardware_yet() -> None:
    judged = verdict_of(100.0)
    assert NO_HISTORY in judged.judgements[0].notes
    keep("a", 100.0, 101.0)
    assert NO_HISTORY not in verdict_of(100.0).judgements[0].notes


def test_a_loud_history_makes_a_loss_of_its_size_no_regression() -> None:
    """Without controls, two starts 4 % down: proved on quiet hardware, noise on a loud one."""
    assert verdict_of(96.0, 96.0).verdict == Verdict.REGRESSION
    loud = [[100.0 * (1 + 0.04 * (-1) ** day)] for day in range(12)]
    made = building.baseline(entries={"c1": entry(*[one[0] for one in loud])}, scenario="other")
    suite_store().save(replace(made, hardware="8xH200", change="first"))
    assert verdict_of(96.0, 96.0).verdict == Verdict.INCONCLUSIVE


def test_a_verdict_names_a_node_that_lies_apart() -> None:
    for run in "abc":
        keep(run, 100.0, 100.5, node="n7", offsets={METRIC: 0.05})
    there = verdict_of(100.0, facts={"slurm": {"nodes": ["n7"]}})
    assert "node n7 lies -2.1% off in output_throughput (3 sessions)" in there.notes
    assert verdict_of(100.0, facts={"slurm": {"nodes": ["n8"]}}).notes == ()
