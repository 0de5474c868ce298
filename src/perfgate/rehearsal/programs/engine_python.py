"""Mocks for an engine's Python, which runs scripts, `-m`, `-c`, and for the command `vllm`.

The packages are empty. The interpreter tells the played release as the package's version, and the
schema of TensorRT-LLM's LLM-API model from the recorded page; everything else of it is real.
"""

import importlib.metadata
import runpy
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from perfgate.rehearsal.playbook import Playbook, announce, banner, end, engines, here
from perfgate.rehearsal.programs import play
from perfgate.rehearsal.programs.llm_api import MODULE, model_of
from perfgate.rehearsal.recorded_pages import LM_EVAL, YAML, read

# The packages that can be imported; nothing is in them but what `_Package` puts there.
_PACKAGES = ("tensorrt_llm", "tensorrt_llm.llmapi")
# Module that is a program → the mock program that plays it.
_PROGRAMS = {
    "tensorrt_llm.serve.scripts.benchmark_serving": "load_client:benchmark_serving",
    "sglang.launch_server": "servers:sglang",
    "sglang.bench_serving": "load_client:sglang",
}


def vllm(argv: Sequence[str]) -> None:
    """``vllm serve …``, ``vllm bench serve …`` or ``vllm --version``."""
    words = list(argv)
    if words[:1] == ["serve"]:
        play("servers:vllm", words[1:])
        return
    playbook = here("vllm", as_client=True)
    announce("vllm")
    if words in (["--version"], ["-v"]):
        print(playbook.version)
        return
    if words[:2] != ["bench", "serve"]:
        end(f"vllm {' '.join(words[:2])} has no mock program")
    play("load_client:vllm", words[2:])


def python(argv: Sequence[str]) -> None:
    """``python SCRIPT …``, ``python -m MODULE …`` or ``python -c CODE …``."""
    words = list(argv)
    if words[:1] == ["-m"] and len(words) > 1 and words[1] in _PROGRAMS:
        play(_PROGRAMS[words[1]], words[2:])
        return
    _imitate_packages()
    if words[:1] == ["-c"] and len(words) > 1:
        sys.argv = ["-c", *words[2:]]
        exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102
    elif words[:1] == ["-m"] and len(words) > 1:
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif words and not words[0].startswith("-"):
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")
    else:
        end("a script, -m or -c is needed")


def _imitate_packages() -> None:
    """Let the metadata of the engines tell the imitated releases, and `import tensorrt_llm` it."""
    played = {engine: here(engine) for engine in engines()}
    versions = {engine: playbook.version for engine, playbook in played.items()}
    versions["lm-eval"] = LM_EVAL
    real = importlib.metadata.version

    def version(distribution_name: str) -> str:
        found = versions.get(distribution_name.lower().replace("_", "-"))
        return found or real(distribution_name)

    importlib.metadata.version = version
    if "tensorrt-llm" in played:
        sys.meta_path.insert(0, _Package(played["tensorrt-llm"]))


class _Package(MetaPathFinder, Loader):
    """A tensorrt_llm with a version and the LLM-API's model, which greets as the real one does."""

    def __init__(self, playbook: Playbook) -> None:
        self._playbook = playbook

    def find_spec(self, *asked: Any) -> ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder`; the full name is asked for first."""
        name: str = asked[0]
        if name not in (*_PACKAGES, MODULE):
            return None
        return ModuleSpec(name, self, is_package=name in _PACKAGES)

    def exec_module(self, module: ModuleType) -> None:
        """Greet, and tell the version; or the model."""
        version = self._playbook.version
        if module.__name__ == MODULE:
            if not self._playbook.scenario and len(self._playbook.releases) > 1:
                raise ImportError("several releases are played, and nobody said which is asked")
            page = read(self._playbook.releases[version][YAML])
            module.__dict__["TorchLlmArgs"] = model_of(page)
        elif module.__name__ == "tensorrt_llm":
            banner(version)
            module.__dict__["__version__"] = version
