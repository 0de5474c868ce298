"""Blocks of load in turns: what their verdicts are worth, simulated, and sessions on this machine.

`python benchmarks/blocks.py simulate [CASES]` judges made-up sessions by the gate's own test. Per
spread of a start's difference and true loss: the share of each verdict, the smallest loss that a
session says it could show (median and 90th percentile), starts.

`python benchmarks/blocks.py sessions COUNT [--slowed PERCENT] [--file FILE] [--beside PROGRAM …]`
runs sessions of the embedded default (`make setup-local` first), without its accuracy and without
AIPerf's whole load (`gate.whole_load: false`), which no verdict depends on. Each ended session is a
JSON line at the end of FILE (sessions.jsonl); sessions of this kind that FILE has are not repeated.
PROGRAM runs beside each session and is killed after it; `{session}` in its arguments is the number
of the session. `python benchmarks/blocks.py table FILE` prints FILE as the tables of the docs. All
sessions of the docs, with NOISE for a program of neighbours that come and go:

    python benchmarks/blocks.py sessions 10
    python benchmarks/blocks.py sessions 8 --slowed 10
    python benchmarks/blocks.py sessions 5 --slowed 30
    python benchmarks/blocks.py sessions 10 --beside python NOISE 600 {session}
    python benchmarks/blocks.py table sessions.jsonl
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from perfgate.core.metrics import lookup
from perfgate.judging.rules import scale
from perfgate.judging.rules.noise import WIDEST_BAND
from perfgate.judging.rules.paired import Effect, blocks_rule, paired_test

MOST = 6
ROOT = Path(__file__).parents[1]
SCENARIO = ROOT / "scenarios/local/smollm2.yaml"
BLOCKS = re.compile(r"^( +)blocks: ", re.MULTILINE)
STATUSES = (1, 0, 10)  # REGRESSION, PASS, INCONCLUSIVE
KEPT = ("verdict", "change", "interval", "band", "runs_used")  # of a judgement


def simulate(cases: int) -> None:
    """Print the table."""
    random = np.random.default_rng(5)
    metric = lookup("output_throughput")
    band = scale.declared_band(metric, None)
    effect = Effect.below_band(scale.margin(metric, band), scale.margin(metric, WIDEST_BAND))
    print("spread  loss  REGRESSION    PASS  undecided  smallest loss (90 %)  starts")
    for spread in (0.01, 0.02, 0.03, 0.04, 0.06, 0.1):
        for loss in (0.0, 0.05, 0.1, 0.15, 0.3):
            losses = random.normal(-np.log(1 - loss), spread, (cases, MOST))
            seen = paired_test(np.zeros(MOST), losses, effect, blocks_rule(MOST))
            failed, passed = seen.fails.mean(), seen.holds.mean()
            usual, high = (scale.band(metric, one) for one in np.quantile(seen.upper, (0.5, 0.9)))
            print(
                f"{spread:6.0%} {loss:5.0%} {failed:11.3%} {passed:7.2%}"
                f" {1 - failed - passed:10.2%} {usual:12.1%} ({high:.1%}) {seen.starts.mean():7.2f}"
            )


class Kind(NamedTuple):
    """What sessions are of: how much the server is slowed, and a program that runs beside them."""

    slowed: int
    beside: tuple[str, ...]

    def __str__(self) -> str:
        return f"slowed by {self.slowed} %" if self.slowed else "unchanged"


def sessions(count: int, kind: Kind, file: Path) -> None:
    """Run sessions until the file has so many of the kind."""
    lines = read(file) if file.exists() else []
    done = sum((line["slowed"], tuple(line["beside"])) == kind for line in lines)
    for number in range(done + 1, count + 1):
        argv = [part.replace("{session}", str(number)) for part in kind.beside]
        neighbour = subprocess.Popen(argv, start_new_session=True) if argv else None
        try:
            line = {"session": number, **kind._asdict(), **session(kind.slowed)}
        finally:
            if neighbour is not None:
                with suppress(ProcessLookupError):
                    os.killpg(neighbour.pid, signal.SIGKILL)
                neighbour.wait()
        with file.open("a") as lines_file:
            lines_file.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)


def session(slowed: int) -> dict[str, Any]:
    """One session of the embedded default, without its accuracy and without AIPerf's load."""
    words = ["perf_tests/test_serving.py", "-m", "local", "-q", "-p", "no:cacheprovider"]
    if slowed:
        words += ["--inject", f"engine.settings.slowed_percent={slowed}"]
    with tempfile.TemporaryDirectory() as folder:
        scenarios, run = Path(folder, "scenarios"), Path(folder, "run")
        scenarios.mkdir()
        text, found = BLOCKS.subn(r"\1whole_load: false\n\g<0>", SCENARIO.read_text())
        assert found == 1, f"{SCENARIO}: no scenario with blocks"
        (scenarios / SCENARIO.name).write_text(text)
        words += [f"--scenarios={scenarios}", f"--run-dir={run}"]
        environment = {**os.environ, "PERFGATE_HOME": f"{folder}/home"}
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words], cwd=ROOT, env=environment, capture_output=True
        )
        seconds = round(time.monotonic() - began, 1)
        records = read(run / "records.jsonl") if run.exists() else []
        points = {line["name"]: point(line, records, run) for line in of(records, "verdict")}
    said = {} if points else {"output": done.stdout.decode()[-2000:]}
    return {"seconds": seconds, "status": done.returncode, "points": points, **said}


