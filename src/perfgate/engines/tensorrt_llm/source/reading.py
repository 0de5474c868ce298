"""What a source tree of TensorRT-LLM accepts, as `Definitions`; nothing of it is run."""

import ast
from dataclasses import dataclass
from pathlib import Path

from perfgate.core.errors import InputError
from perfgate.engines.definitions import YAML, Definitions, KeyDefinition, Keys, Options
from perfgate.engines.tensorrt_llm.releases.table import (
    BENCH,
    BENCHMARK_SERVING,
    GPQA,
    PREPARE_SCRIPT,
    QUICKSTART,
    SERVE,
)
from perfgate.engines.tensorrt_llm.source.models import ModelReader
from perfgate.engines.tensorrt_llm.source.names import Found, Names, Unread
from perfgate.engines.tensorrt_llm.source.options import OptionReader, command_name, subcommands
from perfgate.engines.tensorrt_llm.source.tree import PACKAGE, VERSION_FILE, SourceTree

_ARGUMENTS = f"{PACKAGE}/llmapi/llm_args.py"
_MODELS = ("TorchLlmArgs", "LlmArgs")
_OLDER = {"pytorch_backend_config": (f"{PACKAGE}/_torch/pyexecutor/config.py", "PyTorchConfig")}
_CLICK = {  # program → its file, and the group in it
    BENCH: (f"{PACKAGE}/commands/bench.py", "main"),
    SERVE: (f"{PACKAGE}/commands/serve.py", "main"),
    "trtllm-eval": (f"{PACKAGE}/commands/eval.py", "main"),
    PREPARE_SCRIPT: ("benchmarks/cpp/prepare_dataset.py", "cli"),
}
_ARGPARSE = {  # script → where it may be
    BENCHMARK_SERVING: (f"{PACKAGE}/serve/scripts/benchmark_serving.py",),
    QUICKSTART: (
        f"examples/llm-api/{QUICKSTART}",
        f"examples/pytorch/{QUICKSTART}",
    ),
    GPQA: (f"examples/{GPQA}",),
}


@dataclass(frozen=True)
class Reading:
    """What was read of a tree.

    Attributes:
        definitions: what the tree's programs accept.
        unread: what only running the code would tell, with file and line.
        absent: programs that the tree has no file of.
        keys: how many keys of the YAML file, with those below others.
    """

    definitions: Definitions
    unread: tuple[str, ...]
    absent: tuple[str, ...]
    keys: int


def read_source(path: Path, version: str | None = None) -> Reading:
    """Read the options and keys that a source tree declares.

    Args:
        path: an unpacked folder, or a wheel.
        version: the release; None: as the tree's `version.py` has it.

    Raises:
        InputError: it is no such tree, declares nothing, or a file of it cannot be read.
    """
    tree = SourceTree.of(path)
    try:
        return _Reader(tree, version).reading()
    except RecursionError as error:
        raise InputError("too deep to be read", file=path) from error


class _Reader:
    def __init__(self, tree: SourceTree, version: str | None) -> None:
        self._tree = tree
        self._names = Names(tree)
        self._version = version or self._told_version()
        self._programs: dict[str, Options] = {}
        self._partial: list[str] = []
        self._unread: list[str] = []
        self._absent: list[str] = []

    def reading(self) -> Reading:
        for program, (file, group) in _CLICK.items():
            self._click(program, file, group)
        for program, files in _ARGPARSE.items():
            self._argparse(program, files)
        keys, refuses, count = self._keys()
        if not self._programs and not keys:
            raise InputError(
                "nothing was read: no program and no model of TensorRT-LLM",
                file=self._tree.name,
                expected="commands, llmapi/llm_args.py and examples of TensorRT-LLM",
                hint="name the unpacked source archive, not a part of it",
            )
        definitions = Definitions(
            engine="tensorrt-llm",
            version=self._version,
            source=f"sources at {self._tree.name}",
            whole=True,
            programs=self._programs,
            keys=keys,
            unknown_keys=("refused" if refuses else "ignored") if keys is not None else None,
            exact_types=True,
            partial=tuple(self._partial),
        )
        unread = tuple(dict.fromkeys(self._unread))
        return Reading(definitions, unread, tuple(self._absent), count)

    def _told_version(self) -> str:
        found = self._names.find(VERSION_FILE, "__version__")
        try:
            told = self._names.value(VERSION_FILE, found.node if found else None)
        except Unread as unread:
            raise InputError(
                "the tree tells no version",
                file=self._tree.name / VERSION_FILE,
                found=str(unread),
                expected="__version__ = '…'",
                hint="give the release with --engine-version",
            ) from None
        return str(told)

    def _click(self, program: str, file: str, group: str) -> None:
        module = self._tree.module(file)
        if module is None:
            self._absent.append(program)
            return
        self._command(program, Found(file, self._function(file, group, module)))
        self._below(program, file, module, group)

    def _below(self, program: str, file: str, module: ast.Module, group: str) -> None:
        for name, found in subcommands(self._names, file, module.body, group).items():
            self._command(f"{program} {name}", found)
            inner = self._tree.module(found.file)
            function = getattr(found.node, "name", "")
            if inner is not None and function and function != group:
                self._below(f"{program} {name}", found.file, inner, function)

    def _function(self, file: str, name: str, module: ast.Module) -> ast.AST:
        found = self._names.find(file, name)
        return module if found is None else found.node

    def _command(self, program: str, found: Found) -> None:
        reader = OptionReader(self._names)
        options = reader.of_command(found)
        if options or command_name(found):
            self._programs[program] = options
        self._note(program, reader.notes)

    def _argparse(self, program: str, files: tuple[str, ...]) -> None:
        for file in files:
            module = self._tree.module(file)
            if module is None:
                continue
            reader = OptionReader(self._names)
            self._programs[program] = reader.of_script(file, module.body)
            self._note(program, reader.notes)
            return
        self._absent.append(program)

    def _note(self, program: str, notes: list[Unread]) -> None:
        """Choices that were not read leave the option known; anything else may hide one."""
        self._unread += [f"{program}: {note}" for note in notes]
        if any(not note.what.startswith("choices: ") for note in notes):
            self._partial.append(program)

    def _keys(self) -> tuple[Keys | None, bool, int]:
        """The keys of the model behind the YAML file; None: there is no such file."""
        if self._tree.module(_ARGUMENTS) is None:
            self._absent.append(YAML)
            return None, False, 0
        found = next((one for name in _MODELS if (one := self._names.find(_ARGUMENTS, name))), None)
        if found is None:
            self._absent.append(YAML)
            return None, False, 0
        reader = ModelReader(self._names)
        keys: dict[str, KeyDefinition] = dict(reader.keys(found))
        refuses = reader.refuses_unknown(found)
        if not refuses:
            for name, (file, model) in _OLDER.items():
                older = self._names.find(file, model)
                if older is not None:
                    keys[name] = KeyDefinition(
                        types=(model,),
                        models={model: reader.keys(older)},
                        unknown="refused",
                        place=older.place,
                    )
        self._unread += [f"{YAML}: {note}" for note in reader.notes]
        if any("base class" in note.what for note in reader.notes):
            self._partial.append(YAML)
        return keys, refuses, reader.count
