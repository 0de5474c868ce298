"""The documented launches, on one node and several, rehearsed through a real launcher."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from roads import PATIENCE_S, ROOT
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS

# Name of a probe → the kind of its test.
PROBES = {
    "h200-v3-fp8-2node-mpirun-c4096": "offline_throughput",
    "gb200-r1-fp4-2node-slurm-c3072": "offline_throughput",
    "gb200-r1-fp4-chat-streaming-c7680": "offline_throughput",
    "gb200-r1-0528-fp4-wide-ep-serve-smoke": "smoke",
    "gb200-r1-0528-fp4-wide-ep-serve-c32": "serving",
}


def rehearse(
    folder: Path, env: dict[str, str], launcher: str, before: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """Rehearse ranks of mpirun, sbatch and srun, a server among them; the run's records."""
    tests = [f"perf_tests/test_{kind}.py::test_{kind}[{probe}]" for probe, kind in PROBES.items()]
    done = subprocess.run(
        [
            *(*before, sys.executable, "-m", "pytest", *BENCHMARK, "-q", "--rehearse"),
            *("--launcher", launcher, "--run-dir", str(folder / "run"), *tests),
        ],
        cwd=ROOT,
        env={**env, "PERFGATE_HOME": str(folder / "home"), **ONLY_NEEDED_PLUGINS},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 13, done.stdout + done.stderr
    lines = (folder / "run" / "records.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def verdicts(records: list[dict[str, Any]]) -> dict[str, str]:
    """Name of each test's probe and its verdict."""
    return {one["name"]: one["verdict"] for one in records if one["record"] == "verdict"}


def measured(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in records if one["record"] == "measurement"]


EXPECTED = {
    **dict.fromkeys(PROBES, "NO_BASELINE"),
    "gb200-r1-0528-fp4-wide-ep-serve-smoke": "PASS",
}
