"""The texts that Slurm is given: the job script and the argv of sbatch and srun. Pure."""

import math
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfgate.core.errors import InputError
from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.programs import SRUN
from perfgate.core.redaction import control_character_in
from perfgate.launchers.site import SlurmSite
from perfgate.plan.container import with_mounts
from perfgate.plan.ranks import Ranks, of_each_rank, ranks_of
from perfgate.plan.srun import container_options, pyxis_options, step_options
from perfgate.scenarios.scenario import Hardware, Scenario

SCRIPT = "allocation.sbatch"
BEAT = "allocation.beat"
_HOLD = Path(__file__).with_name("hold.sh").read_text(encoding="utf-8")
SIGNS_OF_LIFE = 18  # of these, all must be missed before a job takes perfgate for gone

# Variables that a job's own environment sets and that srun would take for options.
_OPTIONS_OF_SRUN = re.compile(
    r"SLURM_(NTASKS|NPROCS|NNODES|JOB_NUM_NODES|NTASKS_PER_\w+|TASKS_PER_NODE|CPUS_PER_\w+|"
    r"GPUS\w*|GRES\w*|TRES_\w+|MEM_\w+|CPU_BIND\w*|GPU_BIND|DISTRIBUTION|HOSTFILE|EXCLUSIVE|EXACT|"
    r"WHOLE|MPI_TYPE|"
    r"OVERLAP|EXPORT_ENV|HINT|THREADS|STDINMODE|STDOUTMODE|STDERRMODE|KILL_BAD_EXIT|"
    r"WORKING_DIR|STEP_\w+|JOB_NODELIST|NODELIST|RELATIVE|LABELIO|UNBUFFEREDIO|WAIT|TIMELIMIT)"
    r"|SRUN_CPUS_PER_TASK"  # it would also leave the other cores of the node out
)


@dataclass(frozen=True)
class RenderedJob:
    """A job as it would be submitted: sbatch's argv, and the text of the script it names last."""

    argv: tuple[str, ...]
    script_text: str


def render_job(
    scenario: Scenario,
    site: SlurmSite,
    folder: Path,
    seconds: float,
    exclude: Collection[str] = (),
    nodelist: Sequence[str] = (),
) -> RenderedJob:
    """The job that holds the nodes of one fresh start, as sbatch takes it; nothing is submitted.

    What the site says stands in the script, where SBATCH_* variables of the environment go before
    it (`man sbatch`, "INPUT ENVIRONMENT VARIABLES"); what must be so is on the command line, where
    nothing goes before it.

    Args:
        scenario: what is started.
        site: how jobs are asked for.
        folder: where the job's script and logs go, seen by every node.
        seconds: the longest that the start's programs may take.
        exclude: nodes that must not be among them.
        nodelist: the nodes that they must be; empty: any.

    Raises:
        InputError: an option of the site that a job script cannot hold.
    """
    hardware = scenario.hardware
    tasks = 1 if hardware.gpu == "none" else hardware.gpus // hardware.nodes
    log = str(folder / "allocation.job").replace("%", "%%")
    argv = ["sbatch", "--parsable", "--no-requeue", f"--job-name=perfgate-{scenario.id}"]
    argv += [f"--nodes={hardware.nodes}", f"--ntasks-per-node={max(1, tasks)}"]
    argv += [f"--output={log}.out", f"--error={log}.err", f"--chdir={folder}"]
    if exclude:
        argv.append("--exclude=" + ",".join(sorted(exclude)))
    if nodelist:
        argv.append("--nodelist=" + ",".join(nodelist))
    options = _site_options(site, gres_of(site, hardware), seconds + site.time_margin_s)
    lines = ["#!/bin/sh", *(f"#SBATCH {_quoted(option)}" for option in options)]
    pace = {"signs": SIGNS_OF_LIFE, "every": f"{beat_every_s(site):g}"}
    lines += [_HOLD.format(beat=shlex.quote(str(folder / BEAT)), **pace)]
    return RenderedJob((*argv, str(folder / SCRIPT)), "\n".join(lines))


