"""Proposable runs: which runs may be proposed as baselines at all; stricter than `record`. Pure."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from perfgate.core.errors import InputError
from perfgate.runs.ended_run import EndedRun
from perfgate.runs.record import MeasurementRecord

Line = Mapping[str, Any]

# As `git describe --dirty`, setuptools_scm and builds of a changed tree say it.
_NOT_CLEAN = re.compile(
    r"(^|[^a-z])(dirty|modified|unknown|none|local changes)([^a-z]|$)|\.d20\d{6}$"
)


def require_proposable(
    runs: Sequence[EndedRun],
    contents: Mapping[str, Mapping[str, str]],
    chosen: Collection[str] = (),
) -> None:
    """Refuse runs whose numbers nobody should be asked to accept.

    Args:
        runs: at least one.
        contents: scenario → probe label → hash of its content, as the suite has it now.
        chosen: the scenarios that are proposed; empty: all that the runs measured.

    Raises:
        InputError: the first thing that is wrong: a run that did not end, synthetic or injected
            numbers, a disturbed start, a build that is not a clean commit's, a scenario that the
            suite does not have, or has otherwise.
    """
    for run in runs:
        for wrong in _wrong(run, contents, chosen):
            raise wrong


def _wrong(
    run: EndedRun, contents: Mapping[str, Mapping[str, str]], chosen: Collection[str]
) -> Iterator[InputError]:
    facts = run.folder / "run.json"
    if run.end is None:
        yield InputError(
            "the run did not end: it was killed, or is still going on",
            file=run.folder,
            found="no record of its end",
            expected="a run that ended by itself",
            hint=f"pytest --resume {run.folder}",
        )
    if run.facts.get("synthetic") is not False:
        yield InputError(
            "stand-ins made these numbers: they can never be a baseline of measured ones",
            file=facts,
            field="synthetic",
            found=run.facts.get("synthetic"),
            expected="false: a run that measured",
        )
    if run.facts.get("injected"):
        yield InputError(
            "settings of the build were changed on purpose (--inject)",
            file=facts,
            field="injected",
            found=str(run.facts["injected"])[:120],
            expected="a run of the build as it is",
        )
    for line in run.records_of(MeasurementRecord):
        if line.role == "new" and (not chosen or line.scenario in chosen):
            yield from _wrong_measurement(run.folder, line, contents)


def _wrong_measurement(
    folder: Path, line: MeasurementRecord, contents: Mapping[str, Mapping[str, str]]
) -> Iterator[InputError]:
    name = f"{line.name}, start {line.start}"
    if line.injected or line.synthetic:
        yield InputError(
            "numbers that were changed on purpose, or that stand-ins made",
            file=folder,
            found=name,
            expected="a run of the build as it is",
        )
    if line.disturbed:
        yield InputError(
            "the run was disturbed while it measured",
            file=folder,
            found=f"{name}: {'; '.join(line.disturbed)}"[:300],
            expected="undisturbed starts alone",
            hint="measure again; or name other scenarios with --scenario; `perfgate baseline "
            "record` leaves out the disturbed starts",
        )
    for part, value in (("version", line.engine.version), ("commit", line.engine.commit)):
        if not value or _NOT_CLEAN.search(value.lower()):
            yield InputError(
                "the build is not that of a known, clean commit",
                file=folder,
                field=f"engine.{part}",
                found=f"{name}: {value!r}",
                expected="a build of a commit, without changes that are in no commit",
                hint="build a commit; --engine-commit names one that the engine does not tell",
            )
    of_scenario = contents.get(line.scenario)
    if of_scenario is None or line.probe not in of_scenario:
        yield InputError(
            "the suite has no such scenario",
            file=folder,
            found=name,
            expected="a scenario of this gate repository",
            hint="propose it where its scenario is, or name others with --scenario",
        )
    elif line.fingerprint.get("content") != of_scenario[line.probe]:
        yield InputError(
            "the scenario was written otherwise when it was measured: nothing could be compared "
            "with this baseline",
            file=folder,
            field="content",
            found=f"{name}: {line.fingerprint.get('content')}",
            expected=of_scenario[line.probe],
            hint="measure again with the scenario as it is now",
        )
