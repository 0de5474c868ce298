"""Recording: candidates for baselines, from the records of runs that passed in full."""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from perfgate.baselines import (
    ENOUGH_SESSIONS,
    NOBODY,
    Baseline,
    BaselineRun,
    Entry,
    Store,
    candidate_store,
    read,
    rehearsal_candidate_store,
)
from perfgate.baselines.baseline import BuildSource
from perfgate.baselines.candidates import (
    keep,
    recorded_from,
    refuse_copies,
    unlike_machines,
)
from perfgate.baselines.noise_history import keep_noise, rehearsal_signs
from perfgate.core.errors import InputError
from perfgate.core.plain import from_plain
from perfgate.core.verdict import Verdict, worst
from perfgate.engines.base import EngineBuild
from perfgate.runs.record import (
    CandidateRecord,
    MeasurementRecord,
    NoiseKeptRecord,
    NotRecordedRecord,
    SelectedRecord,
    SkippedRecord,
    VerdictRecord,
)
from perfgate.runs.run_folder import CANDIDATES, RunFolder, now

Line = Mapping[str, Any]

# A REGRESSION is carried along: a person may accept it, with a reason of its own.
_CARRIED = {
    Verdict.PASS,
    Verdict.IMPROVEMENT,
    Verdict.REGRESSION,
    Verdict.NO_BASELINE,
    Verdict.NOT_COMPARABLE,
}
_UNJUDGED = {Verdict.NO_BASELINE, Verdict.NOT_COMPARABLE}
_SHIFTED = (
    "the machine was slower than in the baseline's sessions (HOST_SHIFT): its numbers tell the "
    "noise, and no level"
)


class _Taken(NamedTuple):
    """A measurement, the folder of its run, and that run's id."""

    folder: Path
    run: str
    line: MeasurementRecord


@dataclass
class _Found:
    """What the runs hold of one scenario.

    Attributes:
        engines: the builds that were measured, each once.
        sources: when a start began, and how its build was started.
        verdicts: probe label → its verdict in each run.
        usable: probe label → measurements.
        unused: probe label → why some of its measurements are not used.
        own: labels of probes that were compared with the machine itself.
        faults: why the scenario did not pass in full.
        hardware: the hardware's label.
    """

    engines: list[EngineBuild] = field(default_factory=list)
    sources: list[tuple[str, BuildSource]] = field(default_factory=list)
    verdicts: dict[str, list[Verdict]] = field(default_factory=lambda: defaultdict(list))
    usable: dict[str, list[_Taken]] = field(default_factory=lambda: defaultdict(list))
    unused: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    own: set[str] = field(default_factory=set)
    faults: set[str] = field(default_factory=set)
    hardware: str = ""


def record_candidates(
    runs: Sequence[Path], *, rehearsal: bool = False, fresh: bool = False
) -> tuple[list[Path], list[str]]:
    """Write a candidate for every scenario that passed in full, pooling the runs' fresh starts.

    A scenario is taken whole or not at all: every probe of it that was selected must have been
    measured, and none may have failed or stayed undecided, in any of the runs. A regression is
    taken along as such; only a person can accept it. What was recorded before of the same build,
    content and machine facts stays in the candidate.

    Args:
        runs: folders of finished runs, of the same engine commit.
        rehearsal: take what mock programs made, and only that; it stays among rehearsals.
        fresh: leave out what was recorded before.

    Returns:
        The candidates' files, and what was left out, and why.

    Raises:
        InputError: not a run, one named twice, nothing usable in them, numbers that may never
            become a baseline (changed on purpose, or made by a mock program for other than a
            rehearsal), or runs of unlike
            machines or engine commits.
    """
    candidates, left_out = candidates_of(runs, rehearsal=rehearsal)
    store = rehearsal_candidate_store() if rehearsal else candidate_store()
    paths, uncounted = keep(store, candidates, fresh=fresh)
    return paths, sorted({*left_out, *uncounted})


