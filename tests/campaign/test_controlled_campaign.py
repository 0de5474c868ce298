"""A campaign's controls: which starts are made, of which build, and what the verdict becomes.

What a start gives is played; campaign, references, gate, records are the real ones.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import building
import pytest
from plain_records import fields_of, record, recorded
from played import NEW, OLD, SPEED, Played, Script, scenario_of, tools_of

from perfgate import baselines
from perfgate.baselines import Baseline, BaselineRun, Entry
from perfgate.baselines.decisions import pin_anchor
from perfgate.campaign.budget import Budget
from perfgate.campaign.builds.other_build import OtherBuild
from perfgate.campaign.campaign import Campaign
from perfgate.campaign.resume import kept_of
from perfgate.campaign.session import Session
from perfgate.core.durable_files import read_lines
from perfgate.core.errors import CannotDo, PerfgateError, RunError
from perfgate.core.rule import ControlPolicy
from perfgate.core.verdict import Against, Verdict
from perfgate.engines.base import EngineBuild
from perfgate.engines.build_source import BuildSource
from perfgate.judging.assembly.outcome import Outcome
from perfgate.judging.assembly.sweeps import SweepProbe, sweep_outcome
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.runs.run_folder import RunFolder
from perfgate.scenarios.probe import Probe, load_probes

RELEASED = EngineBuild("llama.cpp", "1.1.0", "released")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunFolder]:
    made = RunFolder.create(tmp_path / "run", {"synthetic": False})
    yield made
    made.close()


Make = Callable[..., tuple[Campaign, Played]]


@pytest.fixture
def make(run: RunFolder, suite_root: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """A campaign against a stored baseline of 100 tokens/s."""

    def made(
        script: Mapping[str, Script],
        *,
        points: tuple[int, ...] = (4,),
        policy: ControlPolicy = "auto",
        find: Callable[[Against, Baseline], OtherBuild] | None = None,
        anchor: float | None = None,
        band: float = 0.04,
        budget: Budget | None = None,
        **gate: Any,
    ) -> tuple[Campaign, Played]:
        scenario = scenario_of(points, band=band, control=policy, **gate)
        probes = load_probes(scenario)
        store(OLD, probes, 100.0)
        if anchor is not None:
            store(RELEASED, probes, anchor, is_anchor=True)
        played = Played(script)
        played.take_part(monkeypatch)
        session = Session(run, building.MACHINE, LocalLauncher(), cache=run.path, budget=budget)

        def other(against: Against, baseline: Baseline) -> OtherBuild:
            source = BuildSource(prefix=f"/opt/{baseline.engine.version}")
            return OtherBuild(source, tools_of(baseline.engine, scenario), session.launcher)

        campaign = Campaign(scenario, probes, tools_of(NEW, scenario), session, find or other)
        return campaign, played

    return made


def store(
    build: EngineBuild, probes: Sequence[Probe], level: float, *, is_anchor: bool = False
) -> None:
    """A baseline of ten starts in ten sessions."""
    runs = {
        probe: tuple(
            BaselineRun(
                f"run-{build.version}-{number}",
                f"2026-11-{number + 1:02}T08:00:00+00:00",
                {SPEED: level * (1 + 0.002 * ((number + point) % 3 - 1))},
                start=1,
            )
            for number in range(10)
        )
        for point, probe in enumerate(probes)
    }
    kept = building.baseline(
        engine=build,
        entries={probe.label: Entry({"content": "a"}, runs[probe]) for probe in probes},
        accepted_at=f"2026-11-{5 if is_anchor else 15:02}T12:00:00+00:00",
        change="first",
    )
    file = baselines.suite_store().save(kept)
    if is_anchor:
        pin_anchor(file, by="Ada", reason="the last one that customers have")


def only(campaign: Campaign) -> Outcome:
    (probe,) = load_probes(campaign.scenario)
    return campaign.outcome(probe)


def records(campaign: Campaign) -> list[dict[str, Any]]:
    return recorded(campaign.session.run, "measurement")


def test_an_unchanged_build_takes_one_start_and_no_control(make: Make) -> None:
    def find(against: Against, baseline: Baseline) -> OtherBuild:
        pytest.fail("the other build is not even looked for")

    campaign, played = make({}, find=find)
    found = only(campaign)
    assert (found.verdict, played.starts) == (Verdict.PASS, ["new"])
    assert found.controls == ()
    assert reasons(campaign) == []


def test_a_slow_build_is_a_regression_in_the_order_of_the_rule(make: Make) -> None:
    campaign, played = make({"*": {"new": [92.0, 92.1, 91.9, 92.2]}})
    found = only(campaign)
    assert found.verdict == Verdict.REGRESSION
    control = "baseline_control"
    assert played.starts == ["new", "new", control, control, "new"]
    (judged,) = found.judgements
    assert (judged.runs_used, judged.controls_used, judged.mark) == (3, 2, "")
    (told,) = found.controls
    assert (told.against, told.starts, told.why_not) == ("baseline", 2, "")
    assert told.in_words == (
        "llama.cpp 1.2.0, commit abc123, image registry/engine:1.2.0, 2 starts"
    )
    assert found.build is not None
    assert found.build.version == "1.3.0"
    lines = records(campaign)
    new = ("new", "1.3.0", "registry/engine:1.3.0")
    old = (control, "1.2.0", "registry/engine:1.2.0")
    really = [(one["role"], one["engine"]["version"], one["source"]["image"]) for one in lines]
    assert really == [new, new, old, old, new]
    assert [line["start"] for line in lines] == [1, 2, 3, 4, 5]
    assert lines[2]["folder"].endswith("start-3-baseline_control/c4")
    starts, _ = campaign.account.totals()
    assert (starts.planned, starts.made, starts.controls) == (1, 5, 2)


def dead(*_: object) -> OtherBuild:
    raise CannotDo("its image is gone")


SLOW = [92.0, 92.1, 91.9]
DIED = RunError("server_died", "it ended under load")
OOM = RunError("oom", "CUDA out of memory")
ELSEWHERE = RunError("unfit_machine", "node9 is not of the kind of node7")
Values = Sequence[float | Exception]
REQUIRED = {"policy": "required"}


@pytest.mark.parametrize(
    ("new", "loaded", "started", "options", "verdict", "mark", "starts", "told"),
    [
        # The host is as slow as the build; slower than its history allows.
        (SLOW, SLOW, [0.0], {}, "PASS", "HOST_SHIFT", "nncc", ""),
        ([70.0], [70.0], [0.0], {}, "INCONCLUSIVE", "MACHINE", "nnccnnc", ""),
        # There is no other build, none that is wanted, or no time.
        (SLOW, [], [], {"find": dead}, "REGRESSION", "NO_CONTROL", "nn", "its image is gone"),
        (SLOW, [], [], {"find": dead, **REQUIRED}, "INCONCLUSIVE", "NO_CONTROL", "nn", ""),
        (SLOW, [], [], {"policy": "none"}, "REGRESSION", "NO_CONTROL", "nn", "control is none"),
        (SLOW, [], [], {"budget_s": 1e-9}, "INCONCLUSIVE", "", "n", ""),
        # The control dies at its start, under load, or is elsewhere: never an error of the build.
        (SLOW, [100.0], [OOM, 0.0], {}, "REGRESSION", "", "nncccn", "fresh start 3: oom"),
        (SLOW, [100.0], [OOM], {}, "REGRESSION", "NO_CONTROL", "nncc", "failed twice"),
        (SLOW, [100.0], [0.0, DIED], {}, "INCONCLUSIVE", "", "nnccc", "no further control"),
        (SLOW, [DIED], [0.0], {}, "REGRESSION", "NO_CONTROL", "nncc", ""),
        (SLOW, [100.0], [ELSEWHERE], {}, "REGRESSION", "NO_CONTROL", "nncc", "control not used"),
        (SLOW, [-92.0, 100.0], [0.0], {}, "REGRESSION", "", "nncccn", "not used: fresh start 3"),
    ],
)
def test_what_becomes_of_a_loss_by_its_controls(
    make: Make,
    new: Values,
    loaded: Values,
    started: Values,
    options: dict[str, Any],
    verdict: str,
    mark: str,
    starts: str,
    told: str,
) -> None:
    control = "baseline_control"
    script = {"*": {"new": new, control: loaded}, "start": {control: started}}
    campaign, played = make(script, **options)
    found = only(campaign)
    (judged,) = found.judgements
    assert (found.verdict, judged.mark, found.error) == (verdict, mark, None)
    assert "".join("c" if role == control else "n" for role in played.starts) == starts
    assert told in " ".join([*found.notes, *(one.in_words for one in found.controls)])
    is_again = any(isinstance(one, Exception) or one < 0 for one in (*loaded, *started))
    assert campaign.account.totals()[0].again == is_again


def test_a_control_of_another_content_is_none(make: Make) -> None:
    def other(_against: Against, baseline: Baseline) -> OtherBuild:
        tools = tools_of(baseline.engine, building.SCENARIO, content="b")
        return OtherBuild(BuildSource(), tools, LocalLauncher())

    campaign, played = make({"*": {"new": [92.0]}}, find=other)
    found = only(campaign)
    assert "baseline_control" not in played.starts
    assert "cannot be compared: content" in found.controls[0].why_not


def test_only_what_is_undecided_is_loaded_again_on_the_control_too(make: Make) -> None:
    campaign, played = make({"c4": {"new": [92.0]}}, points=(1, 4))
    verdicts = {
        probe.label: campaign.outcome(probe).verdict for probe in load_probes(campaign.scenario)
    }
    assert verdicts == {"c1": Verdict.PASS, "c4": Verdict.REGRESSION}
    assert played.loaded == [["c1", "c4"], ["c4"], ["c4"], ["c4"], ["c4"]]


def test_the_anchor_has_controls_of_its_own_build(make: Make) -> None:
    """Lost since the release in small steps: the nearest baseline shows nothing."""
    campaign, played = make({}, anchor=112.0)
    found = only(campaign)
    assert found.verdict == Verdict.PASS
    assert [one.mark for one in found.judgements] == ["", "HOST_SHIFT"]
    assert set(played.starts) == {"new", "anchor_control"}
    line = next(one for one in records(campaign) if one["role"] == "anchor_control")
    assert line["engine"]["version"] == "1.1.0"
    (told,) = found.controls
    assert told.in_words.startswith("of the anchor: llama.cpp 1.1.0")


def test_a_loss_since_the_anchor_stands_against_the_anchors_build(make: Make) -> None:
    campaign, _ = make({"*": {"anchor_control": [112.0]}}, anchor=112.0)
    found = only(campaign)
    assert found.verdict == Verdict.REGRESSION
    against = {one.against: one.verdict for one in found.judgements}
    assert against == {"baseline": Verdict.PASS, "anchor": Verdict.REGRESSION}


def curve_of(campaign: Campaign) -> Outcome:
    sweep = SweepProbe(campaign.scenario)
    return sweep_outcome(
        sweep,
        campaign.outcome,
        lambda: campaign.curve(sweep),
        lambda probes: campaign.measure_again(probes, campaign.curve(sweep).controls_wanted),
        lambda: campaign.curve_measurements(sweep),
        lambda judged: campaign.curve_controls(sweep, judged),
    )


@pytest.mark.parametrize(
    ("control", "find", "verdict", "mark", "controls"),
    [
        (100.0, None, "REGRESSION", "", 2),
        (95.0, None, "PASS", "HOST_SHIFT", 2),
        (95.0, dead, "REGRESSION", "NO_CONTROL", 0),
    ],
)
def test_a_curve_has_controls_of_its_own_at_every_point(
    make: Make, control: float, find: Any, verdict: str, mark: str, controls: int
) -> None:
    """A loss that no point calls one: all points pass, and the curve asks for the starts."""
    script: dict[str, Script] = {"*": {"new": [95.0], "baseline_control": [control]}}
    campaign, played = make(script, points=(1, 2, 4, 8), band=0.08, find=find)
    points = {campaign.outcome(one).verdict for one in load_probes(campaign.scenario)}
    assert (points, played.starts) == ({Verdict.PASS}, ["new"])
    found = curve_of(campaign)
    assert (found.verdict, found.judgements[0].mark) == (verdict, mark), found.reason
    assert found.controls[0].starts == played.starts.count("baseline_control") == controls
    assert all(loaded == ["c1", "c2", "c4", "c8"] for loaded in played.loaded)


def test_a_claim_may_ask_for_a_start_without_breaking_the_order(make: Make) -> None:
    campaign, played = make({"*": {"new": [92.0]}})
    (probe,) = load_probes(campaign.scenario)
    before = campaign.outcome(probe)
    assert campaign.measure_again([probe])
    assert campaign.outcome(probe).judgements == before.judgements
    assert played.starts.count("new") == 4
    assert not all(campaign.measure_again([probe]) for _ in range(3)), "five at most"


def test_no_control_is_begun_beyond_the_sessions_time(make: Make) -> None:
    class Ending(Budget):
        """Time enough for the second start."""

        def left_s(self) -> float:
            return 100.0 if len(played.starts) < 2 else 0.0

    campaign, played = make({"*": {"new": [92.0]}}, budget=Ending("1h", 0.0))
    found = only(campaign)
    assert found.verdict == Verdict.INCONCLUSIVE
    assert "baseline_control" not in played.starts
    assert any("--budget 1h is nearly used up" in note for note in found.notes)


def test_an_error_of_the_build_itself_ends_it_without_controls(make: Make) -> None:
    died = RunError("server_died", "it ended under load")
    campaign, played = make({"*": {"new": [92.0, died]}})
    found = only(campaign)
    assert found.verdict == Verdict.ERROR
    assert played.starts == ["new", "new"]
    assert isinstance(found.error, PerfgateError)


def test_a_resumed_run_keeps_the_verdict_with_its_controls(make: Make) -> None:
    slow = [92.0, 92.1, 91.9]
    campaign, _ = make({"*": {"new": slow, "baseline_control": slow}})
    found = only(campaign)
    run = campaign.session.run
    run.record(record("verdict", {"test": "t", **fields_of(found)}))
    run.record(record("group", {"scenario": campaign.scenario.id, "tests": ["t"], "content": {}}))
    (probe,) = load_probes(campaign.scenario)
    kept = kept_of(run.records()).outcome(probe, [probe])
    assert kept is not None
    assert len(kept.measurements) == 2, "controls are no measurements of the build under test"
    assert replace(kept, resumed_from="", folder=found.folder) == replace(
        found, measurements=kept.measurements, judge_input=None
    )


def reasons(campaign: Campaign) -> list[str]:
    """Why starts were made that were not planned, as whoever looks on is told."""
    lines = read_lines(campaign.session.run.path / "progress.jsonl")
    return [line["text"] for line in lines if line["event"] == "again"]


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ({"c4": {"new": [-100.0, 100.0]}}, "was disturbed: a neighbour"),
        (
            {"start": {"new": [RunError("node_failed", "node7 went down"), 100.0]}},
            "was lost: node_failed: node7 went down",
        ),
    ],
)
def test_why_a_start_is_made_again_is_told_as_it_happens(
    make: Make, script: dict[str, Script], why: str
) -> None:
    campaign, played = make(script)
    assert only(campaign).verdict == Verdict.PASS
    assert played.starts == ["new", "new"]
    assert reasons(campaign) == [f"start 2: again, as start 1 {why}"]


def test_what_is_undecided_and_whose_build_is_a_control_are_told(make: Make) -> None:
    campaign, played = make({"c4": {"new": [93.0]}})
    only(campaign)
    assert "baseline_control" in played.starts
    told = reasons(campaign)
    assert re.search(
        r"after 1 start \(-7\.0 %, interval -\d+\.\d…[-+]\d+\.\d %, band 4 %\)", told[0]
    )
    for number, (role, line) in enumerate(zip(played.starts[1:], told, strict=True), start=2):
        control = "control, the baseline's build: " if role == "baseline_control" else ""
        assert line.startswith(f"start {number}: {control}c4: output_throughput undecided after ")
