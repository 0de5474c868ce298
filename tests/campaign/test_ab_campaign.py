"""An A/B in a campaign: the order of the starts, what is loaded on them, and what is told.

What a start gives is played; campaign, gate and records are the real ones.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import building
import pytest
from plain_records import recorded
from played import NEW, OLD, Played, Script, scenario_of, tools_of

from perfgate.campaign.budget import Budget
from perfgate.campaign.builds.other_build import AbBuilds, OtherBuild
from perfgate.campaign.campaign import Campaign
from perfgate.campaign.injection import parse
from perfgate.campaign.session import Session
from perfgate.core.errors import RunError
from perfgate.core.verdict import Verdict
from perfgate.engines.build_source import BuildSource
from perfgate.judging.assembly.outcome import Outcome
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.runs.run_folder import RunFolder
from perfgate.scenarios.probe import load_probes

SLOWER = BuildSource(image="registry/engine:1.3.0", settings=("engine.settings.max_batch_size=8",))
ABBA = ["a", "b", "b", "a", "a", "b", "b", "a", "a", "b", "b", "a"]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunFolder]:
    made = RunFolder.create(tmp_path / "run", {"synthetic": False})
    yield made
    made.close()


Ab = Callable[..., tuple[list[Outcome], Played]]


@pytest.fixture
def ab(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> Ab:
    """The outcomes of an A/B whose starts give what a script says, and the starts."""

    def made(
        script: Mapping[str, Script],
        *,
        points: tuple[int, ...] = (4,),
        budget: Budget | None = None,
        b: BuildSource = SLOWER,
        band: float = 0.02,
        **gate: Any,
    ) -> tuple[list[Outcome], Played]:
        scenario = scenario_of(points, band=band, **gate)
        played = Played(script)
        played.take_part(monkeypatch)
        launcher = LocalLauncher()
        session = Session(run, building.MACHINE, launcher, cache=run.path, budget=budget)
        tools = tools_of(NEW if b.names_programs else OLD, scenario)
        builds = AbBuilds(
            OtherBuild(BuildSource(), tools_of(OLD, scenario), launcher),
            OtherBuild(b, tools, launcher, tuple(map(parse, b.settings))),
        )
        probes = load_probes(scenario)
        campaign = Campaign(scenario, probes, tools, session, ab=builds)
        return [campaign.outcome(probe) for probe in probes], played

    return made


def test_equal_builds_take_two_pairs(ab: Ab) -> None:
    (outcome,), played = ab({"*": {"a": [100, 100.2], "b": [100.1, 99.9]}})
    assert outcome.verdict == Verdict.PASS
    assert played.starts == ABBA[:4]
    assert [one.against for one in outcome.judgements] == ["ab"]


def test_a_slow_b_is_a_regression_after_three_pairs(ab: Ab) -> None:
    (outcome,), played = ab({"*": {"a": [100], "b": [92]}})
    assert outcome.verdict == Verdict.REGRESSION
    assert played.starts == ABBA[:6]
    (judged,) = outcome.judgements
    assert judged.reason.startswith("B is 8.0 % slower than A (B/A 0.920")
    assert judged.baseline == pytest.approx(100)
    assert judged.measured == pytest.approx(92)


def test_what_stays_undecided_takes_six_pairs(ab: Ab) -> None:
    (outcome,), played = ab({}, band=0.002)  # which the noise does not resolve
    assert outcome.verdict == Verdict.INCONCLUSIVE
    assert played.starts == ABBA
    assert not outcome.judgements[0].needs_more_runs


def test_only_undecided_probes_are_loaded_again(ab: Ab) -> None:
    outcomes, played = ab({"c1": {"a": [100], "b": [92]}}, points=(1, 4))
    assert [one.verdict for one in outcomes] == [Verdict.REGRESSION, Verdict.PASS]
    assert played.loaded == [["c1", "c4"]] * 4 + [["c1"]] * 2


def test_a_disturbed_start_is_made_again_in_its_place(ab: Ab) -> None:
    (outcome,), played = ab({"*": {"a": [100], "b": [-100, 100]}})
    assert outcome.verdict == Verdict.PASS
    assert played.starts == ["a", "b", "b", "b", "a"]
    assert any("fresh start 2: a neighbour" in note for note in outcome.notes)


def test_a_build_that_fails_is_named(ab: Ab) -> None:
    failed: list[float | Exception] = [RunError("config_error", "no such option")]
    (outcome,), played = ab({"start": {"a": failed}})
    assert outcome.verdict == Verdict.ERROR
    assert outcome.error is not None
    assert outcome.error.message == "build A: no such option"
    assert played.starts == ["a"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"budget_s": 0.0}, "of gate.budget_s 0"),
        ({"budget": Budget("1s", 0.0)}, "--budget 1s is nearly used up"),
    ],
)
def test_the_time_of_the_scenario_or_the_session_ends_it(
    ab: Ab, options: dict[str, Any], why: str
) -> None:
    (outcome,), played = ab({"*": {"a": [100], "b": [92]}}, **options)
    assert outcome.verdict == Verdict.INCONCLUSIVE
    assert played.starts == ABBA[:2]
    assert any(why in note for note in outcome.notes)


def test_both_builds_are_named(ab: Ab, run: RunFolder) -> None:
    (outcome,), _ = ab({})
    assert outcome.compared_with == (
        "A = this (llama.cpp 1.2.0, commit abc123, image registry/engine:1.2.0); "
        "B = registry/engine:1.3.0,engine.settings.max_batch_size=8 "
        "(llama.cpp 1.3.0, commit def456, image registry/engine:1.3.0)"
    )
    assert outcome.build is not None
    assert outcome.build.version == "1.3.0"
    assert outcome.injected == ("engine.settings.max_batch_size=8",)
    lines = recorded(run, "measurement")
    roles = [(line["role"], line["engine"]["version"]) for line in lines]
    assert roles == [("a", "1.2.0"), ("b", "1.3.0"), ("b", "1.3.0"), ("a", "1.2.0")]
    assert [line["injected"] for line in lines[:2]] == [[], ["engine.settings.max_batch_size=8"]]


def test_one_build_twice_is_said(ab: Ab) -> None:
    (outcome,), _ = ab({}, b=BuildSource())
    assert outcome.verdict == Verdict.PASS
    assert any("A and B are one build" in note for note in outcome.notes)
