"""What TensorRT-LLM's Python runs: modules of its package, and programs that only a checkout has.

An interpreter is found nearly everywhere; a module of an engine that is absent is absent, too.
"""

from pathlib import Path

from perfgate.core.errors import InputError, MissingProgram
from perfgate.core.locations import TENSORRT_LLM_SOURCE, Locations
from perfgate.core.programs import TENSORRT_LLM_PYTHON, Program
from perfgate.engines.installed_programs import answer

IMAGE_SOURCES = Path("/app/tensorrt_llm")  # of the release images: benchmarks, examples
# The metadata alone: importing the package takes up to minutes.
VERSION_CODE = "import importlib.metadata as m; print(m.version('tensorrt_llm'))"


def script(locations: Locations, path: str) -> tuple[str, ...]:
    """The argv prefix that runs the checkout's file `path`; relative on paper without a checkout.

    The release images have the examples, so that none is needed where the engine is in one.

    Raises:
        InputError: no checkout is named, or it lacks the file.
        MissingProgram: no interpreter, or one without the engine.
    """
    python = locations.find(TENSORRT_LLM_PYTHON)
    if locations.source is None:
        if locations.on_paper:
            return (*python, path)
        if locations.inside is not None:
            return (*python, str(IMAGE_SOURCES / path))
        raise InputError(
            "this program is part of TensorRT-LLM's sources, not of its wheel",
            field=TENSORRT_LLM_SOURCE,
            found="not set",
            expected=f"a checkout of the installed release, with {path}",
            hint=f"git clone https://github.com/NVIDIA/TensorRT-LLM.git, check out the release, "
            f"and set {TENSORRT_LLM_SOURCE} to the folder",
        )
    file = locations.source / path
    if not locations.on_paper and not file.is_file():
        raise InputError(
            "the checkout of TensorRT-LLM lacks a program",
            file=file,
            field=TENSORRT_LLM_SOURCE,
            expected=f"a checkout of the installed release, with {path}",
            hint="check out the tag of the installed release",
        )
    require_package(TENSORRT_LLM_PYTHON, locations)
    return (*python, str(file))


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
