"""A campaign's controls: which starts are made, of which build, and what the verdict becomes.

What a start gives is played; campaign, references, gate, records are the real ones.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import building
import pytest

from perfgate import baselines
from perfgate.baselines import Baseline, BaselineRun, Entry
from perfgate.baselines.promotion import pin_anchor
from perfgate.baselines.recording import record_candidates
from perfgate.campaign import campaign as campaigns
from perfgate.campaign.budget import Budget
from perfgate.campaign.campaign import Campaign
from perfgate.campaign.fresh_start import StartSetup
from perfgate.campaign.other_build import OtherBuild
from perfgate.campaign.resume import kept_of
from perfgate.campaign.session import Session
from perfgate.core.durable_files import read_lines
from perfgate.core.errors import CannotDo, InputError, PerfgateError, RunError
from perfgate.core.locations import Locations
from perfgate.core.measurement import Measurement
from perfgate.engines.base import EngineBuild
from perfgate.engines.build_source import BuildSource
from perfgate.gate.controls import ControlPolicy
from perfgate.gate.verdict import Against, Verdict
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.plan.toolchain import Toolchain
from perfgate.runs.records import RunFolder
from perfgate.scenarios.probe import Probe, load_probes
from perfgate.scenarios.scenario import GatePolicy, Scenario
from perfgate.verdicts.outcome import Outcome
from perfgate.verdicts.sweeps import SweepProbe, sweep_outcome

SPEED = "output_throughput"
NEW = EngineBuild("llama.cpp", "1.3.0", "def456")
OLD = EngineBuild("llama.cpp", "1.2.0", "abc123")
RELEASED = EngineBuild("llama.cpp", "1.1.0", "released")
# What a probe gives on the starts of one role, in order; the last one for all that follow.
Script = Mapping[str, Sequence[float | Exception]]


def tools_of(build: EngineBuild, scenario: Scenario, content: str = "a") -> Toolchain:
    made = SimpleNamespace(
        scenario=scenario,
        build=build,
        is_offline=lambda probe: False,
        fingerprint=lambda probe, machine: {"content": content},
        engine=SimpleNamespace(programs=()),
        locations=Locations(),
    )
    return cast(Toolchain, made)


@dataclass
class Played:
    """The starts of a campaign that plays its engine.

    Attributes:
        script: probe label → role → values, in order of the starts; `*` is any probe.
        starts: the roles of the starts, in order.
        loaded: what was loaded on each of them.
    """

    script: Mapping[str, Script]
    starts: list[str] = field(default_factory=list)
    loaded: list[list[str]] = field(default_factory=list)

    @contextmanager
    def fresh_start(
        self, scenario: Scenario, tools: Toolchain, setup: StartSetup, probes: Sequence[Probe]
    ) -> Iterator[Any]:
        self.starts.append(setup.role)
        self.loaded.append([])
        if isinstance(given := self._given("start", setup.role), Exception):
            raise given
        image = f"registry/engine:{tools.build.version}"
        yield SimpleNamespace(setup=setup, image=image, has_ended=False)

    def measure(self, start: Any, probe: Probe, watch: object) -> Measurement:
        self.loaded[-1].append(probe.label)
        given = self._given(probe.label, start.setup.role)
        if isinstance(given, Exception):
            raise given
        disturbed = ("a neighbour",) if given < 0 else ()
        facts = {"docker": {"image": start.image}}
        return Measurement({SPEED: abs(given)}, facts, disturbed=disturbed)

    def _given(self, what: str, role: str) -> float | Exception:
        nothing: Script = {} if what == "start" else self.script.get("*", {})
        values = self.script.get(what, nothing).get(role, [100.0])
        return values[min(self.starts.count(role), len(values)) - 1]


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
        workload = replace(building.SCENARIO.workload, concurrency=points)  # type: ignore[type-var]
        scenario = replace(
            building.SCENARIO,
            workload=workload,
            accuracy=(),
            gate=GatePolicy((SPEED,), control=policy, bands={SPEED: band}, **gate),
        )
        probes = load_probes(scenario)
        store(OLD, probes, 100.0)
        if anchor is not None:
            store(RELEASED, probes, anchor, is_anchor=True)
        played = Played(script)
        monkeypatch.setattr(campaigns, "fresh_start", played.fresh_start)
        monkeypatch.setattr(campaigns, "measure_guarded", played.measure)
        monkeypatch.setattr(campaigns, "watch_start", lambda *_: nullcontext())
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
    return campaign.session.run.records("measurement")


def test_an_unchanged_build_takes_one_start_and_no_control(make: Make) -> None:
    asked: list[Against] = []

    def find(against: Against, baseline: Baseline) -> OtherBuild:
        asked.append(against)
        raise CannotDo("not asked for")

    campaign, played = make({}, find=find)
    found = only(campaign)
    assert (found.verdict, played.starts) == (Verdict.PASS, ["new"])
    assert found.controls == ()
    assert asked == [], "the other build is not even looked for"


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


def test_records_say_what_was_really_started(make: Make) -> None:
    campaign, _ = make({"*": {"new": [92.0]}})
    only(campaign)
    roles = [(line["role"], line["engine"]["version"]) for line in records(campaign)]
    new, control = ("new", "1.3.0"), ("baseline_control", "1.2.0")
    assert roles == [new, new, control, control, new]
    assert [line["start"] for line in records(campaign)] == [1, 2, 3, 4, 5]
    sources = [line["source"]["image"] for line in records(campaign)]
    assert sources == [f"registry/engine:{version}" for _, version in roles]
    assert records(campaign)[2]["folder"].endswith("start-3-baseline_control/c4")


def test_a_host_as_slow_as_the_build_passes_and_says_so(make: Make) -> None:
    slow = [92.0, 92.1, 91.9]
    campaign, played = make({"*": {"new": slow, "baseline_control": slow}})
    found = only(campaign)
    assert found.verdict == Verdict.PASS
    assert [one.mark for one in found.judgements] == ["HOST_SHIFT"]
    assert played.starts == ["new", "new", "baseline_control", "baseline_control"]
    assert found.controls[0].starts == 2


def test_a_control_far_slower_than_its_history_proves_nothing(make: Make) -> None:
    campaign, played = make({"*": {"new": [70.0], "baseline_control": [70.0]}})
    found = only(campaign)
    assert found.verdict == Verdict.INCONCLUSIVE
    assert [one.mark for one in found.judgements] == ["MACHINE"]
    assert (played.starts.count("new"), played.starts.count("baseline_control")) == (4, 3)


def dead(*_: object) -> OtherBuild:
    raise CannotDo("its image is gone")


def test_without_another_build_a_loss_needs_two_starts_and_is_marked(make: Make) -> None:
    campaign, played = make({"*": {"new": [92.0]}}, find=dead)
    found = only(campaign)
    assert (found.verdict, played.starts) == (Verdict.REGRESSION, ["new", "new"])
    assert [one.mark for one in found.judgements] == ["NO_CONTROL"]
    (told,) = found.controls
    assert (told.build, told.starts) == (None, 0)
    assert "its image is gone" in told.in_words


def test_where_a_control_is_required_there_is_no_regression_without_one(make: Make) -> None:
    campaign, played = make({"*": {"new": [92.0]}}, find=dead, policy="required")
    found = only(campaign)
    assert found.verdict == Verdict.INCONCLUSIVE
    assert [one.mark for one in found.judgements] == ["NO_CONTROL"]
    assert played.starts == ["new", "new"]


def test_controls_can_be_left_out(make: Make) -> None:
    campaign, played = make({"*": {"new": [92.0]}}, policy="none")
    found = only(campaign)
    assert (found.verdict, set(played.starts)) == (Verdict.REGRESSION, {"new"})
    assert found.controls[0].why_not == "gate.control is none"


def test_a_control_that_dies_is_made_again_once(make: Make) -> None:
    oom = RunError("oom", "CUDA out of memory")
    script = {"*": {"new": [92.0]}, "start": {"baseline_control": [oom, 1.0]}}
    campaign, played = make(script)
    found = only(campaign)
    assert found.verdict == Verdict.REGRESSION
    assert played.starts.count("baseline_control") == 1 + 2
    assert any("fresh start 3: oom" in note for note in found.notes)
    assert campaign.account.plain()["starts"]["again"] == 1


def test_a_control_that_dies_twice_leaves_the_verdict_without_control(make: Make) -> None:
    oom = RunError("oom", "CUDA out of memory")
    script = {"*": {"new": [92.0]}, "start": {"baseline_control": [oom]}}
    campaign, played = make(script)
    found = only(campaign)
    assert (found.verdict, found.error) == (Verdict.REGRESSION, None)
    assert [one.mark for one in found.judgements] == ["NO_CONTROL"]
    assert played.starts == ["new", "new", "baseline_control", "baseline_control"]
    assert "failed twice" in found.controls[0].in_words


def test_a_second_control_that_cannot_be_made_proves_nothing(make: Make) -> None:
    died = RunError("server_died", "it ended")
    script = {"*": {"new": [92.0]}, "start": {"baseline_control": [1.0, died]}}
    campaign, played = make(script)
    found = only(campaign)
    assert found.verdict == Verdict.INCONCLUSIVE
    assert played.starts.count("baseline_control") == 3
    assert any("no further control" in note for note in found.notes)


def test_a_disturbed_control_is_not_used_and_is_made_again(make: Make) -> None:
    script = {"*": {"new": [92.0], "baseline_control": [-92.0, 100.0, 100.0]}}
    campaign, played = make(script)
    found = only(campaign)
    assert found.verdict == Verdict.REGRESSION
    assert played.starts.count("baseline_control") == 3
    assert any("disturbed, so not used: fresh start 3" in note for note in found.notes)


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


def test_a_curve_has_controls_of_its_own_at_every_point(make: Make) -> None:
    """A loss that no point calls one: all points pass, and the curve asks for the starts."""
    script: dict[str, Script] = {"*": {"new": [95.0]}}
    campaign, played = make(script, points=(1, 2, 4, 8), band=0.08)
    assert {campaign.outcome(one).verdict for one in load_probes(campaign.scenario)} == {
        Verdict.PASS
    }
    assert played.starts == ["new"]
    found = curve_of(campaign)
    assert found.verdict == Verdict.REGRESSION, found.reason
    (told,) = found.controls
    assert told.starts == 2
    control = "baseline_control"
    assert played.starts == ["new", "new", control, control, "new"]
    assert all(loaded == ["c1", "c2", "c4", "c8"] for loaded in played.loaded)


def test_a_curve_of_a_slow_host_is_no_regression(make: Make) -> None:
    script: dict[str, Script] = {"*": {"new": [95.0], "baseline_control": [95.0]}}
    campaign, _ = make(script, points=(1, 2, 4, 8), band=0.08)
    found = curve_of(campaign)
    assert (found.verdict, found.judgements[0].mark) == (Verdict.PASS, "HOST_SHIFT")


def test_a_curve_without_another_build_is_marked(make: Make) -> None:
    script: dict[str, Script] = {"*": {"new": [95.0]}}
    campaign, played = make(script, points=(1, 2, 4, 8), band=0.08, find=dead)
    found = curve_of(campaign)
    assert (found.verdict, found.judgements[0].mark) == (Verdict.REGRESSION, "NO_CONTROL")
    assert set(played.starts) == {"new"}
    assert "its image is gone" in found.controls[0].in_words


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


def test_a_control_run_becomes_no_baseline(make: Make) -> None:
    campaign, _ = make({"*": {"new": [92.0]}})
    found = only(campaign)
    (probe,) = load_probes(campaign.scenario)
    campaign.session.run.record("verdict", {"test": "t", **found.as_record()})
    ((candidate,), _) = record_candidates([campaign.session.run.path])
    kept = baselines.read(candidate)
    assert [run.metrics[SPEED] for run in kept.entries[probe.label].runs] == [92.0] * 3
    assert kept.engine == NEW


def test_a_build_that_passed_on_a_slow_host_is_no_level(make: Make) -> None:
    campaign, _ = make({"*": {"new": [92.0], "baseline_control": [92.0]}})
    found = only(campaign)
    assert found.verdict == Verdict.PASS
    campaign.session.run.record("verdict", {"test": "t", **found.as_record()})
    with pytest.raises(InputError, match="HOST_SHIFT"):
        record_candidates([campaign.session.run.path])


def test_a_crash_of_a_control_is_no_error_of_the_build(make: Make) -> None:
    died = RunError("server_died", "it ended under load")
    campaign, played = make({"*": {"new": [92.0], "baseline_control": [died]}})
    found = only(campaign)
    assert found.error is None
    assert found.verdict == Verdict.REGRESSION
    assert [one.mark for one in found.judgements] == ["NO_CONTROL"]
    assert played.starts == ["new", "new", "baseline_control", "baseline_control"]


def test_an_error_of_the_build_itself_ends_it_without_controls(make: Make) -> None:
    died = RunError("server_died", "it ended under load")
    campaign, played = make({"*": {"new": [92.0, died]}})
    found = only(campaign)
    assert found.verdict == Verdict.ERROR
    assert played.starts == ["new", "new"]
    assert isinstance(found.error, PerfgateError)


def test_a_control_elsewhere_is_not_used_and_told(make: Make) -> None:
    elsewhere = RunError("unfit_machine", "node9 is not of the kind of node7")
    script = {"*": {"new": [92.0]}, "start": {"baseline_control": [elsewhere]}}
    campaign, _ = make(script)
    found = only(campaign)
    assert (found.verdict, found.error) == (Verdict.REGRESSION, None)
    assert any("control not used" in note and "node9" in note for note in found.notes)


def test_a_resumed_run_keeps_the_verdict_with_its_controls(make: Make) -> None:
    slow = [92.0, 92.1, 91.9]
    campaign, _ = make({"*": {"new": slow, "baseline_control": slow}})
    found = only(campaign)
    run = campaign.session.run
    run.record("verdict", {"test": "t", **found.as_record()})
    run.record("group", {"scenario": campaign.scenario.id, "tests": ["t"]})
    (probe,) = load_probes(campaign.scenario)
    kept = kept_of(run.records()).outcome(probe, [probe])
    assert kept is not None
    assert len(kept.measurements) == 2, "controls are no measurements of the build under test"
    assert replace(kept, resumed_from="", folder=found.folder) == replace(
        found, measurements=kept.measurements
    )


def test_controls_count_as_starts_and_are_told_apart(make: Make) -> None:
    campaign, _ = make({"*": {"new": [92.0]}})
    only(campaign)
    starts = campaign.account.plain()["starts"]
    assert (starts["planned"], starts["made"], starts["controls"]) == (1, 5, 2)


def test_the_scenarios_time_ends_controls_too(make: Make) -> None:
    campaign, played = make({"*": {"new": [92.0]}}, budget_s=1e-9)
    found = only(campaign)
    assert (found.verdict, played.starts) == (Verdict.INCONCLUSIVE, ["new"])


def reasons(campaign: Campaign) -> list[str]:
    """Why starts were made that were not planned, as whoever looks on is told."""
    lines = read_lines(campaign.session.run.path / "progress.jsonl")
    return [line["text"] for line in lines if line["event"] == "again"]


def test_of_a_planned_start_no_reason_is_told(make: Make) -> None:
    campaign, _ = make({})
    only(campaign)
    assert reasons(campaign) == []


def test_why_a_disturbed_start_is_made_again_is_told_as_it_happens(make: Make) -> None:
    campaign, played = make({"c4": {"new": [-100.0, 100.0]}})
    assert only(campaign).verdict == Verdict.PASS
    assert played.starts == ["new", "new"]
    assert reasons(campaign) == ["start 2: again, as start 1 was disturbed: a neighbour"]


def test_a_start_that_the_machine_lost_likewise(make: Make) -> None:
    lost = RunError("node_failed", "node7 went down")
    campaign, _ = make({"start": {"new": [lost, 100.0]}})
    assert only(campaign).verdict == Verdict.PASS
    assert reasons(campaign) == [
        "start 2: again, as start 1 was lost: node_failed: node7 went down"
    ]


def test_what_is_undecided_and_whose_build_is_a_control_are_told(make: Make) -> None:
    campaign, played = make({"c4": {"new": [93.0]}})
    only(campaign)
    assert "baseline_control" in played.starts
    told = reasons(campaign)
    assert len(told) == len(played.starts) - 1
    for number, (role, line) in enumerate(zip(played.starts[1:], told, strict=True), start=2):
        control = "control, the baseline's build: " if role == "baseline_control" else ""
        assert line.startswith(f"start {number}: {control}c4: output_throughput undecided after ")
    assert re.search(
        r"after 1 start \(-7\.0 %, interval -\d+\.\d…[-+]\d+\.\d %, band 4 %\)", told[0]
    )
