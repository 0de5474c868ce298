"""Read what `perfgate compare` is given: a run, a baseline, or results of other tools."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfgate import baselines
from perfgate.core import json_text
from perfgate.core.errors import InputError
from perfgate.core.input_files import read_input
from perfgate.core.measurement import Measurement
from perfgate.judging.comparison.comparability import agreed, told_facts
from perfgate.judging.comparison.result_files import read_results, result_files
from perfgate.judging.comparison.sides import Measured, Side
from perfgate.runs.records import RunFolder, name_of

Lines = Sequence[Mapping[str, Any]]


def read_side(path: Path) -> Side:
    """Read what `path` names.

    Raises:
        InputError: there is nothing, or nothing that can be compared.
    """
    if path.is_dir():
        is_run = any((path / name).exists() for name in ("run.json", "records.jsonl"))
        return _run(path) if is_run else read_results(path, result_files(path))
    if not path.exists():
        raise InputError(
            "there is nothing to compare",
            file=path,
            expected="a run folder, a baseline file, a result file, or a folder of result files",
        )
    return _baseline(path) if _is_baseline(path) else read_results(path, [path])


def _is_baseline(path: Path) -> bool:
    """Whether a file is, or was meant to be, one of perfgate's baselines."""
    try:
        fields = json_text.parse(read_input(path, json_text.LARGEST_OWN))
    except (OSError, ValueError, InputError):
        return False
    return isinstance(fields, dict) and {"entries", "accepted"} <= set(fields)


def _baseline(path: Path) -> Side:
    found = baselines.read(path)
    retired = found.retired
    probes = tuple(
        Measured(
            f"{found.scenario}-{label}",
            label,
            found.scenario,
            tuple(Measurement(run.metrics, {}, run.answers) for run in entry.runs),
            tuple(f"{found.scenario}-{label} started {run.started}" for run in entry.runs),
            entry.fingerprint,
            told_facts(Measurement(entry.runs[0].metrics)),
            machine_bound=found.accepted_by == baselines.SELF,
            sessions=len({run.run for run in entry.runs}),
            hardware=found.hardware,
        )
        for label, entry in found.entries.items()
    )
    return Side(
        path,
        "baseline",
        f"baseline of {found.engine.name} {found.engine.version}, accepted "
        f"{found.accepted_at[:10]} by {found.accepted_by}",
        probes,
        warnings=(f"the baseline is retired: {retired.reason}",) if retired else (),
    )


def _run(path: Path) -> Side:
    """A run folder: its measurements of the build under test, and what failed."""
    folder = RunFolder(path.absolute())
    facts, records = folder.facts(), folder.records()
    try:
        failed = [line for line in records if _has_failed(line)]
        new = [line for line in records if line["record"] == "measurement"]
        new = [line for line in new if line["role"] == "new" and line["metrics"]]
        used = [line for line in new if not line.get("disturbed")]
        probes = _probes(path, used, failed)
        engines = {f"{line['engine']['name']} {line['engine']['version']}" for line in used}
        side = Side(
            path,
            "run",
            ", ".join([f"run {facts['id']} of {facts.get('started', '')[:10]}", *sorted(engines)]),
            probes,
            bool(facts.get("synthetic")) or any(line["synthetic"] for line in used),
            tuple(sorted({str(one) for line in used for one in line["injected"]})),
            tuple(
                f"{name_of(line)}: start {line['start']} was disturbed and is not used"
                for line in new
                if line.get("disturbed")
            ),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            "a record is not whole",
            file=path / "records.jsonl",
            found=repr(error),
            expected="records as perfgate writes them",
        ) from error
    if not probes:
        raise InputError(
            "the run measured nothing that can be compared",
            file=path,
            found="; ".join(side.warnings) or "no measurements of a build under test",
            expected="a run that measured load or accuracy, with whole and undisturbed starts",
        )
    return side


def _has_failed(line: Mapping[str, Any]) -> bool:
    return bool(line["record"] == "verdict" and line["verdict"] == "ERROR")


def _probes(path: Path, lines: Lines, failed: Lines) -> tuple[Measured, ...]:
    """The probes that were measured, then those that failed before any measurement."""
    reasons = {name_of(line): _reason(line) for line in failed}
    groups: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for line in lines:
        groups[f"{line['scenario']}-{line['probe']}"].append(line)
    found = [_probe(path, name, group) for name, group in groups.items()]
    found = [replace(probe, failure=reasons.get(probe.name, "")) for probe in found]
    found += [
        Measured(name_of(line), line["probe"], line["scenario"], (), (), failure=_reason(line))
        for line in failed
        if name_of(line) not in groups
    ]
    return tuple(found)


def _reason(line: Mapping[str, Any]) -> str:
    error = line.get("error")
    return f"{error['class']}: {error['message']}" if error else str(line["reason"])


def _probe(path: Path, name: str, lines: Lines) -> Measured:
    first = lines[0]
    for line in lines:
        if line["fingerprint"] != first["fingerprint"]:
            raise InputError(
                f"starts of {name} in one run on unlike machines",
                file=path,
                found=line["fingerprint"],
                expected=str(first["fingerprint"]),
            )
    runs = tuple(
        Measurement(
            {metric: float(value) for metric, value in line["metrics"].items()},
            line["facts"],
            {
                metric: {key: bool(right) for key, right in given.items()}
                for metric, given in line["answers"].items()
            },
        )
        for line in lines
    )
    starts = [f"start {line['start']}" for line in lines]
    return Measured(
        name,
        first["probe"],
        first["scenario"],
        runs,
        tuple(f"{name} started {line['started']}" for line in lines),
        first["fingerprint"],
        agreed(path, [told_facts(run) for run in runs], starts),
        any(line["machine_bound"] for line in lines),
        hardware=str(first.get("hardware", "")),
    )
