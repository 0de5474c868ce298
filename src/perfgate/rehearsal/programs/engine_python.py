"""Mocks for an engine's Python, which runs scripts, `-m`, `-c`, and for the command `vllm`.

The interpreter tells the played release as the package's version, and has a `tensorrt_llm` that is
in ``packages/``; everything else of it is real.
"""

import importlib.metadata
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from perfgate.rehearsal.playbook import announce, end, here
from perfgate.rehearsal.programs import play
from perfgate.rehearsal.recorded_pages import LM_EVAL

_PACKAGES = Path(__file__).parents[1] / "packages"
# Module that is a program → the mock program that plays it.
_PROGRAMS = {
    "tensorrt_llm.serve.scripts.benchmark_serving": "load_client:benchmark_serving",
    "sglang.launch_server": "servers:sglang",
    "sglang.bench_serving": "load_client:sglang",
}


def vllm(argv: Sequence[str]) -> None:
    """``vllm serve …``, ``vllm bench serve …`` or ``vllm --version``."""
    match [*argv]:
        case ["serve", *words]:
            play("servers:vllm", words)
        case ["bench", "serve", *words]:
            play("load_client:vllm", ["vllm bench serve", *words])
        case ["--version" | "-v"]:
            announce("vllm")
            print(here("vllm", as_client=True).version)
        case _:
            announce("vllm")
            end(f"vllm {' '.join(argv[:2])} has no mock program")


def python(argv: Sequence[str]) -> None:
    """``python SCRIPT …``, ``python -m MODULE …`` or ``python -c CODE …``."""
    words = [*argv]
    if words[:1] == ["-m"] and words[1:2] and words[1] in _PROGRAMS:
        play(_PROGRAMS[words[1]], words[2:])
        return
    _imitate_packages()
    match words:
        case ["-c", code, *_]:
            sys.argv = ["-c", *words[2:]]
            exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102
        case ["-m", module, *_]:
            sys.argv = words[1:]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case [script, *_] if not script.startswith("-"):
            sys.argv = words
            runpy.run_path(script, run_name="__main__")
        case _:
            end("a script, -m or -c is needed")


def _imitate_packages() -> None:
    """Let the metadata of the engines tell the imitated releases, and `import tensorrt_llm` it."""
    versions = {engine: here(engine).version for engine in here().engines} | {"lm-eval": LM_EVAL}
    real = importlib.metadata.version

    def version(distribution_name: str) -> str:
        found = versions.get(distribution_name.lower().replace("_", "-"))
        return found or real(distribution_name)

    importlib.metadata.version = version
    if "tensorrt-llm" in versions:
        sys.path.insert(0, str(_PACKAGES))
