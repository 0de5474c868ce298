"""Mock programs that measure accuracy: lm_eval, trtllm-eval and the example gpqa_llmapi.py.

lm_eval asks a server once, the others load the model. All scores are synthetic.
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
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from perfgate.core.metrics import accuracy_name
from perfgate.rehearsal.options import read, read_as_argparse, started
from perfgate.rehearsal.playbook import SYNTHETIC, Playbook, announce, crash, end, here
from perfgate.rehearsal.programs import llm_api
from perfgate.rehearsal.programs.http_json import complete
from perfgate.rehearsal.programs.report_format import facts, option_values, result
from perfgate.rehearsal.recorded_pages import LM_EVAL
from perfgate.rehearsal.recorded_pages import read as read_page


class _Task(NamedTuple):
    """What an evaluation knows of a task.

    Attributes:
        lm_eval: its name in lm_eval.
        filters: of lm_eval; none: trtllm-eval has a measure of its own.
        fewshot: examples shown.
        questions: how many it has.
        version: of the task.
        whole: the best score: 1, or 100 in percent.
    """

    lm_eval: str
    filters: Sequence[str]
    fewshot: int
    questions: int
    version: float = 1.0
    whole: float = 100.0


_GPQA = "gpqa_diamond"
_TASKS = {name: _Task(**known) for name, known in facts(__file__, "trtllm-eval").items()}
_TASK_VERSIONS = {"gsm8k": 3.0}  # of lm_eval itself


def lm_eval(argv: Sequence[str]) -> None:
    """lm_eval: ask the server, write results and samples."""
    playbook = here()
    announce("lm_eval")
    words = argv[1:] if argv[:1] == ["run"] else argv
    options = read_page(f"lm_eval_{LM_EVAL}").programs["lm_eval"]
    given = read_as_argparse("lm_eval", options, words)
    name = given.get("--tasks", "")
    questions = playbook.scenario_part.questions.get(name)
    if questions is None:
        end(f"no questions are known of task {name!r}")
    model = _fields(given.get("--model_args", ""))
    if refused := complete(str(model["base_url"]), str(model["model"])):
        print(f"API request failed with error message: {refused}", file=sys.stderr)
        raise SystemExit(1)
    print("Requesting API: 100%|##########|", file=sys.stderr)
    if playbook.inject_client_fault() == "no_metrics":
        return
    done = playbook.completed(min(given.get("--limit", questions), questions))
    filters, fewshot = ("strict-match", "flexible-extract"), given.get("--num_fewshot", 0)
    task = _Task(name, filters, fewshot, questions, _TASK_VERSIONS.get(name, 1.0), 1.0)
    report = _Report(task, _right(playbook, name, task, questions, done))
    values = {**option_values(__file__, "lm_eval", given), **report.results(), "model_args": model}
    values |= {"gen_kwargs": _fields(given.get("--gen_kwargs", "")), "version": LM_EVAL}
    values |= {"model_name": model["model"]}
    if not given.has("--limit"):
        values["limit"] = None
    results = result(__file__, "lm_eval", (0,), values)
    folder = Path(given.get("--output_path", ""), str(model["model"]).replace("/", "__"))
    stamp = time.strftime("%Y-%m-%dT%H-%M-%S.000000")
    _save(playbook, folder / f"results_{stamp}.json", results)
    if given.has("--log_samples"):
        with (folder / f"samples_{name}_{stamp}.jsonl").open("w") as file:
            file.writelines(json.dumps(sample) + "\n" for sample in report.samples())
    print(report.table())


def _fields(text: str) -> dict[str, Any]:
    """``key=value,…`` as lm_eval reads it: numbers, True, False and None become what they say."""
    found: dict[str, Any] = dict(pair.split("=", 1) for pair in text.split(",") if pair)
    for name, value in found.items():
        with suppress(ValueError, SyntaxError):
            found[name] = ast.literal_eval(value)
    return found


def trtllm_eval(argv: Sequence[str]) -> None:
    """trtllm-eval: load the model, and run the task."""
    playbook, outer = started("trtllm-eval", argv, engine=True)
    llm_api.read_options(playbook, outer)
    world_size = outer.get("--tp_size", 1) * outer.get("--pp_size", 1)
    fraction = outer.get("--kv_cache_free_gpu_memory_fraction", 0.9)
    llm_api.engine_starts(outer.get("--model", ""), world_size, fraction)
    playbook.inject_engine_fault()
    name = outer.command
    given = read(playbook, f"trtllm-eval {name}", outer.rest)
    if name not in _TASKS:
        end(f"trtllm-eval {name} has no mock program")
    task = _TASKS[name]
    if name == _GPQA:
        folder = Path(given.get("--dataset_path", ""))
        if not all((folder / name).is_file() for name in ("gpqa_diamond.csv", "README.md")):
            crash("datasets.exceptions.DatasetNotFoundError: Dataset 'Idavidrein/gpqa' is gated")
    asked = min(given.get("--num_samples", task.questions), task.questions)
    fault = playbook.inject_client_fault()
    done = playbook.completed(asked)
    _show_progress("Fetching responses", done, asked)
    llm_api.info("TRTLLM execution time: 100.000 seconds.")
    if fault == "no_metrics":
        return
    if not task.filters:
        if fault != "truncated":  # the report is one line
            score = task.whole * _mean(playbook, name, asked, done)
            llm_api.info(f"MMLU weighted average accuracy: {score:.2f} ({done})")
        return
    report = _Report(task, _right(playbook, name, task, asked, done))
    head = f"lm-eval {task.lm_eval} results (scores normalized to range 0~100):"
    llm_api.info(playbook.halved(f"{head}\n{report.table()}\n"))
    if given.has("--output_path"):
        results = report.results()
        if given.has("--log_samples"):
            results["samples"] = {task.lm_eval: list(report.samples())}
        path = Path(given.get("--output_path", ""), f"samples_{task.lm_eval}.json")
        _save(playbook, path, results)
    if fault != "truncated":
        scores = [score for _, score, _ in report.scores()]
        llm_api.info(f"lm-eval {task.lm_eval} average accuracy: {sum(scores) / len(scores):.2f}")


def gpqa_llmapi(argv: Sequence[str]) -> None:
    """gpqa_llmapi.py: answer the questions of the file."""
    playbook, given = started("gpqa_llmapi.py", argv, engine=True)
    path = Path(given.get("--data_dir", ""))
    if path.suffix != ".csv" or not path.is_file():
        crash("AssertionError: The provided file is not a CSV file.")
    with path.open(newline="") as file:
        questions = sum(1 for _ in csv.DictReader(file))
    llm_api.engine_starts(given.get("--hf_model_dir", ""), given.get("--tp_size", 8), 0.95)
    playbook.inject_engine_fault()
    fault = playbook.inject_client_fault()
    done = playbook.completed(questions)
    _show_progress("Processing requests", done, questions, " [01:40<00:00,  1.98it/s]")
    if fault in ("no_metrics", "truncated"):  # the report is one line
        return
    print("Finished in 100.000 seconds")
    print(f"Average accuracy: {_mean(playbook, _GPQA, questions, done):.3f}")


def _show_progress(what: str, done: int, asked: int, rate: str = "") -> None:
    print(f"{what}: {100 * done // asked}%|##########| {done}/{asked}{rate}", file=sys.stderr)


def _save(playbook: Playbook, path: Path, results: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(playbook.halved(json.dumps(results, indent=2)))


def _mean(playbook: Playbook, task: str, asked: int, done: int) -> float:
    """Share of right answers, by a measure that no filter of lm_eval makes."""
    right = playbook.answers(task, accuracy_name(task, "accuracy", "none"), asked)[:done]
    return sum(right) / len(right)


def _right(
    playbook: Playbook, name: str, task: _Task, asked: int, done: int
) -> dict[str, list[bool]]:
    """Filter → which of the first `done` of the questions asked were answered right."""
    names = {one: accuracy_name(name, "exact_match", one) for one in task.filters}
    return {one: playbook.answers(name, metric, asked)[:done] for one, metric in names.items()}


@dataclass(frozen=True)
class _Report:
    """What an evaluation found, as lm_eval tells it.

    Attributes:
        task: what was asked.
        right: filter → which questions were answered right; not empty.
    """

    task: _Task
    right: dict[str, list[bool]]

    def scores(self) -> Iterator[tuple[str, float, float]]:
        """(filter, score, its standard error), as lm_eval gives them without a bootstrap."""
        for one, answers in self.right.items():
            mean = sum(answers) / len(answers)
            error = math.sqrt(mean * (1 - mean) / max(1, len(answers) - 1))
            yield one, self.task.whole * mean, self.task.whole * error

    def results(self) -> dict[str, Any]:
        """What lm_eval's evaluation gives."""
        name = self.task.lm_eval
        results: dict[str, Any] = {"alias": name}
        for one, score, error in self.scores():
            results |= {f"exact_match,{one}": score, f"exact_match_stderr,{one}": error}
        done = len(next(iter(self.right.values())))
        return {
            SYNTHETIC: True,
            "results": {name: results},
            "versions": {name: self.task.version},
            "n-shot": {name: self.task.fewshot},
            "n-samples": {name: {"original": self.task.questions, "effective": done}},
        }

    def samples(self) -> Iterator[dict[str, Any]]:
        """What is logged of each answer."""
        for one, answers in self.right.items():
            for number, good in enumerate(answers):
                yield {
                    SYNTHETIC: True,
                    "doc_id": number,
                    "filtered_resps": ["A" if good else "B"],
                    "filter": one,
                    "doc_hash": _hash(f"{self.task.lm_eval}/{number}"),
                    "target_hash": _hash("A"),
                    "exact_match": float(good),
                }

    def table(self) -> str:
        """The scores as they are printed."""
        name = self.task.lm_eval
        wide, width = len(name), max(len("Filter"), *map(len, self.right))
        lines = [
            f"|{'Tasks':<{wide}}|Version|{'Filter':<{width}}|n-shot|  Metric   "
            "|   |Value |   |Stderr|",
            f"|{'-' * wide}|------:|{'-' * width}|-----:|-----------|---|-----:|---|-----:|",
        ]
        first = f"|{name}|{self.task.version:>7g}"
        for one, score, error in self.scores():
            row = f"|{one:<{width}}|{self.task.fewshot:>6}|exact_match"
            lines.append(f"{first}{row}|↑  |{score:.4f}|±  |{error:.4f}|")
            first = f"|{'':<{wide}}|{'':7}"
        return "\n".join(lines)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
