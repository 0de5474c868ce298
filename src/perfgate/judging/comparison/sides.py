"""Sides: the two things that `perfgate compare` compares, as plain values, and how they are read.

A side holds, per probe, one measurement for each fresh start of the engine. It is a run, a
baseline, or results of other tools, of which each file is one fresh start; what a file says is the
business of `perfgate.evaluators.result_formats`.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from perfgate import baselines
from perfgate.clients.aiperf_results import RESULT as AIPERF_RESULT
from perfgate.core import json_text
from perfgate.core.errors import InputError
from perfgate.core.input_files import read_input
from perfgate.core.measurement import Measurement
from perfgate.core.metrics import is_accuracy
from perfgate.core.verdict import Verdict
from perfgate.evaluators.result_formats import parse_file
from perfgate.judging.comparison.comparability import (
    Fact,
    reported_facts,
    require_one_load,
)
from perfgate.runs.record import MeasurementRecord, Record, VerdictRecord, records_of
from perfgate.runs.run_folder import RunFolder

Kind = Literal["run", "baseline", "files"]
# Result files that their programs name themselves; they may lie in folders below. The last two are
# of the GB200 recipe ("Results/Log files"), which has the .err of each job beside its .out.
_OWN_NAMES = (AIPERF_RESULT, "results_*.json", "*_streaming-on_*.out", "*_streaming-off_*.out")
_MOST_FILES = 100


@dataclass(frozen=True)
class Measured:
    """One probe of a side.

    Attributes:
        label: its own name in its scenario; of other tools' results the program's.
        scenario: its scenario; empty for other tools' results.
        runs: one measurement per fresh start, in order.
        identities: what tells each run from all others: file, or run and time of its start.
        fingerprint: the facts that must be equal; None for other tools' results.
        machine_bound: whether the machine that measured it is its own reference.
        failure: why its numbers must not be used; empty if they may.
        sessions: sessions behind the runs, whose starts share their luck; files of other tools do
            not tell, and count as one.
        hardware: label of the hardware; empty: not known.
    """

    label: str
    scenario: str
    runs: tuple[Measurement, ...] = ()
    identities: tuple[str, ...] = ()
    fingerprint: Mapping[str, str] | None = None
    machine_bound: bool = False
    failure: str = ""
    sessions: int = 1
    hardware: str = ""

    @property
    def name(self) -> str:
        """Readable name."""
        return f"{self.scenario}-{self.label}" if self.scenario else self.label

    @cached_property
    def facts(self) -> Mapping[str, Fact]:
        """What the results themselves tell of the load; all of them tell the same."""
        return reported_facts(self.runs[0]) if self.runs else {}

    def values(self, metric: str) -> list[float]:
        """The metric's values, one per fresh start."""
        return [run.metrics[metric] for run in self.runs]

    def metrics(self) -> list[str]:
        """The metrics that every one of its runs has, sorted."""
        sets = [set(run.metrics) for run in self.runs]
        return sorted(set.intersection(*sets)) if sets else []

    def partial(self) -> list[str]:
        """The metrics that only some of its runs have, sorted."""
        return sorted({name for run in self.runs for name in run.metrics} - {*self.metrics()})


@dataclass(frozen=True)
class Side:
    """One of the two things that are compared.

    Attributes:
        path: what was named.
        kind: what it is.
        description: in words, where the numbers come from.
        probes: what was measured, by name.
        synthetic: whether stand-ins made numbers of it.
        injected: settings that were changed on purpose, as KEY=VALUE.
        warnings: what a reader should know of it.
    """

    path: Path
    kind: Kind
    description: str
    probes: tuple[Measured, ...]
    synthetic: bool = False
    injected: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def read_side(path: Path) -> Side:
    """Read what `path` names.

    Raises:
        InputError: there is nothing, or nothing that can be compared.
    """
    if path.is_dir():
        is_run = any((path / name).exists() for name in ("run.json", "records.jsonl"))
        return _run(path) if is_run else _results(path, _result_files(path))
    if not path.exists():
        raise InputError(
            "there is nothing to compare",
            file=path,
            expected="a run folder, a baseline file, a result file, or a folder of result files",
        )
    return _baseline(path) if _is_baseline(path) else _results(path, [path])


def _is_baseline(path: Path) -> bool:
    """Whether a file is, or was meant to be, one of perfgate's baselines."""
    try:
        fields = json_text.parse(read_input(path, json_text.LARGEST_OWN))
    except (OSError, ValueError, InputError):
        return False
    return isinstance(fields, dict) and {"entries", "accepted"} <= set(fields)


def _baseline(path: Path) -> Side:
    stored = baselines.read(path)
    probes = tuple(
        Measured(
            label,
            stored.scenario,
            tuple(Measurement(run.metrics, {}, run.answers) for run in entry.runs),
            tuple(f"{stored.scenario}-{label} started {run.started}" for run in entry.runs),
            entry.fingerprint,
            stored.accepted_by == baselines.SELF,
            sessions=len({run.run for run in entry.runs}),
            hardware=stored.hardware,
        )
        for label, entry in stored.entries.items()
    )
    return Side(
        path,
        "baseline",
        f"baseline of {stored.engine.name} {stored.engine.version}, accepted "
        f"{stored.accepted_at[:10]} by {stored.accepted_by}",
        probes,
        warnings=(f"the baseline is retired: {stored.retired.reason}",) if stored.retired else (),
    )


def _run(path: Path) -> Side:
    """A run folder: its measurements of the build under test, and what failed."""
    folder = RunFolder(path.absolute())
    side = _run_side(path, folder.facts(), folder.records())
    if not side.probes:
        raise InputError(
            "the run measured nothing that can be compared",
            file=path,
            found="; ".join(side.warnings) or "no measurements of a build under test",
            expected="a run that measured load or accuracy, with whole and undisturbed starts",
        )
    return side


