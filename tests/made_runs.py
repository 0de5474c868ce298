"""Runs for tests of merged reports: as values, and as run folders with checksums."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import building
from plain_records import fields_of, record

from perfgate.core.errors import RunError
from perfgate.core.measurement import MeasuredBuild
from perfgate.core.plain import to_plain
from perfgate.core.verdict import Verdict
from perfgate.reports.run_report import Shard
from perfgate.runs.ended_run import EndedRun
from perfgate.runs.record import Record
from perfgate.runs.run_folder import SCHEMA_VERSION, RunFolder

PARTS = (("a", "b"), ("c",))
SHARDS = tuple(Shard(number, 2, "b200", "f1a9", PARTS) for number in (1, 2))


def facts(run: str, started: str, **changes: Any) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "id": run,
        "started": f"2026-11-23T{started}:00+00:00",
        "arguments": ["pytest"],
        "machine": to_plain(building.MACHINE),
        "git": {"commit": "c0ffee", "dirty": False},
        "versions": {"perfgate": "0.1.0"},
        "synthetic": False,
        "launcher": "local",
        **changes,
    }


def verdict_record(test: str, verdict: Verdict, **changes: Any) -> dict[str, Any]:
    """The record of a verdict of test ``<scenario>-<probe>``."""
    error = RunError("oom", "out of memory") if verdict == Verdict.ERROR else None
    judged = replace(building.judgement(), verdict=verdict)
    scored = verdict not in (Verdict.ERROR, Verdict.NO_BASELINE)
    made = building.outcome(verdict=verdict, judgements=(judged,) if scored else (), error=error)
    scenario, _, probe = test.partition("-")
    told = {"name": test, "scenario": scenario, "probe": probe}
    return {"test": test, **fields_of(made), **told, "rerun": f"pytest {test}", **changes}


def records_of(
    results: Mapping[str, Verdict | str | None],
    *,
    shard: Shard | None = None,
    end: int | None = 0,
    failed: Sequence[str] = (),
    bugs: Sequence[str] = (),
    faults: Sequence[str] = (),
    build: MeasuredBuild | None = None,
    **ends: Any,
) -> list[Record]:
    """The records of a run.

    Args:
        results: test → its verdict, why it was skipped, or None: it did not finish.
        shard: which part it is.
        end: the status that it ended with; None: it did not.
        failed, bugs, faults: as at the end of a run.
        build: the build under test.
        ends: other fields of the record of its end.
    """
    subjects = {
        test: {"name": test, "scenario": test.partition("-")[0], "probe": test.partition("-")[2]}
        for test in results
    }
    made = [record("selected", {"tests": sorted(results), "subjects": subjects})]
    if shard is not None:
        made.append(record("shard", to_plain(shard)))
    for scenario in sorted({one["scenario"] for one in subjects.values()}):
        made.append(record("scenario", scenario=scenario, title=scenario, gpus=8))
    changed = {} if build is None else {"build": to_plain(build)}
    for test, result in results.items():
        if isinstance(result, Verdict):
            made.append(record("verdict", verdict_record(test, result, **changed)))
        elif result is not None:
            told = {**subjects[test], "reason": "no GPU", "why": result}
            made.append(record("skipped", told, test=test))
    made += [record("waiver_fault", kind="expired", message=one) for one in faults]
    if end is not None:
        made.append(record("ended", status=end, failed=[*failed], bugs=[*bugs], **ends))
    return made


def run(
    name: str,
    started: str,
    results: Mapping[str, Verdict | str | None],
    *,
    changes: Mapping[str, Any] | None = None,
    **more: Any,
) -> EndedRun:
    """A run as a value."""
    records = records_of(results, **more)
    return EndedRun(Path("/runs") / name, {**facts(name, started), **(changes or {})}, records)


def write_run(folder: Path, found: EndedRun) -> Path:
    """A run in a folder, as perfgate writes it."""
    plain = {key: one for key, one in found.facts.items() if key not in ("id", "schema_version")}
    made = RunFolder.create(folder, plain)
    for one in found.records:
        made.record(one)
    made.close()
    return folder
