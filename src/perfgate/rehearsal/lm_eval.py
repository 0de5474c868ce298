"""A mock for lm_eval: asks the server once, writes results and samples; synthetic scores."""

import ast
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from perfgate.rehearsal.argparse_options import given as given_options
from perfgate.rehearsal.fault_injection import completed, halved, inject_client_fault
from perfgate.rehearsal.http_requests import complete
from perfgate.rehearsal.lm_eval_report import Report, answered_right
from perfgate.rehearsal.options import Syntax
from perfgate.rehearsal.playbook import announce, end, here
from perfgate.rehearsal.recorded_pages import read

VERSION = "0.4.9.1"
_PROGRAM = "lm_eval"
_PAGE = f"lm_eval_{VERSION}"
_FILTERS = ("strict-match", "flexible-extract")
_TASK_VERSIONS = {"gsm8k": 3.0}


def main(argv: Sequence[str]) -> None:
    """Read the command line, ask the server, write results and samples."""
    words = list(argv)
    playbook = here()
    announce(_PROGRAM)
    if words[:1] == ["run"]:
        words = words[1:]
    given = given_options(Syntax(_PROGRAM, read(_PAGE).options(_PROGRAM)), words)
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
        "lm_eval_version": VERSION,
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
