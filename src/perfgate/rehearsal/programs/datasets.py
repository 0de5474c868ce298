"""Dataset file of trtllm-bench: one JSON object a line; written, and read without parsing it all.

A mock program for TensorRT-LLM's prepare_dataset.py writes it: synthetic prompts, as the real one's
are. The tokens have one digit each, so that files stay small.

Format: `tensorrt_llm/bench/utils/data.py`: ``task_id`` and ``output_tokens`` must be there, and
``input_ids`` or ``prompt``.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from perfgate.rehearsal.options import GivenOptions, read
from perfgate.rehearsal.playbook import Playbook, announce, end, here

_PROGRAM = "prepare_dataset.py"
_KIND = "token-norm-dist"
_SMALL = 8 * 2**20  # bytes up to which every line is parsed
_LINES_AT_ONCE = 512


@dataclass(frozen=True)
class DatasetFacts:
    """What a dataset file holds.

    Attributes:
        requests: how many.
        inputs: lengths in tokens, of those requests that were looked at.
        outputs: likewise.
    """

    requests: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    @property
    def isl(self) -> float:
        return sum(self.inputs) / len(self.inputs)

    @property
    def osl(self) -> float:
        return sum(self.outputs) / len(self.outputs)

    @property
    def whole(self) -> tuple[int, ...]:
        """Input and output together."""
        return tuple(map(sum, zip(self.inputs, self.outputs, strict=True)))


def write_synthetic(stream: BinaryIO, requests: int, isl: int, osl: int) -> None:
    """Requests of `isl` made-up one-digit tokens, which ask for `osl` tokens each."""
    tokens = ",".join(str(1 + number % 9) for number in range(isl))
    rest = f',"input_ids":[{tokens}],"output_tokens":{osl}}}\n'.encode()
    for first in range(0, requests, _LINES_AT_ONCE):
        numbers = range(first, min(requests, first + _LINES_AT_ONCE))
        stream.write(b"".join(b'{"task_id":%d' % number + rest for number in numbers))


def look(path: Path, limit: int) -> DatasetFacts:
    """What trtllm-bench takes from a dataset.

    Args:
        path: the file.
        limit: most requests to take; 0: all.

    Raises:
        ValueError: a line is no JSON object, or the file is empty.
        KeyError: a line lacks what must be there.
    """
    if path.stat().st_size <= _SMALL:
        with path.open("rb") as file:
            lines = [line for line in file if line.strip()]
        taken = lines[: limit or None]
        return DatasetFacts(len(taken), *_lengths(taken))
    requests = _count(path)
    taken = list(_samples(path))
    return DatasetFacts(min(requests, limit) if limit else requests, *_lengths(taken))


def _count(path: Path) -> int:
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(2**22), b""))


def _samples(path: Path) -> Iterator[bytes]:
    """The first line, the last, and some in between."""
    size = path.stat().st_size
    with path.open("rb") as file:
        yield file.readline()
        for share in (0.25, 0.5, 0.75):
            file.seek(int(size * share))
            file.readline()
            yield file.readline()
        length = 2**20
        while True:
            file.seek(max(0, size - length))
            last = file.read().rstrip(b"\n")
            if b"\n" in last or length >= size:
                yield last.rpartition(b"\n")[2]
                return
            length *= 8


def _lengths(lines: list[bytes]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    inputs, outputs = [], []
    for line in lines:
        request = json.loads(line)
        ids = request.get("input_ids", request.get("logits"))
        inputs.append(len(request["prompt"].split()) if ids is None else len(ids))
        _ = request["task_id"]
        outputs.append(int(request["output_tokens"]))
    if not inputs:
        raise ValueError("the dataset is empty")
    return tuple(inputs), tuple(outputs)


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
