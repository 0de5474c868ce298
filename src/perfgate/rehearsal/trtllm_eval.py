"""A stand-in for trtllm-eval: GPQA diamond, GSM8K and MMLU; its scores are synthetic.

Where its options and the file of samples come from: `options`, and `evaluate/lm_eval.py` of
1.3.0rc3. The scores are percent, as there.
"""

import csv
import hashlib
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from perfgate.core.metrics import accuracy_name
from perfgate.rehearsal import healthy_log as healthy
from perfgate.rehearsal.fault_injection import halved, inject_client_fault, inject_engine_fault
from perfgate.rehearsal.llm_api_yaml import read_options
from perfgate.rehearsal.options import GivenOptions, read, started
from perfgate.rehearsal.playbook import SYNTHETIC, Playbook, crash, end

_PROGRAM = "trtllm-eval"


class _Task(NamedTuple):
    """What the program knows of a task: its name in lm_eval, its filters, how it is asked."""

    lm_eval: str
    filters: tuple[str, ...]
    fewshot: int
    questions: int


_TASKS = {
    "gpqa_diamond": _Task("gpqa_diamond_cot_zeroshot_aa", ("strict-match",), 0, 198),
    "gsm8k": _Task("gsm8k", ("flexible-extract", "strict-match"), 5, 1319),
}
_MMLU_QUESTIONS = 14_042
Right = Mapping[str, Sequence[bool]]
"""Filter → which questions were answered right."""


def main(argv: Sequence[str] | None = None) -> None:
    """Load the model, and run the task."""
    playbook, outer = started(_PROGRAM, argv, argparse=False, engine=True)
    read_options(playbook, outer)
    world_size = outer.integer("--tp_size", 1) * outer.integer("--pp_size", 1)
    fraction = outer.number("--kv_cache_free_gpu_memory_fraction", 0.9)
    healthy.engine_starts(outer.text("--model"), world_size, fraction)
    inject_engine_fault(playbook)
    given = read(playbook, f"{_PROGRAM} {outer.command}", outer.rest)
    if outer.command == "mmlu":
        _mmlu(playbook, given)
    elif outer.command in _TASKS:
        _of_lm_eval(playbook, given, outer.command)
    else:
        end(f"{_PROGRAM} {outer.command} has no stand-in")


def _of_lm_eval(playbook: Playbook, given: GivenOptions, name: str) -> None:
    task = _TASKS[name]
    _require_questions(given, name)
    asked = min(given.integer("--num_samples", task.questions), task.questions)
    fault, done = _answered(playbook, asked)
    right = {
        one: playbook.answers(name, accuracy_name(name, "exact_match", one), asked)[:done]
        for one in task.filters
    }
    if fault == "zero_metrics":
        right = {one: [False] * done for one in task.filters}
    if fault == "no_metrics":
        return
    head = f"lm-eval {task.lm_eval} results (scores normalized to range 0~100):"
    healthy.info(halved(f"{head}\n{_table(task, right)}\n", fault))
    if given.has("--output_path"):
        folder = Path(given.text("--output_path"))
        folder.mkdir(parents=True, exist_ok=True)
        content = json.dumps(_results(task, right, samples=given.has("--log_samples")), indent=2)
        (folder / f"samples_{task.lm_eval}.json").write_text(halved(content, fault))
    if fault != "truncated":
        mean = sum(map(_percent, right.values())) / len(right)
        healthy.info(f"lm-eval {task.lm_eval} average accuracy: {mean:.2f}")


def _mmlu(playbook: Playbook, given: GivenOptions) -> None:
    asked = min(given.integer("--num_samples", _MMLU_QUESTIONS), _MMLU_QUESTIONS)
    fault, done = _answered(playbook, asked)
    right = playbook.answers("mmlu", accuracy_name("mmlu", "accuracy", "none"), asked)[:done]
    score = 0.0 if fault == "zero_metrics" else _percent(right)
    if fault not in ("no_metrics", "truncated"):  # the report is one line
        healthy.info(f"MMLU weighted average accuracy: {score:.2f} ({done})")


