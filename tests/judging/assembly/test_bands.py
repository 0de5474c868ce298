"""Bands and learnt noise: which number counts for a metric, and what stored numbers tell of it."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import building
import pytest
from tables import each

from perfgate.baselines import BaselineRun, Entry, Retired, suite_store
from perfgate.baselines.noise_history import NoiseRun, NoiseSeries, save
from perfgate.baselines.noise_table import MOST_BASELINES, noise_table
from perfgate.core.metrics import lookup
from perfgate.engines.base import EngineBuild
from perfgate.judging.assembly import bands
from perfgate.judging.assembly.bands import NO_HISTORY, noises_on
from perfgate.judging.rules import noise
from perfgate.scenarios.documented import DocumentedValue
from perfgate.scenarios.scenario import Scenario

SPEED, TTFT, TPOT, SUMS = "output_throughput", "ttft_mean_ms", "tpot_mean_ms", building.SUMS
BARE = DocumentedValue(100.0)
pytestmark = pytest.mark.usefixtures("suite_root")


def on(nodes: int = 1, **bands: float) -> Scenario:
    made = building.SCENARIO
    hardware, gate = replace(made.hardware, nodes=nodes), replace(made.gate, bands=bands)
    return replace(made, hardware=hardware, gate=gate)


@each(
    "made, metric, value, loss, source, text",
    [
        (on(), SPEED, None, 0.02, "family", "2.0 % family throughput"),
        (on(2), SPEED, None, 0.06, "nodes", "6.0 % family throughput, several nodes"),
        (on(output_throughput=0.03), SPEED, None, 0.03, "scenario", "3.0 % scenario"),
        (on(2, output_throughput=0.03), SPEED, None, 0.03, "scenario", ""),
        # no other default is known on several nodes
        (on(2), TTFT, None, 0.15, "family", ""),
        (on(), "ttft_p99_ms", None, None, "family", "report only"),
        (on(output_throughput=0.3), SPEED, replace(BARE, tolerance=0.25), 0.25, "document", ""),
        # a documented speed is of another machine: 10 % at least
        (on(), SPEED, BARE, 0.10, "document", ""),
        (on(), SPEED, replace(BARE, tolerance=0.05), 0.10, "document", ""),
        (on(output_throughput=0.03), SPEED, BARE, 0.10, "document", ""),
        (on(output_throughput=0.12), SPEED, BARE, 0.12, "scenario", ""),
        (on(), TTFT, BARE, 0.15, "family", ""),
        (on(), SUMS, None, 0.02, "family", "2.0 points family accuracy"),
        (on(), SUMS, DocumentedValue(0.95), 0.02, "family", ""),
        (on(), SUMS, DocumentedValue(0.95, tolerance=0.01), 0.01, "document", ""),
        (on(**{SUMS: 0.05}), SUMS, None, 0.05, "scenario", ""),
    ],
)
def test_the_band_and_its_source(made, metric, value, loss, source, text) -> None:
    found = bands.resolve_band(metric, made, value)
    assert (found.loss, found.source) == (loss, source)
    assert found.against == ("baseline" if value is None else "documented")
    assert not text or found.describe() == text


@each("reference, against", [("stored", ["baseline", "documented"]), ("self", ["baseline"])])
def test_every_gating_metric_has_its_bands(reference, against) -> None:
    """A machine that measures itself compares no speed with a document."""
    made = replace(on(), gate=replace(on().gate, reference=reference))
    found = bands.gating_bands(made, {SPEED: BARE, SUMS: DocumentedValue(0.9), TTFT: BARE})
    assert list(found) == list(made.gate.metrics)
    assert [one.against for one in found[SPEED]] == against
    assert [one.against for one in found[TPOT]] == ["baseline"]
    assert [one.loss for one in found[SUMS]] == pytest.approx([0.02, 0.02])


# Learnt noise. -----------------------------------------------------------------------------------
SIGMA = 0.005
FACTS = {"content": "a", "cpu": "Grace", "cores": "72"}
XEON = {"cpu": "Xeon", "cores": "2"}


def entry(sessions: Sequence[Sequence[float]], first: int = 1, **facts: str) -> Entry:
    """One run for each session, a day each, with one start for each value."""
    runs = (
        BaselineRun(f"run-{day}", f"2026-11-{day:02}T08:{number:02}:00+00:00", {SPEED: value})
        for day, values in enumerate(sessions, start=first)
        for number, value in enumerate(values)
    )
    return Entry({**FACTS, **facts}, tuple(runs))


def accept(number: int, *sessions: Sequence[float], **more: Any) -> None:
    label, facts = more.pop("label", "c1"), more.pop("facts", {})
    entries = {label: entry(sessions, first=10 * number % 20 + 1, **facts)}
    engine = EngineBuild("llama.cpp", f"1.{number}", f"commit{number}")
    made = {"change": "first", "hardware": "8xH200", "entries": entries, "engine": engine, **more}
    suite_store().save(building.baseline(**made), merge=False)


def keep(run: str, *values: float, own: bool = False, **changes: Any) -> None:
    series = NoiseSeries("small-serve", "c1", "a", "abc", {SPEED: values}, own=own)
    at = "2026-11-20T08:00:00+00:00"
    save(NoiseRun("8xH200", run, at, (replace(series, **changes),)), own=own)


def known(**options: Any) -> bands.Learnt:
    return bands.known_noise(*noise_table("8xH200", **{"own": False, **options}))


def learnt(metric: str = SPEED, **options: Any) -> noise.RunNoise:
    return known(**options)(metric, SIGMA)[0]


def counts(metric: str = SPEED, **options: Any) -> tuple[int, int]:
    """Differences within sessions and between them that the noise is learnt from."""
    with patch.object(noise, "learnt_noise", wraps=noise.learnt_noise) as given:
        differences = learnt(metric, **options).differences
    sizes = [[len(one) for one in sessions] for sessions in given.call_args.args[0] if sessions]
    found = sum(sum(one) - len(one) for one in sizes), sum(len(one) - 1 for one in sizes)
    assert sum(found) == differences
    return found


def test_single_starts_are_no_history() -> None:
    for _ in ("nothing stored", "one start of a run, one of a baseline"):
        found, told = known()(SPEED, SIGMA)
        assert (found.differences, told, found.sigma) == (0, (), pytest.approx(SIGMA))
        keep("a", 100.0)
        accept(0, [100.0])


RETIRED = Retired("Ada", "2026-11-21T08:00:00+00:00", "wrong clocks")
ELSEWHERE = building.baseline(entries={"c1": entry([[1.0, 1.1]])}, hardware="8xB200")
SAME, BETTER = {"change": "none"}, {"change": "improvement"}


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        # Starts of one session and sessions of one build; of other units in another scenario.
        ([(0, [100.0, 101.0], [102.0], [99.0, 100.0, 101.0], {}),
          (1, [1.0], [1.01], [1010.0], [1000.0], {"scenario": "other"})], (3, 2)),
        # Builds that were accepted as unchanged are one level, until one was not.
        ([(0, [100.0], {}), (1, [101.0], SAME)], (0, 1)),
        ([(0, [100.0], {}), (1, [101.0], SAME), (2, [150.0], BETTER), (3, [151.0], SAME)], (0, 2)),
        # A retired one tells nothing and still parts levels.
        ([(0, [100.0], {}), (1, [50.0], {"change": "regression", "retired": RETIRED}),
          (2, [51.0], SAME)], (0, 0)),
        # Candidates, other facts, other probes.
        ([(5, [100.0], [101.0], {"accepted_by": "nobody yet"}), (0, [100.0], {}),
          (1, [50.0], {"facts": {"driver": "580"}, **SAME}), (2, [25.0], {"label": "c4", **SAME})],
         (0, 0)),
        # All probes and scenarios of the hardware are pooled.
        ([(0, [100.0], [101.0], {}), (1, [50.0], [50.5], {"scenario": "other"}),
          (2, [7.0], [7.1], {"scenario": "third", "label": "c64"})], (0, 3)),
    ],
)  # fmt: skip
def test_differences_within_sessions_and_between_them(accepted, expected) -> None:
    suite_store().save(ELSEWHERE, merge=False)
    for number, *sessions, more in accepted:
        accept(number, *sessions, **more)
    assert counts() == expected


def test_the_history_of_a_louder_machine_is_louder() -> None:
    accept(0, [100.0])
    accept(1, [150.0], **BETTER)
    assert learnt().sigma < 2 * SIGMA
    accept(0, *[[100.0 * (1 + 0.03 * (-1) ** day)] for day in range(10)])
    assert learnt().sigma > 2 * SIGMA


def test_of_a_run_only_differences_within_its_session_count_and_none_twice() -> None:
    keep("a", 100.0, 101.0)
    keep("b", 120.0, 121.0, 122.0)
    assert counts() == (3, 0)
    accept(0, [100.0, 101.0])
    for build, expected in (("commit0", 4), ("its-control", 5)):
        keep("run-1", 100.0, 101.0, build=build)
        assert counts() == (expected, 0)
    # Another metric of the family stands in where a probe lacks it: one observation a start.
    per_user = {"output_throughput_per_user": (9.0, 9.1)}
    keep("c", values=per_user)
    keep("d", values={**per_user, SPEED: (10.0, 10.2), TPOT: (5.0, 5.1)})
    assert (counts(), counts(TPOT)) == ((7, 0), (1, 0))


def test_a_machine_that_measures_itself_or_of_another_kind_has_a_history_of_its_own() -> None:
    accept(0, [100.0, 101.0])
    keep("a", 100.0, 101.0, 99.0, machine=XEON)
    keep("b", 100.0, 101.0, own=True)
    keep("c", 100.0, 101.0, machine={"cpu": "Grace", "cores": "72"})
    assert (counts(own=True), counts()) == ((1, 0), (4, 0))
    assert (counts(machine=FACTS), counts(machine=XEON)) == ((2, 0), (2, 0))


@each(
    "values, why",
    [
        ((100.0, 0.0, 101.0), "cannot be judged"),
        ((1.0, 1000.0), "hardly all in tokens/s"),
        ((7.0, 7.0, 7.0), "every value of output_throughput is the same"),
    ],
)
def test_zeros_mixed_units_and_values_that_never_move_are_left_out_and_told(values, why) -> None:
    keep("good", 100.0, 101.0)
    keep("bad", *values, probe="c4")
    _, (told,) = known()(SPEED, SIGMA)
    assert counts() == (1, 0)
    assert told.startswith("small-serve-c4: ")
    assert why in told


def test_of_many_baselines_the_newest_of_every_scenario_are_read(suite_root: Path) -> None:
    for number in range(3):
        accept(number, [100.0, 101.0])
    accept(9, [100.0, 101.0], scenario="other")
    of_scenario = suite_root / "baselines" / "8xH200" / "small-serve"
    for number in range(MOST_BASELINES + 40):
        damaged = of_scenario / f"old{number}.json"
        damaged.write_text("{")
        os.utime(damaged, (1, 1))
    found = known(first="small-serve")
    noise_found, unread = found(SPEED, SIGMA)
    assert (len(unread), noise_found.differences) == (MOST_BASELINES - 4, 4)
    edited = of_scenario.parent / "other" / "commit9.json"
    edited.write_text(edited.read_text().replace("101", "102"))
    assert "other/commit9.json: the baseline was edited by hand" in known()(SPEED, SIGMA)[1]


def test_of_a_hardware_is_that_of_its_history_else_the_family_s_on_so_many_nodes() -> None:
    keep("a", *[100.0, 103.0] * 10)
    found = noises_on("8xH200", [SPEED, "request_throughput", "accuracy:gsm8k:exact_match:strict"])
    assert set(found) == {SPEED, "request_throughput"}
    assert found[SPEED].sigma > 2 * lookup(SPEED).family.sigma
    assert found[SPEED].note == ""
    assert found["request_throughput"] == found[SPEED]  # metrics of a family share its first one's
    for hardware, sigma in (("8xB200", 0.005), ("2x4xGB200", 0.016)):
        prior = noises_on(hardware, [SPEED])[SPEED]
        assert (prior.sigma, prior.note) == (pytest.approx(sigma), NO_HISTORY)
