"""Locations: where programs, models, sources and datasets are, on this machine or on paper.

Commands are rendered with locations, so that the command a person prints and the one a run starts
come from the same code.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from perfgate.core.errors import InputError
from perfgate.core.installation import Installation
from perfgate.core.program_query import Answer, ContainerQuery, ask_here
from perfgate.core.programs import Program

MODELS = "PERFGATE_MODELS"
DATASETS = "PERFGATE_DATASETS"
TENSORRT_LLM_SOURCE = "PERFGATE_TENSORRT_LLM_SOURCE"
HOSTS = "PERFGATE_HOSTS"
_HOST = re.compile(r"[A-Za-z0-9_\[][A-Za-z0-9_.@:%\[\]-]*")


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
        hosts = os.environ.get(HOSTS, "").replace(",", " ").split()
        for host in hosts:
            if not _HOST.fullmatch(host):  # a hyphen first would make it an option of ssh's
                raise InputError(
                    "not a host", field=HOSTS, found=repr(host), expected="host names, or addresses"
                )
        return cls(
            models=_folder(MODELS),
            datasets=_folder(DATASETS),
            source=_folder(TENSORRT_LLM_SOURCE),
            hosts=tuple(hosts),
        )

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
        if self.build is not None and program.of_build:
            is_inside = self.inside is not None and program.of_engine
            return self.build.inside(program) if is_inside else self.build.find(program)
        if self.inside is not None and program.of_engine:
            return program.inside()
        return program.find()

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


def _folder(variable: str) -> Path | None:
    setting = os.environ.get(variable)
    if not setting:
        return None
    folder = Path(setting).absolute()
    if not folder.is_dir():
        raise InputError(
            "no such folder",
            field=variable,
            found=setting,
            expected="a folder",
            hint="set it to where they are, or unset it",
        )
    return folder