def _answered(playbook: Playbook, asked: int) -> tuple[str | None, int]:
    """The fault that hits the program, and how many questions it answers."""
    fault = inject_client_fault(playbook)
    done = asked - max(1, asked // 20) if fault == "partial" else asked
    share = 100 * done // asked
    print(f"Fetching responses: {share}%|##########| {done}/{asked}", file=sys.stderr)
    healthy.info("TRTLLM execution time: 100.000 seconds.")
    return fault, done


def _require_questions(given: GivenOptions, name: str) -> None:
    """GPQA's data set needs an account of the hub, so that a rehearsal has it in a folder."""
    if name != "gpqa_diamond":
        return
    path = Path(given.text("--dataset_path")) / "gpqa_diamond.csv"
    if not path.is_file() or not (path.parent / "README.md").is_file():
        crash("datasets.exceptions.DatasetNotFoundError: Dataset 'Idavidrein/gpqa' is gated")
    with path.open(newline="") as file:
        if sum(1 for _ in csv.DictReader(file)) != _TASKS[name].questions:
            crash("ValueError: not the questions of GPQA diamond")


def _percent(answers: Sequence[bool]) -> float:
    return 100 * sum(answers) / len(answers)


def _stderr(answers: Sequence[bool]) -> float:
    """In percent, of a mean of zeros and ones."""
    mean = sum(answers) / len(answers)
    return 100 * math.sqrt(mean * (1 - mean) / max(1, len(answers) - 1))


def _table(task: _Task, right: Right) -> str:
    wide, width = len(task.lm_eval), max(len("Filter"), *map(len, right))
    named = f"|{'Tasks':<{wide}}|Version|{'Filter':<{width}}|n-shot|  Metric   "
    ruled = f"|{'-' * wide}|------:|{'-' * width}|-----:|-----------"
    lines = [f"{named}|   | Value |   |Stderr|", f"{ruled}|---|------:|---|-----:|"]
    for number, (one, answers) in enumerate(right.items()):
        first = f"|{task.lm_eval}|      1" if not number else f"|{'':<{wide}}|       "
        lines.append(
            f"{first}|{one:<{width}}|{task.fewshot:>6}|exact_match"
            f"|↑  |{_percent(answers):.4f}|±  |{_stderr(answers):.4f}|"
        )
    return "\n".join(lines)


def _results(task: _Task, right: Right, *, samples: bool) -> dict[str, Any]:
    """What lm_eval's evaluation gives, its scores multiplied by 100."""
    scores: dict[str, Any] = {"alias": task.lm_eval}
    for one, answers in right.items():
        scores[f"exact_match,{one}"] = _percent(answers)
        scores[f"exact_match_stderr,{one}"] = _stderr(answers)
    done = len(next(iter(right.values())))
    found: dict[str, Any] = {
        SYNTHETIC: True,
        "results": {task.lm_eval: scores},
        "n-shot": {task.lm_eval: task.fewshot},
        "n-samples": {task.lm_eval: {"original": task.questions, "effective": done}},
    }
    if samples:
        found["samples"] = {
            task.lm_eval: [
                _sample(task, one, number, good=good)
                for one, answers in right.items()
                for number, good in enumerate(answers)
            ]
        }
    return found


def _sample(task: _Task, filter_name: str, number: int, *, good: bool) -> dict[str, Any]:
    said = "A" if good else "B"
    return {
        "doc_id": number,
        "target": "A",
        "resps": [[f"Answer: {said}"]],
        "filtered_resps": [said],
        "filter": filter_name,
        "metrics": ["exact_match"],
        "doc_hash": hashlib.sha256(f"{task.lm_eval}/{number}".encode()).hexdigest(),
        "target_hash": hashlib.sha256(b"A").hexdigest(),
        "exact_match": 1.0 if good else 0.0,
    }


if __name__ == "__main__":
    main()
