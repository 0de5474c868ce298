"""A stand-in for lm_eval: asks the server once, writes results and samples; synthetic scores."""

import hashlib
import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from perfgate.core.metrics import accuracy_name
from perfgate.rehearsal.argparse_options import given_of
from perfgate.rehearsal.fault_injection import inject_client_fault
from perfgate.rehearsal.http_requests import complete
from perfgate.rehearsal.playbook import SYNTHETIC, Playbook, announce, end, here

VERSION = "0.4.9.1"
_PROGRAM = "lm_eval"
_OPTIONS = (
    "--model --tasks --model_args --num_fewshot --batch_size --max_batch_size --device "
    "--output_path --limit --samples --use_cache --cache_requests --include_path --gen_kwargs "
    "--verbosity --wandb_args --hf_hub_log_args --seed --metadata --system_instruction"
)
_FLAGS = (
    "--check_integrity --write_out --log_samples --show_config --predict_only --trust_remote_code "
    "--apply_chat_template --fewshot_as_multiturn --confirm_run_unsafe_code"
)
_FILTERS = ("strict-match", "flexible-extract")
_TASK_VERSIONS = {"gsm8k": 3.0}


def main(argv: Sequence[str] | None = None) -> None:
    """Read the command line, ask the server, write results and samples."""
    words = list(sys.argv[1:] if argv is None else argv)
    playbook = here()
    announce(_PROGRAM)
    if words[:1] == ["run"]:
        words = words[1:]
    given = given_of(_PROGRAM, _OPTIONS, _FLAGS, words)
    task = given.text("--tasks")
    questions = playbook.scenario_part.questions.get(task)
    if questions is None:
        end(f"no questions are known of task {task!r}")
    model = _fields(given.text("--model_args"))
    _ask(model)
    fault = inject_client_fault(playbook)
    if fault == "no_metrics":
        return
    limit = min(given.integer("--limit", questions), questions)
    asked = _fields(given.text("--gen_kwargs"))
    done = limit - max(1, limit // 20) if fault == "partial" else limit
    folder = Path(given.text("--output_path"), str(model["model"]).replace("/", "__"))
    folder.mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y-%m-%dT%H-%M-%S.000000")
    right = _right(playbook, task, questions, done, zero=fault == "zero_metrics")
    report = {
        SYNTHETIC: True,
        **_report(task, right, done, questions),
        "n-shot": {task: given.integer("--num_fewshot", 0)},
        "config": {
            "model": given.text("--model"),
            "model_args": model,
            "batch_size": given.text("--batch_size"),
            "limit": given.number("--limit", 0) if given.has("--limit") else None,
            "gen_kwargs": asked,
        },
        "lm_eval_version": VERSION,
        "model_name": model["model"],
    }
    content = json.dumps(report, indent=2)
    cut = len(content) // 2 if fault == "truncated" else len(content)
    (folder / f"results_{stamp}.json").write_text(content[:cut])
    if given.has("--log_samples"):
        with (folder / f"samples_{task}_{stamp}.jsonl").open("w") as file:
            file.writelines(_samples(task, right))
    print(_table(task, right, given.integer("--num_fewshot", 0)))


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


def _right(
    playbook: Playbook, task: str, questions: int, done: int, *, zero: bool
) -> dict[str, list[bool]]:
    """Filter → which questions were answered right."""
    found = {}
    for one in _FILTERS:
        name = accuracy_name(task, "exact_match", one)
        answers = playbook.answers(task, name, questions)[:done]
        found[one] = [False] * done if zero else answers
    return found


def _report(task: str, right: dict[str, list[bool]], done: int, questions: int) -> dict[str, Any]:
    scores: dict[str, Any] = {"alias": task}
    for one, answers in right.items():
        mean, error = _score(answers)
        scores[f"exact_match,{one}"] = mean
        scores[f"exact_match_stderr,{one}"] = error
    return {
        "results": {task: scores},
        "versions": {task: _TASK_VERSIONS.get(task, 1.0)},
        "n-samples": {task: {"original": questions, "effective": done}},
    }


def _score(answers: list[bool]) -> tuple[float, float]:
    """Share of right answers and its standard error, as lm_eval's bootstrap-free mean gives it."""
    mean = sum(answers) / len(answers)
    return mean, math.sqrt(mean * (1 - mean) / max(1, len(answers) - 1))


def _samples(task: str, right: dict[str, list[bool]]) -> list[str]:
    lines = []
    for one, answers in right.items():
        for number, good in enumerate(answers):
            said = str(number if good else number + 1)
            sample = {
                "doc_id": number,
                "doc": {"question": f"Made-up question {number} of {task}", "answer": str(number)},
                "target": str(number),
                "resps": [[f" #### {said}"]],
                "filtered_resps": [said],
                "filter": one,
                "metrics": ["exact_match"],
                "doc_hash": hashlib.sha256(f"{task}/{number}".encode()).hexdigest(),
                "prompt_hash": hashlib.sha256(f"{task}:{number}".encode()).hexdigest(),
                "target_hash": hashlib.sha256(str(number).encode()).hexdigest(),
                "exact_match": 1.0 if good else 0.0,
                SYNTHETIC: True,
            }
            lines.append(json.dumps(sample) + "\n")
    return lines


def _table(task: str, right: dict[str, list[bool]], fewshot: int) -> str:
    lines = [
        "|Tasks|Version|     Filter     |n-shot|  Metric   |   |Value |   |Stderr|",
        "|-----|------:|----------------|-----:|-----------|---|-----:|---|-----:|",
    ]
    version = f"{_TASK_VERSIONS.get(task, 1.0):g}"
    for one in sorted(right):
        mean, error = _score(right[one])
        first = one == min(right)
        lines.append(
            f"|{task if first else ' ' * len(task)}|{version if first else ' ':>7}|{one:<16}"
            f"|{fewshot:>6}|exact_match|↑  |{mean:.4f}|±  |{error:.4f}|"
        )
    return "\n".join(lines)


def _fields(text: str) -> dict[str, Any]:
    """``key=value,…`` as lm_eval reads it: numbers, True, False and None become what they say."""
    found: dict[str, Any] = {}
    for pair in filter(None, text.split(",")):
        name, _, value = pair.partition("=")
        found[name] = _value(value)
    return found


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


if __name__ == "__main__":
    main()
