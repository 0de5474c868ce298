"""Runs for tests of merged reports: as values, and as run folders with checksums."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import building

from perfgate.core.errors import RunError
from perfgate.core.measured import MeasuredBuild
from perfgate.core.plain import to_plain
from perfgate.core.verdict import Verdict
from perfgate.reports.run_report import Shard
from perfgate.runs.ended_run import EndedRun, end_of
from perfgate.runs.records import SCHEMA_VERSION, RunFolder

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
    return {"test": test, **made.as_record(), **told, "rerun": f"pytest {test}", **changes}


def lines_of(
    results: Mapping[str, Verdict | str | None],
    *,
    shard: Shard | None = None,
    end: int | None = 0,
    failed: Sequence[str] = (),
    bugs: Sequence[str] = (),
    faults: Sequence[str] = (),
    build: MeasuredBuild | None = None,
    **ends: Any,
) -> list[dict[str, Any]]:
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
    lines = [{"record": "selected", "tests": sorted(results), "subjects": subjects}]
    if shard is not None:
        lines.append({"record": "shard", **to_plain(shard)})
    for scenario in sorted({one["scenario"] for one in subjects.values()}):
        lines.append({"record": "scenario", "scenario": scenario, "title": scenario, "gpus": 8})
    changed = {} if build is None else {"build": to_plain(build)}
    for test, result in results.items():
        if isinstance(result, Verdict):
            lines.append({"record": "verdict", **verdict_record(test, result, **changed)})
        elif result is not None:
            told = {**subjects[test], "reason": "no GPU", "why": result}
            lines.append({"record": "skipped", "test": test, **told})
    lines += [{"record": "waiver_fault", "kind": "expired", "message": one} for one in faults]
    if end is not None:
        lines.append(
            {
                "record": "ended",
                "status": end,
                "gate": False,
                "recording": False,
                "failed": [*failed],
                "bugs": [*bugs],
                "unwritten": False,
                **ends,
            }
        )
    return lines


def run(
    name: str,
    started: str,
    results: Mapping[str, Verdict | str | None],
    *,
    changes: Mapping[str, Any] | None = None,
    **more: Any,
) -> EndedRun:
    """A run as a value."""
    records = lines_of(results, **more)
    return EndedRun(
        Path("/runs") / name, {**facts(name, started), **(changes or {})}, records, end_of(records)
    )


def write_run(folder: Path, found: EndedRun) -> Path:
    """A run in a folder, as perfgate writes it."""
    plain = {key: one for key, one in found.facts.items() if key not in ("id", "schema_version")}
    made = RunFolder.create(folder, plain)
    for line in found.records:
        made.record(line["record"], {key: one for key, one in line.items() if key != "record"})
    made.close()
    return folder
