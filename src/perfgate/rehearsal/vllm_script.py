"""A mock for vLLM's load client before it became a command: benchmarks/benchmark_serving.py."""

from collections.abc import Sequence

from perfgate.rehearsal import vllm_bench
from perfgate.rehearsal.playbook import announce, here

_PROGRAM = "benchmark_serving.py"


def main(argv: Sequence[str]) -> None:
    """Read the command line, ask the server, report."""
    playbook = here("vllm", as_client=True)
    announce(_PROGRAM)
    vllm_bench.play(playbook, _PROGRAM, argv)
