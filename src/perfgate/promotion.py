"""Promotion: from a run's records to a candidate, and by a person from there to a baseline."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from perfgate.baselines import (
    Baseline,
    BaselineRun,
    Entry,
    candidate_store,
    read,
    suite_store,
)
from perfgate.engines.base import EngineBuild
from perfgate.errors import InputError
from perfgate.gate.verdict import Verdict
from perfgate.records import RunFolder, now

_USABLE = {Verdict.PASS, Verdict.IMPROVEMENT, Verdict.NO_BASELINE, Verdict.NOT_COMPARABLE}


def record_candidates(run: Path) -> tuple[list[Path], list[str]]:
    """Write a candidate for every scenario of a finished run.

    Only probes that were measured in full and did not fail their verdict are taken.

    Returns:
        The candidates' files, and which probes were left out, and why.

    Raises:
        InputError: not a run, nothing usable in it, or numbers that may never become a baseline
            (changed on purpose, or made by a stand-in).
    """
    folder = RunFolder(run.absolute())
    facts = folder.facts()
    verdicts = {_name(line): Verdict(line["verdict"]) for line in folder.records("verdict")}
    measured: dict[str, list[dict[str, Any]]] = defaultdict(list)
    refused = {
        f"{name}: its verdict is {verdict.value}"
        for name, verdict in verdicts.items()
        if verdict not in _USABLE
    }
    for line in folder.records("measurement"):
        if line["role"] != "new":
            continue
        name = _name(line)
        if line["injected"] or line["synthetic"]:
            refused.add(f"{name}: its numbers were changed on purpose or are synthetic")
        elif line["machine_bound"]:
            refused.add(f"{name}: compared with the machine itself, so its numbers stay here")
        elif name not in verdicts:
            refused.add(f"{name}: it has no verdict")
        elif verdicts[name] in _USABLE:
            measured[line["scenario"]].append(line)
    if not measured:
        raise InputError(
            "nothing in this run can become a baseline",
            file=folder.path,
            found="; ".join(sorted(refused)) or "no measurements",
            expected="a run whose probes were measured in full, without injections",
        )
    paths = [_candidate(lines, str(facts["id"])) for lines in measured.values()]
    return paths, sorted(refused)


def _name(line: Mapping[str, Any]) -> str:
    return f"{line['scenario']}-{line['probe']}"


def _candidate(lines: Sequence[dict[str, Any]], run: str) -> Path:
    entries: dict[str, Entry] = {}
    for line in lines:
        one = BaselineRun(run, line["started"], line["metrics"], line["answers"])
        label = line["probe"]
        known = entries.get(label)
        if known is not None and known.differences(line["fingerprint"]):
            raise InputError("starts of one probe on unlike machines", found=label)
        runs = known.runs if known else ()
        entries[label] = Entry(line["fingerprint"], (*runs, one))
    baseline = Baseline(
        scenario=lines[0]["scenario"],
        hardware=lines[0]["hardware"],
        engine=EngineBuild(**lines[0]["engine"]),
        accepted_by="nobody yet",
        accepted_at=now(),
        reason=f"recorded from run {run}",
        entries=entries,
    )
    return candidate_store().save(baseline)


def promote(candidate: Path, *, by: str, reason: str) -> tuple[Path, list[str]]:
    """Accept a candidate: write it into the suite's store under a person's name.

    Args:
        candidate: the candidate's file.
        by: the person.
        reason: why these numbers are right.

    Returns:
        The baseline's file, and what changes, one line a metric.

    Raises:
        InputError: the candidate is unusable, or name or reason are empty.
    """
    for option, text in (("--by", by), ("--reason", reason)):
        if not text.strip():
            raise InputError("must not be empty", field=option)
    baseline = replace(read(candidate), accepted_by=by, accepted_at=now(), reason=reason)
    store = suite_store()
    before = store.choose(baseline.hardware, baseline.scenario, baseline.engine.commit)
    changes = _changes(before, baseline)
    return store.save(baseline), changes


def _changes(before: Baseline | None, after: Baseline) -> list[str]:
    lines = []
    for label, entry in after.entries.items():
        old = before.entries.get(label) if before else None
        for metric in sorted(entry.runs[0].metrics):
            new = float(np.mean(entry.values(metric)))
            values = old.values(metric) if old else []
            if values:
                was = float(np.mean(values))
                moved = f"{was:.6g} -> {new:.6g}" + (f" ({new / was - 1:+.1%})" if was else "")
            else:
                moved = f"new: {new:.6g}"
            lines.append(f"{label} {metric}: {moved}")
    return lines
