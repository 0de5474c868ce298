"""`trtllm-serve`: the server that the load clients and lm_eval talk to."""

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.core.programs import TRTLLM_SERVE
from perfgate.engines.arguments import Argument, of_settings
from perfgate.engines.base import Endpoint, EngineBuild
from perfgate.engines.tensorrt_llm.llm_program import LlmProgram
from perfgate.engines.tensorrt_llm.table import SERVE
from perfgate.engines.weights import reference
from perfgate.scenarios.scenario import Scenario

# Settings that are options of a program which serves, or evaluates, a model.
SETTINGS = (
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
    program = LlmProgram.of(SERVE, scenario, build)
    arguments = [
        Argument("host", endpoint.host, "listen.host"),
        Argument("port", endpoint.port, "listen.port"),
        program.backend,
        *of_settings(program.settings, *SETTINGS),
        program.yaml_file,
    ]
    return program.command(
        (
            *locations.find(TRTLLM_SERVE),
            reference(scenario, locations).where,
            *program.words(arguments),
            *program.extra_words(arguments),
        )
    )
