"""`trtllm-serve`: the server that the load clients and lm_eval talk to."""

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.core.programs import TRTLLM_SERVE
from perfgate.engines.base import Endpoint, EngineBuild
from perfgate.engines.tensorrt_llm import llm_api_yaml
from perfgate.engines.tensorrt_llm.arguments import Argument, spelled
from perfgate.engines.tensorrt_llm.bench import backend
from perfgate.engines.tensorrt_llm.environment import environment
from perfgate.engines.tensorrt_llm.model import reference
from perfgate.engines.tensorrt_llm.pinning import pinned
from perfgate.engines.tensorrt_llm.releases import release
from perfgate.engines.tensorrt_llm.releases.table import SERVE
from perfgate.scenarios.scenario import Scenario


def serve(
    scenario: Scenario, build: EngineBuild, endpoint: Endpoint, locations: Locations
) -> Command:
    """The command that serves the scenario's model on `endpoint`.

    Raises:
        InputError: a setting that this release cannot express.
        MissingProgram: the program is not installed.
    """
    known = release(build.version)
    settings = pinned(scenario, build, SERVE)
    file = llm_api_yaml.document(scenario, settings, known, SERVE)
    arguments = [
        Argument("--host", endpoint.host, "listen.host"),
        Argument("--port", endpoint.port, "listen.port"),
        Argument("--backend", backend(scenario, settings, known, SERVE), "engine.settings.backend"),
        Argument("--max_batch_size", settings.max_batch_size, "engine.settings.max_batch_size"),
        Argument("--max_num_tokens", settings.max_num_tokens, "engine.settings.max_num_tokens"),
        Argument("--max_seq_len", settings.max_seq_len, "engine.settings.max_seq_len"),
        Argument(
            "--kv_cache_free_gpu_memory_fraction",
            settings.kv_cache_fraction,
            "engine.settings.kv_cache_fraction",
        ),
        Argument("--tp_size", settings.tp, "engine.settings.tp"),
        Argument("--ep_size", settings.ep, "engine.settings.ep"),
        Argument("--pp_size", settings.pp if settings.pp > 1 else None, "engine.settings.pp"),
        Argument(
            "--trust_remote_code", settings.trust_remote_code, "engine.settings.trust_remote_code"
        ),
        Argument(known.yaml_option, f"./{llm_api_yaml.FILE}" if file else None, "engine.settings"),
    ]
    return Command(
        (
            *locations.find(TRTLLM_SERVE),
            reference(scenario, locations).where,
            *spelled(scenario, known, SERVE, arguments),
        ),
        env=environment(scenario, settings, known),
        files={llm_api_yaml.FILE: llm_api_yaml.text(file)} if file else {},
    )
