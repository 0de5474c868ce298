"""The release of a load client that does not tell it: that of the package it comes from."""

from pathlib import Path

from perfgate.core.errors import MissingProgram
from perfgate.core.locations import Locations
from perfgate.core.programs import Program, interpreter_of

_WITHIN_S = 30.0


def package_version(program: Program, package: str, locations: Locations) -> str:
    """The version of a package in the interpreter that runs a program; it is not imported.

    Args:
        program: a module or a script in Python.
        package: its package, as it was installed.
        locations: where the program is.

    Raises:
        MissingProgram: no interpreter can be told, or it has no such package.
        InputError: the environment variable that names the program is wrong.
    """
    words = locations.find(program)
    beside = Path(words[0]).with_name("python")  # of a wrapper in the folder of an environment
    interpreter = interpreter_of(words[0]) or (str(beside) if beside.is_file() else None)
    why = f"{words[0]} is neither a Python nor a script of one"
    if interpreter is not None:
        code = f"import importlib.metadata as m; print(m.version({package!r}))"
        answer = locations.ask((interpreter, "-c", code), _WITHIN_S)
        said = answer.stdout.split()
        if answer.is_good and said:
            return said[-1]
        why = f"{interpreter} has no package {package}"
    raise MissingProgram(
        f"{program.name} does not report its version: {why}",
        hint=f"it comes with {program.provided_by}; set {program.variable} to the Python that has "
        f"it, followed by {' '.join(program.arguments) or 'the path of ' + program.executable}",
    )
