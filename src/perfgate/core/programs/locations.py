"""Locations: where programs of a build, models, sources and datasets are, here or on paper.

Commands are rendered with locations, so that the command a person prints and the one a run starts
come from the same code.
"""

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from perfgate.core.errors import InputError, MissingProgram
from perfgate.core.files.paths import named_folder
from perfgate.core.programs.program_query import Answer, ContainerQuery, ask_here
from perfgate.core.programs.programs import Program, words_of

MODELS = "PERFGATE_MODELS"
DATASETS = "PERFGATE_DATASETS"
TENSORRT_LLM_SOURCE = "PERFGATE_TENSORRT_LLM_SOURCE"
HOSTS = "PERFGATE_HOSTS"
_HOST = re.compile(r"[A-Za-z0-9_\[][A-Za-z0-9_.@:%\[\]-]*")


# Where Python looks for modules: those of the build under test, which another must not import.
_OF_PYTHON = ("PYTHONPATH", "PYTHONHOME")


@dataclass(frozen=True)
class Installation:
    """Where the programs of one build are. Equal ones can be told apart from others by hash.

    Attributes:
        prefix: folder with their ``bin/``; empty: a container's PATH, or what `named` says.
        named: variable ``PERFGATE_PROGRAM_…`` and how that program is called, as a shell has it.
    """

    prefix: str = ""
    named: tuple[tuple[str, str], ...] = ()

    def find(self, program: Program) -> tuple[str, ...]:
        """The argv prefix that calls `program` on this machine.

        A program that is not named is looked for in the prefix, else beside those that are.

        Raises:
            InputError: the path that names it is no executable.
            MissingProgram: the build has no such program.
        """
        if call := program.named_or_run(dict(self.named), self.find):
            return call
        for folder in self._folders:
            if (path := shutil.which(program.executable, path=str(folder))) is not None:
                return (str(Path(path).absolute()), *program.arguments)
        raise self._missing(program)

    def inside(self, program: Program) -> tuple[str, ...]:
        """The argv prefix that calls `program` in a container; see `Program.inside`."""
        return program.inside(dict(self.named), self.prefix)

    def has(self, path: str) -> bool:
        """Whether the program at `path` lies in this installation."""
        return any(folder in Path(path).parents for folder in self._folders)

    def environment(self, outer: Mapping[str, str]) -> dict[str, str]:
        """The variables with which this build's programs find each other, and no other build's.

        Args:
            outer: the environment that they are started from.
        """
        path = [*map(str, self._folders), *filter(None, [outer.get("PATH", os.defpath)])]
        found = {"PATH": os.pathsep.join(path)}
        found |= {name: "" for name in _OF_PYTHON if outer.get(name)}
        if "VIRTUAL_ENV" in outer:
            found["VIRTUAL_ENV"] = self.prefix
        return found

    @property
    def _folders(self) -> tuple[Path, ...]:
        """Where programs are that are not named, the first one first."""
        if self.prefix:
            return (Path(self.prefix) / "bin",)
        first = (words_of(call)[:1] for _, call in self.named)
        parents = (Path(path).parent for word in first for path in word if os.sep in path)
        return tuple(dict.fromkeys(parents))

    def _missing(self, program: Program) -> MissingProgram:
        looked = " or ".join(map(str, self._folders)) or "the programs that are named"
        found = [folder / program.executable for folder in self._folders]
        present = [str(path) for path in found if path.exists()]
        what = f"{present[0]} is not executable" if present else f"no {program.executable}"
        where = "" if present else f" in {looked}"
        return MissingProgram(
            f"the other build has no {program.name}: {what}{where}",
            hint=f"it comes with {program.provided_by}; or name it beside the build: "
            f"{program.variable}=PATH",
        )


@dataclass(frozen=True)
class Locations:
    """Where things are.

    Attributes:
        on_paper: programs are called by their bare names, nothing needs to be installed.
        models: folder with one folder per model; None: models are called by their public names.
        datasets: folder with the person's own datasets.
        source: a checkout of TensorRT-LLM, for the example programs that its wheel lacks.
        hosts: the nodes of a multi-node run, in order; empty: the scheduler knows.
        inside: the container that the engine's programs are in; None: they are here.
        build: where the engine's programs are of a build that is not this environment's; None: as
            the environment says.
    """

    on_paper: bool = False
    models: Path | None = None
    datasets: Path | None = None
    source: Path | None = None
    hosts: tuple[str, ...] = ()
    inside: ContainerQuery | None = None
    build: Installation | None = None

    @classmethod
    def of_environment(cls) -> Self:
        """Those that the environment names.

        Raises:
            InputError: a variable names a folder that does not exist, or what is no host.
        """
        folders = (
            named_folder(one, hint="set it to where they are, or unset it")
            for one in (MODELS, DATASETS, TENSORRT_LLM_SOURCE)
        )
        hosts = os.environ.get(HOSTS, "").replace(",", " ").split()
        for host in hosts:
            if not _HOST.fullmatch(host):  # a hyphen first would make it an option of ssh's
                raise InputError(
                    "not a host", field=HOSTS, found=repr(host), expected="host names, or addresses"
                )
        models, datasets, source = folders
        return cls(models=models, datasets=datasets, source=source, hosts=tuple(hosts))

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders that commands name files in, which a container needs under these paths."""
        named = (self.models, self.datasets, self.source)
        return tuple(folder for folder in named if folder is not None)

    def find(self, program: Program) -> tuple[str, ...]:
        """The argv prefix that calls `program`.

        Raises:
            MissingProgram: it is not here (never on paper or for a program in a container).
            InputError: the environment variable, or the path, that names it is wrong.
        """
        if self.on_paper:
            return program.bare()
        build = self.build if program.of_build else None
        if self.inside is not None and program.of_engine:
            return program.inside(os.environ) if build is None else build.inside(program)
        return program.find() if build is None else build.find(program)

    def ask(self, argv: tuple[str, ...], seconds: float, *, of_engine: bool = False) -> Answer:
        """What a program says for itself, asked where it is.

        Args:
            argv: as `find` gives it, and what it is asked.
            seconds: the longest that it may take.
            of_engine: `Program.of_engine`, of the program that is asked.

        Raises:
            RunError, InputError, MissingProgram: the engine's container cannot be had.
        """
        if self.inside is not None and of_engine:
            return self.inside.ask(argv, seconds)
        if self.build is not None and (of_engine or self.build.has(argv[0])):
            return ask_here(argv, seconds, {**os.environ, **self.engine_environment})
        return ask_here(argv, seconds)

    @property
    def engine_environment(self) -> dict[str, str]:
        """What the engine's programs have in their environment beside all that is set here."""
        if self.build is None or self.inside is not None:
            return {}
        return self.build.environment(os.environ)
