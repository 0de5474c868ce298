"""References: a probe is compared with a measured baseline, with a document where there is none."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import building
import pytest
from tables import each

from perfgate.baselines import BaselineRun, own_store, suite_store
from perfgate.engines.base import EngineBuild
from perfgate.judging.assembly import references
from perfgate.judging.assembly.judgement import Reference
from perfgate.judging.assembly.references import References, Stored
from perfgate.scenarios.documented import Documented, DocumentedValue
from perfgate.scenarios.probe import Probe, all_probes, load_probes
from perfgate.scenarios.scenario import Scenario, Source

SPEED = "output_throughput"
SOURCE = Source("guide.md", "Serving", engine_version="1.0.0", engine_commit="b6261862419c33d6")
LOAD = replace(building.SCENARIO.workload, concurrency=(4,))
ONE_POINT = replace(building.SCENARIO, workload=LOAD)
(C4,) = load_probes(ONE_POINT)
(OWN,) = load_probes(replace(ONE_POINT, gate=replace(ONE_POINT.gate, reference="self")))
DOCUMENT = "the documented value, guide.md, section Serving, engine commit b626186"
STORED = "llama.cpp 1.2.0, commit abc123, of 2026-11-05, accepted by Ada, {} fresh st"
pytestmark = pytest.mark.usefixtures("suite_root")


@pytest.fixture
def compared(monkeypatch):
    """What a probe is compared with, where a document has these values."""

    def compare(
        probe: Probe, values: Mapping[str, DocumentedValue], own: Sequence[BaselineRun] = ()
    ) -> Reference:
        document = Documented(probe.scenario.id, SOURCE, values) if values else None
        monkeypatch.setattr(references, "documented_values", lambda _: document)
        return References(tools_of(probe.scenario), building.MACHINE).comparison(probe, own)

    return compare


def tools_of(scenario: Scenario) -> Any:
    return SimpleNamespace(
        scenario=scenario,
        build=EngineBuild("llama.cpp", "1.2.0", "abc123"),
        fingerprint=lambda probe, machine: {"content": probe.label},
    )


@pytest.mark.parametrize(
    ("label", "documented", "description"),
    [
        ("", True, DOCUMENT),
        ("", False, "no baseline"),
        # A measured baseline wins, and keeps the document beside it.
        ("c4", True, STORED.format(2)),
        # One of other probes leaves this one to the document.
        ("c1", True, DOCUMENT),
        ("c1", False, STORED.format(0)),
    ],
)
def test_what_a_probe_is_compared_with(compared, label, documented, description) -> None:
    entry = building.entry(100.0, 101.0)
    if label:
        suite_store().save(building.baseline(entries={label: entry}))
    values = {SPEED: DocumentedValue(90.0)} if documented else {}
    found = compared(C4, values)
    assert found.entry == (entry if label == "c4" else None)
    assert found.documented == values
    assert found.description.startswith(description)


def test_a_documented_value_goes_to_the_point_it_belongs_to(compared) -> None:
    values = {
        SPEED: DocumentedValue(1.0, concurrency=4),
        "tpot_mean_ms": DocumentedValue(1.0),
        building.SUMS: DocumentedValue(0.9),
        "accuracy:other:exact_match:strict-match": DocumentedValue(0.9),
    }
    found = [set(compared(probe, values).documented) for probe in all_probes(building.SCENARIO)]
    assert found == [set(), {SPEED}, {building.SUMS}]
    assert set(compared(C4, values).documented) == {SPEED, "tpot_mean_ms"}


def test_a_machine_that_measures_itself_has_no_document_and_takes_its_own_runs_first(
    compared,
) -> None:
    values = {SPEED: DocumentedValue(1.0)}
    found = compared(OWN, values)
    assert (found.description, found.documented) == ("no baseline", {})
    runs = building.entry(100.0, 101.0).runs
    found = compared(OWN, values, runs)
    assert found.entry.runs == runs
    assert found.description == "this machine itself, 2 fresh starts in this session"


@pytest.mark.parametrize(
    ("policy", "stored", "is_due"),
    [
        ("auto", "", True),
        ("auto", "c4", False),
        ("auto", "other content", True),
        ("fresh", "c4", True),
        ("stored", "", False),
    ],
)
def test_a_session_measures_its_own_reference_where_none_is_comparable(
    policy, stored, is_due
) -> None:
    if stored:
        entry = replace(building.entry(100.0), fingerprint={"content": stored})
        own_store().save(building.baseline(accepted_by="self", entries={"c4": entry}))
    known = References(tools_of(OWN.scenario), building.MACHINE)
    assert known.due([OWN, C4], policy) == ({OWN} if is_due else set())


def test_two_comparable_sessions_are_kept_beside_a_new_one() -> None:
    before, new = building.entry(1.0, 2.0, 3.0), building.entry(4.0).runs
    stored, facts = Stored({}, {"baseline": before}, ()), before.fingerprint
    assert stored.with_session(facts, new).runs == (*new, *before.runs[:2])
    assert stored.with_session({**facts, "cpu": "Xeon"}, new).runs == new


@each("probe", [C4, all_probes(ONE_POINT)[-1]], ids=lambda probe: probe.label)
def test_the_commands_of_the_site_are_facts_of_speed_alone(probe) -> None:
    commands = {"before": "nvidia-smi boost-slider --vboost 4"}
    known = References(tools_of(ONE_POINT), building.MACHINE)
    assert known.fingerprint(probe) == {"content": probe.label}
    found = replace(known, commands=commands).fingerprint(probe)
    assert found == {"content": probe.label, **(commands if probe.is_load else {})}