def candidates_of(
    runs: Sequence[Path], *, rehearsal: bool = False
) -> tuple[list[Baseline], set[str]]:
    """The candidates that `record_candidates` would write, of these runs alone; writes nothing.

    Returns:
        at least one candidate, and what was left out, and why.

    Raises:
        InputError: as `record_candidates`.
    """
    candidates, left_out = [], set[str]()
    for scenario, one in _found(_folders(runs), synthetic=rehearsal).items():
        made, why = _candidate(scenario, one, _CARRIED)
        left_out |= why
        if made is not None:
            candidates.append(replace(made, synthetic=rehearsal))
    if not candidates:
        raise InputError(
            "nothing in this run can become a baseline"
            if len(runs) == 1
            else "nothing in these runs can become a baseline",
            file=runs[0].absolute(),
            found="; ".join(sorted(left_out)) or "no measurements",
            expected="a run whose probes were measured in full, without injections",
        )
    return candidates, left_out


def record_session(
    run: Path, *, only_unjudged: bool = False, rehearsal: bool = False
) -> tuple[list[Path], list[str]]:
    """The same at the end of a session that measured what later ones are compared with.

    A scenario that cannot be recorded is told and keeps no other from it. A regression is left to
    a person: it would spoil what other sessions recorded.

    Args:
        run: the session's run folder.
        only_unjudged: leave out the scenarios that baselines judged, in every test.
        rehearsal: mocks made its numbers, which stay among rehearsals.

    Raises:
        InputError: the run or an earlier candidate is unusable.
    """
    candidates, left_out = [], set[str]()
    for scenario, one in _found([RunFolder(run)], synthetic=rehearsal).items():
        if only_unjudged and not _UNJUDGED.intersection(chain(*one.verdicts.values())):
            continue
        try:
            made, why = _candidate(scenario, one, _CARRIED - {Verdict.REGRESSION})
        except InputError as error:
            made, why = None, {f"{scenario}: {error.problem}: {error.found}"}
        left_out |= why
        candidates += [] if made is None else [replace(made, synthetic=rehearsal)]
    store = rehearsal_candidate_store() if rehearsal else candidate_store()
    paths, uncounted = keep(store, candidates, fresh=False)
    return paths, sorted({*left_out, *uncounted})


def record_in_run(run: RunFolder, again: str, *, only_unjudged: bool, rehearsal: bool) -> None:
    """Record the candidates of a session that ends, and write into its run how far each is.

    What its starts showed of the noise is kept, whatever became of them. A copy of each candidate
    stays in the run folder, so that it can be proposed where the store of this machine is not.

    Args:
        run: its run folder.
        again: the command line that makes another such session.
        only_unjudged: leave out the scenarios that baselines judged.
        rehearsal: mocks made the numbers, which stay among rehearsals and tell no noise.

    Raises:
        InputError: an earlier candidate is unusable, or another process holds the store.
        RunError: a candidate, or what the session shows of the noise, cannot be written.
    """
    # Undecided starts are as noisy as any.
    noise = [] if rehearsal else keep_noise([run.path])
    if noise:
        run.record(NoiseKeptRecord(files=tuple(str(path) for path in noise)))
    paths, left_out = record_session(run.path, only_unjudged=only_unjudged, rehearsal=rehearsal)
    copies = Store(run.path / CANDIDATES, synthetic=rehearsal)
    for path in paths:
        candidate = read(path)
        copies.folder.mkdir(exist_ok=True)
        copies.save(candidate, merge=False)
        run.record(
            CandidateRecord(
                scenario=candidate.scenario,
                hardware=candidate.hardware,
                commit=candidate.engine.commit,
                file=str(path),
                sessions=candidate.sessions,
                wanted=ENOUGH_SESSIONS,
                again=again,
                synthetic=rehearsal,
            )
        )
    if left_out:
        run.record(NotRecordedRecord(reasons=left_out))


def _found(folders: Sequence[RunFolder], *, synthetic: bool) -> Mapping[str, _Found]:
    """What the runs hold, scenario by scenario."""
    found: dict[str, _Found] = defaultdict(_Found)
    names: set[str] = set()
    for folder in folders:
        facts = folder.facts()
        name = str(facts["id"])
        if name in names:  # of another run, in a folder of the same name elsewhere
            name = f"{name}-{re.sub('[^0-9]', '', str(facts.get('started')))[:14]}"
        names.add(name)
        _collect(folder, name, found, synthetic=synthetic)
    return found


