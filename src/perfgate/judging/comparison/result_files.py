"""Result files of other tools as one side of a comparison: each file is one fresh start.

What a file says is the business of `perfgate.runs.result_formats`; here several are put together.
"""

import math
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from perfgate.clients.aiperf_results import RESULT as AIPERF_RESULT
from perfgate.core.errors import InputError
from perfgate.core.measurement import Measurement
from perfgate.core.metrics import is_accuracy
from perfgate.judging.comparison.comparability import agreed, told_facts
from perfgate.judging.comparison.sides import Measured, Side
from perfgate.runs.result_formats import parse_file

# Result files that their programs name themselves; they may lie in folders below. The last two are
# of the GB200 recipe ("Results/Log files"), which has the .err of each job beside its .out.
_OWN_NAMES = (AIPERF_RESULT, "results_*.json", "*_streaming-on_*.out", "*_streaming-off_*.out")
_MOST_FILES = 100


def result_files(folder: Path) -> list[Path]:
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


def read_results(path: Path, files: Sequence[Path]) -> Side:
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
        if is_same_run(first, second):
            raise InputError(
                "two files tell of the same run, which must not count twice",
                file=path,
                found=f"{one.name}, {other.name}",
                expected="one file per fresh start",
                hint="keep either the JSON or the log of each run",
            )
    facts = agreed(path, [told_facts(run) for run in runs], [file.name for file in files])
    probe = Measured(
        programs[0],
        programs[0],
        "",
        tuple(runs),
        tuple(str(file.resolve()) for file in files),
        None,
        facts,
    )
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


def is_same_run(one: Measurement, other: Measurement) -> bool:
    """Whether two files have the same timings to all their printed digits."""
    shared = [name for name in one.metrics.keys() & other.metrics.keys() if not is_accuracy(name)]
    return len(shared) >= 3 and all(
        math.isclose(one.metrics[name], other.metrics[name], rel_tol=1e-5, abs_tol=0.0051)
        for name in shared
    )
