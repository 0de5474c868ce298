"""Sides to compare: run folders, baseline files and results of other tools, made small."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from plain_records import record

from perfgate.runs.run_folder import RunFolder

RECORDED = Path(__file__).parent / "data" / "aiperf" / "streamed.json"
FINGERPRINT = {"content": "0123456789abcdef", "cpu": "Grace", "driver": "570.1"}
SUMS = "accuracy:sums:exact_match:strict-match"


def measurement(
    metrics: Mapping[str, float], start: int = 1, probe: str = "c1", **changes: Any
) -> dict[str, Any]:
    """A measurement's record."""
    return {
        "scenario": "small-serve",
        "hardware": "cpu",
        "probe": probe,
        "role": "new",
        "machine_bound": False,
        "start": start,
        "started": f"2026-11-20T08:0{start}:00+00:00",
        "engine": {"name": "llama.cpp", "version": "1.3.0", "commit": "fed987"},
        "fingerprint": FINGERPRINT,
        "metrics": dict(metrics),
        "facts": {"client": "aiperf", "client_version": "0.13.0", "isl": 64.0, "osl": 32.0},
        "answers": {},
        "injected": [],
        "synthetic": False,
        **changes,
    }


def run(path: Path, lines: Sequence[Mapping[str, Any]], failed: Sequence[str] = ()) -> Path:
    """A run folder with these measurements, and a verdict ERROR for each failed probe."""
    folder = RunFolder.create(path, {"started": "2026-11-20T08:00:00+00:00", "synthetic": False})
    for number, line in enumerate(lines):
        # No two runs begin at one moment.
        folder.record(
            record("measurement", {**line, "started": f"{line['started']} {path.name} {number}"})
        )
    for probe in failed:
        error = {
            "error_class": "oom",
            "message": "out of memory",
            "evidence": [],
            "next_step": "less",
        }
        folder.record(
            record(
                "verdict",
                {
                    "name": f"small-serve-{probe}",
                    "scenario": "small-serve",
                    "probe": probe,
                    "verdict": "ERROR",
                    "reason": "",
                    "error": error,
                },
            )
        )
    folder.close()
    return path


def throughputs(path: Path, *values: float, **changes: Any) -> Path:
    """A run folder whose only metric is the output throughput, one value per fresh start."""
    return run(
        path,
        [
            measurement({"output_throughput": value}, start, **changes)
            for start, value in enumerate(values, start=1)
        ],
    )


def scaled(factor: float) -> dict[str, Any]:
    """AIPerf's recorded summary of a server that is so many times as slow."""
    fields: dict[str, Any] = json.loads(RECORDED.read_text())
    for metric in fields.values():
        unit = metric.get("unit") if isinstance(metric, dict) else None
        if unit in ("ms", "sec"):
            _multiply(metric, factor)
        elif isinstance(unit, str) and "/sec" in unit:
            _multiply(metric, 1 / factor)
    return fields


def _multiply(metric: dict[str, Any], factor: float) -> None:
    for name, value in metric.items():
        if isinstance(value, float):
            metric[name] = factor * value


def aiperf(folder: Path, *factors: float) -> Path:
    """A folder with one AIPerf result per factor, each in a folder of its own."""
    for number, factor in enumerate(factors, start=1):
        place = folder / f"start-{number}"
        place.mkdir(parents=True)
        (place / "profile_export_aiperf.json").write_text(json.dumps(scaled(factor)))
    return folder
