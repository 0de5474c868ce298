"""A mock program for TensorRT-LLM's prepare_dataset.py: synthetic prompts, as the real one's are.

Lines as the real one writes them; the tokens have one digit each, so that files stay small.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from perfgate.rehearsal.dataset_file import write_synthetic
from perfgate.rehearsal.options import GivenOptions, read
from perfgate.rehearsal.playbook import Playbook, announce, end, here

_PROGRAM = "prepare_dataset.py"
_KIND = "token-norm-dist"


def main(argv: Sequence[str]) -> None:
    """Run as ``python benchmarks/cpp/prepare_dataset.py``."""
    playbook = here()
    announce(_PROGRAM)
    generate(playbook, read(playbook, _PROGRAM, argv), _PROGRAM)


def generate(playbook: Playbook, outer: GivenOptions, program: str) -> None:
    """Write the dataset that the command line asks for.

    Args:
        playbook: of this program.
        outer: options of the program, before the kind of dataset.
        program: as a recorded page names it.
    """
    if outer.command != _KIND:
        end(f"{program} {outer.command} has no mock program")
    inner = read(playbook, f"{program} {_KIND}", outer.rest)
    if inner.integer("--input-stdev", 0) or inner.integer("--output-stdev", 0):
        end("the mock program makes prompts of one length only")
    requests = inner.integer("--num-requests", 0)
    isl, osl = inner.integer("--input-mean", 0), inner.integer("--output-mean", 0)
    if outer.has("--stdout"):
        write_synthetic(sys.stdout.buffer, requests, isl, osl)
        return
    with Path(outer.text("--output", "preprocessed_dataset.json")).open("wb") as file:
        write_synthetic(file, requests, isl, osl)
