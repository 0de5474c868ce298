"""What reports cost, as ratios of CPU seconds measured in one run.

Many tests: a run of 10,000 tests becomes a report, against one of 1,000; a cost for each test that
grows with their number would show. History: the gating metrics of a run of 150 tests are looked up
in the folders of many nights, against decoding the lines of those nights into plain objects with
the fastest decoder here (msgspec); and the memory for many nights against that for a tenth of them.

    python benchmarks/report_cost.py [NIGHTS]
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from perfgate.baselines import Store
from perfgate.core.files.durable_files import checksum_of, checksum_of_file, sealed
from perfgate.core.plain import from_plain
from perfgate.reports.histories import gathered_histories
from perfgate.reports.run_report import RunReport, report_of
from perfgate.runs.record import SCHEMA_VERSION, AnyRecord, Record

NIGHTS = 365
TESTS = 150
_METRICS = ("output_throughput", "ttft_median_ms", "tpot_mean_ms", "ttft_p99_ms", "e2el_mean_ms")
_GATING = _METRICS[:2]
_BUILD = {"name": "tensorrt-llm", "version": "1.3.0", "image": "", "digest": ""}


_MEASURED: dict[str, Any] = {  # what else each record of a measurement has
    "hardware": "8xB200",
    "engine": {"name": "tensorrt-llm", "version": "1.3.0", "commit": "c0ffee"},
    "disturbed": [],
    "started": "2026-11-01T01:00:00+00:00",
    "seconds": 60.0,
    "machine_bound": False,
    "injected": [],
    "source": None,
    "synthetic": False,
    "folder": "",
    "lease": {},
}


def main(nights: int) -> None:
    """Print the ratios."""
    few, many = _seconds(lambda: _report(1_000)) / 1_000, _seconds(lambda: _report(10_000)) / 10_000
    print("| what | measured | compared with | ratio | aim |\n|---|--:|--:|--:|--:|")
    print(
        f"| report of 10,000 tests, a test | {1e6 * many:.0f} µs | of 1,000: {1e6 * few:.0f} µs "
        f"| {many / few:.2f} | ≤ 1.5 |"
    )
    with tempfile.TemporaryDirectory() as folder:
        many_nights, few_nights = Path(folder) / "many", Path(folder) / "few"
        write_nights(many_nights, nights)
        write_nights(few_nights, nights // 10)
        decoding = _seconds(lambda: _decode(many_nights))
        seconds, memory = _in_its_own_process(many_nights)
        _, less = _in_its_own_process(few_nights)
    print(
        f"| history of {nights} nights × {TESTS} tests | {seconds:.1f} s | decoding: "
        f"{decoding:.1f} s | {seconds / decoding:.1f} | ≤ 4 |"
    )
    print(
        f"| its memory | {memory:.0f} MB | of {nights // 10} nights: {less:.0f} MB "
        f"| {memory / less:.1f} | ≤ 2 |"
    )


def _seconds(run: Callable[[], object]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began


def _facts(name: str) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "id": name,
        "started": f"2026-{1 + hash(name) % 12:02}-01T01:00:00+00:00",
        "arguments": ["pytest"],
        "machine": {"host": "node7", "gpus": []},
        "versions": {"perfgate": "0.1.0"},
        "git": {"commit": "c0ffee", "dirty": False},
        "synthetic": False,
    }


def records(tests: int, commit: str) -> Iterator[dict[str, Any]]:
    """The lines of a night: of each test two measurements and its verdict."""
    names = [f"scenario-{number // 5}-c{number % 5}" for number in range(tests)]
    subjects = {
        name: dict(zip(("name", "scenario", "probe"), (name, *name.rsplit("-", 1)), strict=True))
        for name in names
    }
    yield {"record": "selected", "tests": names, "subjects": subjects}
    for name in names:
        place = {field: subjects[name][field] for field in ("scenario", "probe")}
        fingerprint = {"content": name, "cpu": "Grace", "cores": "72", "gpus": "8xB200"}
        for start in (1, 2):
            yield {
                "record": "measurement",
                "role": "new",
                "start": start,
                "metrics": dict.fromkeys(_METRICS, 100.0),
                "facts": {"log": "x" * 500},
                "answers": {},
                "fingerprint": fingerprint,
                **_MEASURED,
                **place,
            }
        yield {"record": "verdict", "test": name, **subjects[name], **_verdict(commit)}


def _verdict(commit: str) -> dict[str, Any]:
    judgements = [
        {
            "metric": metric,
            "verdict": "PASS",
            "baseline": 100.0,
            "measured": 100.0,
            "change": -0.001,
            "interval": [-0.01, 0.01],
            "band": 0.02,
            "runs_used": 2,
            "needs_more_runs": False,
            "reason": "-0.1 %, no worse than the baseline by the band; 2 fresh starts",
        }
        for metric in _GATING
    ]
    return {
        "verdict": "PASS",
        "judgements": judgements,
        "observed": [],
        "measured": [
            {"metric": metric, "unit": "ms", "value": 100.0, "values": [100.0, 100.0]}
            for metric in _METRICS
        ],
        "compared_with": "tensorrt-llm 1.2.0 of 2026-11-05, accepted by Ada, 5 fresh starts",
        "reason": "",
        "error": None,
        "folder": None,
        "injected": [],
        "synthetic": False,
        "notes": [],
        "build": {**_BUILD, "commit": commit},
        "controls": [],
        "provenance": None,
        "starts": 2,
        **dict.fromkeys(("documented", "changed_questions", "settings"), ()),
        **dict.fromkeys(("extra_options", "rerun"), ""),
        "judge_input": {"tests": [{"kind": "", "metric": one, "band": 0.02} for one in _GATING]},
    }


def _report(tests: int, commit: str = "c0ffee") -> RunReport:
    lines = records(tests, commit)
    made: list[Record] = [from_plain(AnyRecord, line) for line in lines]
    return report_of(_facts("now"), made)


def write_nights(folder: Path, nights: int) -> None:
    """Run folders as perfgate leaves them, without waiting for the disk."""
    for night in range(nights):
        run = folder / f"night-{night:03}"
        run.mkdir(mode=0o700, parents=True)
        (run / "run.json").write_text(json.dumps(_facts(run.name)))
        before, lines = checksum_of_file(run / "run.json"), []
        for record in records(TESTS, f"{night:040x}"):
            plain = {"schema_version": SCHEMA_VERSION, "at": "2026-11-01", **record}
            line = sealed(json.dumps(plain, sort_keys=True).encode(), before)
            before = checksum_of(line) or ""
            lines.append(line)
        (run / "records.jsonl").write_bytes(b"\n".join([*lines, b""]))


def _decode(folder: Path) -> None:
    decoder = msgspec.json.Decoder()
    for file in sorted(folder.glob("*/records.jsonl")):
        for line in file.read_bytes().splitlines():
            decoder.decode(line)


def _in_its_own_process(folder: Path) -> tuple[float, float]:
    """Seconds, and the largest memory of the whole process in MB."""
    command = [sys.executable, __file__, "--history", str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, memory = done.stdout.split()
    return float(seconds), float(memory)


def _history(folder: Path) -> None:
    report = _report(TESTS, "f" * 40)
    began = time.process_time()
    histories, notes = gathered_histories(report, Store(folder / "none"), folder)
    seconds = time.process_time() - began
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert len(histories) == len(_GATING) * TESTS, notes
    print(seconds, most / 1024)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--history"]:
        _history(Path(sys.argv[2]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else NIGHTS)
