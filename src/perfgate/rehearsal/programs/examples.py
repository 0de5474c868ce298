"""Mock programs for examples of a TensorRT-LLM checkout: their answers and scores are synthetic."""

import csv
import sys
from collections.abc import Sequence
from pathlib import Path

from perfgate.core.metrics import accuracy_name
from perfgate.rehearsal.options import started
from perfgate.rehearsal.playbook import completed, crash
from perfgate.rehearsal.programs import healthy_log as healthy

_PROMPTS = (
    "Hello, my name is",
    "The president of the United States is",
    "The capital of France is",
    "The future of AI is",
)
_ANSWER = " made up by a mock of perfgate's rehearsal, and not by a model: nothing was computed"
# Lines are numbered in 0.20 and newer; the document, of 0.19, shows them without.
_NUMBERED_FROM = (0, 20)


def quickstart_advanced(argv: Sequence[str]) -> None:
    """quickstart_advanced.py: answer the prompts."""
    playbook, given = started("quickstart_advanced.py", argv, engine=True)
    healthy.engine_starts(given.text("--model_dir"), given.integer("--tp_size", 1), 0.9)
    playbook.inject_engine_fault()
    fault = playbook.inject_client_fault()
    prompts = given.all("--prompt") or _PROMPTS
    count = len(prompts)
    print(f"Processed requests: 100%|##########| {count}/{count}", file=sys.stderr)
    if fault == "no_metrics":
        return
    lines = []
    for number, prompt in enumerate(prompts):
        answer = "" if fault == "zero_metrics" else playbook.reply(prompt, _ANSWER)
        mark = f"[{number}] " if playbook.numbers >= _NUMBERED_FROM else ""
        lines.append(f"{mark}Prompt: {prompt!r}, Generated text: {answer!r}")
    if fault == "partial":
        lines = lines[:-1]
    if fault == "truncated":
        lines[-1] = lines[-1][:-20]
    print("\n".join(lines))


def gpqa_llmapi(argv: Sequence[str]) -> None:
    """gpqa_llmapi.py: answer the questions of the file."""
    playbook, given = started("gpqa_llmapi.py", argv, engine=True)
    path = Path(given.text("--data_dir"))
    if path.suffix != ".csv" or not path.is_file():
        crash("AssertionError: The provided file is not a CSV file.")
    with path.open(newline="") as file:
        questions = sum(1 for _ in csv.DictReader(file))
    healthy.engine_starts(given.text("--hf_model_dir"), given.integer("--tp_size", 8), 0.95)
    playbook.inject_engine_fault()
    fault = playbook.inject_client_fault()
    done = completed(questions, fault)
    share = 100 * done // questions
    print(
        f"Processing requests: {share}%|##########| {done}/{questions} [01:40<00:00,  1.98it/s]",
        file=sys.stderr,
    )
    if fault in ("no_metrics", "truncated"):  # the report is one line
        return
    name = accuracy_name("gpqa_diamond", "accuracy", "none")
    right = playbook.answers("gpqa_diamond", name, questions)[:done]
    print("Finished in 100.000 seconds")
    print(f"Average accuracy: {sum(right) / len(right):.3f}")
