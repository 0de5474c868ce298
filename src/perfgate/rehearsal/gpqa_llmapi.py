"""A mock program for TensorRT-LLM's gpqa_llmapi.py: reads the questions; its score is synthetic."""

import csv
import sys
from collections.abc import Sequence
from pathlib import Path

from perfgate.core.metrics import accuracy_name
from perfgate.rehearsal import healthy_log as healthy
from perfgate.rehearsal.fault_injection import completed, inject_client_fault, inject_engine_fault
from perfgate.rehearsal.options import started
from perfgate.rehearsal.playbook import crash

_PROGRAM = "gpqa_llmapi.py"
_TASK = "gpqa_diamond"


def main(argv: Sequence[str]) -> None:
    """Answer the questions of the file."""
    playbook, given = started(_PROGRAM, argv, engine=True)
    path = Path(given.text("--data_dir"))
    if path.suffix != ".csv" or not path.is_file():
        crash("AssertionError: The provided file is not a CSV file.")
    with path.open(newline="") as file:
        questions = sum(1 for _ in csv.DictReader(file))
    healthy.engine_starts(given.text("--hf_model_dir"), given.integer("--tp_size", 8), 0.95)
    inject_engine_fault(playbook)
    fault = inject_client_fault(playbook)
    done = completed(questions, fault)
    share = 100 * done // questions
    print(
        f"Processing requests: {share}%|##########| {done}/{questions} [01:40<00:00,  1.98it/s]",
        file=sys.stderr,
    )
    if fault in ("no_metrics", "truncated"):  # the report is one line
        return
    right = playbook.answers(_TASK, accuracy_name(_TASK, "accuracy", "none"), questions)[:done]
    print("Finished in 100.000 seconds")
    print(f"Average accuracy: {sum(right) / len(right):.3f}")
