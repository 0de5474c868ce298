"""Mock programs for lm_eval, which asks a server once, and trtllm-eval; their scores are synthetic.

trtllm-eval's options and file of samples are those of `evaluate/lm_eval.py` of 1.3.0rc3: it knows
GPQA diamond, GSM8K and MMLU, and its scores are percent.
"""

import ast
import csv
import hashlib
import json
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from perfgate.core.metrics import accuracy_name
from perfgate.rehearsal.options import (
    GivenOptions,
    Syntax,
    read,
    read_as_argparse,
    started,
)
from perfgate.rehearsal.playbook import (
    SYNTHETIC,
    Playbook,
    announce,
    completed,
    crash,
    end,
    halved,
    here,
)
from perfgate.rehearsal.programs import healthy_log as healthy
from perfgate.rehearsal.programs.http_json import complete
from perfgate.rehearsal.programs.llm_api import read_options
from perfgate.rehearsal.recorded_pages import LM_EVAL
from perfgate.rehearsal.recorded_pages import read as read_page

_FILTERS = ("strict-match", "flexible-extract")
_TASK_VERSIONS = {"gsm8k": 3.0}


class _Task(NamedTuple):
    """What trtllm-eval knows of a task.

    Attributes:
        lm_eval: its name in lm_eval.
        filters: of lm_eval; none: the program has a measure of its own.
        fewshot: examples shown.
        questions: how many it has.
    """

    lm_eval: str
    filters: tuple[str, ...]
    fewshot: int
    questions: int


_TASKS = {
    "gpqa_diamond": _Task("gpqa_diamond_cot_zeroshot_aa", ("strict-match",), 0, 198),
    "gsm8k": _Task("gsm8k", ("flexible-extract", "strict-match"), 5, 1319),
    "mmlu": _Task("mmlu", (), 5, 14_042),
}


def lm_eval(argv: Sequence[str]) -> None:
    """lm_eval: ask the server, write results and samples."""
    words = list(argv)
    playbook = here()
    announce("lm_eval")
    page = read_page(f"lm_eval_{LM_EVAL}")
    if words[:1] == ["run"]:
        words = words[1:]
    given = read_as_argparse(Syntax("lm_eval", page.options("lm_eval")), words)
    task = given.text("--tasks")
    questions = playbook.scenario_part.questions.get(task)
    if questions is None:
        end(f"no questions are known of task {task!r}")
    model = _fields(given.text("--model_args"))
    _ask(model)
    fault = playbook.inject_client_fault()
    if fault == "no_metrics":
        return
    limit = min(given.integer("--limit", questions), questions)
    done = completed(limit, fault)
    folder = Path(given.text("--output_path"), str(model["model"]).replace("/", "__"))
    folder.mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y-%m-%dT%H-%M-%S.000000")
    right = answered_right(playbook, task, _FILTERS, questions, done)
    fewshot = given.integer("--num_fewshot", 0)
    report = Report(task, _TASK_VERSIONS.get(task, 1.0), fewshot, questions, right)
    results = {
        **report.results(),
        "config": {
            "model": given.text("--model"),
            "model_args": model,
            "batch_size": given.text("--batch_size"),
            "limit": given.number("--limit", 0) if given.has("--limit") else None,
            "gen_kwargs": _fields(given.text("--gen_kwargs")),
        },
        "lm_eval_version": LM_EVAL,
        "model_name": model["model"],
    }
    content = halved(json.dumps(results, indent=2), fault)
    (folder / f"results_{stamp}.json").write_text(content)
    if given.has("--log_samples"):
        with (folder / f"samples_{task}_{stamp}.jsonl").open("w") as file:
            file.writelines(json.dumps(sample) + "\n" for sample in report.samples())
    print(report.table())


def _ask(model: dict[str, Any]) -> None:
    url = urlsplit(str(model["base_url"]))
    try:
        refused = complete(f"{url.scheme}://{url.netloc}", url.path, str(model["model"]))
    except OSError as error:
        refused = f"ConnectionRefusedError: {error}"
    if refused is not None:
        print(f"API request failed with error message: {refused}", file=sys.stderr)
        raise SystemExit(1)
    print("Requesting API: 100%|##########|", file=sys.stderr)


def _fields(text: str) -> dict[str, Any]:
    """``key=value,…`` as lm_eval reads it: numbers, True, False and None become what they say."""
    pairs = (pair.partition("=") for pair in text.split(",") if pair)
    return {name: _value(value) for name, _, value in pairs}


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def trtllm_eval(argv: Sequence[str]) -> None:
    """trtllm-eval: load the model, and run the task."""
    playbook, outer = started("trtllm-eval", argv, engine=True)
    read_options(playbook, outer)
    world_size = outer.integer("--tp_size", 1) * outer.integer("--pp_size", 1)
    fraction = outer.number("--kv_cache_free_gpu_memory_fraction", 0.9)
    healthy.engine_starts(outer.text("--model"), world_size, fraction)
    playbook.inject_engine_fault()
    name = outer.command
    given = read(playbook, f"trtllm-eval {name}", outer.rest)
    if name not in _TASKS:
        end(f"trtllm-eval {name} has no mock program")
    if name == "gpqa_diamond":
        _require_gpqa(Path(given.text("--dataset_path")) / "gpqa_diamond.csv")
    task = _TASKS[name]
    asked = min(given.integer("--num_samples", task.questions), task.questions)
    fault = playbook.inject_client_fault()
    done = completed(asked, fault)
    print(f"Fetching responses: {100 * done // asked}%|##########| {done}/{asked}", file=sys.stderr)
    healthy.info("TRTLLM execution time: 100.000 seconds.")
    if fault == "no_metrics":
        return
    if task.filters:
        right = answered_right(playbook, name, task.filters, asked, done)
        report = Report(task.lm_eval, 1.0, task.fewshot, task.questions, right, whole=100.0)
        _report(given, report, fault)
    elif fault != "truncated":  # the report is one line
        answers = playbook.answers(name, accuracy_name(name, "accuracy", "none"), asked)[:done]
        score = 100 * sum(answers) / len(answers)
        healthy.info(f"MMLU weighted average accuracy: {score:.2f} ({done})")


