"""Campaigns of a process: what it cannot run, claims in turns, sides that are not measured.

What a start gives is played; campaigns, gate and records are the real ones.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, cast

import building
import pytest
from plain_records import recorded
from played import SPEED, Played, scenario_of, tools_of

from perfgate import baselines
from perfgate.baselines import BaselineRun, Entry
from perfgate.campaign.campaigns import Campaigns
from perfgate.campaign.selection import Selected, measured_scenarios
from perfgate.campaign.session import Session
from perfgate.core.errors import CannotDo, InputError, MissingProgram, RunError
from perfgate.core.locations import Locations
from perfgate.core.program_query import ContainerQuery
from perfgate.core.verdict import Verdict
from perfgate.engines.base import EngineBuild
from perfgate.engines.tensorrt_llm.engine import TensorRTLLM
from perfgate.judging.assembly.claims import ClaimProbe, claim_probes
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.plan.toolchain import Toolchain
from perfgate.runs.run_folder import RunFolder
from perfgate.scenarios.probe import Probe, all_probes, load_probes
from perfgate.scenarios.scenario import (
    Claim,
    EngineChoice,
    Hardware,
    Launch,
    Scenario,
    Source,
    Workload,
)

ONE, TWO = (
    replace(scenario_of((4,), band=0.02, noise="measured"), id=name) for name in ("one", "two")
)
CLAIM = Claim(
    "one-is-faster",
    "The first is faster",
    Source("guide.md", "Engines"),
    SPEED,
    "one",
    "better",
    versus="two",
)
CLIENT = "aiperf 0.13.0"


def the(claim: Claim = CLAIM, scenarios: Sequence[Scenario] = (ONE, TWO)) -> ClaimProbe:
    (found,) = claim_probes([claim], scenarios)
    return found


def probe(scenario: Scenario) -> Probe:
    (found,) = load_probes(scenario)
    return found


Make = Callable[..., tuple[Campaigns, Played]]


@pytest.fixture
def make(tmp_path: Any, suite_root: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    run = RunFolder.create(tmp_path / "run", {"synthetic": False})

    def made(
        *selected: Selected,
        one: Sequence[float | Exception] = (1200.0, 1210.0, 1190.0),
        two: Sequence[float | Exception] = (1000.0, 1010.0, 990.0),
        clients: Mapping[str, Mapping[str, str]] | None = None,
        lacks: Sequence[str] = (),
        **session: Any,
    ) -> tuple[Campaigns, Played]:
        scripts = {"one": one, "two": two}
        played = Played({name: {"claim": said, "new": said} for name, said in scripts.items()})
        played.take_part(monkeypatch)

        def toolchain(_campaigns: Campaigns, scenario: Scenario) -> Toolchain:
            if scenario.id in lacks:
                raise MissingProgram(f"the engine of {scenario.id} is not installed")
            build = EngineBuild(f"engine-{scenario.id}", "1.3.0", "def456")
            facts = {"content": probe(scenario).content_hash(), "client": CLIENT, "cpu": "Grace"}
            return tools_of(build, scenario, **{**facts, **(clients or {}).get(scenario.id, {})})

        monkeypatch.setattr(Campaigns, "toolchain", toolchain)
        monkeypatch.setattr(Campaigns, "lacking", lambda _self, _which: None)
        launcher, today = LocalLauncher(), date(2026, 11, 23)
        campaigns = Campaigns(
            Session(run, building.MACHINE, launcher, cache=run.path, today=today, **session)
        )
        campaigns.select({f"test[{one.id}]": one for one in selected})
        return campaigns, played

    yield made
    run.close()


def store(
    scenario: Scenario,
    *values: float,
    version: str = "1.2.0",
    client: str = CLIENT,
    cpu: str = "Grace",
) -> None:
    """An accepted baseline: each start of a session of its own."""
    of = probe(scenario)
    facts = {"content": of.content_hash(), "client": client, "cpu": cpu}
    runs = tuple(
        BaselineRun(f"run-{number}", f"2026-11-{number:02}T08:00:00+00:00", {SPEED: value})
        for number, value in enumerate(values, start=1)
    )
    baselines.suite_store().save(
        building.baseline(
            scenario=scenario.id,
            engine=EngineBuild("engine-two", version, f"abc{version}"),
            entries={of.label: Entry(facts, runs)},
        )
    )


# Turns. -------------------------------------------------------------------------------------------

OTHER = replace(CLAIM, id="two-is-slower", scenario="two", versus="one", expect="worse")


def by_itself(scenario: Scenario) -> Scenario:
    """A scenario that measures its own reference."""
    return replace(scenario, gate=replace(scenario.gate, reference="self", reference_starts=6))


@pytest.mark.parametrize(
    ("scenarios", "one", "two", "verdict", "starts"),
    [
        ((ONE, TWO), (1200.0, 1210.0, 1190.0), (1000.0, 1010.0, 990.0), "PASS", "21122112"),
        # Undecided, two more pairs and no more.
        (
            (ONE, TWO),
            (1000.0, 1050.0, 950.0) * 2,
            (1000.0, 950.0, 1050.0) * 2,
            "INCONCLUSIVE",
            "211221122112",
        ),
        # No reference is measured for a claim in turns.
        ((by_itself(ONE), by_itself(TWO)), (1200.0,), (1000.0,), "PASS", "21122112"),
        # A disturbed start is made again in its place; a side that fails ends the turns.
        ((ONE, TWO), (1200.0, -9.0, 1200.0), (1000.0,), "PASS", "211122112"),
        ((ONE, TWO), (1200.0,), (1000.0, RunError("oom", "memory ran out")), "ERROR", "2112"),
    ],
)
def test_without_a_gpu_both_sides_take_turns(
    make: Make,
    scenarios: tuple[Scenario, Scenario],
    one: Sequence[float | Exception],
    two: Sequence[float | Exception],
    verdict: str,
    starts: str,
) -> None:
    claim = the(scenarios=scenarios)
    campaigns, played = make(claim, one=one, two=two)
    found = campaigns.outcome(claim)
    assert found.verdict == verdict
    order = "".join({"one": "1", "two": "2"}[name] for name in played.scenarios)
    assert (order, set(played.starts)) == (starts, {"claim"})
    if found.error is not None:
        assert found.error.failure == "oom"
        return
    assert found.judgements[0].runs_used == len(found.measurements) == starts.count("2")
    assert "engine-one 1.3.0" in found.notes[0]
    assert "engine-two 1.3.0" in found.notes[0]
    campaigns.ended(f"test[{claim.id}]", measured=True)
    run = campaigns.session.run
    assert {line["role"] for line in recorded(run, "measurement")} == {"claim"}
    groups = [(line["scenario"], line["ended"], line["starts"]) for line in recorded(run, "group")]
    assert [one[:2] for one in groups] == [("one", "measured"), ("two", "measured")]
    assert {line["planned"] for _, _, line in groups} == {4}
    assert sum(line["made"] for _, _, line in groups) == len(starts)


def test_the_scenarios_own_starts_are_apart_from_those_that_claims_share(make: Make) -> None:
    campaigns, played = make(probe(ONE), probe(TWO), the(), the(OTHER))
    assert campaigns.outcome(probe(ONE)).verdict == Verdict.NO_BASELINE
    own = len(played.starts)
    assert (set(played.starts), set(played.scenarios)) == ({"new"}, {"one"})
    assert [campaigns.outcome(one).verdict for one in (the(), the(OTHER))] == [Verdict.PASS] * 2
    assert played.starts[own:] == ["claim"] * 8
    assert len(campaigns.outcome(probe(ONE)).measurements) == own
    tests = [f"test[{one.id}]" for one in (the(OTHER), probe(TWO), probe(ONE), the())]
    for test in tests:
        campaigns.ended(test, measured=test != tests[1])  # which was skipped
    groups = {one["scenario"]: one["tests"] for one in recorded(campaigns.session.run, "group")}
    assert groups == {"one": sorted([tests[0], *tests[2:]]), "two": sorted([tests[0], tests[3]])}


def test_on_gpus_the_sides_keep_their_campaigns(make: Make) -> None:
    scenarios = [
        replace(one, hardware=replace(one.hardware, gpu="H200", gpus=8)) for one in (ONE, TWO)
    ]
    claim = the(scenarios=scenarios)
    campaigns, played = make(claim)
    assert campaigns.outcome(claim).verdict == Verdict.PASS
    assert set(played.starts) == {"new"}
    assert played.scenarios.index("two") == 1


# Sides that are not measured. ---------------------------------------------------------------------


def test_the_newest_baseline_serves_for_a_side_of_which_no_test_is_selected(make: Make) -> None:
    store(TWO, 500.0, 500.0, 500.0, version="1.1.0")
    store(TWO, 1000.0, 1001.0, 999.0)
    campaigns, played = make(the(), probe(ONE), one=(1300.0,))
    assert campaigns.why_not(the()) is None
    found = campaigns.outcome(the())
    assert (found.verdict, set(played.scenarios)) == (Verdict.PASS, {"one"})
    assert found.judgements[0].baseline == pytest.approx(1000, rel=1e-3)
    assert found.notes == (
        "two-c4 was not measured in this session (no test of it is selected): its newest accepted "
        "baseline serves, engine-two 1.2.0, commit abc1.2.0, 3 fresh starts of 2026-11-03 "
        "(20 days old), accepted by Ada",
    )


def test_it_may_be_the_side_that_the_claim_speaks_of(make: Make) -> None:
    store(ONE, 1300.0, 1301.0, 1299.0)
    campaigns, played = make(the(), probe(TWO))
    found = campaigns.outcome(the())
    assert (found.verdict, set(played.scenarios)) == (Verdict.PASS, {"two"})
    assert found.judgements[0].measured == pytest.approx(1300, rel=1e-3)


def test_which_scenarios_are_measured() -> None:
    assert measured_scenarios([the(), probe(TWO)]) == {"two"}
    floor = replace(CLAIM, id="floor", versus=None, value=9.0)
    assert measured_scenarios([the(), the(floor)]) == {"one", "two"}


def test_without_a_baseline_the_claim_says_which_side_is_missing(make: Make) -> None:
    store(replace(TWO, model=replace(TWO.model, name="Other-1B")), 1000.0, 1001.0, 999.0)
    campaigns, played = make(the(), probe(ONE))
    assert campaigns.why_not(the()) == (
        "two-c4 is not measured in this session (no test of it is selected), and no accepted "
        "baseline serves; select the tests of two, too"
    )
    assert played.starts == []


def test_an_engine_that_is_not_installed_and_has_no_baseline_cannot_be_judged(make: Make) -> None:
    campaigns, played = make(the(), lacks=["two"])
    with pytest.raises(CannotDo, match=r"the engine of two is not installed.*no accepted baseline"):
        campaigns.outcome(the())
    assert played.starts == []
    campaigns, _ = make(the(), lacks=["one", "two"])
    with pytest.raises(MissingProgram, match="the engine of one"):
        campaigns.outcome(the())


def test_an_engine_that_is_not_installed_is_its_baseline(make: Make) -> None:
    store(TWO, 1000.0, 1001.0, 999.0)
    campaigns, _ = make(the(), one=(1300.0,), lacks=["two"])
    found = campaigns.outcome(the())
    assert found.verdict == Verdict.PASS
    assert "(the engine of two is not installed)" in found.notes[0]


def test_few_starts_of_a_baseline_decide_nothing(make: Make) -> None:
    store(TWO, 1000.0, 1001.0)
    campaigns, _ = make(the(), probe(ONE), one=(2000.0,))
    found = campaigns.outcome(the())
    assert found.verdict == Verdict.INCONCLUSIVE
    assert "the baseline has 2 fresh starts" in found.judgements[0].reason


@pytest.mark.parametrize(
    ("stored", "client", "told"),
    [
        # Two clients; another release of the client; another machine.
        (
            None,
            "aiperf 0.12.0",
            "the sides are measured by different clients: one-c4 by aiperf 0.12.0, two-c4 by "
            "aiperf 0.13.0",
        ),
        (
            {"client": "aiperf 0.12.0"},
            CLIENT,
            "aiperf 0.13.0 now, aiperf 0.12.0 in the newest baseline of two-c4",
        ),
        ({"cpu": "EPYC"}, CLIENT, "cpu: now Grace, baseline EPYC"),
        # A client that comes with the engine has its release.
        ({"client": "some-bench"}, "some-bench 1.2.0", ""),
    ],
)
def test_what_was_measured_otherwise_is_not_comparable(
    make: Make, stored: dict[str, str] | None, client: str, told: str
) -> None:
    selected: list[Selected] = [the()]
    if stored is not None:
        store(TWO, 1000.0, 1001.0, 999.0, **stored)
        selected.append(probe(ONE))
    campaigns, played = make(*selected, one=(1300.0,), clients={"one": {"client": client}})
    found = campaigns.outcome(the())
    assert found.verdict == (Verdict.NOT_COMPARABLE if told else Verdict.PASS)
    assert told in found.reason
    assert played.starts == [] or "cpu" in told or not told, "nothing is started"


def test_an_older_baseline_of_the_same_client_serves(make: Make) -> None:
    store(TWO, 1000.0, 1001.0, 999.0, version="1.1.0")
    store(TWO, 900.0, 901.0, 899.0, version="1.2.0", client="aiperf 0.14.0")
    campaigns, _ = make(the(), probe(ONE), one=(1300.0,))
    found = campaigns.outcome(the())
    assert found.verdict == Verdict.PASS
    assert "engine-two 1.1.0" in found.notes[0]


# What cannot be run here. -------------------------------------------------------------------------

ON_GPUS = replace(
    building.SCENARIO,
    hardware=Hardware("GB200", 8, 2),
    engine=EngineChoice("tensorrt-llm"),
    accuracy=(),
)
SERVED = replace(ON_GPUS, launch=Launch("srun"))
OFFLINE = replace(SERVED, workload=Workload("trtllm-bench", "synthetic", 64, 32, (4,), requests=8))


def process(tmp_path: Path, **session: Any) -> Campaigns:
    run = RunFolder.create(tmp_path / "run", {"synthetic": False})
    return Campaigns(Session(run, building.MACHINE, LocalLauncher(), cache=tmp_path, **session))


def test_what_this_machine_lacks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, rehearsed = process(tmp_path / "a"), process(tmp_path / "b", synthetic=True)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    for scenario, told in (
        (SERVED, "a server that srun starts may listen on any node: use --launcher slurm"),
        (OFFLINE, None),
    ):
        assert here.why_not(all_probes(scenario)[0]) == told
    monkeypatch.setattr("shutil.which", lambda _name: None)
    queued = replace(OFFLINE, launch=Launch("sbatch"))
    assert here.why_not(all_probes(queued)[0]) == "needs Slurm: no sbatch on PATH"
    assert here.why_not(all_probes(ON_GPUS)[0]) is not None
    assert rehearsed.why_not(all_probes(ON_GPUS)[0]) is None
    told = rehearsed.why_not(all_probes(building.SCENARIO)[0])
    assert told == "a rehearsal has no stand-in for llama.cpp"


class Boxed(LocalLauncher):
    """A launcher whose programs are in a container."""

    name = "boxed"

    def locations(self, here: Locations, scenario: Scenario, version: str | None) -> Locations:
        return replace(here, inside=cast("ContainerQuery", object()))


def test_a_rehearsal_has_no_stand_ins_in_a_container(tmp_path: Path) -> None:
    rehearsed = process(tmp_path, synthetic=True)
    rehearsed.session = replace(rehearsed.session, launcher=Boxed())
    with pytest.raises(InputError, match=r"not in a container[^§]*PERFGATE_SITE"):
        rehearsed.build_of(ON_GPUS)


def test_what_the_build_could_not_be_asked_is_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    why, moved = ("keys of the LLM-API YAML: not asked: no pydantic",), ("default of a: found 1",)
    build = EngineBuild("tensorrt-llm", "1.3.0", "0123abc")
    monkeypatch.setattr(TensorRTLLM, "build", lambda *_: build)
    monkeypatch.setattr(Toolchain, "require", lambda _: None)
    monkeypatch.setattr("perfgate.campaign.campaigns.commands_to_verify", lambda *_: ())
    campaigns = process(tmp_path)
    for unasked, defaults in ((why, ()), ((), moved)):
        monkeypatch.setattr(TensorRTLLM, "verify", lambda *_, told=unasked: told)
        monkeypatch.setattr(TensorRTLLM, "moved_defaults", lambda *_, told=defaults: told)
        campaigns.toolchain(ON_GPUS)
    (line,) = recorded(campaigns.session.run, "unasked")
    assert (line["scenario"], line["why"]) == (ON_GPUS.id, [*why])
    assert line["build"]["commit"] == "0123abc"
    (line,) = recorded(campaigns.session.run, "moved_defaults")
    assert (line["scenario"], line["defaults"]) == (ON_GPUS.id, [*moved])
