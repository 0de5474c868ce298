"""Programs that only a checkout of TensorRT-LLM has: its wheel lacks them."""

from pathlib import Path

from perfgate.core.errors import InputError
from perfgate.core.locations import TENSORRT_LLM_SOURCE, Locations
from perfgate.core.programs import TENSORRT_LLM_PYTHON
from perfgate.engines.tensorrt_llm.python_package import require_package

IMAGE_SOURCES = Path("/app/tensorrt_llm")  # of the release images: benchmarks, examples


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
