"""`trtllm-serve`: the server that the load clients and lm_eval talk to."""

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.core.programs import TRTLLM_SERVE
from perfgate.engines.base import Endpoint, EngineBuild
from perfgate.engines.tensorrt_llm import extra_options, llm_api_yaml
from perfgate.engines.tensorrt_llm.arguments import Argument, of_settings, spelled
from perfgate.engines.tensorrt_llm.bench import backend
from perfgate.engines.tensorrt_llm.environment import environment
from perfgate.engines.tensorrt_llm.model import reference
from perfgate.engines.tensorrt_llm.pinning import pinned
from perfgate.engines.tensorrt_llm.releases import release
from perfgate.engines.tensorrt_llm.releases.table import SERVE
from perfgate.scenarios.scenario import Scenario

_SETTINGS = (
    "max_batch_size",
    "max_num_tokens",
    "max_seq_len",
    "kv_cache_fraction",
    "tp",
    "ep",
    "pp",
    "trust_remote_code",
)


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
    file = extra_options.merged(scenario, known, SERVE, file)
    arguments = [
        Argument("host", endpoint.host, "listen.host"),
        Argument("port", endpoint.port, "listen.port"),
        Argument("backend", backend(scenario, settings, known, SERVE), "engine.settings.backend"),
        *of_settings(settings, *_SETTINGS),
        Argument("yaml_file", f"./{llm_api_yaml.FILE}" if file else None, "engine.settings"),
    ]
    return Command(
        (
            *locations.find(TRTLLM_SERVE),
            reference(scenario, locations).where,
            *spelled(scenario, known, SERVE, arguments),
            *extra_options.words(scenario, known, SERVE, arguments),
        ),
        env=environment(scenario, settings, known),
        files={llm_api_yaml.FILE: llm_api_yaml.text(file)} if file else {},
        asked_by=extra_options.asked_by(scenario),
    )
