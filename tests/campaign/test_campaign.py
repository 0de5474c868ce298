"""A campaign: which starts are made, of which build, what is loaded on them, what the verdict is.

What a start gives is played; campaign, references, gate, records are the real ones.
"""

import re
from dataclasses import replace

import building
import pytest
from plain_records import recorded
from played import NEW, OLD, Played, Script, scenario_of, store_baseline, tools_of
from tables import each

from perfgate.baselines.baseline import BuildSource
from perfgate.baselines.decisions import pin_anchor
from perfgate.campaign.budget import Budget
from perfgate.campaign.builds import controls
from perfgate.campaign.builds.build import AbBuilds, Build
from perfgate.campaign.builds.words import parse_injection
from perfgate.campaign.campaign import Campaign
from perfgate.campaign.campaign_state import ProbeState
from perfgate.campaign.schedule import totals
from perfgate.campaign.session import Session
from perfgate.campaign.starter import why_another
from perfgate.core.errors import CannotDo, RunError
from perfgate.core.files.durable_files import read_lines
from perfgate.core.verdict import Verdict
from perfgate.engines.base import EngineBuild
from perfgate.judging.assembly.judge_input import ProbeJudgement
from perfgate.judging.assembly.sweeps import SweepProbe
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.scenarios.probe import load_probes

RELEASED = EngineBuild("llama.cpp", "1.1.0", "released")
SLOWER = BuildSource(image="registry/engine:1.3.0", settings=("engine.settings.max_batch_size=8",))
CONTROL = "baseline_control"


@pytest.fixture
def make(run, suite_root, monkeypatch: pytest.MonkeyPatch):
    """A campaign against a stored baseline of 100 tokens/s, or of the builds A and `b`."""

    def made(
        script, *, points=(4,), find=None, anchor=None, budget=None, b=None, band=0.04, **gate
    ):
        scenario = scenario_of(points, band=band, **gate)
        probes, launcher = load_probes(scenario), LocalLauncher()
        played = Played(script)
        played.take_part(monkeypatch)
        session = Session(run, building.MACHINE, launcher, cache=run.path, budget=budget)
        if b is not None:
            tools = tools_of(NEW if b.names_programs else OLD, scenario)
            settings = tuple(map(parse_injection, b.settings))
            a = Build(scenario, tools_of(OLD, scenario), launcher)
            ab = AbBuilds(a, Build(scenario, tools, launcher, settings, b))
            return Campaign(probes, tools, session, ab=ab), played
        store(OLD, probes, 100.0)
        if anchor is not None:
            store(RELEASED, probes, anchor, is_anchor=True)

        def other(*given) -> Build:
            return Build(scenario, tools_of(given[-1].engine, scenario), launcher)

        monkeypatch.setattr(controls, "baseline_build", find or other)
        return Campaign(probes, tools_of(NEW, scenario), session), played

    return made


def store(build: EngineBuild, probes, level: float, *, is_anchor=False) -> None:
    """A baseline of ten starts in ten sessions."""
    values = {
        probe: [level * (1 + 0.002 * ((number + point) % 3 - 1)) for number in range(10)]
        for point, probe in enumerate(probes)
    }
    accepted = f"2026-11-{5 if is_anchor else 15:02}T12:00:00+00:00"
    file = store_baseline(build, {"content": "a"}, values, accepted_at=accepted, change="first")
    if is_anchor:
        pin_anchor(file, by="Ada", reason="the last one that customers have")


def only(campaign: Campaign):
    """The outcome of its one probe."""
    (probe,) = load_probes(campaign.scenario)
    return campaign.outcome(probe)


def records(campaign: Campaign):
    return recorded(campaign.session.run, "measurement")


def reasons(campaign: Campaign) -> list[str]:
    """Why starts were made that were not planned, as whoever looks on is told."""
    lines = read_lines(campaign.session.run.path / "progress.jsonl")
    return [line["text"] for line in lines if line["event"] == "again"]


