"""A mock program for `vllm`: its server, or its load client."""

from collections.abc import Sequence
from importlib import import_module

from perfgate.rehearsal import vllm_bench
from perfgate.rehearsal.playbook import announce, end, here


def main(argv: Sequence[str]) -> None:
    """``vllm serve …``, ``vllm bench serve …`` or ``vllm --version``."""
    words = list(argv)
    if words[:1] == ["serve"]:
        import_module("perfgate.rehearsal.vllm_serve").main(words[1:])
        return
    playbook = here("vllm", as_client=True)
    announce("vllm")
    if words in (["--version"], ["-v"]):
        print(playbook.version)
        return
    if words[:2] != ["bench", "serve"]:
        end(f"vllm {' '.join(words[:2])} has no mock program")
    vllm_bench.play(playbook, "vllm bench serve", words[2:])