def point(verdict: dict[str, Any], records: list[dict[str, Any]], run: Path) -> dict[str, Any]:
    """What a session says of one point."""
    name = verdict["name"].rpartition("-")[2]
    measured = [line for line in of(records, "measurement") if line["probe"] == name]
    facts = [line["facts"]["blocks"] for line in measured if line["role"] == "new"]
    speeds: dict[str, list[float]] = {role: [] for role in ("new", "reference")}
    for line in measured:
        if (speed := line["metrics"].get("output_throughput")) and not line["disturbed"]:
            speeds[line["role"]].append(np.log(speed))
    noises = [one["noise_of_pair"] ** 2 for one in facts if one["pairs"] > 1]
    files = run.glob(f"*/*/{name}/blocks_new.json")
    others = [one["others"] for file in files for one in json.loads(file.read_text())["pairs"]]
    judged = {one["metric"]: {key: one[key] for key in KEPT} for one in verdict["judgements"]}
    differences = [new - old for new, old in zip(*speeds.values(), strict=False)]
    return {
        "verdict": verdict["verdict"],
        "metrics": {metric: one for metric, one in judged.items() if one["band"] is not None},
        "noise_within": rounded(np.sqrt(np.mean(noises))) if noises else None,
        "noise_between": rounded(np.std(differences, ddof=1)) if len(differences) > 1 else None,
        "differences": [rounded(one) for one in differences],
        "pairs": sum(one["pairs"] for one in facts),
        "thrown_away": sum(one["thrown_away"] for one in facts),
        "others_mean": rounded(np.mean(others)),
        "others_most": rounded(np.max(others)),
    }