def test_a_slow_build_is_a_regression_in_the_order_of_the_rule(make) -> None:
    campaign, played = make({"*": {"new": [92.0, 92.1, 91.9, 92.2]}})
    found = only(campaign)
    assert (found.verdict, played.order) == (Verdict.REGRESSION, "nnccn")
    (judged,), (told,) = found.judgements, found.controls
    assert (judged.runs_used, judged.controls_used, judged.mark) == (3, 2, "")
    old = "llama.cpp 1.2.0, commit abc123, image registry/engine:1.2.0"
    assert (told.against, told.description) == ("baseline", f"{old}, 2 starts")
    assert found.build.version == "1.3.0"
    lines = records(campaign)
    images = [line["source"]["image"].partition(":")[2] for line in lines]
    assert images == ["1.3.0", "1.3.0", "1.2.0", "1.2.0", "1.3.0"]
    assert [line["start"] for line in lines] == [1, 2, 3, 4, 5]
    assert lines[2]["folder"].endswith("start-3-baseline_control/c4")
    starts, _ = totals([campaign.starts])
    assert (starts.planned, starts.made, starts.controls) == (1, 5, 2)


def dead(*_: object) -> Build:
    raise CannotDo("its image is gone")


def never(*_: object) -> Build:
    pytest.fail("it is not even looked for")


def of_another_content(*given) -> Build:
    tools = tools_of(given[-1].engine, building.SCENARIO, content="b")
    return Build(building.SCENARIO, tools, LocalLauncher())


SLOW = [92.0, 92.1, 91.9]
DIED = RunError("server_died", "it ended under load")
OOM = RunError("oom", "CUDA out of memory")
ELSEWHERE = RunError("unfit_machine", "node9 is not of the kind of node7")
REQUIRED = {"control": "required"}
OTHER = {"find": of_another_content}
USED_UP = {"budget": Budget("1s", 0.0)}


@pytest.mark.parametrize(
    ("new", "loaded", "started", "options", "verdict", "mark", "starts", "told"),
    [
        ([100.0], [], [], {"find": never}, "PASS", "", "n", ""),
        # The host is as slow as the build; slower than its history allows.
        (SLOW, SLOW, [0.0], {}, "PASS", "HOST_SHIFT", "nncc", ""),
        ([70.0], [70.0], [0.0], {}, "INCONCLUSIVE", "MACHINE", "nnccnnc", ""),
        # There is no other build, none that is wanted, or no time.
        (SLOW, [], [], {"find": dead}, "REGRESSION", "NO_CONTROL", "nn", "its image is gone"),
        (SLOW, [], [], {"find": dead, **REQUIRED}, "INCONCLUSIVE", "NO_CONTROL", "nn", ""),
        (SLOW, [], [], {"control": "none"}, "REGRESSION", "NO_CONTROL", "nn", "control is none"),
        (SLOW, [], [], {"budget_s": 1e-9}, "INCONCLUSIVE", "", "n", "of gate.budget_s 1e-09"),
        (SLOW, [], [], USED_UP, "INCONCLUSIVE", "", "n", "--budget 1s is nearly used up"),
        (SLOW, [], [], OTHER, "REGRESSION", "NO_CONTROL", "nn", "cannot be compared: content"),
        # The control dies at its start, under load, or is elsewhere: never an error of the build.
        (SLOW, [100.0], [OOM, 0.0], {}, "REGRESSION", "", "nncccn", "fresh start 3: oom"),
        (SLOW, [100.0], [OOM], {}, "REGRESSION", "NO_CONTROL", "nncc", "failed twice"),
        (SLOW, [100.0], [0.0, DIED], {}, "INCONCLUSIVE", "", "nnccc", "no further control"),
        (SLOW, [DIED], [0.0], {}, "REGRESSION", "NO_CONTROL", "nncc", ""),
        (SLOW, [100.0], [ELSEWHERE], {}, "REGRESSION", "NO_CONTROL", "nncc", "control not used"),
        (SLOW, [-92.0, 100.0], [0.0], {}, "REGRESSION", "", "nncccn", "not used: fresh start 3"),
    ],
)
def test_what_becomes_of_a_loss(make, new, loaded, started, options, verdict, mark, starts, told):
    script = {"*": {"new": new, CONTROL: loaded}, "start": {CONTROL: started}}
    campaign, played = make(script, **options)
    found = only(campaign)
    (judged,) = found.judgements
    assert (found.verdict, judged.mark, found.error) == (verdict, mark, None)
    assert played.order == starts
    assert told in " ".join([*found.notes, *(one.description for one in found.controls)])
    is_again = any(isinstance(one, Exception) or one < 0 for one in (*loaded, *started))
    assert totals([campaign.starts])[0].again == is_again


