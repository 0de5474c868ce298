"""Installation: the programs of one engine build, where they are not those of this environment.

What the environment says of an engine's programs is about the build under test: nothing of it is
used for another build, so that two builds are never mixed.
"""

import os
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfgate.core.errors import InputError, MissingProgram
from perfgate.core.programs import Program, interpreter_of

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
        words = self._words(program)
        if words:
            path = shutil.which(words[0])
            if path is None:
                raise InputError(
                    f"no executable for {program.name}",
                    field=program.variable,
                    found=" ".join(words),
                    expected="a program, and optionally its first arguments",
                    hint=f"name where {program.executable} of the other build is",
                )
            return (str(Path(path).absolute()), *words[1:])
        interpreter = self._interpreter(program)
        if interpreter is not None:
            return (interpreter, *program.arguments)
        for folder in self._folders:
            if (path := shutil.which(program.executable, path=str(folder))) is not None:
                return (str(Path(path).absolute()), *program.arguments)
        raise self._missing(program)

    def inside(self, program: Program) -> tuple[str, ...]:
        """The argv prefix that calls `program` in a container, where nothing can be looked up.

        Raises:
            InputError: what names it has no words.
        """
        words = self._words(program)
        if words:
            return words
        if self.prefix:
            return (f"{self.prefix}/bin/{program.executable}", *program.arguments)
        return program.bare()

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
        first = (_split(call)[:1] for _, call in self.named)
        parents = (Path(path).parent for word in first for path in word if os.sep in path)
        return tuple(dict.fromkeys(parents))

    def _words(self, program: Program) -> tuple[str, ...]:
        call = dict(self.named).get(program.variable)
        if call is None:
            return ()
        words = _split(call)
        if not words:
            raise InputError(
                "not a call",
                field=program.variable,
                found=repr(call),
                expected="a program, and optionally its first arguments",
            )
        return words

    def _interpreter(self, program: Program) -> str | None:
        if program.runs is None:
            return None
        try:
            return interpreter_of(self.find(program.runs)[0])
        except (MissingProgram, InputError):
            return None

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


def _split(call: str) -> tuple[str, ...]:
    """The words of a call; none where a quote is left open."""
    try:
        return tuple(shlex.split(call))
    except ValueError:
        return ()
