"""Rules that a scenario must keep and a schema cannot say: how its fields go together.

Each rule is one function from a scenario to its problems; `RULES` lists them. Those about the load,
the metrics and TensorRT-LLM have modules of their own. Whether an engine, a client, an
evaluator or a marker is known needs more than the scenario: `vocabulary`, `markers`.
"""

from collections.abc import Callable, Iterator, Mapping

from perfgate.core.rule import FEWEST_REFERENCES, FIRST_LOOK
from perfgate.scenarios.extra_options import EXTRA_OPTION_RULES
from perfgate.scenarios.markers import HARDWARE_MARKERS, KIND_MARKERS, hardware_marker
from perfgate.scenarios.metric_rules import METRIC_RULES
from perfgate.scenarios.problem import Keys, Problem
from perfgate.scenarios.scenario import Scenario
from perfgate.scenarios.smoke_rules import SMOKE_RULES
from perfgate.scenarios.tensorrt_llm_rules import TENSORRT_LLM_RULES
from perfgate.scenarios.workload_rules import WORKLOAD_RULES

_OBEYED = {
    *("PATH", "HOME", "SHELL", "ENV", "IFS", "PS4", "CDPATH", "SHELLOPTS", "TMPDIR"),
    *("PROMPT_COMMAND", "GCONV_PATH", "GLIBC_TUNABLES", "LOCPATH", "NLSPATH"),
    *("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "PYTHONWARNINGS"),
    *("PYTHONINSPECT", "PYTHONBREAKPOINT", "PERL5LIB", "PERL5OPT", "RUBYOPT", "NODE_OPTIONS"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "FTP_PROXY"),
}
_FAMILIES = (
    *("BASH", "LD_", "DYLD_", "DOCKER_", "SLURM", "SBATCH_", "SRUN_", "SALLOC_", "SCANCEL_"),
    *("OMPI_", "OPAL_", "ORTE_", "PRTE_", "PMIX_", "HYDRA_", "SSH_", "GIT_", "CURL_", "PERFGATE_"),
)


# A scenario's variables are the engine's. On their way they pass through a shell, ssh, docker, srun
# or mpirun, which would obey some of them: another program, another file to load, another host.
# Those are for whoever runs perfgate to set, and are passed on from there.
def obeyed_on_the_way(name: str) -> bool:
    """Whether a program between perfgate and the engine would take the variable for an order."""
    upper = name.upper()
    return upper in _OBEYED or upper.startswith(_FAMILIES)


def _variables_are_the_engines(scenario: Scenario) -> Iterator[Problem]:
    launch = scenario.launch
    places: dict[Keys, Mapping[str, str]] = {("environment",): scenario.environment}
    if launch is not None:
        places[("launch", "pass_on")] = launch.pass_on
    for path, variables in places.items():
        for name in variables:
            if obeyed_on_the_way(name):
                yield Problem(
                    (*path, name),
                    "not a scenario's to set: programs on the way to the engine obey it",
                    name,
                    "variables of the engine itself",
                    "set it where perfgate runs; pass_on in site.yaml hands it to ranks and "
                    "containers",
                )


Rule = Callable[[Scenario], Iterator[Problem]]


def broken_rules(scenario: Scenario) -> list[Problem]:
    """All problems that the rules find, with paths from the scenario down."""
    return [problem for rule in RULES for problem in rule(scenario)]


def _measures_something(scenario: Scenario) -> Iterator[Problem]:
    if scenario.workload is None and not scenario.accuracy and scenario.smoke is None:
        yield Problem(
            (),
            "nothing to measure",
            expected="a workload, accuracy, both, or at least smoke",
            hint="add one, or delete the scenario",
        )


# Hardware and parallelism. ------------------------------------------------------------------


def _gpus_fit_their_name(scenario: Scenario) -> Iterator[Problem]:
    hardware = scenario.hardware
    if hardware.gpu == "none" and hardware.gpus != 0:
        yield Problem(
            ("hardware", "gpus"), "GPUs without a name", hardware.gpus, "0, as gpu is none"
        )
    if hardware.gpu != "none" and hardware.gpus == 0:
        yield Problem(("hardware", "gpus"), f"no {hardware.gpu} requested", 0, "at least 1")


def _nodes_share_gpus_evenly(scenario: Scenario) -> Iterator[Problem]:
    gpus, nodes = scenario.hardware.gpus, scenario.hardware.nodes
    if gpus % nodes:
        yield Problem(
            ("hardware", "nodes"),
            "GPUs cannot be divided evenly among the nodes",
            f"{gpus} GPUs on {nodes} nodes",
            f"a divisor of {gpus}",
        )


def _parallelism_fills_the_gpus(scenario: Scenario) -> Iterator[Problem]:
    settings, gpus = scenario.engine.settings, scenario.hardware.gpus
    product = settings.tp * settings.stages
    if settings.dp is not None and settings.attention_dp and product == gpus:
        return  # SGLang divides its tensor parallelism among the parts of the attention
    found = f"tp {settings.tp} × pp {settings.stages}"
    if settings.dp is not None:
        product *= settings.dp
        found += f" × dp {settings.dp}"
    if product != (gpus or 1):
        expected = f"tp × pp = {gpus}, the GPUs" if gpus else "tp = pp = 1 without GPUs"
        if settings.dp is not None:
            expected = expected.replace("tp × pp", "tp × pp × dp")
        at = "tp" if settings.tp > 1 or settings.stages == 1 else "pp"
        yield Problem(
            ("engine", "settings", at),
            "parallelism does not fit the hardware",
            f"{found} = {product}",
            expected,
        )


def _experts_divide_tensor_parallelism(scenario: Scenario) -> Iterator[Problem]:
    settings = scenario.engine.settings
    ranks = settings.tp * (settings.dp or 1)  # vLLM spreads the experts over both
    if settings.ep is not None and ranks % settings.ep:
        divisors = [str(n) for n in range(1, ranks + 1) if ranks % n == 0]
        yield Problem(
            ("engine", "settings", "ep"),
            "expert parallelism does not divide tensor parallelism",
            f"ep {settings.ep}, tp {settings.tp}" + (f", dp {settings.dp}" if settings.dp else ""),
            "one of " + ", ".join(divisors),
        )


def _ranks_get_the_engines_environment(scenario: Scenario) -> Iterator[Problem]:
    if scenario.launch is None:
        return
    for name, value in scenario.launch.pass_on.items():
        own = scenario.environment.get(name, value)
        if value != own:
            yield Problem(
                ("launch", "pass_on", name),
                "the ranks would get another value than the engine's environment has",
                f"{value!r}, environment has {own!r}",
                repr(own),
            )


def _inert_settings_are_set(scenario: Scenario) -> Iterator[Problem]:
    settings = scenario.engine.settings
    asked = [name for name in vars(settings) if getattr(settings, name) is not None]
    for name in scenario.engine.inert or {}:
        if name not in asked:
            yield Problem(
                ("engine", "inert", name),
                "not a setting of this scenario",
                name,
                "one of " + ", ".join(asked),
            )


# Limits and markers. ------------------------------------------------------------------------


def _silence_ends_before_all(scenario: Scenario) -> Iterator[Problem]:
    limits = scenario.limits
    if limits.total_s < limits.silence_s:
        yield Problem(
            ("limits", "total_s"),
            "total shorter than the silence it allows",
            f"total_s {limits.total_s:g}, silence_s {limits.silence_s:g}",
            f"at least {limits.silence_s:g}",
        )


def _turns_are_enough_to_decide(scenario: Scenario) -> Iterator[Problem]:
    gate, load = scenario.gate, scenario.workload
    takes_turns = gate.reference == "self" and gate.noise == "measured"
    if gate.blocks and not (takes_turns and load and load.isl and load.osl):
        expected = "reference: self and noise: measured beside it, and a workload with isl and osl"
        yield Problem(("gate", "blocks"), "blocks of nothing", gate.blocks, expected)
    if not (gate.whole_load or gate.blocks):
        yield Problem(("gate", "whole_load"), "starts without load", False, "blocks beside it")
    if not takes_turns:
        return
    for field, starts, least in (
        ("reference_starts", gate.reference_starts, FEWEST_REFERENCES),
        ("max_starts", gate.max_starts, FIRST_LOOK),
    ):
        if starts < least:
            yield Problem(
                ("gate", field),
                "too few fresh starts for noise that the session itself must show",
                starts,
                f"{least} or more, up to 8",
            )


def _markers_do_not_contradict_its_facts(scenario: Scenario) -> Iterator[Problem]:
    own = hardware_marker(scenario)
    for position, marker in enumerate(scenario.markers):
        if marker in KIND_MARKERS:
            yield Problem(
                ("markers", position),
                "marker of a kind of test",
                marker,
                "markers that hold for all tests of the scenario",
                "remove it: perfgate gives it to the tests that it fits",
            )
        if marker in HARDWARE_MARKERS and marker != own:
            yield Problem(
                ("markers", position),
                "marker of other hardware",
                marker,
                f"{own}, which is added by itself",
            )


RULES: tuple[Rule, ...] = (
    _measures_something,
    _gpus_fit_their_name,
    _nodes_share_gpus_evenly,
    _parallelism_fills_the_gpus,
    _experts_divide_tensor_parallelism,
    _ranks_get_the_engines_environment,
    _inert_settings_are_set,
    _variables_are_the_engines,
    *EXTRA_OPTION_RULES,
    *WORKLOAD_RULES,
    *SMOKE_RULES,
    *METRIC_RULES,
    *TENSORRT_LLM_RULES,
    _silence_ends_before_all,
    _turns_are_enough_to_decide,
    _markers_do_not_contradict_its_facts,
)