@pytest.mark.parametrize(
    ("control", "verdict", "mark"), [(100.0, "PASS", "HOST_SHIFT"), (112.0, "REGRESSION", "")]
)
def test_the_anchor_has_controls_of_its_own_build(make, control, verdict, mark) -> None:
    """Lost since the release in small steps: the nearest baseline shows nothing."""
    campaign, played = make({"*": {"anchor_control": [control]}}, anchor=112.0)
    found = only(campaign)
    assert set(played.starts) == {"new", "anchor_control"}
    against = {one.against: (one.verdict, one.mark) for one in found.judgements}
    assert against == {"baseline": (Verdict.PASS, ""), "anchor": (verdict, mark)}
    line = next(one for one in records(campaign) if one["role"] == "anchor_control")
    assert line["engine"]["version"] == "1.1.0"
    assert found.controls[0].description.startswith("of the anchor: llama.cpp 1.1.0")


@pytest.mark.parametrize(
    ("control", "find", "verdict", "mark", "controls"),
    [
        (100.0, None, "REGRESSION", "", 2),
        (95.0, None, "PASS", "HOST_SHIFT", 2),
        (95.0, dead, "REGRESSION", "NO_CONTROL", 0),
    ],
)
def test_a_curve_has_controls_at_every_point(make, control, find, verdict, mark, controls) -> None:
    """A loss that no point calls one: all points pass, and the curve asks for the starts."""
    script: dict[str, Script] = {"*": {"new": [95.0], CONTROL: [control]}}
    campaign, played = make(script, points=(1, 2, 4, 8), band=0.08, find=find)
    points = {campaign.outcome(one).verdict for one in load_probes(campaign.scenario)}
    assert (points, played.starts) == ({Verdict.PASS}, ["new"])
    found = campaign.curve_outcome(SweepProbe(campaign.scenario))
    assert (found.verdict, found.judgements[0].mark) == (verdict, mark), found.reason
    assert found.controls[0].starts == played.starts.count(CONTROL) == controls
    assert all(loaded == ["c1", "c2", "c4", "c8"] for loaded in played.loaded)


def test_a_claim_may_ask_for_a_start_without_breaking_the_order(make) -> None:
    campaign, played = make({"*": {"new": [92.0]}})
    (probe,) = load_probes(campaign.scenario)
    before = campaign.outcome(probe)
    assert campaign.measure_again([probe])
    assert campaign.outcome(probe).judgements == before.judgements
    assert played.starts.count("new") == 4
    assert not all(campaign.measure_again([probe]) for _ in range(3)), "five at most"


def test_an_error_of_the_build_itself_ends_it_without_controls(make) -> None:
    campaign, played = make({"*": {"new": [92.0, DIED]}})
    found = only(campaign)
    assert (found.verdict, played.order) == (Verdict.ERROR, "nn")
    curve = campaign.curve_outcome(SweepProbe(campaign.scenario))
    assert (curve.verdict, curve.error, curve.judgements) == (found.verdict, found.error, ())


# An A/B. ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "band", "verdict", "starts"),
    [
        ({"*": {"a": [100, 100.2], "b": [100.1, 99.9]}}, 0.02, "PASS", "abba"),
        ({"*": {"a": [100], "b": [92]}}, 0.02, "REGRESSION", "abbaab"),
        ({}, 0.002, "INCONCLUSIVE", "abbaabbaabba"),  # which the noise does not resolve
        # A disturbed start is made again in its place.
        ({"*": {"a": [100], "b": [-100, 100]}}, 0.02, "PASS", "abbba"),
    ],
)
def test_the_builds_of_an_ab_take_turns_until_decided(make, script, band, verdict, starts) -> None:
    campaign, played = make(script, band=band, b=SLOWER)
    found = only(campaign)
    assert (found.verdict, played.order) == (verdict, starts)
    (judged,) = found.judgements
    assert (judged.against, judged.needs_more_runs) == ("ab", False)
    assert any("fresh start 2: a neighbour" in note for note in found.notes) == ("bbb" in starts)
    told = judged.reason.startswith("B is 8.0 % slower than A (B/A 0.920")
    assert told == (verdict == "REGRESSION")


@pytest.mark.parametrize(
    ("slow", "b", "loaded"),
    [
        ({"b": [92]}, SLOWER, [["c1", "c4"]] * 4 + [["c1"]] * 2),
        ({"new": [92.0]}, None, [["c1", "c4"]] + [["c1"]] * 4),
    ],
)
def test_only_undecided_probes_are_loaded_again(make, slow, b, loaded) -> None:
    campaign, played = make({"c1": slow}, points=(1, 4), b=b, band=0.04 if b is None else 0.02)
    found = [campaign.outcome(probe).verdict for probe in load_probes(campaign.scenario)]
    assert found == [Verdict.REGRESSION, Verdict.PASS]
    assert played.loaded == loaded


