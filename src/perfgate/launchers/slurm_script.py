"""The texts that Slurm is given: the job script and the argv of sbatch and srun. Pure."""

import math
import re
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfgate.errors import InputError
from perfgate.scenarios.scenario import Scenario
from perfgate.site import SlurmSite

SCRIPT = "allocation.sbatch"
BEAT = "allocation.beat"
SIGNS_OF_LIFE = 18  # of these, all must be missed before a job takes perfgate for gone

# Variables that a job's own environment sets and that srun would take for options.
_OPTIONS_OF_SRUN = re.compile(
    r"SLURM_(NTASKS|NPROCS|NNODES|JOB_NUM_NODES|NTASKS_PER_\w+|TASKS_PER_NODE|CPUS_PER_\w+|"
    r"GPUS\w*|GRES\w*|MEM_\w+|CPU_BIND\w*|GPU_BIND|DISTRIBUTION|HOSTFILE|EXCLUSIVE|EXACT|WHOLE|"
    r"OVERLAP|EXPORT_ENV|HINT|THREADS|STDINMODE|STDOUTMODE|STDERRMODE|KILL_BAD_EXIT|"
    r"WORKING_DIR|STEP_\w+|JOB_NODELIST|NODELIST|RELATIVE|LABELIO|UNBUFFEREDIO|WAIT|TIMELIMIT)"
)


@dataclass(frozen=True)
class JobRequest:
    """A job that holds nodes for one fresh start.

    Attributes:
        name: of the job.
        folder: where its script and logs go, seen by every node.
        nodes, gpus_per_node, gpu: what the scenario needs; 0 and "none" without GPUs.
        seconds: time limit.
        exclude: nodes that must not be among them.
    """

    name: str
    folder: Path
    nodes: int
    gpus_per_node: int
    gpu: str
    seconds: float
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True)
class RenderedJob:
    """A job as it would be submitted: sbatch's argv, and the text of the script it names last."""

    argv: tuple[str, ...]
    script_text: str


def request_for(
    scenario: Scenario, site: SlurmSite, folder: Path, seconds: float, exclude: Collection[str] = ()
) -> JobRequest:
    """The job for a fresh start whose programs may take `seconds`."""
    hardware = scenario.hardware
    asked = seconds + site.time_margin_s
    return JobRequest(
        f"perfgate-{scenario.id}",
        folder,
        hardware.nodes,
        0 if hardware.gpu == "none" else hardware.gpus // hardware.nodes,
        hardware.gpu,
        asked if site.most_time_s is None else min(asked, site.most_time_s),
        tuple(sorted(exclude)),
    )


def render_job(request: JobRequest, site: SlurmSite) -> RenderedJob:
    """The job that holds the nodes, as sbatch takes it; nothing is submitted.

    What the site says stands in the script, where SBATCH_* variables of the environment go before
    it (`man sbatch`, "INPUT ENVIRONMENT VARIABLES"); what must be so is on the command line, where
    nothing goes before it.

    Raises:
        InputError: an option of the site that a job script cannot hold.
    """
    log = str(request.folder / "allocation.job").replace("%", "%%")
    argv = ["sbatch", "--parsable", "--no-requeue", f"--job-name={request.name}"]
    argv += [f"--nodes={request.nodes}", f"--ntasks-per-node={max(1, request.gpus_per_node)}"]
    argv += [f"--output={log}.out", f"--error={log}.err", f"--chdir={request.folder}"]
    if request.exclude:
        argv.append("--exclude=" + ",".join(request.exclude))
    script = str(request.folder / SCRIPT)
    lines = ["#!/bin/sh", *(f"#SBATCH {_quoted(one)}" for one in _site_options(request, site))]
    lines += [_HOLD.format(beat=shlex.quote(str(request.folder / BEAT)), **_pace(site))]
    return RenderedJob((*argv, script), "\n".join(lines))


