"""What stored baselines cost, as ratios measured in one run, for docs/dev/architecture.md.

Size: a baseline of three evaluations of GSM8K, against the same with every question named in every
run, as files were written before. Time: a build's baseline is chosen and its answers are judged,
with many commits stored against with one, and nothing known from before, as when a session starts.
"""

import argparse
import hashlib
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from perfgate.baselines import Baseline, BaselineRun, Entry, Store
from perfgate.baselines import questions as question_files
from perfgate.core.plain import to_plain
from perfgate.engines.base import EngineBuild
from perfgate.judging.rules.accuracy import judge_paired

QUESTIONS = 1319  # of GSM8K's test set
METRICS = [f"accuracy:gsm8k:exact_match:{name}" for name in ("strict-match", "flexible-extract")]
HARDWARE, SCENARIO = "8xB200", "b200-r1-fp4-serve"
NEXT = EngineBuild("tensorrt-llm", "9.0.0", "next")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=1000, help="stored commits")
    parser.add_argument("--repeat", type=int, default=5, help="pairs of runs, the median counts")
    options = parser.parse_args()
    print("| what | measured | compared with | ratio | aim |\n|---|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        sizes(Path(folder) / "size")
        times(Path(folder), options.commits, options.repeat)
    return 0


def sizes(folder: Path) -> None:
    """The file of one baseline in both forms."""
    made = evaluated(0)
    size = Store(folder).save(made).stat().st_size
    (asked,) = (folder / question_files.FOLDER).glob("*/*.json")
    plain = to_plain(replace(made, file=None), leave_out_none=True)
    before = len(json.dumps(plain, indent=1, sort_keys=True))
    print(
        f"| GSM8K baseline of 3 evaluations | {size / 1000:.1f} kB | questions in each run, "
        f"{before / 1000:.0f} kB | 1/{before / size:.0f} | ≤ 10 kB |"
    )
    print(
        f"| its questions, once a version of the task | {asked.stat().st_size / 1000:.0f} kB "
        f"| the same | 1/{before / asked.stat().st_size:.0f} | - |"
    )


def times(folder: Path, commits: int, repeat: int) -> None:
    """Choosing and judging, with many commits stored and with one."""
    one, many = Store(folder / "one"), Store(folder / "many")
    with unsynchronised():
        one.save(evaluated(0))
        first = evaluated(0)
        for number in range(commits):
            many.save(replace(first, engine=build(number)), merge=False)
    few, lots = [], []
    for _ in range(repeat):
        few.append(judged(one))
        lots.append(judged(many))
    print(
        f"| choosing and judging against {commits:,} stored commits, CPU "
        f"| {statistics.median(lots):.2f} s | against 1, {statistics.median(few):.3f} s "
        f"| {statistics.median(lots) / statistics.median(few):.0f} | ≤ 0.5 s |"
    )


def judged(store: Store) -> float:
    """CPU seconds to choose a build's baseline and anchor, and to judge its answers."""
    for path in store.folder.rglob("*.json"):
        path.touch()  # else it is remembered from before
    began = time.process_time()
    chosen = store.choose(HARDWARE, SCENARIO, NEXT)
    store.anchor(HARDWARE, SCENARIO, NEXT)
    entry = chosen.entry("gsm8k") if chosen else None
    if entry is None:
        raise SystemExit("no baseline was chosen")
    for metric in METRICS:
        answers = [run.answers[metric] for run in entry.runs[:3]]
        judge_paired(metric, answers, [dict(entry.runs[-1].answers[metric])], margin=0.02)
    return time.process_time() - began


def evaluated(seed: int) -> Baseline:
    """A baseline of three evaluations, its questions keyed as lm_eval does."""
    numbers = random.Random(seed)
    keys = [f"{sha256(f'q{one}')}:{sha256(f'a{one}')}" for one in range(QUESTIONS)]
    runs = []
    for night in (1, 2, 3):
        answers = {metric: {key: numbers.random() < 0.95 for key in keys} for metric in METRICS}
        scores = {metric: sum(given.values()) / QUESTIONS for metric, given in answers.items()}
        started = f"2026-11-{night:02d}T02:00:00+00:00"
        runs.append(BaselineRun(f"nightly-202611{night:02d}", started, scores, answers, 812.4, 1))
    facts = {"content": "0123456789abcdef", "evaluator": "lm_eval 0.4.13", "model": "b179c952"}
    return Baseline(
        scenario=SCENARIO,
        hardware=HARDWARE,
        engine=build(0),
        accepted_by="Ada",
        accepted_at="2026-11-04T09:00:00+00:00",
        reason="three nights of the release candidate",
        entries={"gsm8k": Entry(facts, tuple(runs))},
        verdicts={"gsm8k": "PASS"},
    )


def build(number: int) -> EngineBuild:
    commit = hashlib.sha1(str(number).encode(), usedforsecurity=False).hexdigest()
    return EngineBuild("tensorrt-llm", f"1.2.0.dev{number}", commit)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def unsynchronised() -> Iterator[None]:
    """Files of a benchmark need not outlast a power cut."""
    with patch("os.fsync", lambda _: None):
        yield


if __name__ == "__main__":
    sys.exit(main())
