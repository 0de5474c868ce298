"""Where the external programs are: engines, clients and evaluators are called, never imported.

Each may live in its own environment or container. A program is looked for in this order:
``PERFGATE_PROGRAM_<NAME>`` (words separated as in a shell), beside the running interpreter, PATH.
An engine's interpreter is the one that runs another program of the engine, where that is found:
the Python beside the running interpreter is perfgate's own, and the engine's only where it has the
engine's package.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import distributions
from pathlib import Path

from perfgate.core.errors import InputError, MissingProgram
from perfgate.core.files.remembered import toml_beside
from perfgate.core.files.untrusted_files import doubt

PROGRAM_PREFIX = "PERFGATE_PROGRAM_"
_variables: dict[str, bool] = {}


@dataclass(frozen=True)
class Program:
    """A program that is called.

    Attributes:
        name: its name.
        executable: its default executable.
        provided_by: what provides it, for the person who lacks it.
        arguments: what it always gets.
        of_engine: whether it comes with the engine, so that it is in the engine's container.
        is_engine_here: whether it is an engine that runs on this machine alone, in no container.
        runs: the program whose interpreter it is; None: it is found by its own name.
        package: the Python package that an interpreter must have to be this program; perfgate's own
            is passed over without it. None: any will do.
    """

    name: str
    executable: str
    provided_by: str
    arguments: tuple[str, ...] = ()
    of_engine: bool = False
    is_engine_here: bool = False
    runs: "Program | None" = None
    package: str | None = None

    def __post_init__(self) -> None:
        _variables[self.variable] = self.of_build

    @property
    def variable(self) -> str:
        """The environment variable that says where the program is."""
        return PROGRAM_PREFIX + self.name.upper().replace(".", "_").replace("-", "_")

    @property
    def of_build(self) -> bool:
        """Whether another build of the engine has another one of it."""
        return self.of_engine or self.is_engine_here

    def bare(self) -> tuple[str, ...]:
        """The argv prefix as a person would type it, wherever the program is."""
        return (self.executable, *self.arguments)

    def inside(self, settings: Mapping[str, str], prefix: str = "") -> tuple[str, ...]:
        """The argv prefix that calls the program in a container, where nothing can be looked up.

        Args:
            settings: the variables that may name it.
            prefix: the folder of the image with its ``bin/``; empty: it is on the image's PATH.

        Raises:
            InputError: the program's variable is set but has no words.
        """
        path = f"{prefix}/bin/{self.executable}" if prefix else self.executable
        return self.named_in(settings, is_here=False) or (path, *self.arguments)

    def named_in(self, settings: Mapping[str, str], *, is_here: bool = True) -> tuple[str, ...]:
        """The argv prefix that the program's variable names; empty: it is not set.

        Args:
            settings: the variables; one replaces the program's own arguments too.
            is_here: whether the program is on this machine, where it must be an executable.

        Raises:
            InputError: what names it has no words, or is no executable.
        """
        setting = settings.get(self.variable)
        if setting is None:
            return ()
        words = words_of(setting)
        if words and not is_here:
            return words
        path = on_path(words[0]) if words else None
        if path is None:
            raise InputError(
                f"no executable for {self.name}",
                field=self.variable,
                found=repr(setting),
                expected="a program and, optionally, its first arguments",
                hint=f"set it to where {self.executable} is, or unset it",
            )
        # Programs are started in other folders. Links stay: an environment's python is one.
        return (str(Path(path).absolute()), *words[1:])

    def named_or_run(
        self, settings: Mapping[str, str], find: Callable[["Program"], tuple[str, ...]]
    ) -> tuple[str, ...]:
        """The argv prefix as it is named, else by the interpreter of what it runs; empty: neither.

        Args:
            settings: as of `named_in`, which tells what is wrong with them.
            find: finds the program that it runs.
        """
        if (named := self.named_in(settings)) or self.runs is None:
            return named
        with suppress(MissingProgram, InputError):
            if interpreter := interpreter_of(find(self.runs)[0]):
                return (interpreter, *self.arguments)
        return ()

    def find(self) -> tuple[str, ...]:
        """The argv prefix that calls the program.

        Raises:
            InputError: the environment variable is set but names no executable.
            MissingProgram: it is nowhere.
        """
        if call := self.named_or_run(os.environ, Program.find):
            return call
        own = Path(sys.executable).parent
        # Of perfgate's own Python; the package is not imported.
        is_candidate = self.package is None or any(distributions(name=self.package))
        entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
        # Without perfgate's own folder, which an activated environment puts first.
        others = [folder for folder in entries if Path(folder).absolute() != own]
        folders = [str(own), *others] if is_candidate else others
        path = on_path(self.executable, os.pathsep.join(folders))
        if path is None:
            raise MissingProgram(
                f"{self.name} is not installed: no {self.executable} beside {sys.executable} "
                f"{f'with the package {self.package} ' if self.package else ''}or on PATH",
                hint=f"it comes with {self.provided_by}; or name its path in {self.variable}",
            )
        return (str(Path(path).absolute()), *self.arguments)


def program_variables() -> Mapping[str, bool]:
    """The variables of all programs, those of imported engines and clients of your own included →
    whether another build of the engine has another one of the program.
    """
    return _variables


def on_path(name: str, path: str | None = None) -> str | None:
    """The executable as `shutil.which` finds it, but in no relative or empty entry of PATH that
    another user may write to.
    """
    entries = (os.environ.get("PATH", os.defpath) if path is None else path).split(os.pathsep)
    trusted = (one for one in entries if Path(one).is_absolute() or doubt(Path(one)) is None)
    return shutil.which(name, path=os.pathsep.join(trusted))


def words_of(call: str) -> tuple[str, ...]:
    """The words of a call, as a shell splits them; none where a quote is left open."""
    try:
        return tuple(shlex.split(call))
    except ValueError:
        return ()


def interpreter_of(path: str) -> str | None:
    """The Python that runs the program at `path`: itself, or the one that its first line names.

    Args:
        path: an executable file.
    """
    if Path(path).name.startswith("python"):
        return path
    try:
        with Path(path).open("rb") as script:
            first = script.readline(4096).decode(errors="replace").split()
    except OSError:
        return None
    if first[:1] == ["#!/usr/bin/env"]:
        named = (word for word in first[1:] if word.startswith("python"))
        return on_path(next(named, ""))
    if first and first[0].startswith("#!/") and "python" in Path(first[0]).name:
        return first[0][2:]
    return None


@cache
def _program(name: str) -> Program:
    """The program of this name in programs.toml."""
    facts = dict(toml_beside(__file__, "programs")[name])
    runs = facts.pop("runs", None)
    arguments = tuple(facts.pop("arguments", ()))
    return Program(name, arguments=arguments, runs=runs and _program(runs), **facts)


def _programs(*names: str) -> Iterator[Program]:
    return map(_program, names)


AIPERF, LM_EVAL, LLAMA_CPP_PYTHON = _programs("aiperf", "lm_eval", "llama.cpp")
TRTLLM_BENCH, TRTLLM_SERVE, TRTLLM_EVAL = _programs("trtllm-bench", "trtllm-serve", "trtllm-eval")
TENSORRT_LLM_PYTHON, BENCHMARK_SERVING = _programs("tensorrt-llm", "benchmark_serving")
VLLM, VLLM_SCRIPT = _programs("vllm", "vllm-benchmark-serving")  # load clients of any engine
VLLM_SERVE, VLLM_PYTHON = _programs("vllm-serve", "vllm-python")  # the engine
SGLANG_CLI, SGLANG_SERVE = _programs("sglang-cli", "sglang")  # the former since 0.5.5
SGLANG_PYTHON, SGLANG_BENCH = _programs("sglang-python", "sglang-bench-serving")
TRTLLM_LAUNCH, MPIRUN, DOCKER = _programs("trtllm-llmapi-launch", "mpirun", "docker")
SRUN, SBATCH, SCANCEL = _programs("srun", "sbatch", "scancel")