def table(file: Path) -> None:
    """Print what the sessions of a file gave, as the tables of the docs."""
    lines = read(file)
    kinds: dict[tuple[int, bool], list[dict[str, Any]]] = {}
    for line in lines:
        kinds.setdefault((line["slowed"], bool(line["beside"])), []).append(line)
    print("| sessions | seconds (most) | REGRESSION, PASS, INCONCLUSIVE, other | point |", end="")
    print(" smallest loss (9 in 10) | noise within, between starts | thrown away | others (most) |")
    print("|---|---|---|---|---|---|---|---|")
    for (slowed, beside), of_kind in sorted(kinds.items()):
        seconds = [line["seconds"] for line in of_kind]
        ends = [line["status"] for line in of_kind]
        counts = ", ".join(str(ends.count(status)) for status in STATUSES)
        counts += f", {sum(status not in STATUSES for status in ends)}"
        what = f"{len(of_kind)} {Kind(slowed, ())}{', with neighbours' * beside}"
        head = f"| {what} | {np.median(seconds):.0f} ({max(seconds):.0f}) | {counts} |"
        for name in sorted({name for line in of_kind for name in line["points"]}):
            found = [line["points"][name] for line in of_kind if name in line["points"]]
            bands = [band for one in found if (band := speed_of(one).get("band")) is not None]
            pairs = sum(one["pairs"] + one["thrown_away"] for one in found)
            thrown = sum(one["thrown_away"] for one in found) / pairs if pairs else 0
            print(
                f"{head} {name.rpartition('-')[2]} | {quantile(bands, 0.5)}"
                f" ({quantile(bands, 0.9)}) | {middle(found, 'noise_within')},"
                f" {middle(found, 'noise_between')} | {thrown:.0%} | {middle(found, 'others_mean')}"
                f" ({quantile([one['others_most'] for one in found], 1)}) |"
            )
            head = "| | | |"
    print("\n| session | seconds | point | verdict | change (interval) | smallest loss |", end="")
    print(" noise within, between starts | pairs, thrown away | others (most) |")
    print("|---|--:|---|---|---|---|---|---|---|")
    for line in lines:
        what = f"{Kind(line['slowed'], ())}{', neighbours' * bool(line['beside'])}"
        head = f"| {what} {line['session']} | {line['seconds']:.0f} |"
        for name, one in sorted(line["points"].items()):
            speed = speed_of(one)
            interval = " … ".join(f"{end:+.1%}" for end in speed.get("interval") or ())
            print(
                f"{head} {name.rpartition('-')[2]} | {one['verdict']} |"
                f" {shown(speed, 'change', '+')} ({interval}) | {shown(speed, 'band')} |"
                f" {shown(one, 'noise_within')}, {shown(one, 'noise_between')} |"
                f" {one['pairs']}, {one['thrown_away']} | {shown(one, 'others_mean')}"
                f" ({shown(one, 'others_most')}) |"
            )
            head = "| | |"
        if not line["points"]:
            print(f"{head} | status {line['status']} | | | | | |")


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def of(records: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [line for line in records if line["record"] == kind]


def rounded(number: "float | np.floating[Any]") -> float | None:
    return round(float(number), 4) if np.isfinite(number) else None


def speed_of(point: dict[str, Any]) -> dict[str, Any]:
    return point["metrics"].get("output_throughput", {})


def shown(values: dict[str, Any], key: str, sign: str = "") -> str:
    value = values.get(key)
    return "–" if value is None else f"{value:{sign}.1%}"


def quantile(values: list[float | None], share: float) -> str:
    known = [one for one in values if one is not None]
    return f"{np.quantile(known, share, method='higher'):.1%}" if known else "–"


def middle(points: list[dict[str, Any]], key: str) -> str:
    return quantile([one[key] for one in points], 0.5)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("simulate").add_argument("cases", type=int, nargs="?", default=100_000)
    runs = verbs.add_parser("sessions")
    runs.add_argument("count", type=int)
    runs.add_argument("--slowed", type=int, default=0, help="percent")
    runs.add_argument("--file", type=Path, default=Path("sessions.jsonl"))
    runs.add_argument("--beside", nargs=argparse.REMAINDER, default=[], help="a program's argv")
    verbs.add_parser("table").add_argument("file", type=Path)
    given = parser.parse_args()
    if given.verb == "simulate":
        simulate(given.cases)
    elif given.verb == "sessions":
        sessions(given.count, Kind(given.slowed, tuple(given.beside)), given.file)
    else:
        table(given.file)
