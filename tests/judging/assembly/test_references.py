"""References: a probe is compared with a measured baseline, with a document where there is none."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import building
import pytest

from perfgate import baselines
from perfgate.engines.base import EngineBuild
from perfgate.judging.assembly.references import References
from perfgate.plan.toolchain import Toolchain
from perfgate.scenarios.documented import Documented, DocumentedValue
from perfgate.scenarios.probe import Probe, accuracy_probes, load_probes
from perfgate.scenarios.scenario import Scenario, Source

SOURCE = Source("guide.md", "Serving", engine_version="1.0.0", engine_commit="b6261862419c33d6")
ONE_POINT = replace(
    building.SCENARIO,
    workload=replace(building.SCENARIO.workload, concurrency=(4,)),  # type: ignore[type-var]
)


def references(
    scenario: Scenario, values: Mapping[str, DocumentedValue], source: Source = SOURCE
) -> References:
    tools = SimpleNamespace(
        scenario=scenario,
        build=EngineBuild("llama.cpp", "1.2.0", "abc123"),
        fingerprint=lambda probe, machine: {"content": "a"},
    )
    documented = Documented(scenario.id, source, values) if values else None
    return References(cast(Toolchain, tools), building.MACHINE, "auto", lambda _: documented)


def documented_of(scenario: Scenario, probe: Probe, **values: DocumentedValue) -> set[str]:
    return set(references(scenario, values).comparison(probe).documented)


@pytest.mark.usefixtures("suite_root")
def test_without_a_baseline_the_document_is_told() -> None:
    (probe,) = load_probes(ONE_POINT)
    chosen = references(ONE_POINT, {"output_throughput": DocumentedValue(100.0)})
    comparison = chosen.comparison(probe)
    assert comparison.entry is None
    assert comparison.documented == {"output_throughput": DocumentedValue(100.0)}
    assert comparison.description == (
        "the documented value, guide.md, section Serving, engine commit b626186"
    )


def test_a_measured_baseline_wins_and_keeps_the_document_beside_it(suite_root: Path) -> None:
    (probe,) = load_probes(ONE_POINT)
    entries = {"c4": building.entry(100.0, 101.0)}
    baselines.suite_store().save(building.baseline(entries=entries))
    chosen = references(ONE_POINT, {"output_throughput": DocumentedValue(90.0)})
    comparison = chosen.comparison(probe)
    assert comparison.entry == entries["c4"]
    assert comparison.description.startswith(
        "llama.cpp 1.2.0, commit abc123, of 2026-11-05, accepted by Ada"
    )
    assert set(comparison.documented) == {"output_throughput"}


def test_a_baseline_of_other_probes_leaves_this_one_to_the_document(suite_root: Path) -> None:
    (probe,) = load_probes(ONE_POINT)
    baselines.suite_store().save(building.baseline(entries={"c1": building.entry(100.0)}))
    known = references(ONE_POINT, {"output_throughput": DocumentedValue(90.0)}).comparison(probe)
    assert (known.entry, known.description[:20]) == (None, "the documented value")
    unknown = references(ONE_POINT, {}).comparison(probe)
    assert unknown.entry is None
    assert "0 fresh starts" in unknown.description


@pytest.mark.usefixtures("suite_root")
def test_a_documented_value_goes_to_the_point_it_belongs_to() -> None:
    c1, c4 = load_probes(building.SCENARIO)
    (sums,) = accuracy_probes(building.SCENARIO)
    values = {
        "output_throughput": DocumentedValue(1.0, concurrency=4),
        "tpot_mean_ms": DocumentedValue(1.0),
        building.SUMS: DocumentedValue(0.9),
        "accuracy:other:exact_match:strict-match": DocumentedValue(0.9),
    }
    assert documented_of(building.SCENARIO, c1, **values) == set()
    assert documented_of(building.SCENARIO, c4, **values) == {"output_throughput"}
    assert documented_of(building.SCENARIO, sums, **values) == {building.SUMS}
    (only,) = load_probes(ONE_POINT)
    assert documented_of(ONE_POINT, only, **values) == {"output_throughput", "tpot_mean_ms"}


@pytest.mark.usefixtures("suite_root")
def test_a_machine_that_measures_itself_has_no_document() -> None:
    scenario = replace(ONE_POINT, gate=replace(ONE_POINT.gate, reference="self"))
    (probe,) = load_probes(scenario)
    comparison = references(scenario, {"output_throughput": DocumentedValue(1.0)}).comparison(probe)
    assert (comparison.description, comparison.documented) == ("no baseline", {})


@pytest.mark.usefixtures("suite_root")
def test_runs_of_this_session_come_first() -> None:
    (probe,) = load_probes(ONE_POINT)
    own = building.entry(100.0, 101.0).runs
    comparison = references(ONE_POINT, {}).comparison(probe, own)
    assert comparison.entry is not None
    assert comparison.entry.runs == own
    assert comparison.description == "this machine itself, 2 fresh starts in this session"


def test_the_commands_of_the_site_are_facts_of_speed_alone() -> None:
    tools = SimpleNamespace(fingerprint=lambda probe, machine: {"content": probe.label})
    commands = {"before": "nvidia-smi boost-slider --vboost 4"}
    boosted = References(cast(Toolchain, tools), building.MACHINE, "auto", commands=commands)
    plain = References(cast(Toolchain, tools), building.MACHINE, "auto")
    (point,) = load_probes(ONE_POINT)
    assert boosted.fingerprint(point) == {"content": point.label, **commands}
    assert plain.fingerprint(point) == {"content": point.label}
    for task in accuracy_probes(ONE_POINT):
        assert boosted.fingerprint(task) == plain.fingerprint(task)
