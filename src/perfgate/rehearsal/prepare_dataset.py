"""A stand-in for TensorRT-LLM's prepare_dataset.py: synthetic prompts, as the real one's are.

Lines as the real one writes them; the tokens have one digit each, so that files stay small.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from perfgate.rehearsal.dataset_file import write_synthetic
from perfgate.rehearsal.options import GivenOptions, released
from perfgate.rehearsal.playbook import Playbook, announce, end, here

_PROGRAM = "prepare_dataset.py"
_KIND = "token-norm-dist"
_KINDS = (_KIND, "token-unif-dist", "dataset")
_REQUIRED = ("--num-requests", "--input-mean", "--output-mean", "--input-stdev", "--output-stdev")


def main(argv: Sequence[str] | None = None) -> None:
    """Run as ``python benchmarks/cpp/prepare_dataset.py``."""
    playbook = here()
    announce(_PROGRAM)
    generate(playbook, sys.argv[1:] if argv is None else argv, _PROGRAM)


def generate(playbook: Playbook, argv: Sequence[str], program: str) -> None:
    """Write the dataset that `argv` asks for.

    Args:
        playbook: of this program.
        argv: options of the program, the kind of dataset, its options.
        program: as the release tables name it.
    """
    outer = released(playbook, program, "click", subcommands=_KINDS).read(argv)
    if outer.words != (_KIND,):
        end(f"{program} {' '.join(outer.words) or 'without a kind'} has no stand-in")
    syntax = released(playbook, f"{program} {_KIND}", "click")
    inner = syntax.read(outer.rest)
    syntax.require(inner, *_REQUIRED)
    if outer.has("--stdout"):
        _write(inner, None)
        return
    _write(inner, Path(outer.text("--output", "preprocessed_dataset.json")))


def _write(given: GivenOptions, path: Path | None) -> None:
    if given.integer("--input-stdev", 0) or given.integer("--output-stdev", 0):
        end("the stand-in makes prompts of one length only")
    requests = given.integer("--num-requests", 0)
    isl, osl = given.integer("--input-mean", 0), given.integer("--output-mean", 0)
    if path is None:
        write_synthetic(sys.stdout.buffer, requests, isl, osl)
        return
    with path.open("wb") as file:
        write_synthetic(file, requests, isl, osl)


if __name__ == "__main__":
    main()
