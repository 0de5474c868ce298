"""Campaigns of a process: what it cannot run, claims in turns, sides that are not measured.

What a start gives is played; campaigns, gate and records are the real ones.
"""

from dataclasses import replace
from datetime import date
from unittest.mock import Mock

import building
import pytest
from plain_records import recorded
from played import CLAIM, Played, scenario_of, store_baseline, tools_of
from refusals import refused

from perfgate.campaign.campaigns import Campaigns
from perfgate.campaign.selection import measured_scenarios
from perfgate.campaign.session import Session
from perfgate.core.errors import CannotDo, MissingProgram, RunError
from perfgate.core.programs.locations import Locations
from perfgate.core.verdict import Verdict
from perfgate.engines.base import EngineBuild, OptionsAnswer
from perfgate.engines.tensorrt_llm.engine import TensorRTLLM
from perfgate.judging.assembly.claims import ClaimProbe, claim_probes
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.plan.toolchain import Toolchain
from perfgate.scenarios import scenario as model
from perfgate.scenarios.probe import Probe, all_probes, load_probes

PLAIN = scenario_of((4,), band=0.02, noise="measured")
ONE, TWO = (replace(PLAIN, id=name) for name in ("one", "two"))
CLIENT = "aiperf 0.13.0"
FAST, SLOW = (1200.0, 1210.0, 1190.0), (1000.0, 1010.0, 990.0)


def the(claim=CLAIM, scenarios=(ONE, TWO)) -> ClaimProbe:
    return claim_probes([claim], scenarios)[0]


def probe(scenario) -> Probe:
    return load_probes(scenario)[0]


@pytest.fixture
def make(run, suite_root, monkeypatch: pytest.MonkeyPatch):
    def made(*selected, one=FAST, two=SLOW, client=CLIENT, lacks="") -> tuple[Campaigns, Played]:
        """The campaigns of two scenarios, one by `client`; the engines of `lacks` are not here."""
        scripts = {"one": one, "two": two}
        played = Played({name: {"claim": said, "new": said} for name, said in scripts.items()})
        played.take_part(monkeypatch)

        def toolchain(_campaigns: Campaigns, scenario) -> Toolchain:
            if scenario.id in lacks:
                raise MissingProgram(f"the engine of {scenario.id} is not installed")
            facts = {"content": probe(scenario).content_hash(), "cpu": "Grace"}
            facts["client"] = client if scenario.id == "one" else CLIENT
            build = EngineBuild(f"engine-{scenario.id}", "1.3.0", "def456")
            return tools_of(build, scenario, **facts)

        monkeypatch.setattr(Campaigns, "toolchain", toolchain)
        monkeypatch.setattr(Campaigns, "missing_hardware", lambda _self, _which: None)
        campaigns = process(run, today=date(2026, 11, 23))
        campaigns.select({f"test[{one.id}]": one for one in selected})
        return campaigns, played

    return made


def process(run, **session) -> Campaigns:
    made = Session(run, building.MACHINE, LocalLauncher(), cache=run.path, **session)
    return Campaigns(made)


def store(scenario, *values: float, version="1.2.0", client=CLIENT, cpu="Grace") -> None:
    facts = {"content": probe(scenario).content_hash(), "client": client, "cpu": cpu}
    build = EngineBuild("engine-two", version, f"abc{version}")
    store_baseline(build, facts, {probe(scenario): values})


# Turns. -------------------------------------------------------------------------------------------

OTHER = replace(CLAIM, id="two-is-slower", scenario="two", versus="one", expect="worse")
BOTH = (ONE, TWO)
OWN = replace(PLAIN.gate, reference="self", reference_starts=6)
BY_THEMSELVES = tuple(replace(one, gate=OWN) for one in BOTH)
NOISY = ((1000.0, 1050.0, 950.0) * 2, (1000.0, 950.0, 1050.0) * 2)
OOM = RunError("oom", "memory ran out")


