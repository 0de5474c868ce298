"""Selection records: what a run writes down of its tests and their scenarios before it measures."""

from collections.abc import Mapping
from typing import Any

from perfgate.campaign.selection import Selected, probes_of
from perfgate.runs.records import RunFolder
from perfgate.scenarios.markers import markers_of
from perfgate.scenarios.scenario import Scenario


def record_selection(
    run: RunFolder, selected: Mapping[str, Selected], shard: Mapping[str, Any] | None
) -> None:
    """Write down what is not yet on record: a run that is resumed has it from its first session.

    Args:
        run: the run, held.
        selected: test → what it is about.
        shard: the record of the part that these tests are; None: they are the whole.
    """
    if not run.records("selected"):
        subjects = {
            test: {"name": one.id, "scenario": one.scenario.id, "probe": one.label}
            for test, one in sorted(selected.items())
        }
        run.record("selected", {"tests": sorted(selected), "subjects": subjects})
    if shard is not None and not run.records("shard"):
        run.record("shard", shard)
    known = {line["scenario"] for line in run.records("scenario")}
    scenarios = {
        probe.scenario.id: probe.scenario for one in selected.values() for probe in probes_of(one)
    }
    for name in sorted(scenarios.keys() - known):
        run.record("scenario", scenario_record(scenarios[name]))


def scenario_record(scenario: Scenario) -> dict[str, Any]:
    """What a report tells of a scenario."""
    hardware = scenario.hardware
    return {
        "scenario": scenario.id,
        "title": scenario.title,
        "engine_name": scenario.engine.name,
        "model": scenario.model.name,
        "hardware": hardware.label,
        "gpus": 0 if hardware.gpu == "none" else hardware.gpus,
        "document": scenario.source.document,
        "section": scenario.source.section,
        "markers": list(markers_of(scenario)),
    }
