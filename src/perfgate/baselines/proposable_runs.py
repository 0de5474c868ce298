"""Proposable runs: which runs may go on a branch for review; stricter than `record`. Pure."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from perfgate.core.errors import InputError
from perfgate.runs.ended_run import EndedRun
from perfgate.runs.record import MeasurementRecord
from perfgate.scenarios.probe import all_probes
from perfgate.scenarios.scenario import Scenario

# As `git describe --dirty`, setuptools_scm and builds of a changed tree say it.
_NOT_CLEAN = re.compile(
    r"(^|[^a-z])(dirty|modified|unknown|none|local changes)([^a-z]|$)|\.d20\d{6}$"
)
_MOST = 5  # faults of a run that the message lists


def require_proposable(
    runs: Sequence[EndedRun], suite: Mapping[str, Scenario], chosen: Collection[str] = ()
) -> None:
    """Refuse runs whose numbers nobody should be asked to accept.

    Args:
        runs: at least one.
        suite: the gate repository's scenarios, as they are now.
        chosen: ids of the scenarios that are proposed; empty: all that the runs measured.

    Raises:
        InputError: a run did not end; its numbers are synthetic, injected, disturbed, or not of a
            clean commit's build; or the suite lacks a scenario, or has another content of it.
    """
    contents = {
        name: {probe.label: probe.content_hash() for probe in all_probes(scenario)}
        for name, scenario in suite.items()
    }
    for run in runs:
        faults = list(dict.fromkeys(_faults(run, contents, chosen)))
        if faults:
            more = [f"and {len(faults) - _MOST} more"] if len(faults) > _MOST else []
            raise InputError(
                "the numbers of this run cannot be proposed as a baseline",
                file=run.folder,
                found="; ".join([*faults[:_MOST], *more]),
                expected="an undisturbed run that ended, of a clean commit's build, whose "
                "scenarios the suite has with the same content",
                hint="measure again, or name the scenarios without fault with --scenario",
            )


def _faults(
    run: EndedRun, contents: Mapping[str, Mapping[str, str]], chosen: Collection[str]
) -> Iterator[str]:
    if run.end is None:
        yield f"the run did not end (`pytest --resume {run.folder}` continues it)"
    if run.facts.get("synthetic") is not False:
        yield "mock programs made its numbers"
    if run.facts.get("injected"):
        yield f"settings of the build were injected: {run.facts['injected']}"[:120]
    for line in run.records_of(MeasurementRecord):
        if line.role == "new" and (not chosen or line.scenario in chosen):
            for fault in _measurement_faults(line, contents.get(line.scenario, {})):
                yield f"{line.name}: {fault}"


def _measurement_faults(line: MeasurementRecord, contents: Mapping[str, str]) -> Iterator[str]:
    if line.injected or line.synthetic:
        yield "its settings were injected, or its numbers are synthetic"
    if line.disturbed:
        yield f"start {line.start} was disturbed: {'; '.join(line.disturbed)}"[:300]
    for part, text in (("version", line.engine.version), ("commit", line.engine.commit)):
        if not text or _NOT_CLEAN.search(text.lower()):
            yield f"engine.{part} {text!r} is not that of a clean commit (see --engine-commit)"
    content = line.fingerprint.get("content")
    if line.probe not in contents:
        yield "the suite has no such scenario"
    elif content != contents[line.probe]:
        yield f"measured with content {content}, now the suite has {contents[line.probe]}"