def _candidate(
    scenario: str, found: _Found, carried: Collection[Verdict]
) -> tuple[Baseline | None, set[str]]:
    """The candidate of one scenario, if it can be one, and what was left out of it, and why."""
    faults = _faults(found, carried)
    if faults:
        return None, {f"{scenario}: {fault}" for fault in faults}
    left_out = {
        f"{scenario}-{label}: compared with the machine itself, so its numbers stay here"
        for label in found.own
    }
    left_out |= {
        f"{scenario}-{label}: a start is not used, {why}"
        for label, whys in found.unused.items()
        for why in whys
    }
    entries = _entries(scenario, found)
    return _baseline(scenario, found, entries) if entries else None, left_out


def _folders(runs: Sequence[Path]) -> list[RunFolder]:
    folders = [RunFolder(run.resolve()) for run in runs]
    for number, folder in enumerate(folders):
        if folder.path in [one.path for one in folders[:number]]:
            raise InputError(
                "the same run is named twice, and its starts would count twice", file=folder.path
            )
    return folders


def _collect(folder: RunFolder, run: str, found: dict[str, _Found], *, synthetic: bool) -> None:
    """Sort the records of one run by scenario and probe.

    Args:
        folder: the run's.
        run: the name that its starts are kept under.
        found: what was found so far.
        synthetic: whether it is to be a rehearsal's.
    """
    _require_real(folder)
    _require_one_build(folder)
    measured: dict[str, set[str]] = defaultdict(set)
    for line in folder.records_of(MeasurementRecord):
        if line.role == "new":
            measured[line.scenario].add(line.probe)
            _take(found[line.scenario], _Taken(folder.path, run, line), synthetic=synthetic)
    ended = [one for one in folder.records() if isinstance(one, VerdictRecord | SkippedRecord)]
    for record in ended:
        if _is_claim(record):
            continue
        one, label = found[record.scenario], record.probe
        measured[record.scenario].discard(label)
        if isinstance(record, SkippedRecord):
            one.faults.add(f"{label} was skipped: {record.reason}")
        else:
            one.verdicts[label].append(_unwaived(record))
            one.faults |= {f"{label}: {_SHIFTED}"} if _is_shifted(record) else set()
    for scenario, labels in measured.items():
        found[scenario].faults |= {f"{label} has no verdict" for label in labels}
    _note_unfinished(folder, found, {record.test for record in ended})


def _require_real(folder: RunFolder) -> None:
    """Check that all that tells whether mock programs made a run's numbers tells the same.

    Raises:
        InputError: ``run.json`` calls real what its other facts, or its folder, say were mocks.
    """
    facts = folder.facts()
    signs = rehearsal_signs(folder)
    if facts.get("synthetic") is not True and (signs or facts.get("synthetic") is not False):
        raise InputError(
            "the run does not agree with itself on whether mock programs made its numbers",
            file=folder.path / "run.json",
            field="synthetic",
            found=f"{facts.get('synthetic')}" + (f", beside {', '.join(signs)}" if signs else ""),
            expected="true where the run was a rehearsal, else false",
            hint="measure again in a new run folder",
        )


def _require_one_build(folder: RunFolder) -> None:
    """Refuse an A/B, which holds one build against another and not against history.

    Raises:
        InputError: the run is one.
    """
    if builds := folder.facts().get("ab"):
        raise InputError(
            "the run compared two builds: its starts become no baseline",
            file=folder.path / "run.json",
            field="ab",
            found=" ".join(map(str, builds)),
            expected="a run of one build",
            hint="measure the build that is to be the baseline by itself, with --record",
        )


def _note_unfinished(folder: RunFolder, found: Mapping[str, _Found], ended: set[str]) -> None:
    """Note the scenarios with a test that was selected and never ended."""
    for line in folder.records_of(SelectedRecord):
        for test, subject in line.subjects.items():
            if test not in ended and subject.scenario in found:
                fault = f"the run did not finish: no verdict for {test}"
                found[subject.scenario].faults.add(fault)


