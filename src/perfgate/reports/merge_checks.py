"""Merge checks: whether several runs are one: of one perfgate, one build, one kind of run, and all
parts of what was selected.
"""

from collections.abc import Sequence

from perfgate.campaign.shards import MatrixRow
from perfgate.core.errors import InputError, SeveralInputErrors
from perfgate.reports.run_report import RunFacts, RunReport, Shard
from perfgate.runs.ended_run import EndedRun
from perfgate.runs.record import VerdictRecord

# What must be the same → runs that differ in it. The machine may be another one, and the launcher.
_SAME = {
    "synthetic": "a rehearsal and a real run",
    "rehearse_fault": "rehearsals of different faults",
    "injected": "runs with different --inject",
    "control": "runs with different --control",
    "ab": "runs that compare different builds (--ab)",
    "site_commands": "runs with different commands before and after each start (site.yaml)",
    "versions": "runs of different perfgate releases",
    "git": "runs of different commits of the gate repository",
    "recording": "a run with --record and one without",
}


def require_mergeable(runs: Sequence[EndedRun]) -> None:
    """Check that the runs may be one.

    Raises:
        SeveralInputErrors: they may not.
    """
    first, *others = runs
    errors = []
    for other in others:
        here, there = _facts(first), _facts(other)
        errors += [
            _differ(words, name, first, other, here[name], there[name])
            for name, words in _SAME.items()
            if name in here and name in there and here[name] != there[name]
        ]
        errors += _sliders(first, other)
    errors += _builds(runs)
    if errors:
        raise SeveralInputErrors(errors)


def _differ(
    words: str, field: str, first: EndedRun, other: EndedRun, one: object, two: object
) -> InputError:
    return InputError(
        f"{words} are not one run",
        field=field,
        found=f"run {first.id}: {one}; run {other.id}: {two}",
        expected="the same in all runs of a report",
        hint="report each by itself",
    )


def _sliders(first: EndedRun, other: EndedRun) -> list[InputError]:
    """That equal GPUs had different boost sliders before the first start."""
    name = "boost_slider"
    here, there = (run.facts.get("fingerprint", {}) for run in (first, other))
    sliders = here.get(name), there.get(name)
    if here.get("gpus") != there.get("gpus") or None in sliders or len(set(sliders)) == 1:
        return []
    return [_differ("runs with different boost sliders", name, first, other, *sliders)]


def _facts(run: EndedRun) -> dict[str, object]:
    """What must be the same, as far as it is known."""
    facts = dict(run.facts)
    commit = (facts.pop("git", None) or {}).get("commit")
    known = {"versions": facts.pop("versions").get("perfgate"), "git": commit}
    facts["recording"] = bool(facts.get("recording")) if run.end is None else run.end.recording
    return facts | {name: one for name, one in known.items() if one is not None}


def _builds(runs: Sequence[EndedRun]) -> list[InputError]:
    """Engines of which the runs have different builds.

    A rehearsal plays for each scenario the release of its document: there each scenario counts for
    itself.
    """
    played = bool(runs[0].facts.get("synthetic"))
    told = [_builds_of(run, by_scenario=played) for run in runs]
    errors = []
    for engine in sorted({name for one in told for name in one}):
        found = [one.get(engine, frozenset()) for one in told]
        every = frozenset().union(*found)
        if len(every) > 1 and every not in found:
            shown = "; ".join(
                f"run {run.id}: {', '.join(sorted(builds))}"
                for run, builds in zip(runs, found, strict=True)
                if builds
            )
            errors.append(
                InputError(
                    f"different builds of {engine} are not one run",
                    field="build",
                    found=shown,
                    expected="one build of each engine",
                    hint="`perfgate compare` compares two builds",
                )
            )
    return errors


def _builds_of(run: EndedRun, *, by_scenario: bool) -> dict[str, frozenset[str]]:
    """Engine, or engine of a scenario → the builds under test, in words."""
    found: dict[str, set[str]] = {}
    for record in run.records_of(VerdictRecord):
        build = record.build
        if build is not None:
            at = "" if build.commit == build.version else f" at {build.commit}"
            digest = f" {build.digest}" if build.digest else ""
            name = f"{build.name} (for {record.scenario})" if by_scenario else build.name
            found.setdefault(name, set()).add(f"{build.version}{at}{digest}")
    return {name: frozenset(builds) for name, builds in found.items()}


def require_complete(reports: Sequence[RunReport], matrix: Sequence[MatrixRow] | None) -> None:
    """Check that no part of what was selected is missing.

    Args:
        reports: of each run.
        matrix: the rows that must be there; None: none is known.

    Raises:
        SeveralInputErrors: a shard or a row is missing, or a run is of no row.
    """
    runs = [report.runs[0] for report in reports]
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
