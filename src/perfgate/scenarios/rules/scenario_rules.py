"""Rules that a scenario must keep and a schema cannot say: how its fields go together.

Each rule is one function from a scenario to its problems. Those about the load and the metrics have
modules of their own, those of an engine's documents are the engine's. Whether an engine, a client,
an evaluator or a marker is known needs more than the scenario: `vocabulary`, `markers`.
"""

from collections.abc import Callable, Iterator, Mapping

from perfgate.core.verdict import FEWEST_REFERENCES, FIRST_LOOK
from perfgate.scenarios.markers import HARDWARE_MARKERS, KIND_MARKERS, hardware_marker
from perfgate.scenarios.rules.extra_options import extra_option_rules
from perfgate.scenarios.rules.metric_rules import metric_rules
from perfgate.scenarios.rules.workload_rules import WORKLOAD_RULES
from perfgate.scenarios.scenario import Scenario
from perfgate.scenarios.yaml_document import Keys, Problem

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
    places: dict[Keys, Mapping[str, str]] = {("environment",): scenario.environment}
    if scenario.launch is not None:
        places["launch", "pass_on"] = scenario.launch.pass_on
    problem = "not a scenario's to set: programs on the way to the engine obey it"
    hint = "set it where perfgate runs; pass_on in site.yaml hands it to ranks and containers"
    for path, variables in places.items():
        for name in filter(obeyed_on_the_way, variables):
            yield Problem((*path, name), problem, name, "variables of the engine itself", hint)


Rule = Callable[[Scenario], Iterator[Problem]]


def broken_rules(scenario: Scenario, of_engines: tuple[Rule, ...] = ()) -> list[Problem]:
    """All problems that the rules find, with paths from the scenario down.

    Args:
        scenario: any scenario.
        of_engines: the rules of the engines' documents, `Vocabulary.rules`.
    """
    rules = (*_RULES, *of_engines, *_LAST_RULES)
    return [problem for rule in rules for problem in rule(scenario)]


def _measures_something(scenario: Scenario) -> Iterator[Problem]:
    if scenario.workload is None and not scenario.accuracy and scenario.smoke is None:
        expected = "a workload, accuracy, both, or at least smoke"
        hint = "add one, or delete the scenario"
        yield Problem((), "nothing to measure", expected=expected, hint=hint)


# Hardware and parallelism. ------------------------------------------------------------------


def _gpus_fit_their_name_and_nodes(scenario: Scenario) -> Iterator[Problem]:
    gpu, gpus, nodes = scenario.hardware.gpu, scenario.hardware.gpus, scenario.hardware.nodes
    if gpu == "none" and gpus != 0:
        yield Problem(("hardware", "gpus"), "GPUs without a name", gpus, "0, as gpu is none")
    if gpu != "none" and gpus == 0:
        yield Problem(("hardware", "gpus"), f"no {gpu} requested", 0, "at least 1")
    if gpus % nodes:
        problem = "GPUs cannot be divided evenly among the nodes"
        found, expected = f"{gpus} GPUs on {nodes} nodes", f"a divisor of {gpus}"
        yield Problem(("hardware", "nodes"), problem, found, expected)


def _parallelism_fills_the_gpus(scenario: Scenario) -> Iterator[Problem]:
    settings, gpus = scenario.engine.settings, scenario.hardware.gpus
    product, dp = settings.tp * settings.stages, settings.dp
    if dp is not None and settings.attention_dp and product == gpus:
        return  # SGLang divides its tensor parallelism among the parts of the attention
    found, factors = f"tp {settings.tp} × pp {settings.stages}", "tp × pp"
    if dp is not None:
        product, found, factors = product * dp, f"{found} × dp {dp}", "tp × pp × dp"
    if product != (gpus or 1):
        at = "tp" if settings.tp > 1 or settings.stages == 1 else "pp"
        expected = f"{factors} = {gpus}, the GPUs" if gpus else "tp = pp = 1 without GPUs"
        problem = "parallelism does not fit the hardware"
        yield Problem(("engine", "settings", at), problem, f"{found} = {product}", expected)


