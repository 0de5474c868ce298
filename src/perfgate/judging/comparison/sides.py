"""Sides: the two things that `perfgate compare` compares, as plain values, and how they are read.

A side holds, per probe, one measurement for each fresh start of the engine. It is a run, a
baseline, or results of other tools, of which each file is one fresh start; what a file says is the
business of `perfgate.evaluators.result_formats`.

The facts of two sides must agree before they are compared. perfgate's own measurements carry a
fingerprint. Results of other tools report some of their load: what both sides report must agree;
what only one reports cannot be checked.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Literal

from perfgate import baselines
from perfgate.clients.aiperf import RESULT as AIPERF_RESULT
from perfgate.core.errors import InputError
from perfgate.core.files import json_text
from perfgate.core.files.untrusted_files import read_input
from perfgate.core.measurement import Json, Measurement
from perfgate.core.metrics import is_accuracy
from perfgate.core.verdict import Verdict
from perfgate.evaluators.result_formats import parse_file
from perfgate.runs.record import MeasurementRecord, VerdictRecord, records_of
from perfgate.runs.run_folder import RunFolder

Kind = Literal["run", "baseline", "files"]
# Result files that their programs name themselves; they may lie in folders below. The last two are
# of the GB200 recipe ("Results/Log files"), which has the .err of each job beside its .out.
_OWN_NAMES = (AIPERF_RESULT, "results_*.json", "*_streaming-on_*.out", "*_streaming-off_*.out")
_MOST_FILES = 100
# Token counts of one load differ from run to run where answers may end by themselves or prompts are
# drawn at random; the gate's facts allow 0.5 %. The mean of requests in flight is measured, not
# asked.
_LENGTH_TOLERANCE = 0.005
_MEASURED_TOLERANCE = 0.10
# Name in programs' results → the fact, and how far two values may differ; the last name counts.
_REPORTED = {
    "isl": ("isl", _LENGTH_TOLERANCE),
    "osl": ("osl", _LENGTH_TOLERANCE),
    "requests_completed": ("requests", 0.0),
    "max_concurrency": ("concurrency", 0.0),
    "concurrency_peak": ("concurrency_peak", _MEASURED_TOLERANCE),
    "concurrency_mean": ("concurrency_mean", _MEASURED_TOLERANCE),
    "concurrency": ("concurrency", 0.0),
    "request_rate": ("request_rate", 0.0),
    "streaming": ("streaming", 0.0),
    "model": ("model", 0.0),
    "gpu": ("gpu", 0.0),
    "gpus": ("gpus", 0.0),
    "fewshot": ("fewshot", 0.0),
}
# Programs that come with the engine have its version, which is what is under test.
_OF_THE_ENGINE = frozenset(
    ["trtllm-bench", "benchmark_serving", "trtllm-eval", "trtllm-gpqa", "trtllm-quickstart"]
)
PROGRAM = "program"
_PER_TASK = "questions:"
# Rates and durations that parsers hold against each other to one percent.
_ARITHMETIC_TOLERANCE = 0.02
_REQUESTED, _SEEN = "concurrency", ("concurrency_peak", "concurrency_mean")


@dataclass(frozen=True)
class Fact:
    """A value of one fact, and how far, relatively, another may be from it."""

    value: Json
    tolerance: float = 0.0

    def differs(self, other: "Fact") -> bool:
        """Whether the other is another load, machine or program."""
        one, two = self.value, other.value
        if isinstance(one, int | float) and isinstance(two, int | float):
            tolerance = max(self.tolerance, other.tolerance)
            return abs(one - two) > tolerance * max(abs(one), abs(two))
        return one != two


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
        synthetic: whether mock programs made numbers of it.
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
    """A run folder: what it measured of the build under test, then what failed before that."""
    folder = RunFolder(path.absolute())
    facts, records = folder.facts(), folder.records()
    starts = [
        record
        for record in records_of(MeasurementRecord, records)
        if record.role == "new" and record.metrics
    ]
    groups: dict[str, list[MeasurementRecord]] = defaultdict(list)
    used, warnings = [one for one in starts if not one.disturbed], []
    for start in starts:
        if start.disturbed:
            warnings.append(f"{start.name}: start {start.start} was disturbed and is not used")
        else:
            groups[start.name].append(start)
    failures = {
        one.name: one for one in records_of(VerdictRecord, records) if one.verdict == Verdict.ERROR
    }
    probes = [_probe(path, of_probe, failures.pop(name, None)) for name, of_probe in groups.items()]
    for name, failed in failures.items():
        scenario = "" if name == failed.probe else failed.scenario  # a claim has a name alone
        probes.append(Measured(failed.probe, scenario, failure=_reason(failed)))
    if not probes:
        raise InputError(
            "the run measured nothing that can be compared",
            file=path,
            found="; ".join(warnings) or "no measurements of a build under test",
            expected="a run that measured load or accuracy, with whole and undisturbed starts",
        )
    engines = sorted({f"{one.engine.name} {one.engine.version}" for one in used})
    return Side(
        path,
        "run",
        ", ".join([f"run {facts['id']} of {facts.get('started', '')[:10]}", *engines]),
        tuple(probes),
        bool(facts.get("synthetic")) or any(one.synthetic for one in used),
        tuple(sorted({setting for one in used for setting in one.injected})),
        tuple(warnings),
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
    odd = next((number for number, one in enumerate(programs) if one != programs[0]), 0)
    if odd:
        raise InputError(
            "results of two programs are mixed",
            file=path,
            found=f"{files[0].name} of {programs[0]}, {files[odd].name} of {programs[odd]}",
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


def reported_facts(run: Measurement) -> dict[str, Fact]:
    """What a measurement tells of its program and load, by one name for each fact."""
    known = {name: value for name, value in run.facts.items() if value is not None}
    facts = _by_arithmetic(run.metrics)
    for name, (fact, tolerance) in _REPORTED.items():
        if name in known:
            facts[fact] = Fact(known[name], tolerance)
    if _REQUESTED in facts:  # what was seen may move with the build
        for name in _SEEN:
            facts.pop(name, None)
    # How many questions each task asked; a run of the suite has one task, and says it once.
    tasks = {name.split(":")[1] for name in run.metrics if is_accuracy(name)}
    if "questions" in known:
        facts |= {f"{_PER_TASK}{task}": Fact(known["questions"]) for task in tasks}
    facts |= {name: Fact(value) for name, value in known.items() if name.startswith(_PER_TASK)}
    kind = "evaluator" if isinstance(known.get("evaluator"), str) else "client"
    program, version = known.get(kind), known.get(f"{kind}_version", "None")
    if isinstance(program, str):
        facts[PROGRAM] = Fact(program)
        if program not in _OF_THE_ENGINE and version != "None":
            facts[f"{PROGRAM}_version"] = Fact(version)
    return facts


def _by_arithmetic(metrics: Mapping[str, float]) -> dict[str, Fact]:
    """Requests and mean lengths that follow from the metrics, for reports that do not tell them."""
    names = ("request_throughput", "output_throughput", "duration_s", "total_token_throughput")
    requests, output, duration, every = (metrics.get(name) or 0.0 for name in names)
    values = {
        "requests": requests * duration,
        "osl": requests and output / requests,
        "isl": requests and output and every and (every - output) / requests,
    }
    return {
        name: Fact(float(f"{value:.5g}"), _ARITHMETIC_TOLERANCE)
        for name, value in values.items()
        if value
    }


def require_one_load(path: Path, runs: Sequence[Measurement], names: Sequence[str]) -> None:
    """Refuse the runs of one side that tell of different loads.

    Args:
        path: the side, for messages.
        runs: those of the side.
        names: how each run is called in messages.

    Raises:
        InputError: two runs differ.
    """
    facts, *others = map(reported_facts, runs)
    for name, of_other in zip(names[1:], others, strict=True):
        for fact in sorted(facts.keys() & of_other.keys()):
            if facts[fact].differs(of_other[fact]):
                raise InputError(
                    "the runs of one side are not of one load",
                    file=path,
                    field=fact,
                    found=f"{of_other[fact].value} in {name}",
                    expected=f"{facts[fact].value} as in {names[0]}",
                    hint="compare one load at a time",
                )


def differences(
    a: Mapping[str, Fact], b: Mapping[str, Fact], across: Collection[str]
) -> tuple[list[str], list[str]]:
    """The facts in which two sides differ, in words: those that matter, and those meant to.

    Args:
        a: facts of the reference.
        b: facts of the new side.
        across: names of the facts that are meant to differ.
    """
    differing = {
        name: f"{name}: A {a[name].value}, B {b[name].value}"
        for name in sorted(a.keys() & b.keys())
        if a[name].differs(b[name])
    }
    matter = [words for name, words in differing.items() if name not in across]
    return matter, [words for name, words in differing.items() if name in across]