def beat_every_s(site: SlurmSite) -> float:
    """How often the guard gives a sign of life: often enough for one to be late."""
    return site.lost_after_s / SIGNS_OF_LIFE


@dataclass(frozen=True)
class JobSteps:
    """How programs become steps of a job.

    Attributes:
        job: its number.
        site: further options, and the container.
        environment: names of the variables here; those that srun would obey are taken away.
        mounts: further folders that the container has under their own paths.
    """

    job: str
    site: SlurmSite
    environment: Collection[str] = ()
    mounts: tuple[Path, ...] = ()

    def srun(
        self,
        nodes: Sequence[str],
        name: str,
        cwd: Path,
        *,
        gres: str | None = None,
        contained: Sequence[str] | None = None,
    ) -> tuple[str, ...]:
        """What stands before an argv so that it runs as a step, once on each of `nodes`.

        Args:
            nodes: of the job's.
            name: of the step.
            cwd: working folder, seen by the nodes.
            gres: the GPUs of each node, as ``--gres`` takes them; None: those that the job asked
                for.
            contained: names of the variables that the command sets, if it runs in the site's
                container; None: it does not.
        """
        argv = [*_without(self.environment), "srun", *self._within(name, cwd)]
        argv += step_options(Ranks(len(nodes), 1), nodes, mpi="none", gres=gres)
        if contained is not None:
            argv += self._container(cwd, contained)
        return tuple(argv)

    def call(
        self, argv: Sequence[str], name: str, cwd: Path, contained: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """A command that calls srun itself (the ranks of an engine), as a step.

        Ranks end together: without a word to srun the others would wait for ever for one that
        ended before it had found them.

        Args:
            argv: srun with its own options, which come last and so win.
            name, cwd, contained: as for `srun`.
        """
        ours = [*self._within(name, cwd), *self._container(cwd, contained), "--kill-on-bad-exit=1"]
        return (*_without(self.environment), argv[0], *ours, *argv[1:])

    def _container(self, cwd: Path, contained: Sequence[str]) -> list[str]:
        return _container(self.site, (cwd, *self.mounts), cwd, contained)

    def _within(self, name: str, cwd: Path) -> list[str]:
        """What every step has: its job, and all of our environment."""
        argv = [f"--jobid={self.job}", "--overlap", f"--job-name={name}", "--export=ALL"]
        return [*argv, "--input=none", f"--chdir={cwd}", *self.site.step_options]


def as_ranks(
    command: Command,
    scenario: Scenario,
    locations: Locations,
    site: SlurmSite,
    nodes: Sequence[str],
) -> Command:
    """The engine's command as ranks on `nodes`; itself where its document launches none.

    mpirun, srun and sbatch all come to the same processes: a rank per GPU under
    `trtllm-llmapi-launch`. In a job of perfgate's, srun starts them: it knows the nodes, ends all
    ranks with one of them, and needs neither ssh nor a second job. What the document hands to every
    rank (`mpirun -x`) is in the environment of srun, and so in that of the ranks.

    Raises:
        InputError: the GPUs cannot be divided evenly among the nodes.
        MissingProgram: a program is not here (never on paper).
    """
    launch = scenario.launch
    if launch is None:
        return command
    command = replace(command, env={**launch.pass_on, **command.env})
    # The site's own container is added when the step is started, and its folder is known.
    other = [] if site.container is not None else container_options(command, scenario, locations)
    gres = gres_of(site, scenario.hardware)
    options = step_options(ranks_of(scenario), nodes, mpi="pmix", gres=gres)
    unseen = bool(other) or (site.container is not None and locations.inside is None)
    inner = of_each_rank(command, locations, in_container=unseen)
    return replace(command, argv=(*locations.find(SRUN), *options, *other, *inner))


def gres_of(site: SlurmSite, hardware: Hardware) -> str | None:
    """The GPUs of a node, as ``--gres`` takes them; None where the scenario needs none."""
    if hardware.gpu == "none":
        return None
    gpus = str(hardware.gpus // hardware.nodes)
    return site.gres.replace("{gpus}", gpus).replace("{gpu}", hardware.gpu.lower())


def asking_argv(
    site: SlurmSite, mounts: Sequence[Path], environ: Mapping[str, str], seconds: float
) -> tuple[str, ...]:
    """What stands before an argv so that it runs in the site's container, on whatever node.

    In an allocation it is a step of it, on a login node a small job of its own: with the site's
    options, or those that SBATCH_* variables name, but for what makes a job large.

    Args:
        site: the container, and how jobs are asked for.
        mounts: folders that the container has under their own paths.
        environ: the environment here.
        seconds: how long it may take.
    """
    argv = [*_without(environ), "srun"]
    job = environ.get("SLURM_JOB_ID")
    if job:
        argv += [f"--jobid={job}", "--overlap"]
    else:
        argv += [_time_limit(site, seconds), *site.options, *_named(site, environ)]
    argv += [*step_options(Ranks(1, 1), (), mpi="none"), "--job-name=perfgate-asks"]
    argv += ["--export=ALL", "--input=none", "--chdir=/", *site.step_options]
    return (*argv, *_container(site, mounts))


def calls_srun(argv: Sequence[str]) -> bool:
    """Whether a command is an srun call of its own."""
    return Path(argv[0]).name == "srun"


def _container(
    site: SlurmSite,
    folders: Sequence[Path],
    workdir: Path | None = None,
    environment: Sequence[str] = (),
) -> list[str]:
    """Options of the pyxis plugin for the site's container; none where the site has none.

    Args:
        site: image and mounts.
        folders: mounted under their own paths, but where the site mounts something there.
        workdir: the working folder; None: the image's own.
        environment: variables of the command's, named so that the image's own values do not win
            (`srun --help` of pyxis).
    """
    container = site.container
    if container is None:
        return []
    mounts = with_mounts(container.mounts, (f"{folder}:{folder}" for folder in folders))
    where = None if workdir is None else str(workdir)
    return pyxis_options(container.image, mounts, where, environment)


def _without(environment: Collection[str]) -> list[str]:
    names = sorted(name for name in environment if _OPTIONS_OF_SRUN.fullmatch(name))
    return ["env", *(word for name in names for word in ("-u", name))] if names else []


def _site_options(site: SlurmSite, gres: str | None, seconds: float) -> list[str]:
    options = [_time_limit(site, seconds), *_named(site, {}, "nodelist"), *_given(gres=gres)]
    options += ["--exclusive"] if site.exclusive else []
    return [*options, *_given(mem=site.memory, segment=site.segment), *site.options]


def _time_limit(site: SlurmSite, seconds: float) -> str:
    most = seconds if site.most_time_s is None else min(seconds, site.most_time_s)
    return f"--time={math.ceil(most / 60)}"


def _named(site: SlurmSite, environ: Mapping[str, str], *more: str) -> list[str]:
    """The site's options that name where jobs go; SBATCH_* variables of `environ` go before."""
    names = ("partition", "account", "qos", "constraint", "reservation", *more)
    chosen = {name: environ.get(f"SBATCH_{name.upper()}") or getattr(site, name) for name in names}
    return _given(**chosen)


def _given(**options: object) -> list[str]:
    """The options that have a value."""
    return [f"--{name}={value}" for name, value in options.items() if value is not None]


def _quoted(option: str) -> str:
    """An option for a ``#SBATCH`` line, where a bare ``#`` would begin a comment."""
    if control_character_in(option) is not None:
        raise InputError("a job script's option is one line of printable text", found=repr(option))
    if re.fullmatch(r"[\w=:.,/@%+\[\]-]+", option):
        return option
    name, equals, value = option.partition("=")
    escaped = (value if equals else name).replace("\\", "\\\\").replace('"', '\\"')
    return f'{name}="{escaped}"' if equals else f'"{escaped}"'
