"""Run opening: the run folder of a session, a new one or a resumed one, and what is selected."""

import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from perfgate.campaign.campaigns import Campaigns
from perfgate.campaign.resume import (
    kept_of,
    require_same,
    require_same_group,
    require_same_selection,
)
from perfgate.campaign.selection import Selected, probes_of
from perfgate.campaign.session import run_path
from perfgate.core.errors import InputError, PerfgateError
from perfgate.core.redaction import mask_arguments
from perfgate.engines.base import EngineBuild
from perfgate.launchers.base import launcher
from perfgate.launchers.site import load_site
from perfgate.launchers.start_commands import command_facts
from perfgate.machine.hardware import Machine
from perfgate.reports.run_report import report_of
from perfgate.reports.run_text import summary
from perfgate.runs.record import (
    GroupRecord,
    ResumedRecord,
    ScenarioRecord,
    SelectedRecord,
    SelectedTest,
    ShardRecord,
    records_of,
)
from perfgate.runs.run_folder import RunFolder, session_facts
from perfgate.scenarios.markers import markers_of
from perfgate.scenarios.probe import all_probes
from perfgate.scenarios.scenario import Scenario
from perfgate.suite.rehearsal_seam import Option, rehearses


def opened(option: Option, root: Path, machine: Machine) -> RunFolder:
    """The run folder of this session, held; one that is resumed is not changed yet.

    Args:
        option: the value of an option of the command line.
        root: the folder that holds ``runs/``.
        machine: this machine.

    Raises:
        InputError: the folder cannot be used; or for a run to be resumed: none is there, a living
            session holds it, or it was started for something else.
    """
    facts = _shape(option)
    fingerprint = {"fingerprint": machine.fingerprint()}
    if option("--resume") is None:
        ends = {"gate": option("--gate"), "recording": option("--record")}
        facts = {**session_facts(machine, sys.argv, root), **facts, **ends}
        run = RunFolder.create(run_path(option("--run-dir"), root), facts | fingerprint)
        run.write_summary(summary(report_of(run.facts(), []), None))
        return run
    given: Path = option("--resume")
    if option("--run-dir") is not None:
        raise InputError(
            "a resumed run stays in its own folder",
            field="--resume",
            found=f"{given}, and --run-dir beside it",
            expected="one of the two",
        )
    if launcher[option("--launcher")].here:
        facts |= fingerprint
    run = RunFolder.reopen(run_named(given, root))
    try:
        require_same(run.facts(), facts)
    except BaseException:
        run.close()
        raise
    return run


def _shape(option: Option) -> dict[str, object]:
    """What shapes all numbers of a run, beside its scenarios and its machine."""
    return {
        "synthetic": rehearses(option),
        "rehearse_fault": option("--rehearse-fault"),
        "launcher": option("--launcher"),
        "injected": mask_arguments(option("--inject")),
        "control": mask_arguments([option("--control")]),
        "ab": mask_arguments(option("--ab") or []),
        "site_commands": {} if rehearses(option) else command_facts(load_site()),
        "shard": option("--shard"),
    }


def run_named(given: Path, root: Path) -> Path:
    """The folder of a run, given as such or by its name under ``runs/``."""
    named = root / "runs" / given
    return named if not given.is_dir() and named.is_dir() else given.absolute()


def needs(selected: Mapping[str, Selected]) -> dict[str, list[Scenario]]:
    """Test → the scenarios that it needs."""
    return {test: [probe.scenario for probe in probes_of(one)] for test, one in selected.items()}


def resume(
    run: RunFolder,
    campaigns: Campaigns,
    tests: Mapping[str, Collection[Scenario]],
    arguments: list[str],
) -> None:
    """Write down that the run goes on: from then on only finished groups count.

    Args:
        run: the run, held.
        campaigns: know the build under test.
        tests: the selected tests of the suite → the scenarios that each needs.
        arguments: this session's, secrets masked.

    Raises:
        InputError: other tests are selected, a finished group's build or scenario is another, or
            its verdict is damaged.
    """
    facts, records = run.facts(), run.records()
    first = {test for one in records_of(SelectedRecord, records) for test in one.tests}
    require_same_selection(facts, first, tests)
    scenarios = {one.id: one for found in tests.values() for one in found}
    kept = kept_of(records)
    for name, group in kept.groups.items():
        content = {one.label: one.content_hash() for one in all_probes(scenarios[name])}
        require_same_group(group, engine=_build(campaigns, scenarios[name], group), content=content)
    # All scenarios of the run: those that are selected, and those that it has records of.
    begun = {*scenarios, *(name for one in records if (name := getattr(one, "scenario", "")))}
    run.record(
        ResumedRecord(
            arguments=tuple(arguments),
            repeats=tuple(sorted(begun - kept.groups.keys())),
            keeps=tuple(sorted(kept.verdicts)),
            groups=tuple(sorted(kept.groups)),
        )
    )


def _build(campaigns: Campaigns, scenario: Scenario, group: GroupRecord) -> EngineBuild:
    """The build under test now.

    Raises:
        InputError: none can be asked.
    """
    try:
        return campaigns.build_of(scenario)
    except PerfgateError as error:
        raise InputError(
            f"the build that {scenario.id} would be measured with now is not known: {error}",
            field="--resume",
            expected=str(group.engine),
        ) from error


def record_selection(
    run: RunFolder, selected: Mapping[str, Selected], shard: ShardRecord | None
) -> None:
    """Write down what is not yet on record: a run that is resumed has it from its first session.

    Args:
        run: the run, held.
        selected: test → what it is about.
        shard: the record of the part that these tests are; None: they are the whole.
    """
    if not run.records_of(SelectedRecord):
        subjects = {
            test: SelectedTest(one.id, one.scenario.id, one.label)
            for test, one in sorted(selected.items())
        }
        run.record(SelectedRecord(tests=tuple(sorted(selected)), subjects=subjects))
    if shard is not None and not run.records_of(ShardRecord):
        run.record(shard)
    known = {one.scenario for one in run.records_of(ScenarioRecord)}
    scenarios = {
        probe.scenario.id: probe.scenario for one in selected.values() for probe in probes_of(one)
    }
    for name in sorted(scenarios.keys() - known):
        run.record(scenario_record(scenarios[name]))


def scenario_record(scenario: Scenario) -> ScenarioRecord:
    """What reports say of a scenario."""
    hardware = scenario.hardware
    return ScenarioRecord(
        scenario=scenario.id,
        title=scenario.title,
        engine_name=scenario.engine.name,
        model=scenario.model.name,
        hardware=hardware.label,
        gpus=0 if hardware.gpu == "none" else hardware.gpus,
        document=scenario.source.document,
        section=scenario.source.section,
        markers=tuple(markers_of(scenario)),
    )
