"""The argv that Open MPI's mpirun is given. Pure: values in, values out."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from perfgate.core.command import Command
from perfgate.core.locations import Locations
from perfgate.launchers.local.job import MARK
from perfgate.launchers.site import MpirunSite
from perfgate.plan.wrapping import wrapped
from perfgate.scenarios.scenario import Scenario

RSH_ARGS = "plm_rsh_args"


def by_mpirun(
    command: Command, scenario: Scenario, locations: Locations, ssh_port: int | None
) -> Command:
    """The engine's command as mpirun starts it on `locations.hosts`: one rank per GPU.

    A document that launches by srun or sbatch has the same ranks, each under the same program
    (`perfgate.plan.ranks`); only what starts them is another.

    Raises:
        InputError: the GPUs do not spread evenly over the hosts.
        MissingProgram: mpirun or trtllm-llmapi-launch is not here.
    """
    launch = scenario.launch
    if launch is None:
        return command
    output = launch.output if launch.by == "mpirun" else None
    by = replace(launch, by="mpirun", output=output, ssh_port=ssh_port, time_limit=None)
    return wrapped(command, replace(scenario, launch=by), locations)


def started_by(
    program: Sequence[str],
    command: Command,
    cwd: Path,
    host: str,
    site: MpirunSite,
    *,
    ssh_port: int | None,
    mark: str,
    environment: Collection[str],
    root: bool,
) -> tuple[str, ...]:
    """The whole argv: of a command that calls mpirun itself, or of one process on `host`.

    What is added stands before what the command has.

    Args:
        program: how mpirun is called.
        command: what runs; its variables reach the ranks, as nothing else does over ssh.
        cwd: working folder of every rank.
        host: where a command that calls no mpirun runs.
        site: what else is said.
        ssh_port: port of the SSH daemons, for one process.
        mark: what the processes are known by.
        environment: names of the variables here.
        root: whether mpirun runs as root, which it refuses unless told.
    """
    calls = calls_mpirun(command.argv, program)
    given = command.argv[len(program) :] if calls else ()
    parameters = dict(site.mca)
    if site.rsh_agent is not None:
        parameters["plm_rsh_agent"] = site.rsh_agent
    if RSH_ARGS in given:
        parameters.pop(RSH_ARGS, None)  # the same parameter twice is an error
    elif ssh_port is not None:
        parameters[RSH_ARGS] = f"-p {ssh_port}"
    argv = [*program]
    if root and "--allow-run-as-root" not in given:
        argv.append("--allow-run-as-root")
    for name, value in parameters.items():
        argv += ["-mca", name, value]
    argv += ["--wdir", str(cwd), *_words(site.options)]
    argv += _variables(
        [*(name for name in site.pass_on if name in environment), *command.env], mark, given
    )
    if calls:
        return (*argv, *given)
    # One process would be bound to one core, all its threads with it.
    unbound = () if any("bind-to" in option for option in site.options) else ("--bind-to", "none")
    return (*argv, *unbound, "-H", f"{host}:1", "-n", "1", *command.argv)


def calls_mpirun(argv: Sequence[str], program: Sequence[str]) -> bool:
    """Whether a command is a call of that mpirun."""
    return tuple(argv[: len(program)]) == tuple(program)


def _words(options: Sequence[str]) -> list[str]:
    """Options and their values are words of their own: mpirun knows no ``--option=value``."""
    return [word for option in options for word in option.split(maxsplit=1)]


def _variables(names: Sequence[str], mark: str, given: Sequence[str]) -> list[str]:
    """``-x`` for each that is not given yet, by name: mpirun has the values in its environment.

    The one value that is written is the mark of the ranks, which is no secret: mpirun's own process
    has another.
    """
    there = {word for option, word in pairwise(given) if option == "-x"}
    added = [name for name in dict.fromkeys(names) if name not in {MARK, *there}]
    options = [word for name in added for word in ("-x", name)]
    return [*options, "-x", f"{MARK}={mark}"]