def beat_every_s(site: SlurmSite) -> float:
    """How often the keeper gives a sign of life: often enough for one to be late."""
    return site.lost_after_s / SIGNS_OF_LIFE


def srun_argv(
    job: str,
    node: str,
    name: str,
    cwd: Path,
    site: SlurmSite,
    environment: Collection[str] = (),
    *,
    contained: bool = False,
) -> tuple[str, ...]:
    """What stands before an argv so that it runs on `node` as a step of `job`.

    Args:
        job: number of the job.
        node: one of its nodes.
        name: of the step.
        cwd: working folder, seen by the node.
        site: further options, and the container.
        environment: names of the variables here; those that srun would obey are taken away.
        contained: whether it runs in the site's container.
    """
    argv = _without(environment)
    argv += ["srun", f"--jobid={job}", "--overlap", "--nodes=1", "--ntasks=1"]
    argv += ["--ntasks-per-node=1", f"--nodelist={node}", f"--job-name={name}", "--export=ALL"]
    argv += ["--mpi=none", "--input=none", f"--chdir={cwd}", *site.step_options]
    if contained and site.container is not None:
        mounts = [*site.container.mounts, f"{cwd}:{cwd}"]
        argv += [f"--container-image={site.container.image}"]
        argv += [f"--container-mounts={','.join(mounts)}", f"--container-workdir={cwd}"]
    return tuple(argv)


def within_job(argv: Sequence[str], job: str, environment: Collection[str] = ()) -> tuple[str, ...]:
    """A command that calls srun itself (a documented launch), as a step of `job`."""
    return (*_without(environment), argv[0], f"--jobid={job}", "--overlap", *argv[1:])


def calls_srun(argv: Sequence[str]) -> bool:
    """Whether a command is an srun call of its own."""
    return Path(argv[0]).name == "srun"


def _without(environment: Collection[str]) -> list[str]:
    names = sorted(name for name in environment if _OPTIONS_OF_SRUN.fullmatch(name))
    return ["env", *(word for name in names for word in ("-u", name))] if names else []


def _site_options(request: JobRequest, site: SlurmSite) -> list[str]:
    options = [f"--time={math.ceil(request.seconds / 60)}"]
    for name in ("partition", "account", "qos", "constraint", "reservation", "nodelist"):
        value = getattr(site, name)
        if value is not None:
            options.append(f"--{name}={value}")
    if request.gpus_per_node:
        gres = site.gres.replace("{gpus}", str(request.gpus_per_node))
        options.append("--gres=" + gres.replace("{gpu}", request.gpu.lower()))
    if site.exclusive:
        options.append("--exclusive")
    if site.memory is not None:
        options.append(f"--mem={site.memory}")
    if site.segment is not None:
        options.append(f"--segment={site.segment}")
    return [*options, *site.options]


def _quoted(option: str) -> str:
    """An option for a ``#SBATCH`` line, where a bare ``#`` would begin a comment."""
    if "\n" in option:
        raise InputError("a job script's option is one line", found=repr(option))
    if re.fullmatch(r"[\w=:.,/@%+\[\]-]+", option):
        return option
    name, equals, value = option.partition("=")
    escaped = (value if equals else name).replace("\\", "\\\\").replace('"', '\\"')
    return f'{name}="{escaped}"' if equals else f'"{escaped}"'


def _pace(site: SlurmSite) -> dict[str, str]:
    return {"signs": str(SIGNS_OF_LIFE), "every": f"{beat_every_s(site):g}"}


_HOLD = """\

# Holds the nodes; perfgate's programs are steps of this job. It ends when perfgate has gone without
# cancelling it: the file below changes for as long as perfgate lives.
beat={beat}
missed=0
seen=
while [ $missed -lt {signs} ]; do
  sleep {every}
  now=$(cat "$beat" 2>/dev/null)
  if [ "$now" = "$seen" ]; then
    missed=$((missed + 1))
  else
    missed=0
    seen=$now
  fi
done
echo "no sign of life from perfgate: its nodes are given back"
"""