@pytest.mark.parametrize(
    ("scenarios", "one", "two", "verdict", "starts"),
    [
        (BOTH, FAST, SLOW, "PASS", "21122112"),
        (BOTH, *NOISY, "INCONCLUSIVE", "211221122112"),  # two more pairs and no more
        # No reference is measured for a claim in turns.
        (BY_THEMSELVES, FAST[:1], SLOW[:1], "PASS", "21122112"),
        # A disturbed start is made again in its place; a side that fails ends the turns.
        (BOTH, (1200.0, -9.0, 1200.0), SLOW[:1], "PASS", "211122112"),
        (BOTH, FAST[:1], (1000.0, OOM), "ERROR", "2112"),
        (BOTH, NOISY[0], (*NOISY[1][:4], OOM), "ERROR", "211221122"),
    ],
)
def test_without_a_gpu_both_sides_take_turns(make, scenarios, one, two, verdict, starts) -> None:
    claim = the(scenarios=scenarios)
    campaigns, played = make(claim, one=one, two=two)
    found = campaigns.outcome(claim)
    assert (found.verdict, found.error) == (verdict, OOM if verdict == "ERROR" else None)
    order = "".join({"one": "1", "two": "2"}[name] for name in played.scenarios)
    assert (order, set(played.starts)) == (starts, {"claim"})
    if found.error is not None:
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


def test_the_scenarios_own_starts_are_apart_from_those_that_claims_share(make) -> None:
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


@pytest.mark.parametrize(("two", "verdict"), [(SLOW, "PASS"), ((1000.0, OOM), "ERROR")])
def test_on_gpus_the_sides_keep_their_campaigns_one_start_at_a_time(make, two, verdict) -> None:
    gpus = replace(PLAIN.hardware, gpu="H200", gpus=8)
    claim = the(scenarios=[replace(one, hardware=gpus) for one in BOTH])
    campaigns, played = make(claim, two=two)
    assert campaigns.outcome(claim).verdict == verdict
    assert (set(played.starts), played.scenarios[:4]) == ({"new"}, ["one", "two"] * 2)
    assert verdict == "PASS" or len(played.scenarios) == 4, "for nothing after a side has failed"


# Sides that are not measured. ---------------------------------------------------------------------

UNSELECTED = (
    "two-c4 was not measured in this session (no test of it is selected): its newest accepted "
    "baseline serves, engine-two 1.2.0, commit abc1.2.0, 3 fresh starts of 2026-11-03 "
    "(20 days old), accepted by Ada"
)
CLIENTS = "the sides were measured by different clients: aiperf 0.13.0 now, "
OLD, NEW = (500.0, 500.0, 500.0), (1000.0, 1001.0, 999.0)
AIPERF_12, AIPERF_14 = ({"client": f"aiperf 0.{minor}.0"} for minor in (12, 14))


@pytest.mark.parametrize(
    ("stored", "selected", "given", "verdict", "told", "measured"),
    [
        # The newest one, though an older one was stored first; or of what the claim speaks of.
        ([(OLD, {"version": "1.1.0"}), (NEW, {})], [ONE], {}, "PASS", UNSELECTED, "one"),
        ([((1300.0, 1301.0, 1299.0), {"of": ONE})], [TWO], {}, "PASS", "one-c4 was not", "two"),
        ([(NEW, {})], [], {"lacks": "two"}, "PASS", "(the engine of two is not installed)", "one"),
        ([(NEW[:2], {})], [ONE], {}, "INCONCLUSIVE", "the baseline has 2 fresh starts", "one"),
        # An older one of the same client serves; a client that comes with the engine has its
        # release; else what was measured otherwise is not comparable, and nothing is started.
        ([(NEW, {"version": "1.1.0"}), (OLD, AIPERF_14)], [ONE], {}, "PASS", "two 1.1.0", "one"),
        ([(NEW, {"client": "bench"})], [ONE], {"client": "bench 1.2.0"}, "PASS", "", "one"),
        ([(NEW, AIPERF_12)], [ONE], {}, "NOT_COMPARABLE", CLIENTS + "aiperf 0.12.0 in the ne", ""),
        ([], [], AIPERF_12, "NOT_COMPARABLE", "one-c4 by aiperf 0.12.0, two-c4 by aiperf 0.1", ""),
        ([(NEW, {"cpu": "EPYC"})], [ONE], {}, "NOT_COMPARABLE", "cpu: now Grace, base", "one"),
    ],
)
def test_a_side_not_measured_is_a_baseline(make, stored, selected, given, verdict, told, measured):
    for values, facts in stored:
        store(facts.get("of", TWO), *values, **{k: v for k, v in facts.items() if k != "of"})
    campaigns, played = make(the(), *map(probe, selected), **{"one": (1300.0,), **given})
    assert campaigns.skip_reason(the()) is None
    found = campaigns.outcome(the())
    assert (found.verdict, set(played.scenarios)) == (verdict, {measured} - {""})
    texts = (found.reason, *found.notes, *(one.reason for one in found.judgements))
    assert any(told in text for text in texts), texts