def test_a_build_of_an_ab_that_fails_is_named(make) -> None:
    failed = RunError("config_error", "no such option")
    campaign, played = make({"start": {"a": [failed]}}, b=SLOWER)
    assert (only(campaign).error.message, played.order) == ("build A: no such option", "a")


def test_both_builds_of_an_ab_are_named(make) -> None:
    campaign, _ = make({}, b=SLOWER)
    found = only(campaign)
    assert found.compared_with == (
        "A = this (llama.cpp 1.2.0, commit abc123, image registry/engine:1.2.0); "
        "B = registry/engine:1.3.0,engine.settings.max_batch_size=8 "
        "(llama.cpp 1.3.0, commit def456, image registry/engine:1.3.0)"
    )
    assert found.build.version == "1.3.0"
    assert found.injected == SLOWER.settings
    a, b = ("a", "1.2.0", []), ("b", "1.3.0", [*SLOWER.settings])
    lines = [(one["role"], one["engine"]["version"], one["injected"]) for one in records(campaign)]
    assert lines[:4] == [a, b, b, a]
    campaign, _ = make({}, b=BuildSource())
    assert any("A and B are one build" in note for note in only(campaign).notes)


# What is told. ------------------------------------------------------------------------------------


DOWN = RunError("node_failed", "node7 went down")


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ({"c4": {"new": [-100.0, 100.0]}}, "was disturbed: a neighbour"),
        ({"start": {"new": [DOWN, 100.0]}}, "was lost: node_failed: node7 went down"),
    ],
)
def test_why_a_start_is_made_again_is_told_as_it_happens(make, script, why) -> None:
    campaign, played = make(script)
    assert (only(campaign).verdict, played.order) == (Verdict.PASS, "nn")
    assert reasons(campaign) == [f"start 2: again, as start 1 {why}"]


def test_what_is_undecided_and_whose_build_is_a_control_are_told(make) -> None:
    campaign, played = make({"c4": {"new": [93.0]}})
    only(campaign)
    assert CONTROL in played.starts
    told, share = reasons(campaign), r"[-+]\d+\.\d"
    assert re.search(rf"after 1 start \(-7\.0 %, interval {share}…{share} %, band 4 %\)", told[0])
    for number, (role, line) in enumerate(zip(played.starts[1:], told, strict=True), start=2):
        control = "control, the baseline's build: " if role == CONTROL else ""
        assert line.startswith(f"start {number}: {control}c4: output_throughput undecided after ")


C1, C4 = load_probes(building.SCENARIO)
OPEN = building.judgement(
    verdict=Verdict.INCONCLUSIVE, change=-0.012, interval=(-0.04, 0.015), band=0.025, runs_used=1
)
ANCHOR = building.judgement(change=-0.5, against="anchor")
UNDECIDED = "c4: output_throughput undecided after"
POINTS = f"{building.SUMS} undecided after 1 start (-1.2 points, interval -4.0…+1.5 points, *)"


@each(
    "judgements, controls, told",
    [
        ([replace(OPEN, metric=building.SUMS)], None, f"c4: {POINTS}"),
        ([replace(OPEN, change=None, interval=None)], None, f"{UNDECIDED} 1 start"),
        # Of several the one nearest to a loss is named; of a control those that it is for.
        ([OPEN, ANCHOR], None, f"{UNDECIDED} 2 starts (-50.0 %, *, and 1 more"),
        ([OPEN, ANCHOR], "baseline", f"control, the baseline's build: {UNDECIDED} 1 start (*"),
        ([], None, "for a claim or a curve that is undecided"),
    ],
)
def test_why_another_start_is_made(judgements, controls, told) -> None:
    opened = tuple(replace(one, needs_more_runs=True) for one in judgements)
    judged = ProbeJudgement(Verdict.INCONCLUSIVE, opened, needs_more_runs=True)
    decided = ProbeJudgement(Verdict.PASS, (building.judgement(change=-0.9),))
    states = [(C1, ProbeState(judged=decided)), (C4, ProbeState(judged=judged))]
    found = why_another(states, controls)
    assert re.fullmatch(re.escape(told).replace(r"\*", ".*"), found), found