def _run_side(path: Path, facts: Mapping[str, Any], records: Sequence[Record]) -> Side:
    """The probes that were measured, then those that failed before any measurement."""
    starts = [
        one for one in records_of(MeasurementRecord, records) if one.role == "new" and one.metrics
    ]
    used = [one for one in starts if not one.disturbed]
    groups: dict[str, list[MeasurementRecord]] = defaultdict(list)
    for start in used:
        groups[start.name].append(start)
    failures = {
        one.name: one for one in records_of(VerdictRecord, records) if one.verdict == Verdict.ERROR
    }
    probes = [_probe(path, of_probe, failures.pop(name, None)) for name, of_probe in groups.items()]
    for name, failed in failures.items():
        scenario = "" if name == failed.probe else failed.scenario  # a claim has a name alone
        probes.append(Measured(failed.probe, scenario, failure=_reason(failed)))
    engines = sorted({f"{one.engine.name} {one.engine.version}" for one in used})
    return Side(
        path,
        "run",
        ", ".join([f"run {facts['id']} of {facts.get('started', '')[:10]}", *engines]),
        tuple(probes),
        bool(facts.get("synthetic")) or any(one.synthetic for one in used),
        tuple(sorted({setting for one in used for setting in one.injected})),
        tuple(
            f"{one.name}: start {one.start} was disturbed and is not used"
            for one in starts
            if one.disturbed
        ),
    )


def _reason(failed: VerdictRecord | None) -> str:
    if failed is None:
        return ""
    error = failed.error
    return f"{error.error_class}: {error.message}" if error else failed.reason


def _probe(
    path: Path, starts: Sequence[MeasurementRecord], failed: VerdictRecord | None
) -> Measured:
    """One probe of a run, from the records of its fresh starts and of its failure."""
    first = starts[0]
    for start in starts:
        if start.fingerprint != first.fingerprint:
            raise InputError(
                f"starts of {start.name} in one run on unlike machines",
                file=path,
                found=start.fingerprint,
                expected=str(first.fingerprint),
            )
    runs = tuple(start.measurement for start in starts)
    require_one_load(path, runs, [f"start {start.start}" for start in starts])
    return Measured(
        first.probe,
        first.scenario,
        runs,
        tuple(f"{start.name} started {start.started}" for start in starts),
        first.fingerprint,
        any(start.machine_bound for start in starts),
        _reason(failed),
        hardware=first.hardware,
    )


def _result_files(folder: Path) -> list[Path]:
    """The result files of a folder: those that programs name themselves, at any depth, else all.

    Raises:
        InputError: there are none, or too many.
    """
    named = sorted({path for name in _OWN_NAMES for path in folder.rglob(name)})
    found = named or sorted(
        path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")
    )
    if not found:
        raise InputError(
            "the folder holds neither a run nor a result",
            file=folder,
            expected="run.json and records.jsonl of a perfgate run, or result files of one program",
        )
    if len(found) > _MOST_FILES:
        raise InputError(
            "too many files for the fresh starts of one build",
            file=folder,
            found=len(found),
            expected=f"at most {_MOST_FILES} result files, one per fresh start",
        )
    return found


def _results(path: Path, files: Sequence[Path]) -> Side:
    """The side that `path` names, from its files.

    Raises:
        InputError: a file holds no usable result, or they are not the fresh starts of one build.
    """
    runs = [_parsed(file, alone=len(files) == 1) for file in files]
    programs = [str(run.facts.get("client") or run.facts.get("evaluator")) for run in runs]
    for file, program in zip(files, programs, strict=True):
        if program != programs[0]:
            raise InputError(
                "results of two programs are mixed",
                file=path,
                found=f"{files[0].name} of {programs[0]}, {file.name} of {program}",
                expected="results of one program on each side",
                hint="put each program's results into a folder of its own",
            )
    for (one, first), (other, second) in combinations(zip(files, runs, strict=True), 2):
        if _is_same_run(first, second):
            raise InputError(
                "two files tell of the same run, which must not count twice",
                file=path,
                found=f"{one.name}, {other.name}",
                expected="one file per fresh start",
                hint="keep either the JSON or the log of each run",
            )
    require_one_load(path, runs, [file.name for file in files])
    identities = tuple(str(file.resolve()) for file in files)
    probe = Measured(programs[0], "", tuple(runs), identities)
    count = "one result" if len(runs) == 1 else f"{len(runs)} results"
    return Side(path, "files", f"{count} of {programs[0]}", (probe,))


def _parsed(file: Path, *, alone: bool) -> Measurement:
    parsed = parse_file(file)
    if parsed.measurement is not None and parsed.measurement.metrics:
        return parsed.measurement
    place, text = parsed.evidence or (None, "")
    raise InputError(
        f"no usable result: {parsed.message}" if parsed.message else "no metrics in it",
        file=file,
        line=place,
        found=f"{parsed.failure}: {text}" if parsed.failure else None,
        expected="a run, a baseline, or a whole result of a program in docs/reference/parse.md",
        hint=parsed.hint
        if alone
        else f"{parsed.hint or 'look at the file'}; a folder must hold nothing but results",
    )


def _is_same_run(one: Measurement, other: Measurement) -> bool:
    """Whether two files have the same timings to all their printed digits."""
    shared = [name for name in one.metrics.keys() & other.metrics.keys() if not is_accuracy(name)]
    return len(shared) >= 3 and all(
        math.isclose(one.metrics[name], other.metrics[name], rel_tol=1e-5, abs_tol=0.0051)
        for name in shared
    )
