"""Budget: spans of time as people write them, how long scenarios last, what no longer fits."""

import time
from dataclasses import replace

import building
import pytest
from building import SCENARIO, baseline, machine
from plain_records import record
from refusals import refused
from tables import each

from perfgate.baselines import Baseline, BaselineRun, Entry, Retired, own_store, suite_store
from perfgate.campaign import budget
from perfgate.campaign.budget import Budget, Estimate
from perfgate.campaign.session import Session
from perfgate.core.programs.locations import Locations
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.plan.toolchain import BuildOverride, toolchain_for
from perfgate.runs.run_folder import RunFolder
from perfgate.scenarios.probe import load_probes


@each(
    "text, seconds",
    [("4h", 14400), ("90m", 5400), ("3600s", 3600), ("2h30m", 9000), ("3600", 3600), ("1.5h", 5400)]
    + [("1h1m1s", 3661)],
)
def test_a_span_of_time_is_read(text, seconds) -> None:
    assert budget.seconds_of(text) == seconds


@each(
    "text", ["", "h", "0", "0h", "-1h", "4 h", "4d", "30m2h", "1h1h", "1h30", "four hours", "nan"]
)
def test_what_is_no_span_of_time_is_refused(text) -> None:
    refused(budget.seconds_of, text, match=r"--budget: not a duration[^§]*4h, 90m")


@each(
    "seconds, told",
    [(0, "0 s"), (12.4, "12 s"), (59.7, "1 min"), (60, "1 min"), (1500, "25 min")]
    + [(3599, "1 h"), (3600, "1 h"), (4200, "1 h 10 min")],
)
def test_a_span_of_time_is_told(seconds, told) -> None:
    assert budget.span(seconds) == told


LIMITS = "how long it takes is not known, limits say at most 1 h for the engine to start"


@each(
    "left, group, start, told",
    [
        (1500, Estimate(1400), 1400, None),
        (1500, Estimate(4200), 1800, "needs about 1 h 10 min, 25 min"),
        (1500, Estimate(3000) + Estimate(600, known=False), 1800, f"{LIMITS}, 25 min"),
        (-5, Estimate(0), 0, "needs about 0 s, 0 s"),
    ],
)
def test_what_does_not_fit_is_refused_with_both_times(left, group, start, told) -> None:
    session = Budget("4h", time.monotonic() + left + 0.5)
    assert session.refuses(group) == (told and f"not run: {told} of --budget 4h are left")
    assert (session.no_more(start) is None) == (told is None)


def test_no_further_start_is_made_beyond_it() -> None:
    nearly = "no more starts: --budget 4h is nearly used up"
    told = f"{nearly} (10 min are left, and one takes about 20 min)"
    assert Budget("4h", time.monotonic() + 600.5).no_more(1200) == told
    assert Budget("4h", 0.0).no_more(None) == f"{nearly} (0 s are left)"
    assert 3599 < Budget.from_now("1h").left_s() <= 3600


# How long a group takes, from a baseline, from its like, or from its limit. -----------------------

LOADED = replace(SCENARIO, accuracy=())
LIKE = replace(LOADED, id="like")
BOTH = load_probes(LOADED)
UNLIKE = replace(LOADED, id="unlike", model=replace(LOADED.model, name="Huge-900B"))
UNKNOWN = Estimate(SCENARIO.limits.start_s, known=False)


def group(scenario, *, made: int, spent: float):
    starts = {"planned": made, "made": made, "without_sharing": made, "again": 0}
    seconds = {"spent": spent, "starting": 0.0, "saved": 0.0}
    return record("group", scenario=scenario.id, starts=starts, seconds=seconds)


def estimated(folder, *groups, probes=BOTH, synthetic=False) -> Estimate:
    session = Session(RunFolder(folder), machine(), LocalLauncher(), synthetic=synthetic)
    tools = toolchain_for(LOADED, Locations(on_paper=True), BuildOverride("1.2.0", "abc123"))
    scenarios = {one.id: one for one in (LOADED, LIKE, UNLIKE)}
    return budget.estimate(tools, probes, session, groups, scenarios)


