"""Wrapping: a command as it reaches several nodes, or a container. Nothing is started here.

One function per way, each from a `Command` to a `Command`. The launcher starts what comes out.
"""

from dataclasses import replace

from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.programs import MPIRUN
from perfgate.plan import sbatch, srun
from perfgate.plan.ranks import Ranks, of_each_rank, ranks_of, required_hosts_for
from perfgate.scenarios.scenario import Launch, Scenario


def by_mpirun(command: Command, launch: Launch, ranks: Ranks, locations: Locations) -> Command:
    """Open MPI starts one rank per GPU on hosts that it reaches by ssh.

    As in the DeepSeek-V3 example, sections "mpirun" and "DeepGEMM".

    ``-x NAME`` stands for each variable: ranks on other hosts inherit none, those on this one all.
    mpirun takes the values from its own environment, so that no argv shows them. What a person
    injected is among the command's variables, so that these win.
    """
    command = replace(command, env={**launch.pass_on, **command.env})
    hosts = required_hosts_for(ranks, locations)
    argv = [*locations.find(MPIRUN)]
    if launch.output is not None and not command.on_every_rank:  # whose answers are in the log
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


def wrapped(command: Command, scenario: Scenario, locations: Locations) -> Command:
    """The engine's command as the scenario's document launches it; itself without a launch.

    Only what runs on the scenario's GPUs is wrapped, servers and benchmarks; clients, evaluators
    and the making of datasets run where perfgate runs. All nodes must see the folder that perfgate
    runs in, under the same path: files are named relative to it.

    Raises:
        InputError: the nodes are not known, or the GPUs do not spread evenly over them.
        MissingProgram: the launching program is not here (never on paper).
    """
    launch = scenario.launch
    if launch is None:
        return command
    ranks = ranks_of(scenario)
    if launch.by == "mpirun":
        return by_mpirun(command, launch, ranks, locations)
    wrap = srun.wrap if launch.by == "srun" else sbatch.wrap
    return wrap(command, scenario, launch, ranks, locations)