def _report(given: GivenOptions, report: "Report", fault: str | None) -> None:
    head = f"lm-eval {report.task} results (scores normalized to range 0~100):"
    healthy.info(halved(f"{head}\n{report.table()}\n", fault))
    if given.has("--output_path"):
        folder = Path(given.text("--output_path"))
        folder.mkdir(parents=True, exist_ok=True)
        results = report.results()
        if given.has("--log_samples"):
            results["samples"] = {report.task: list(report.samples())}
        content = halved(json.dumps(results, indent=2), fault)
        (folder / f"samples_{report.task}.json").write_text(content)
    if fault != "truncated":
        scores = [score for _, score, _ in report.scores()]
        mean = sum(scores) / len(scores)
        healthy.info(f"lm-eval {report.task} average accuracy: {mean:.2f}")


def _require_gpqa(path: Path) -> None:
    """The data set needs an account of the hub, so that a rehearsal has it in a folder."""
    if not path.is_file() or not (path.parent / "README.md").is_file():
        crash("datasets.exceptions.DatasetNotFoundError: Dataset 'Idavidrein/gpqa' is gated")
    with path.open(newline="") as file:
        if sum(1 for _ in csv.DictReader(file)) != _TASKS["gpqa_diamond"].questions:
            crash("ValueError: not the questions of GPQA diamond")


@dataclass(frozen=True)
class Report:
    """What an evaluation found.

    Attributes:
        task: its name in lm_eval.
        version: of the task.
        fewshot: examples shown.
        questions: how many the task has.
        right: filter → which questions were answered right; not empty.
        whole: the best score: 1, or 100 in percent.
    """

    task: str
    version: float
    fewshot: int
    questions: int
    right: Mapping[str, Sequence[bool]]
    whole: float = 1.0

    def scores(self) -> Iterator[tuple[str, float, float]]:
        """(filter, score, its standard error), as lm_eval gives them without a bootstrap."""
        for one, answers in self.right.items():
            mean = sum(answers) / len(answers)
            error = math.sqrt(mean * (1 - mean) / max(1, len(answers) - 1))
            yield one, self.whole * mean, self.whole * error

    def results(self) -> dict[str, Any]:
        """What lm_eval's evaluation gives."""
        results: dict[str, Any] = {"alias": self.task}
        for one, score, error in self.scores():
            results |= {f"exact_match,{one}": score, f"exact_match_stderr,{one}": error}
        done = len(next(iter(self.right.values())))
        return {
            SYNTHETIC: True,
            "results": {self.task: results},
            "versions": {self.task: self.version},
            "n-shot": {self.task: self.fewshot},
            "n-samples": {self.task: {"original": self.questions, "effective": done}},
        }

    def samples(self) -> Iterator[dict[str, Any]]:
        """What is logged of each answer."""
        for one, answers in self.right.items():
            for number, good in enumerate(answers):
                said = "A" if good else "B"
                yield {
                    SYNTHETIC: True,
                    "doc_id": number,
                    "target": "A",
                    "resps": [[f"Answer: {said}"]],
                    "filtered_resps": [said],
                    "filter": one,
                    "metrics": ["exact_match"],
                    "doc_hash": hashlib.sha256(f"{self.task}/{number}".encode()).hexdigest(),
                    "target_hash": hashlib.sha256(b"A").hexdigest(),
                    "exact_match": 1.0 if good else 0.0,
                }

    def table(self) -> str:
        """The scores as they are printed."""
        wide, width = len(self.task), max(len("Filter"), *map(len, self.right))
        lines = [
            f"|{'Tasks':<{wide}}|Version|{'Filter':<{width}}|n-shot|  Metric   "
            "|   |Value |   |Stderr|",
            f"|{'-' * wide}|------:|{'-' * width}|-----:|-----------|---|-----:|---|-----:|",
        ]
        first = f"|{self.task}|{self.version:>7g}"
        for one, score, error in self.scores():
            lines.append(
                f"{first}|{one:<{width}}|{self.fewshot:>6}|exact_match"
                f"|↑  |{score:.4f}|±  |{error:.4f}|"
            )
            first = f"|{'':<{wide}}|{'':7}"
        return "\n".join(lines)


def answered_right(
    playbook: Playbook, task: str, filters: Sequence[str], asked: int, done: int
) -> dict[str, Sequence[bool]]:
    """Filter → which of the first `done` of the questions asked were answered right."""
    names = {one: accuracy_name(task, "exact_match", one) for one in filters}
    return {one: playbook.answers(task, name, asked)[:done] for one, name in names.items()}
