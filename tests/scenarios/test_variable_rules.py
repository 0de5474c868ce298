"""Variables that a scenario may not set: programs between perfgate and the engine obey them."""

from dataclasses import replace

from building import SCENARIO
from tables import each

from perfgate.scenarios.rules import broken_rules, obeyed_on_the_way
from perfgate.scenarios.scenario import Launch

OBEYED = """
PATH HOME IFS BASH_ENV ENV PS4 SHELLOPTS LD_PRELOAD LD_LIBRARY_PATH PYTHONPATH PYTHONSTARTUP
DOCKER_HOST SLURM_CONF SBATCH_EXPORT OMPI_MCA_plm_rsh_agent PERFGATE_PROGRAM_DOCKER SSH_ASKPASS
http_proxy HTTPS_PROXY
"""
OF_THE_ENGINE = """
TRTLLM_DG_ENABLED NCCL_DEBUG CUDA_HOME PYTORCH_CUDA_ALLOC_CONF PYTHONUNBUFFERED OMP_NUM_THREADS
HF_HOME UCX_TLS MY_SWITCH PATHS ENVIRONMENT
"""


@each("name", OBEYED.split())
def test_what_is_obeyed_on_the_way_is_refused(name: str) -> None:
    assert obeyed_on_the_way(name)
    (problem,) = broken_rules(replace(SCENARIO, environment={name: "x"}))
    assert problem.path == ("environment", name)
    handed = replace(SCENARIO, launch=Launch("mpirun", pass_on={name: "x"}))
    assert ("launch", "pass_on", name) in [one.path for one in broken_rules(handed)]


@each("name", OF_THE_ENGINE.split())
def test_what_is_the_engines_is_not(name: str) -> None:
    assert not obeyed_on_the_way(name)
