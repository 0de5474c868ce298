"""Merge of shards: whether all parts of each selection are there, and all rows of a matrix."""

from collections.abc import Sequence

from perfgate.campaign.matrix import MatrixRow
from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.reports.run_report import RunFacts, RunReport, Shard


def require_complete(reports: Sequence[RunReport], matrix: Sequence[MatrixRow] | None) -> None:
    """Check that no part of what was selected is missing.

    Args:
        reports: of each run.
        matrix: the rows that must be there; None: none is known.

    Raises:
        SeveralInputErrors: a shard or a row is missing, or a run is of no row.
    """
    runs = [one.runs[0] for one in reports]
    of_selection: dict[str, list[RunFacts]] = {}
    for run in runs:
        if run.shard is not None:
            of_selection.setdefault(run.shard.selection, []).append(run)
    errors = [
        _missing(run.shard, number, runs)
        for (run, *_), there in ((found, _numbers(found)) for found in of_selection.values())
        if run.shard is not None
        for number in range(1, run.shard.of + 1)
        if number not in there and run.shard.scenarios[number - 1 : number] != ((),)
    ]
    if matrix is not None:
        errors += _of_matrix(runs, matrix)
    if errors:
        raise SeveralInputErrors(errors)


def _numbers(runs: Sequence[RunFacts]) -> frozenset[int]:
    return frozenset(run.shard.number for run in runs if run.shard is not None)


def _missing(shard: Shard, number: int, runs: Sequence[RunFacts]) -> InputError:
    of_others = [
        f"run {run.id} is shard {run.shard.number}/{run.shard.of} of another selection"
        for run in runs
        if run.shard is not None
        and run.shard.selection != shard.selection
        and run.shard.number == number
    ]
    scenarios = shard.scenarios[number - 1] if number <= len(shard.scenarios) else ()
    return InputError(
        f"shard {number}/{shard.of} is missing",
        field="RUN",
        found="; ".join(of_others) or "no run of it",
        expected=f"a run of `pytest -m {shard.expression!r} --shard {number}/{shard.of}` with "
        + (", ".join(scenarios) or "its scenarios"),
        hint="other scenario files, baselines or options divide a selection otherwise"
        if of_others
        else "look at the job of that shard; a report without it would not be of the whole",
    )


def _of_matrix(runs: Sequence[RunFacts], matrix: Sequence[MatrixRow]) -> list[InputError]:
    errors = []
    for row in matrix:
        found = [run for run in runs if _is_of(run, row)]
        if not found:
            errors.append(
                InputError(
                    f"row {row.name} of the matrix has no run",
                    field="--matrix",
                    found=f"no run of `pytest -m {row.expression!r} --shard {row.shard}`",
                    expected=f"a run with {', '.join(row.scenarios)}",
                    hint="look at the job of that row",
                )
            )
        for run in found:
            measured = run.shard.scenarios[run.shard.number - 1] if run.shard else ()
            if sorted(measured) != sorted(row.scenarios):
                errors.append(
                    InputError(
                        f"run {run.id} has other scenarios than row {row.name} of the matrix",
                        field="--matrix",
                        found=", ".join(measured),
                        expected=", ".join(row.scenarios),
                        hint="make the matrix and the runs of one commit of the gate repository",
                    )
                )
    errors += [
        InputError(
            f"run {run.id} is of no row of the matrix",
            field="--matrix",
            found=f"shard {run.shard.number}/{run.shard.of} of {run.shard.expression!r}",
            expected="one of " + ", ".join(row.name for row in matrix),
        )
        for run in runs
        if run.shard is not None and not any(_is_of(run, row) for row in matrix)
    ]
    return errors


def _is_of(run: RunFacts, row: MatrixRow) -> bool:
    shard = run.shard
    return (
        shard is not None
        and shard.expression == row.expression
        and f"{shard.number}/{shard.of}" == row.shard
    )
