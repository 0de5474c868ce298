"""A mock program for TensorRT-LLM's quickstart_advanced.py: its answers are synthetic."""

import sys
from collections.abc import Sequence

from perfgate.rehearsal import healthy_log as healthy
from perfgate.rehearsal.fault_injection import inject_client_fault, inject_engine_fault
from perfgate.rehearsal.options import started

_PROGRAM = "quickstart_advanced.py"
_PROMPTS = (
    "Hello, my name is",
    "The president of the United States is",
    "The capital of France is",
    "The future of AI is",
)
_ANSWER = " made up by a mock of perfgate's rehearsal, and not by a model: nothing was computed"
# Lines are numbered in 0.20 and newer; the document, of 0.19, shows them without.
_NUMBERED_FROM = (0, 20)


def main(argv: Sequence[str]) -> None:
    """Answer the prompts."""
    playbook, given = started(_PROGRAM, argv, engine=True)
    healthy.engine_starts(given.text("--model_dir"), given.integer("--tp_size", 1), 0.9)
    inject_engine_fault(playbook)
    fault = inject_client_fault(playbook)
    prompts = given.all("--prompt") or _PROMPTS
    count = len(prompts)
    print(f"Processed requests: 100%|##########| {count}/{count}", file=sys.stderr)
    if fault == "no_metrics":
        return
    lines = []
    for prompt in prompts:
        answer = "" if fault == "zero_metrics" else playbook.reply(prompt, _ANSWER)
        lines.append(f"Prompt: {prompt!r}, Generated text: {answer!r}")
    if playbook.numbers >= _NUMBERED_FROM:
        lines = [f"[{number}] {line}" for number, line in enumerate(lines)]
    if fault == "partial":
        lines = lines[:-1]
    if fault == "truncated":
        lines[-1] = lines[-1][:-20]
    print("\n".join(lines))
