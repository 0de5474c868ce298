"""A mock program for trtllm-eval: GPQA diamond, GSM8K and MMLU; its scores are synthetic.

Where its options and the file of samples come from: `options`, and `evaluate/lm_eval.py` of
1.3.0rc3. The scores are percent, as there.
"""

import csv
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from perfgate.core.metrics import accuracy_name
from perfgate.rehearsal import healthy_log as healthy
from perfgate.rehearsal.fault_injection import (
    completed,
    halved,
    inject_client_fault,
    inject_engine_fault,
)
from perfgate.rehearsal.llm_api_yaml import read_options
from perfgate.rehearsal.lm_eval_report import Report, answered_right
from perfgate.rehearsal.options import GivenOptions, read, started
from perfgate.rehearsal.playbook import Playbook, crash, end

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


def main(argv: Sequence[str]) -> None:
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
        end(f"{_PROGRAM} {outer.command} has no mock program")


def _of_lm_eval(playbook: Playbook, given: GivenOptions, name: str) -> None:
    task = _TASKS[name]
    _require_questions(given, name)
    asked = min(given.integer("--num_samples", task.questions), task.questions)
    fault, done = _answered(playbook, asked)
    if fault == "no_metrics":
        return
    right = answered_right(playbook, name, task.filters, asked, done)
    report = Report(task.lm_eval, 1.0, task.fewshot, task.questions, right, whole=100.0)
    head = f"lm-eval {task.lm_eval} results (scores normalized to range 0~100):"
    healthy.info(halved(f"{head}\n{report.table()}\n", fault))
    if given.has("--output_path"):
        folder = Path(given.text("--output_path"))
        folder.mkdir(parents=True, exist_ok=True)
        results = report.results()
        if given.has("--log_samples"):
            results["samples"] = {task.lm_eval: list(report.samples())}
        content = halved(json.dumps(results, indent=2), fault)
        (folder / f"samples_{task.lm_eval}.json").write_text(content)
    if fault != "truncated":
        scores = [score for _, score, _ in report.scores()]
        mean = sum(scores) / len(scores)
        healthy.info(f"lm-eval {task.lm_eval} average accuracy: {mean:.2f}")


def _mmlu(playbook: Playbook, given: GivenOptions) -> None:
    asked = min(given.integer("--num_samples", _MMLU_QUESTIONS), _MMLU_QUESTIONS)
    fault, done = _answered(playbook, asked)
    right = playbook.answers("mmlu", accuracy_name("mmlu", "accuracy", "none"), asked)[:done]
    if fault not in ("no_metrics", "truncated"):  # the report is one line
        score = 100 * sum(right) / len(right)
        healthy.info(f"MMLU weighted average accuracy: {score:.2f} ({done})")


def _answered(playbook: Playbook, asked: int) -> tuple[str | None, int]:
    """The fault that hits the program, and how many questions it answers."""
    fault = inject_client_fault(playbook)
    done = completed(asked, fault)
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
