"""Learnt noise: which stored numbers are compared with each other, and what a verdict gets."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from building import baseline, of_commit
from tables import each

from perfgate.baselines import BaselineRun, Entry, Retired, suite_store
from perfgate.baselines.noise_history import NoiseRun, NoiseSeries, save
from perfgate.baselines.noise_table import MOST_BASELINES, noise_table
from perfgate.core.metrics import lookup
from perfgate.engines.base import EngineBuild
from perfgate.judging.assembly.bands import NO_HISTORY, HardwareNoise, noises_on
from perfgate.judging.rules.noise import NoiseComponents

METRIC, SCORE = "output_throughput", "accuracy:gsm8k:exact_match:strict-match"
SIGMA = 0.005
FACTS = {"content": "a", "cpu": "Grace", "cores": "72"}
XEON = {"cpu": "Xeon", "cores": "2"}
pytestmark = pytest.mark.usefixtures("suite_root")


def entry(sessions: Sequence[Sequence[float]], first: int = 1, **facts: str) -> Entry:
    """One run for each session, a day each, with one start for each value."""
    return Entry(
        {**FACTS, **facts},
        tuple(
            BaselineRun(f"run-{day}", f"2026-11-{day:02}T08:{number:02}:00+00:00", {METRIC: value})
            for day, values in enumerate(sessions, start=first)
            for number, value in enumerate(values)
        ),
    )


def accept(number: int, *sessions: Sequence[float], **more: Any) -> None:
    label, facts = more.pop("label", "c1"), more.pop("facts", {})
    entries = {label: entry(sessions, first=10 * number % 20 + 1, **facts)}
    more = {"change": "none", "hardware": "8xH200", **more}
    engine = EngineBuild("llama.cpp", f"1.{number}", f"commit{number}")
    made = of_commit(f"commit{number}", entries=entries, **more)
    suite_store().save(replace(made, engine=engine), merge=False)


def keep(run: str, *values: float, own: bool = False, **changes: Any) -> None:
    series = NoiseSeries("small-serve", "c1", "a", "abc", {METRIC: values}, own=own)
    at = "2026-11-20T08:00:00+00:00"
    save(NoiseRun("8xH200", run, at, (replace(series, **changes),)), own=own)


def known(**options: Any) -> HardwareNoise:
    return HardwareNoise(*noise_table("8xH200", **{"own": False, **options}))


def components(**options: Any) -> NoiseComponents:
    return known(**options).components(METRIC, SIGMA)[0]


def counts(**options: Any) -> tuple[int, int]:
    found = components(**options)
    return found.n_within, found.n_between


def test_single_starts_are_no_history() -> None:
    for _ in ("nothing stored", "one start of a run, one of a baseline"):
        found, told = known().components(METRIC, SIGMA)
        assert (found.has_history, told, found.sigma) == (False, (), pytest.approx(SIGMA))
        keep("a", 100.0)
        accept(0, [100.0], change="first")


RETIRED = Retired("Ada", "2026-11-21T08:00:00+00:00", "wrong clocks")
ELSEWHERE = replace(baseline(entries={"c1": entry([[1.0, 1.1]])}), hardware="8xB200")


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        # Starts of one session and sessions of one build; of other units in another scenario.
        (
            [
                (0, [100.0, 101.0], [102.0], [99.0, 100.0, 101.0], {"change": "first"}),
                (1, [1.0], [1.01], [1010.0], [1000.0], {"scenario": "other", "change": "first"}),
            ],
            (3, 2),
        ),
        # Builds that were accepted as unchanged are one level, until one was not.
        ([(0, [100.0], {"change": "first"}), (1, [101.0], {})], (0, 1)),
        (
            [
                (0, [100.0], {"change": "first"}),
                (1, [101.0], {}),
                (2, [150.0], {"change": "improvement"}),
                (3, [151.0], {}),
            ],
            (0, 2),
        ),
        # A retired one tells nothing and still parts levels.
        (
            [
                (0, [100.0], {"change": "first"}),
                (1, [50.0], {"change": "regression", "retired": RETIRED}),
                (2, [51.0], {}),
            ],
            (0, 0),
        ),
        # Candidates, other facts, other probes.
        (
            [
                (5, [100.0], [101.0], {"accepted_by": "nobody yet", "change": "first"}),
                (0, [100.0], {"change": "first"}),
                (1, [50.0], {"facts": {"driver": "580"}}),
                (2, [25.0], {"label": "c4"}),
            ],
            (0, 0),
        ),
        # All probes and scenarios of the hardware are pooled.
        (
            [
                (0, [100.0], [101.0], {"change": "first"}),
                (1, [50.0], [50.5], {"scenario": "other", "change": "first"}),
                (2, [7.0], [7.1], {"scenario": "third", "label": "c64", "change": "first"}),
            ],
            (0, 3),
        ),
    ],
)
def test_differences_within_sessions_and_between_them(
    accepted: list[Any], expected: tuple[int, int]
) -> None:
    suite_store().save(ELSEWHERE, merge=False)
    for number, *sessions, more in accepted:
        accept(number, *sessions, **more)
    assert counts() == expected


def test_the_history_of_a_louder_machine_is_louder() -> None:
    accept(0, [100.0], change="first")
    accept(1, [150.0], change="improvement")
    assert components().sigma < 2 * SIGMA
    accept(0, *[[100.0 * (1 + 0.03 * (-1) ** day)] for day in range(10)], change="first")
    assert components().sigma > 2 * SIGMA


def test_of_a_run_only_differences_within_its_session_count_and_none_twice() -> None:
    keep("a", 100.0, 101.0)
    keep("b", 120.0, 121.0, 122.0)
    assert counts() == (3, 0)
    assert components().session == pytest.approx((0.3 * SIGMA**2) ** 0.5)
    accept(0, [100.0, 101.0], change="first")
    keep("run-1", 100.0, 101.0, build="commit0")
    assert counts() == (4, 0)
    keep("run-1", 100.0, 101.0, build="its-control")
    assert counts() == (5, 0)


def test_a_machine_that_measures_itself_or_of_another_kind_has_a_history_of_its_own() -> None:
    accept(0, [100.0, 101.0], change="first")
    keep("a", 100.0, 101.0, 99.0, machine=XEON)
    keep("b", 100.0, 101.0, own=True)
    keep("c", 100.0, 101.0, machine={"cpu": "Grace", "cores": "72"})
    assert (counts(own=True), counts()) == ((1, 0), (4, 0))
    assert (counts(machine=FACTS), counts(machine=XEON)) == ((2, 0), (2, 0))


@each(
    "values, why",
    [
        ((0.0, 0.0), "cannot be judged"),
        ((100.0, 0.0, 101.0), "cannot be judged"),
        ((1.0, 1000.0), "hardly all in tokens/s"),
        ((7.0, 7.0, 7.0), "every value of output_throughput is the same"),
    ],
)
def test_zeros_mixed_units_and_values_that_never_move_are_left_out_and_told(
    values: tuple[float, ...], why: str
) -> None:
    keep("good", 100.0, 101.0)
    keep("bad", *values, probe="c4")
    found, (told,) = known().components(METRIC, SIGMA)
    assert (found.n_within, found.n_between) == (1, 0)
    assert told.startswith("small-serve-c4: ")
    assert why in told


def test_another_metric_of_the_family_stands_in_where_a_probe_lacks_it() -> None:
    keep("a", 100.0, 101.0)
    per_user = {"output_throughput_per_user": (9.0, 9.1)}
    keep("b", values=per_user)
    keep("c", values={**per_user, METRIC: (10.0, 10.2), "tpot_mean_ms": (5.0, 5.1)})
    assert counts() == (3, 0)  # one observation for each start, however many metrics it has
    assert known().components("tpot_mean_ms", SIGMA)[0].n_within == 1


def test_of_many_baselines_the_newest_of_every_scenario_are_read(suite_root: Path) -> None:
    for number in range(3):
        accept(number, [100.0, 101.0], change="first")
    accept(9, [100.0, 101.0], scenario="other", change="first")
    of_scenario = suite_root / "baselines" / "8xH200" / "small-serve"
    for number in range(MOST_BASELINES + 40):
        damaged = of_scenario / f"old{number}.json"
        damaged.write_text("{")
        os.utime(damaged, (1, 1))
    found = known(first="small-serve")
    assert len(found.unread) == MOST_BASELINES - 4
    assert found.components(METRIC, SIGMA)[0].n_within == 4
    edited = of_scenario.parent / "other" / "commit9.json"
    edited.write_text(edited.read_text().replace("101", "102"))
    assert "other/commit9.json: the baseline was edited by hand" in known().unread


def test_of_a_hardware_is_that_of_its_history() -> None:
    keep("a", *[100.0, 103.0] * 10)
    noise = noises_on("8xH200", [METRIC, "request_throughput", SCORE])
    assert set(noise) == {METRIC, "request_throughput"}
    assert noise[METRIC].sigma is not None
    assert noise[METRIC].sigma > 2 * lookup(METRIC).family.sigma
    assert noise[METRIC].note == ""
    assert noise["request_throughput"] == noise[METRIC]  # metrics of a family share its first one's


@each("hardware, sigma", [("8xB200", 0.005), ("2x4xGB200", 0.016)])
def test_without_history_is_the_family_s_on_so_many_nodes(hardware: str, sigma: float) -> None:
    noise = noises_on(hardware, [METRIC])[METRIC]
    assert (noise.sigma, noise.note) == (pytest.approx(sigma), NO_HISTORY)
