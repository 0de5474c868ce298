"""Estimating: how long a group will take, from a baseline, from its like, or from its limit."""

from dataclasses import replace
from pathlib import Path

import pytest
from building import SCENARIO, baseline, machine

from perfgate.baselines import BaselineRun, Entry, suite_store
from perfgate.campaign.budget import Estimate
from perfgate.campaign.durations import estimate
from perfgate.campaign.session import Session
from perfgate.core.locations import Locations
from perfgate.judging.rules.performance import Rule
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.plan.toolchain import BuildOverride, Toolchain, toolchain_for
from perfgate.runs.record import GroupRecord, GroupSeconds, GroupStarts
from perfgate.runs.run_folder import RunFolder
from perfgate.scenarios.probe import Probe, load_probes
from perfgate.scenarios.scenario import Scenario

pytestmark = pytest.mark.usefixtures("suite_root")
LOADED = replace(SCENARIO, accuracy=())
UNKNOWN = Estimate(SCENARIO.limits.start_s, known=False)


def tools(scenario: Scenario = LOADED) -> Toolchain:
    return toolchain_for(scenario, Locations(on_paper=True), BuildOverride("1.2.0", "abc123"))


def estimated(
    folder: Path,
    groups: list[GroupRecord] | None = None,
    *,
    scenarios: tuple[Scenario, ...] = (LOADED,),
    probes: tuple[Probe, ...] = load_probes(LOADED),
    synthetic: bool = False,
) -> Estimate:
    session = Session(
        run=RunFolder(folder),
        machine=machine(),
        launcher=LocalLauncher(),
        rule=Rule(),
        synthetic=synthetic,
    )
    by_id = {one.id: one for one in scenarios}
    return estimate(tools(), probes, session, groups or [], by_id)


def timed(seconds: float) -> Entry:
    run = BaselineRun("r", "2026-11-05T08:00:00+00:00", {"output_throughput": 9.0}, {}, seconds, 1)
    return Entry({"content": "0123456789abcdef"}, (run,))


def group(scenario: str, *, made: int, spent: float) -> GroupRecord:
    starts = GroupStarts(planned=made, made=made, without_sharing=made, again=0)
    return GroupRecord(
        scenario=scenario,
        hardware="cpu",
        engine=None,
        content={},
        tests=(),
        starts=starts,
        seconds=GroupSeconds(spent=spent, starting=0.0, saved=0.0),
        ended="measured",
        synthetic=False,
    )


def test_where_nothing_is_known_the_limit_of_a_start_is_the_least(tmp_path: Path) -> None:
    assert estimated(tmp_path) == UNKNOWN
    assert estimated(tmp_path, [group(LOADED.id, made=0, spent=0.0)]) == UNKNOWN


def test_a_baseline_tells_its_seconds_as_in_a_plan(tmp_path: Path) -> None:
    suite_store().save(baseline(entries={"c1": timed(30.0)}))
    assert estimated(tmp_path) == UNKNOWN, "half of the probes are not enough"
    suite_store().save(baseline(entries={"c1": timed(30.0), "c4": timed(50.0)}))
    both, one = estimated(tmp_path), estimated(tmp_path, probes=load_probes(LOADED)[:1])
    assert both.known
    assert both.seconds >= 80
    assert 30 <= one.seconds < both.seconds


def test_a_rehearsal_does_not_take_as_long_as_what_it_plays(tmp_path: Path) -> None:
    suite_store().save(baseline(entries={"c1": timed(30.0), "c4": timed(50.0)}))
    assert estimated(tmp_path, synthetic=True) == UNKNOWN


def test_scenarios_like_it_tell_what_a_start_takes(tmp_path: Path) -> None:
    like = replace(LOADED, id="like")
    unlike = replace(LOADED, id="unlike", model=replace(LOADED.model, name="Huge-900B"))
    groups = [group("like", made=2, spent=200.0), group("unlike", made=1, spent=9999.0)]
    found = estimated(tmp_path, groups, scenarios=(LOADED, like, unlike))
    assert found.known
    assert found.seconds == pytest.approx(100.0)
    alone = estimated(tmp_path, groups[1:], scenarios=(LOADED, like, unlike))
    assert alone == UNKNOWN
