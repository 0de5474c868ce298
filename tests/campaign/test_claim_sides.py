"""Claims in a session: sides in turns, the baseline of a side that is not measured, and when none.

What a start gives is played; campaigns, gate and records are the real ones.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import building
import pytest
from plain_records import recorded
from played import SPEED, Played, scenario_of, tools_of

from perfgate import baselines
from perfgate.baselines import BaselineRun, Entry
from perfgate.campaign.campaigns import Campaigns
from perfgate.campaign.selection import Selected, measured_scenarios
from perfgate.campaign.session import Session
from perfgate.core.errors import CannotDo, MissingProgram, RunError
from perfgate.core.verdict import Verdict
from perfgate.engines.base import EngineBuild
from perfgate.judging.assembly.claims import ClaimProbe, claim_probes
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.plan.toolchain import Toolchain
from perfgate.runs.run_folder import RunFolder
from perfgate.scenarios.probe import Probe, load_probes
from perfgate.scenarios.scenario import Claim, Scenario, Source

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


def test_without_a_gpu_both_sides_take_turns(make: Make) -> None:
    campaigns, played = make(the())
    found = campaigns.outcome(the())
    assert found.verdict == Verdict.PASS
    order = ["two", "one", "one", "two", "two", "one", "one", "two"]
    assert (played.scenarios, set(played.starts)) == (order, {"claim"})
    (judged,) = found.judgements
    assert judged.runs_used == 4
    assert len(found.measurements) == 4
    assert "engine-one 1.3.0" in found.notes[0]
    assert "engine-two 1.3.0" in found.notes[0]


def test_no_reference_is_measured_for_a_claim_in_turns(make: Make) -> None:
    itself = [
        replace(one, gate=replace(one.gate, reference="self", reference_starts=6))
        for one in (ONE, TWO)
    ]
    claim = the(scenarios=itself)
    campaigns, played = make(claim)
    assert campaigns.outcome(claim).verdict == Verdict.PASS
    assert played.starts == ["claim"] * 8
    campaigns.ended(f"test[{claim.id}]", measured=True)
    groups = recorded(campaigns.session.run, "group")
    assert [(one["starts"]["planned"], one["starts"]["made"]) for one in groups] == [(4, 4)] * 2


def test_an_undecided_claim_takes_two_more_pairs_and_no_more(make: Make) -> None:
    campaigns, played = make(
        the(), one=(1000.0, 1050.0, 950.0) * 2, two=(1000.0, 950.0, 1050.0) * 2
    )
    assert campaigns.outcome(the()).verdict == Verdict.INCONCLUSIVE
    assert len(played.starts) == 12


def test_the_scenarios_own_starts_are_apart_from_those_for_a_claim(make: Make) -> None:
    campaigns, played = make(probe(ONE), probe(TWO), the())
    assert campaigns.outcome(probe(ONE)).verdict == Verdict.NO_BASELINE
    own = len(played.starts)
    assert (set(played.starts), set(played.scenarios)) == ({"new"}, {"one"})
    assert campaigns.outcome(the()).verdict == Verdict.PASS
    assert set(played.starts[own:]) == {"claim"}
    assert len(campaigns.outcome(probe(ONE)).measurements) == own


def test_claims_about_the_same_scenarios_share_their_starts(make: Make) -> None:
    other = replace(CLAIM, id="two-is-slower", scenario="two", versus="one", expect="worse")
    campaigns, played = make(the(), the(other))
    assert campaigns.outcome(the()).verdict == Verdict.PASS
    assert campaigns.outcome(the(other)).verdict == Verdict.PASS
    assert len(played.starts) == 8


def test_a_disturbed_start_is_made_again(make: Make) -> None:
    campaigns, played = make(the(), one=(1200.0, -9.0, 1200.0))
    assert campaigns.outcome(the()).verdict == Verdict.PASS
    assert played.scenarios.count("one") == 5


def test_a_side_that_fails_is_an_error_and_ends_the_turns(make: Make) -> None:
    campaigns, played = make(the(), two=(1000.0, RunError("oom", "memory ran out")))
    found = campaigns.outcome(the())
    assert found.error is not None
    assert (found.verdict, found.error.failure) == (Verdict.ERROR, "oom")
    assert len(played.starts) == 4


def test_records_tell_starts_for_a_claim_from_others_and_count_them(make: Make) -> None:
    campaigns, _ = make(the())
    campaigns.outcome(the())
    campaigns.ended(f"test[{CLAIM.id}]", measured=True)
    run = campaigns.session.run
    assert {line["role"] for line in recorded(run, "measurement")} == {"claim"}
    groups = {line["scenario"]: line for line in recorded(run, "group")}
    assert {name: line["starts"]["made"] for name, line in groups.items()} == {"one": 4, "two": 4}
    assert {line["ended"] for line in groups.values()} == {"measured"}


def test_on_gpus_the_sides_keep_their_campaigns(make: Make) -> None:
    scenarios = [
        replace(one, hardware=replace(one.hardware, gpu="H200", gpus=8)) for one in (ONE, TWO)
    ]
    (claim,) = claim_probes([CLAIM], scenarios)
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
    assert found.verdict == Verdict.PASS
    assert set(played.scenarios) == {"one"}
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
    campaigns, played = make(the(), probe(ONE))
    assert campaigns.why_not(the()) == (
        "two-c4 is not measured in this session (no test of it is selected), and no accepted "
        "baseline serves; select the tests of two, too"
    )
    assert played.starts == []


def test_an_engine_that_is_not_installed_is_its_baseline(make: Make) -> None:
    store(TWO, 1000.0, 1001.0, 999.0)
    campaigns, _ = make(the(), one=(1300.0,), lacks=["two"])
    found = campaigns.outcome(the())
    assert found.verdict == Verdict.PASS
    assert "(the engine of two is not installed)" in found.notes[0]


def test_an_engine_that_is_not_installed_and_has_no_baseline_cannot_be_judged(make: Make) -> None:
    campaigns, played = make(the(), lacks=["two"])
    with pytest.raises(CannotDo, match=r"the engine of two is not installed.*no accepted baseline"):
        campaigns.outcome(the())
    assert played.starts == []
    campaigns, _ = make(the(), lacks=["one", "two"])
    with pytest.raises(MissingProgram, match="the engine of one"):
        campaigns.outcome(the())


def test_few_starts_of_a_baseline_decide_nothing(make: Make) -> None:
    store(TWO, 1000.0, 1001.0)
    campaigns, _ = make(the(), probe(ONE), one=(2000.0,))
    found = campaigns.outcome(the())
    assert found.verdict == Verdict.INCONCLUSIVE
    assert "the baseline has 2 fresh starts" in found.judgements[0].reason


# Sides that cannot be compared. -------------------------------------------------------------------


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
    ],
)
def test_what_was_measured_otherwise_is_not_comparable(
    make: Make, stored: dict[str, str] | None, client: str, told: str
) -> None:
    selected: list[Selected] = [the()]
    if stored is not None:
        store(TWO, 1000.0, 1001.0, 999.0, **stored)
        selected.append(probe(ONE))
    campaigns, played = make(*selected, clients={"one": {"client": client}})
    found = campaigns.outcome(the())
    assert found.verdict == Verdict.NOT_COMPARABLE
    assert told in found.reason
    assert played.starts == [] or "cpu" in told, "nothing is started"


def test_an_older_baseline_of_the_same_client_serves(make: Make) -> None:
    store(TWO, 1000.0, 1001.0, 999.0, version="1.1.0")
    store(TWO, 900.0, 901.0, 899.0, version="1.2.0", client="aiperf 0.14.0")
    campaigns, _ = make(the(), probe(ONE), one=(1300.0,))
    found = campaigns.outcome(the())
    assert found.verdict == Verdict.PASS
    assert "engine-two 1.1.0" in found.notes[0]


def test_a_client_that_comes_with_the_engine_has_its_release(make: Make) -> None:
    store(TWO, 1000.0, 1001.0, 999.0, client="some-bench")
    campaigns, _ = make(
        the(), probe(ONE), one=(1300.0,), clients={"one": {"client": "some-bench 1.2.0"}}
    )
    assert campaigns.outcome(the()).verdict == Verdict.PASS


def test_a_baseline_of_another_content_does_not_serve(make: Make) -> None:
    store(replace(TWO, model=replace(TWO.model, name="Other-1B")), 1000.0, 1001.0, 999.0)
    campaigns, _ = make(the(), probe(ONE))
    assert "no accepted baseline serves" in (campaigns.why_not(the()) or "")
