"""mpirun: Open MPI starts one rank per GPU on hosts that it reaches by ssh.

As in the DeepSeek-V3 example, sections "mpirun" and "DeepGEMM".
"""

from dataclasses import replace

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.core.programs import MPIRUN
from perfgate.plan.ranks import Ranks, of_each_rank, required_hosts_for
from perfgate.scenarios.scenario import Launch, Scenario


def wrap(
    command: Command, scenario: Scenario, launch: Launch, ranks: Ranks, locations: Locations
) -> Command:
    """See `perfgate.plan.wrapping.wrapped`.

    ``-x NAME`` stands for each variable: ranks on other hosts inherit none, those on this one all.
    mpirun takes the values from its own environment, so that no argv shows them. What a person
    injected is among the command's variables, so that these win.
    """
    del scenario
    command = replace(command, env={**launch.pass_on, **command.env})
    hosts = required_hosts_for(ranks, locations)
    argv = [*locations.find(MPIRUN)]
    if launch.output is not None:
        argv += ["--output-filename", launch.output]
    argv += ["-H", ",".join(f"{host}:{ranks.per_node}" for host in hosts)]
    if launch.ssh_port is not None:
        argv += ["-mca", "plm_rsh_args", f"-p {launch.ssh_port}"]
    if launch.ssh_port is not None or not locations.on_paper:
        # Documented with the SSH daemon of a container, where everybody is root: Open MPI refuses
        # root without it and ignores it for anybody else, so a run always has it.
        argv += ["--allow-run-as-root"]
    argv += ["-n", str(ranks.total), *(word for name in command.env for word in ("-x", name))]
    return replace(command, argv=(*argv, *of_each_rank(command, locations)))
