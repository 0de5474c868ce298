"""A stand-in for TensorRT-LLM's gpqa_llmapi.py: reads the questions; its score is synthetic."""

import csv
import sys
from collections.abc import Sequence
from pathlib import Path

from perfgate.core.metrics import accuracy_name
from perfgate.rehearsal import healthy_log as healthy
from perfgate.rehearsal.fault_injection import befall_client, befall_engine
from perfgate.rehearsal.options import released
from perfgate.rehearsal.playbook import announce, here

_PROGRAM = "gpqa_llmapi.py"
_TASK = "gpqa_diamond"


def main(argv: Sequence[str] | None = None) -> None:
    """Answer the questions of the file."""
    play = here()
    announce(_PROGRAM)
    healthy.banner(play.version)
    syntax = released(play, _PROGRAM, "argparse", engine=True)
    given = syntax.read(sys.argv[1:] if argv is None else argv)
    syntax.require(given, "--hf_model_dir", "--data_dir")
    path = Path(given.text("--data_dir"))
    if path.suffix != ".csv" or not path.is_file():
        print(
            "Traceback (most recent call last):\n"
            "AssertionError: The provided file is not a CSV file.",
            file=sys.stderr,
        )
        raise SystemExit(1)
    with path.open(newline="") as file:
        questions = sum(1 for _ in csv.DictReader(file))
    healthy.engine_starts(given.text("--hf_model_dir"), given.integer("--tp_size", 8), 0.95)
    befall_engine(play)
    fault = befall_client(play)
    done = questions - max(1, questions // 20) if fault == "partial" else questions
    share = 100 * done // questions
    print(
        f"Processing requests: {share}%|##########| {done}/{questions} [01:40<00:00,  1.98it/s]",
        file=sys.stderr,
    )
    if fault in ("no_metrics", "truncated"):  # the report is one line
        return
    right = play.answers(_TASK, accuracy_name(_TASK, "accuracy", "none"), questions)[:done]
    score = 0.0 if fault == "zero_metrics" else sum(right) / len(right)
    print("Finished in 100.000 seconds")
    print(f"Average accuracy: {score:.3f}")


if __name__ == "__main__":
    main()