def _unwaived(line: VerdictRecord) -> Verdict:
    """The verdict without regard to waivers: a loss that is let through is not accepted by that."""
    waived = any(judgement.waiver for judgement in line.judgements)
    return Verdict.REGRESSION if waived else line.verdict


def _is_shifted(line: VerdictRecord) -> bool:
    """Whether a verdict rests on the machine having been slower than in the baseline's sessions."""
    return any(judgement.mark == "HOST_SHIFT" for judgement in line.judgements)


def _is_claim(line: VerdictRecord | SkippedRecord) -> bool:
    """Whether a verdict is that of a statement, whose probes have verdicts of their own."""
    return line.name == line.probe


def _take(found: _Found, taken: _Taken, *, synthetic: bool) -> None:
    line, label = taken.line, taken.line.probe
    build = line.engine
    if build not in found.engines:
        found.engines.append(build)
    found.hardware = line.hardware
    disturbed = line.disturbed
    if synthetic and not line.synthetic:
        found.unused[label].add("no mock program made its numbers: it was no rehearsal")
    elif line.injected or line.synthetic != synthetic:
        found.unused[label].add("its settings were injected, or its numbers are synthetic")
    elif line.machine_bound:
        found.own.add(label)
    elif disturbed:
        found.unused[label].add(f"disturbed: {'; '.join(disturbed)}")
    else:
        found.usable[label].append(taken)
        if line.source:
            source = from_plain(BuildSource, line.source)
            found.sources.append((line.started, source))


def _faults(found: _Found, carried: Collection[Verdict]) -> set[str]:
    """Why one scenario did not pass in full; empty: it did.

    A verdict without any measurement is one on other probes' measurements: that of a sweep.
    """
    faults = set(found.faults)
    for label, verdicts in found.verdicts.items():
        failed = [verdict for verdict in verdicts if verdict not in carried]
        if failed:
            faults.add(f"the verdict of {label} is {worst(failed).value}")
    for label in found.unused.keys() - found.usable.keys():
        faults.add(f"{label}: {'; '.join(sorted(found.unused[label]))}")
    return faults


def _entries(scenario: str, found: _Found) -> dict[str, Entry]:
    if len(found.engines) > 1:
        raise InputError(
            f"the runs measured more than one engine build: {scenario}",
            found=", ".join(
                f"{engine.name} {engine.version} ({engine.commit})" for engine in found.engines
            ),
            expected="runs of one commit",
            hint="record the runs of each commit separately",
        )
    entries: dict[str, Entry] = {}
    for label, taken in found.usable.items():
        facts = taken[0].line.fingerprint
        for one in taken[1:]:
            differing = Entry(facts, ()).differences(one.line.fingerprint)
            if differing:
                raise _mixed(f"starts of one probe: {scenario}-{label}, run {one.run}", differing)
        ordered = sorted(taken, key=lambda one: one.line.started)
        starts = [(str(one.folder), _as_run(one)) for one in ordered]
        refuse_copies(f"{scenario}-{label}", starts)
        # A first answer has no metrics to keep.
        runs = tuple(start for _, start in starts if start.metrics)
        if runs:
            entries[label] = Entry(facts, runs)
    differing = unlike_machines(entries)
    if differing:
        raise _mixed(f"probes of one scenario: {scenario}", differing)
    return entries


def _as_run(taken: _Taken) -> BaselineRun:
    line = taken.line
    return BaselineRun(
        taken.run,
        line.started,
        line.metrics,
        line.answers,
        line.seconds,
        line.start,
    )


def _mixed(what: str, differing: tuple[str, ...]) -> InputError:
    return InputError(
        f"different machines for {what}",
        found="; ".join(differing),
        expected="equal facts, since the runs become one baseline",
        hint="record the runs of each machine separately",
    )


def _baseline(scenario: str, found: _Found, entries: Mapping[str, Entry]) -> Baseline:
    return Baseline(
        scenario=scenario,
        hardware=found.hardware,
        engine=found.engines[0],
        accepted_by=NOBODY,
        accepted_at=now(),
        reason=recorded_from(entries),
        entries=entries,
        verdicts={label: worst(verdicts).value for label, verdicts in found.verdicts.items()},
        source=max(found.sources, key=lambda source: source[0])[1] if found.sources else None,
    )
