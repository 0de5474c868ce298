"""sbatch: submit a job that starts one rank per GPU, and wait for its end.

As in the DeepSeek-V3 example, section "Example: Multi-node benchmark on GB200 Slurm cluster": a
job script that calls srun, and a script for each rank. Partition and account are the site's:
SBATCH_PARTITION and SBATCH_ACCOUNT, which sbatch reads from its environment.
"""

from collections.abc import Sequence
from dataclasses import replace

from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.programs import SBATCH, SCANCEL
from perfgate.plan.ranks import Ranks, of_each_rank
from perfgate.plan.shell_text import call, exports
from perfgate.plan.srun import container_options
from perfgate.scenarios.scenario import Launch, Scenario

JOB = "benchmark.slurm"
RANK = "benchmark.sh"
SUBMIT = "submit.sh"
RANK_OUTPUT = "bench_%j_%t.srun.out"  # %j: the job's number, %t: the rank


def wrap(
    command: Command, scenario: Scenario, launch: Launch, ranks: Ranks, locations: Locations
) -> Command:
    """See `perfgate.plan.wrapping.wrapped`.

    ``--wait`` makes the job's exit status that of sbatch, and ``exec srun`` the status of the
    ranks that of the job.
    """
    if command.stdout is not None:
        raise ValueError(f"{command.argv[0]} prints its result, which a job's ranks would mix")
    sizes = [f"--nodes={ranks.nodes}", f"--ntasks={ranks.total}"]
    sizes.append(f"--ntasks-per-node={ranks.per_node}")
    container = container_options(command, scenario, locations)
    job = _job(
        [*sizes, *_job_options(scenario, launch, locations)],
        ["srun", *container, *_srun_options(launch, locations), "bash", RANK],
    )
    inner = of_each_rank(command, locations, in_container=bool(container))
    files = {**command.files, JOB: job, RANK: _rank(command, inner)}
    argv = (*locations.find(SBATCH), "--wait", *sizes, JOB)
    if locations.on_paper:
        return replace(command, argv=argv, files=files)
    submit = _submit(argv, locations.find(SCANCEL))
    return replace(command, argv=("bash", SUBMIT), files={**files, SUBMIT: submit})


def _job_options(scenario: Scenario, launch: Launch, locations: Locations) -> list[str]:
    options = [] if launch.time_limit is None else [f"--time={launch.time_limit}"]
    options.append(f"--job-name={scenario.id}")
    # By default Slurm starts the job of a failed node again without a word, perhaps elsewhere.
    options.append("--no-requeue")
    if not locations.on_paper:
        # In a run everything goes into the launcher's logs of the step, which the parsers read.
        options += ["--output=benchmark.out", "--error=benchmark.err", "--open-mode=append"]
    return options


def _srun_options(launch: Launch, locations: Locations) -> list[str]:
    options = ["--mpi=pmix"]
    if locations.on_paper:
        options += ["--output", launch.output or RANK_OUTPUT]
    return options


def _submit(argv: Sequence[str], scancel: Sequence[str]) -> str:
    """The script of a run that submits and waits: a job is ended with it, as a run's programs are.

    An sbatch that is ended while it waits leaves its job running (seen with Slurm 22.05).
    """
    sbatch, *options = argv
    return f"""\
#!/bin/bash
{call([sbatch, "--parsable", *options], indent="")} > job.id &
end_job() {{
  {call(scancel)} "$(cut -d ";" -f 1 job.id)"
  exit 143
}}
trap end_job INT TERM
wait $!
"""


def _job(options: Sequence[str], srun: Sequence[str]) -> str:
    """The job script. In an unquoted ``#SBATCH`` value a ``#`` would begin a comment; ids, sizes
    and times have none, and the image stands in srun's line.
    """
    lines = ["#!/bin/bash", *(f"#SBATCH {option}" for option in options), ""]
    lines.append(f"exec {call(srun, indent='')}")
    return "\n".join(lines) + "\n"


def _rank(command: Command, argv: Sequence[str]) -> str:
    """The script of a rank; what it asks for comes with the environment that sbatch hands on."""
    lines = ["#!/bin/bash", "set -e", *exports(command.env), f"exec {call(argv, indent='')}"]
    return "\n".join(lines) + "\n"