def timed(seconds: float) -> Entry:
    run = BaselineRun("r", "2026-11-05T08:00:00+00:00", {"output_throughput": 9.0}, {}, seconds, 1)
    return Entry({"content": "0123456789abcdef"}, (run,))


@pytest.mark.usefixtures("suite_root")
def test_a_baseline_tells_its_seconds_as_in_a_plan(tmp_path) -> None:
    suite_store().save(baseline(entries={"c1": timed(30.0)}))
    assert estimated(tmp_path) == UNKNOWN, "half of the probes are not enough"
    suite_store().save(baseline(entries={"c1": timed(30.0), "c4": timed(50.0)}))
    both, one = estimated(tmp_path), estimated(tmp_path, probes=BOTH[:1])
    assert both.known
    assert both.seconds >= 80
    assert 30 <= one.seconds < both.seconds
    assert estimated(tmp_path, synthetic=True) == UNKNOWN, "no rehearsal takes as long"


@pytest.mark.usefixtures("suite_root")
def test_scenarios_like_it_tell_what_a_start_takes(tmp_path) -> None:
    unlike = group(UNLIKE, made=1, spent=9999.0)
    like = estimated(tmp_path, group(LIKE, made=2, spent=200.0), unlike)
    assert like == Estimate(pytest.approx(100.0))
    assert estimated(tmp_path, unlike, group(LOADED, made=0, spent=0.0)) == UNKNOWN


# How long a scenario lasts, the same on every machine. --------------------------------------------

GPU = replace(SCENARIO, hardware=replace(SCENARIO.hardware, gpu="B200", gpus=8))
BY_ITSELF = replace(GPU, gate=replace(GPU.gate, reference="self", reference_starts=6, max_starts=4))


def measured(commit: str, accepted: str, seconds: dict[str, float | None]) -> Baseline:
    runs = building.entry(100.0, 101.0).runs
    entries = {
        label: Entry({}, tuple(replace(run, seconds=one) for run in runs))
        for label, one in seconds.items()
    }
    return building.of_commit(commit, accepted_at=accepted, entries=entries)


OLD = measured("a1", "2026-11-01T12:00:00+00:00", {"c1": 500.0, "c4": 600.0, "sums": 700.0})
NEW = measured("b2", "2026-11-09T12:00:00+00:00", {"c1": 100.0, "c4": 200.0, "sums": None})
GONE = replace(OLD, retired=Retired("Ada", "2026-11-10T12:00:00+00:00", "wrong driver"))


@each(
    "scenario, stored, known, usual, longest",
    [
        # The limits of one start; the newest baseline, an older one for what it lacks.
        (GPU, [], False, 60.0 + 3 * 600.0, 3 * 1860.0 + 1860.0),
        (GPU, [NEW, OLD], True, 2 * 1000.0, 11 * 1000.0 + 1860.0),
        (GPU, [OLD, NEW], True, 2 * 1000.0, 11 * 1000.0 + 1860.0),
        (GPU, [GONE, NEW], False, 2 * 900.0, 11 * 900.0 + 1860.0),
        (BY_ITSELF, [OLD], True, 10 * 1800.0, 10 * 1800.0 + 1860.0),
    ],
)
def test_how_long_a_scenario_lasts(scenario, stored, known, usual, longest) -> None:
    found = budget.scenario_seconds(scenario, stored)
    assert (found.known, found.usual, found.longest) == (known, usual, longest)


@pytest.mark.usefixtures("suite_root")
def test_what_a_machine_keeps_of_itself_does_not_count(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PERFGATE_HOME", str(tmp_path))
    own_store().save(replace(OLD, accepted_by="self"))
    assert budget.stored_seconds([SCENARIO])[SCENARIO.id].known is False