def _experts_divide_tensor_parallelism(scenario: Scenario) -> Iterator[Problem]:
    settings = scenario.engine.settings
    ranks = settings.tp * (settings.dp or 1)  # vLLM spreads the experts over both
    if settings.ep is not None and ranks % settings.ep:
        problem = "expert parallelism does not divide tensor parallelism"
        found = f"ep {settings.ep}, tp {settings.tp}"
        found += f", dp {settings.dp}" if settings.dp else ""
        divisors = [str(n) for n in range(1, ranks + 1) if ranks % n == 0]
        expected = "one of " + ", ".join(divisors)
        yield Problem(("engine", "settings", "ep"), problem, found, expected)


def _ranks_get_the_engines_environment(scenario: Scenario) -> Iterator[Problem]:
    passed = scenario.launch.pass_on if scenario.launch else {}
    for name, value in passed.items():
        own = scenario.environment.get(name, value)
        if value != own:
            problem = "the ranks would get another value than the engine's environment has"
            found = f"{value!r}, environment has {own!r}"
            yield Problem(("launch", "pass_on", name), problem, found, repr(own))


def _inert_settings_are_set(scenario: Scenario) -> Iterator[Problem]:
    asked = [name for name, value in vars(scenario.engine.settings).items() if value is not None]
    for name in scenario.engine.inert or {}:
        if name not in asked:
            path, expected = ("engine", "inert", name), "one of " + ", ".join(asked)
            yield Problem(path, "not a setting of this scenario", name, expected)


# Limits and markers. ------------------------------------------------------------------------


def _silence_ends_before_all(scenario: Scenario) -> Iterator[Problem]:
    total, silence = scenario.limits.total_s, scenario.limits.silence_s
    if total < silence:
        problem = "total shorter than the silence it allows"
        found, expected = f"total_s {total:g}, silence_s {silence:g}", f"at least {silence:g}"
        yield Problem(("limits", "total_s"), problem, found, expected)


def _turns_are_enough_to_decide(scenario: Scenario) -> Iterator[Problem]:
    gate, load = scenario.gate, scenario.workload
    is_interleaved = gate.reference == "self" and gate.noise == "measured"
    if gate.blocks and not (is_interleaved and load and load.isl and load.osl):
        expected = "reference: self and noise: measured beside it, and a workload with isl and osl"
        yield Problem(("gate", "blocks"), "blocks of nothing", gate.blocks, expected)
    if not (gate.whole_load or gate.blocks):
        yield Problem(("gate", "whole_load"), "starts without load", False, "blocks beside it")
    fewest = {"reference_starts": FEWEST_REFERENCES, "max_starts": FIRST_LOOK}
    for field, least in fewest.items() if is_interleaved else ():
        starts = getattr(gate, field)
        if starts < least:
            problem = "too few fresh starts for noise that the session itself must show"
            yield Problem(("gate", field), problem, starts, f"{least} or more, up to 8")


def _markers_do_not_contradict_its_facts(scenario: Scenario) -> Iterator[Problem]:
    own = hardware_marker(scenario)
    for position, marker in enumerate(scenario.markers):
        path = ("markers", position)
        if marker in KIND_MARKERS:
            expected = "markers that hold for all tests of the scenario"
            hint = "remove it: perfgate gives it to the tests that it fits"
            yield Problem(path, "marker of a kind of test", marker, expected, hint)
        if marker in HARDWARE_MARKERS and marker != own:
            expected = f"{own}, which is added by itself"
            yield Problem(path, "marker of other hardware", marker, expected)


_RULES: tuple[Rule, ...] = (
    _measures_something,
    _gpus_fit_their_name_and_nodes,
    _parallelism_fills_the_gpus,
    _experts_divide_tensor_parallelism,
    _ranks_get_the_engines_environment,
    _inert_settings_are_set,
    _variables_are_the_engines,
    extra_option_rules,
    *WORKLOAD_RULES,
    metric_rules,
)
# Told after those of the engines' documents.
_LAST_RULES: tuple[Rule, ...] = (
    _silence_ends_before_all,
    _turns_are_enough_to_decide,
    _markers_do_not_contradict_its_facts,
)
