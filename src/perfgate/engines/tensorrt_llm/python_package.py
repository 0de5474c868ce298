"""The Python package of TensorRT-LLM: does the interpreter that runs its modules have it?

An interpreter is found nearly everywhere; a module of an engine that is absent is absent, too.
"""

from pathlib import Path

from perfgate.core.errors import MissingProgram
from perfgate.core.locations import Locations
from perfgate.core.programs import TENSORRT_LLM_PYTHON, Program
from perfgate.engines.installed_programs import answer

# The metadata alone: importing the package takes up to minutes.
VERSION_CODE = "import importlib.metadata as m; print(m.version('tensorrt_llm'))"


def require_package(program: Program, locations: Locations) -> None:
    """Make sure that the interpreter of `program` has the package.

    Not asked are a wrapper, and the interpreter of a container, whose image is the engine's own.

    Raises:
        MissingProgram: it has not, or there is no interpreter.
        InputError: the environment variable that names it is wrong.
    """
    if locations.on_paper or locations.inside is not None:
        return
    words = locations.find(program)
    if not Path(words[0]).name.startswith("python"):
        return
    interpreter = words[: words.index("-m")] if "-m" in words else words
    said = answer((*interpreter, "-c", VERSION_CODE), locations).strip().splitlines()
    if said and not said[-1][:1].isdigit():
        raise MissingProgram(
            f"{program.name} is not installed: {' '.join(interpreter)} has no package "
            f"tensorrt_llm ({said[-1][:120]})",
            hint=f"set {TENSORRT_LLM_PYTHON.variable} to the Python that has it"
            if program == TENSORRT_LLM_PYTHON
            else f"set {program.variable} to the Python that has it, followed by "
            f"{' '.join(program.arguments)}",
        )
