"""Rules of variables: which ones a scenario may not set.

A scenario's variables are the engine's. On their way they pass through a shell, ssh, docker, srun
or mpirun, which would take some of them for an order: another program, another file to load,
another host. Those are for whoever runs perfgate to set, and are handed on from there.
"""

from collections.abc import Iterator, Mapping

from perfgate.scenarios.problem import Keys, Problem
from perfgate.scenarios.scenario import Scenario

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


VARIABLE_RULES = (_variables_are_the_engines,)
