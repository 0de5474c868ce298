"""llama.cpp on the CPU: the embedded default's engine, through the `xllamacpp` wheel.

perfgate imports neither the wheel nor the model's package; it asks the interpreter that has them.
"""

from collections.abc import Mapping
from pathlib import Path

from perfgate.core.command import Command
from perfgate.core.errors import InputError, MissingProgram, RunError
from perfgate.core.failures import diagnose
from perfgate.core.kept_files import kept_folder
from perfgate.core.locations import Locations
from perfgate.core.measurement import Json
from perfgate.core.program_query import Answer
from perfgate.core.programs import LLAMA_CPP_PYTHON
from perfgate.engines import gguf_model
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

_HONOURED = {
    "tp",
    "pp",
    "max_batch_size",
    "max_num_tokens",
    "max_seq_len",
    "kv_cache_dtype",
    "cpu_threads",
    "slowed_percent",
}


@engine("llama.cpp")
class LlamaCpp(Engine):
    """llama.cpp's HTTP server with one GGUF model, on the CPU."""

    name = "llama.cpp"
    programs = (LLAMA_CPP_PYTHON,)

    def check(self, scenario: Scenario, build: EngineBuild) -> None:  # noqa: ARG002
        """See `Engine.check`."""
        if scenario.hardware.gpu != "none":
            raise _refused(scenario, "hardware.gpu", scenario.hardware.gpu, "none")
        gguf_model.known(scenario)
        settings = scenario.engine.settings
        default = EngineSettings()
        for field in vars(settings):
            value = getattr(settings, field)
            if field not in _HONOURED and value != getattr(default, field):
                raise _refused(scenario, f"settings.{field}", value, "not to be set")
        for field in ("tp", "pp"):
            if getattr(settings, field) not in (None, 1):
                raise _refused(scenario, f"settings.{field}", getattr(settings, field), "1")
        if settings.kv_cache_dtype not in (None, *CACHE_TYPES):
            known = "one of " + ", ".join(CACHE_TYPES)
            raise _refused(scenario, "settings.kv_cache_dtype", settings.kv_cache_dtype, known)

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

    def served_model(self, scenario: Scenario, locations: Locations) -> str:  # noqa: ARG002
        """See `Engine.served_model`."""
        return scenario.model.name

    def serve(
        self,
        scenario: Scenario,
        build: EngineBuild,  # noqa: ARG002
        endpoint: Endpoint,
        locations: Locations,
    ) -> Command:
        """See `Engine.serve`."""
        settings = scenario.engine.settings
        slots = settings.max_batch_size or 1
        argv = [*locations.find(LLAMA_CPP_PYTHON), str(SERVER)]
        argv += ["--model", str(gguf_model.locate(scenario, locations)), "--alias", endpoint.model]
        argv += ["--host", endpoint.host, "--port", str(endpoint.port), "--slots", str(slots)]
        if settings.max_seq_len is not None:
            # llama.cpp divides its context evenly among the slots.
            argv += ["--context", str(slots * settings.max_seq_len)]
        if settings.max_num_tokens is not None:
            argv += ["--batch", str(settings.max_num_tokens)]
        if settings.kv_cache_dtype is not None:
            argv += ["--cache-type", settings.kv_cache_dtype]
        if settings.cpu_threads is not None:
            argv += ["--threads", str(settings.cpu_threads)]
        if settings.slowed_percent is not None:
            argv += ["--slowed", str(settings.slowed_percent)]
        return Command(tuple(argv), {**_ENVIRONMENT, **scenario.environment})

    def tokenizer(self, scenario: Scenario, cache: Path, locations: Locations) -> str:
        """See `Engine.tokenizer`.

        Raises:
            RunError: class ``model_file``: the file has no tokenizer that can be translated; class
                ``disk_full`` or ``unwritable``: it cannot be kept.
        """
        model = gguf_model.locate(scenario, locations)
        digest = gguf_model.sha256(model)
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
        model = gguf_model.locate(scenario, locations)
        return {
            "file": model.name,
            "bytes": model.stat().st_size,
            "sha256": gguf_model.sha256(model),
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


def _refused(scenario: Scenario, field: str, found: object, expected: str) -> InputError:
    return InputError(
        "llama.cpp does not support this",
        file=scenario.file,
        field=f"{scenario.id}.{field}",
        found=found,
        expected=expected,
    )