def test_which_scenarios_are_measured() -> None:
    assert measured_scenarios([the(), probe(TWO)]) == {"two"}
    floor = replace(CLAIM, id="floor", versus=None, value=9.0)
    assert measured_scenarios([the(), the(floor)]) == {"one", "two"}


def test_without_a_baseline_the_claim_says_which_side_is_missing(make) -> None:
    store(replace(TWO, model=replace(TWO.model, name="Other-1B")), *NEW)
    campaigns, played = make(the(), probe(ONE))
    assert campaigns.skip_reason(the()) == (
        "two-c4 is not measured in this session (no test of it is selected), and no accepted "
        "baseline serves; select the tests of two, too"
    )
    campaigns, _ = make(the(), lacks="two")
    told = r"the engine of two is not installed.*no accepted baseline"
    refused(campaigns.outcome, the(), match=told, error=CannotDo)
    campaigns, _ = make(the(), lacks="one, two")
    refused(campaigns.outcome, the(), match="the engine of one", error=MissingProgram)
    assert played.starts == []


# What cannot be run here. -------------------------------------------------------------------------

ON_GPUS = replace(
    building.SCENARIO,
    hardware=model.Hardware("GB200", 8, 2),
    engine=model.EngineChoice("tensorrt-llm"),
    accuracy=(),
)
SERVED = replace(ON_GPUS, launch=model.Launch("srun"))
BENCH = model.Workload("trtllm-bench", "synthetic", 64, 32, (4,), requests=8)
OFFLINE = replace(SERVED, workload=BENCH)


def test_what_this_machine_lacks_is_told(run, monkeypatch) -> None:
    here, rehearsed = process(run), process(run, synthetic=True)
    monkeypatch.setattr("shutil.which", lambda name, path: f"/usr/bin/{name}")
    nodes = "a server that srun starts may listen on any node: use --launcher slurm"
    for scenario, told in ((SERVED, nodes), (OFFLINE, None)):
        assert here.skip_reason(all_probes(scenario)[0]) == told
    monkeypatch.setattr("shutil.which", lambda name, path: None)
    queued = replace(OFFLINE, launch=model.Launch("sbatch"))
    assert here.skip_reason(all_probes(queued)[0]) == "needs Slurm: no sbatch on PATH"
    assert here.skip_reason(all_probes(ON_GPUS)[0]) is not None
    assert rehearsed.skip_reason(all_probes(ON_GPUS)[0]) is None
    told = rehearsed.skip_reason(all_probes(building.SCENARIO)[0])
    assert told == "a rehearsal has no mock program for llama.cpp"


def test_a_rehearsal_has_no_stand_ins_in_a_container(run) -> None:
    rehearsed, boxed = process(run, synthetic=True), Mock()
    boxed.locations.return_value = Locations(inside=Mock())
    rehearsed.session = replace(rehearsed.session, launcher=boxed)
    refused(rehearsed.build_of, ON_GPUS, match=r"not in a container[^§]*PERFGATE_SITE")


def test_what_the_build_could_not_be_asked_is_a_record(run, monkeypatch) -> None:
    why, moved = ("keys of the LLM-API YAML: not asked: no pydantic",), ("default of a: found 1",)
    marked = ("trtllm-serve serve --backend: marked deprecated by the build",)
    build = EngineBuild("tensorrt-llm", "1.3.0", "0123abc")
    answer = OptionsAnswer(why, moved, marked)
    for name, told in (("build", build), ("verify", answer)):
        monkeypatch.setattr(TensorRTLLM, name, lambda *_, told=told: told)
    monkeypatch.setattr(Toolchain, "require", lambda _: None)
    monkeypatch.setattr("perfgate.plan.calls.commands_to_verify", lambda *_: ())
    process(run).toolchain(ON_GPUS)
    (line,) = recorded(run, "unasked")
    assert (line["scenario"], line["why"]) == (ON_GPUS.id, [*why])
    assert line["build"]["commit"] == "0123abc"
    (line,) = recorded(run, "moved_defaults")
    assert (line["scenario"], line["defaults"]) == (ON_GPUS.id, [*moved])
    (line,) = recorded(run, "marked_options")
    assert (line["scenario"], line["options"]) == (ON_GPUS.id, [*marked])
