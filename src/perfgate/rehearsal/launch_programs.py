"""A stand-in for mpirun, srun, sbatch, trtllm-llmapi-launch, docker: runs a command once, here.

What the command measures is synthetic: inside, programs are found among the other stand-ins.
"""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from perfgate.core.programs import TRTLLM_LAUNCH
from perfgate.rehearsal.argparse_options import given_of
from perfgate.rehearsal.playbook import Playbook, announce, end, here

_JOB = "4711"
# Where a rank finds its number: Open MPI's, and Slurm's with and without PMIx.
_RANK = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID")


@dataclass(frozen=True)
class Wrapped:
    """A command inside a launcher: its words, what is added to its environment, its output file."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    stdout: str | None = None
    stderr: str | None = None


# Options of each program that take a value, and those that take none; what is written with "="
# needs not be known. From the programs' own documentation.
_MPIRUN = (
    "-n -np -c -H --host --hostfile -hostfile -x --output-filename --bind-to --map-by --rank-by "
    "-wdir --wdir --timeout",
    "--allow-run-as-root --oversubscribe --tag-output --timestamp-output --report-bindings",
)
_SRUN = (
    "-N --nodes -n --ntasks --ntasks-per-node -w --nodelist -o --output -e --error --mpi --gres "
    "-p --partition -A --account -t --time -J --job-name --container-image --container-mounts "
    "--container-workdir --container-name --container-env --gpus-per-node --cpus-per-task "
    "--export -D --chdir --open-mode --kill-on-bad-exit",
    "-l --label --exclusive --overlap --no-container-mount-home --container-mount-home "
    "-K -v -u --unbuffered",
)
_SBATCH = (_SRUN[0], f"{_SRUN[1]} -W --wait --parsable --no-requeue --requeue")
_DOCKER_RUN = (
    "--name --ipc --gpus -p --publish -v --volume --network --net --ulimit -w --workdir -e --env "
    "--env-file --entrypoint --shm-size -u --user --label -l --mount --runtime --pid --hostname "
    "--cap-add --security-opt --device --cidfile --stop-timeout --pull --platform",
    "--rm -i -t -it -ti -d --detach --init --privileged --read-only --interactive --tty",
)
_DOCKER_EXEC = (
    "-e --env --env-file -w --workdir -u --user",
    "-i -t -it -ti -d --privileged --interactive --tty",
)


def main(argv: Sequence[str] | None = None) -> None:
    """First word: the program to imitate; the rest: its arguments."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words:
        end("which program?")
    program, rest = words[0], words[1:]
    playbook = here()
    announce(program)
    if rest == ["--version"]:
        print(f"{program} (perfgate rehearsal)")
        return
    if program not in _PROGRAMS:
        end(f"{program} has no stand-in")
    raise SystemExit(_PROGRAMS[program](playbook, rest))


def mpirun(playbook: Playbook, argv: Sequence[str]) -> int:
    """``mpirun [options] command``."""
    env: dict[str, str] = {}
    output, hosts, ranks = None, "here", "1"
    left = list(argv)
    while left and left[0].startswith("-"):
        name = left.pop(0)
        if name in ("-mca", "--mca"):
            del left[:2]
        elif name in _MPIRUN[0].split() and left:
            value = left.pop(0)
            if name == "-x" and "=" in value:
                variable, _, said = value.partition("=")
                env[variable] = said
            if name == "--output-filename":
                output = value
            hosts = value if name in ("-H", "--host") else hosts
            ranks = value if name in ("-n", "-np", "-c") else ranks
        elif name not in _MPIRUN[1].split() and "=" not in name:
            print(f'mpirun: Error: unknown option "{name}"', file=sys.stderr)
            return 1
    if output is not None:
        # Open MPI 4 writes there as well as to the terminal; here the folder is enough.
        Path(output, "1", "rank.0").mkdir(parents=True, exist_ok=True)
    nodes = [host.partition(":")[0] for host in hosts.split(",")]
    who = [
        {"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": ranks, "PMIX_HOSTNAME": node}
        for rank, node in _placed(int(ranks), nodes)
    ]
    status = _run_ranks(playbook, Wrapped(tuple(left), env), who)
    if status:
        rule = "-" * 74
        told = f"exited on signal {-status}" if status < 0 else f"exit code {status}"
        print(
            f"{rule}\nPrimary job  terminated normally, but 1 process returned\n"
            "a non-zero exit code. Per user-direction, the job has been aborted.\n"
            f"{rule}\nmpirun noticed that process rank 0 with PID 0 on node here {told}.\n{rule}",
            file=sys.stderr,
        )
    return _as_shell(status)


def srun(playbook: Playbook, argv: Sequence[str]) -> int:
    """``srun [options] command``."""
    options, left = _split("srun", argv, _SRUN)
    output = options.get("--output", options.get("-o"))
    error = options.get("--error", options.get("-e"))
    env = {"SLURM_JOB_ID": _JOB, "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}
    tasks = options.get("--ntasks", options.get("-n", "1"))
    count = int(options.get("--nodes", options.get("-N", "1")))
    named = options.get("--nodelist", options.get("-w", ""))
    nodes = named.split(",") if named else [f"here{number}" for number in range(1, count + 1)]
    who = [
        {"SLURM_PROCID": rank, "SLURM_STEP_NUM_TASKS": tasks, "SLURMD_NODENAME": node}
        for rank, node in _placed(int(tasks), nodes)
    ]
    status = _run_ranks(playbook, Wrapped(tuple(left), env, output, error or output), who)
    if status:
        told = f"Killed by signal {-status}" if status < 0 else f"Exited with exit code {status}"
        print(f"srun: error: here: task 0: {told}", file=sys.stderr)
    return _as_shell(status)


def sbatch(playbook: Playbook, argv: Sequence[str]) -> int:
    """``sbatch [options] script``: the script's own options, then those of the command line."""
    options, left = _split("sbatch", argv, _SBATCH)
    if not left:
        end("sbatch needs a script", 1)
    script = Path(left[0])
    written = [
        shlex.split(line.removeprefix("#SBATCH"))
        for line in script.read_text().splitlines()
        if line.startswith("#SBATCH")
    ]
    inner, _ = _split("sbatch", [word for words in written for word in words], _SBATCH)
    chosen = {**inner, **options}
    output = chosen.get("--output", chosen.get("-o", f"slurm-{_JOB}.out"))
    error = chosen.get("--error", chosen.get("-e", output))
    print(_JOB if "--parsable" in chosen else f"Submitted batch job {_JOB}", flush=True)
    job = Wrapped(
        ("bash", str(script), *left[1:]),
        {"SLURM_JOB_ID": _JOB, "SLURM_JOBID": _JOB, "SLURM_SUBMIT_DIR": str(Path.cwd())},
        output,
        error,
    )
    if "--wait" in chosen or "-W" in chosen:
        return _as_shell(_run(playbook, job))
    if os.fork() == 0:  # the job lives on when sbatch has ended
        os.setsid()
        os._exit(_as_shell(_run(playbook, job)))
    return 0


def llmapi_launch(playbook: Playbook, argv: Sequence[str]) -> int:
    """``trtllm-llmapi-launch command``: the first rank runs it, the others have nothing to do."""
    if any(os.environ.get(name, "0") != "0" for name in _RANK):
        return 0
    return _as_shell(_run(playbook, Wrapped(tuple(argv))))


def docker(playbook: Playbook, argv: Sequence[str]) -> int:
    """``docker run [options] image command`` and ``docker exec [options] name command``."""
    verb, rest = (argv[0], argv[1:]) if argv else ("", argv)
    if verb == "run":
        return _docker_run(playbook, rest)
    if verb == "exec":
        options, left = _split("docker exec", rest, _DOCKER_EXEC)
        return _as_shell(_run(playbook, Wrapped(tuple(left[1:]), _variables(rest, options))))
    if verb in ("image", "inspect"):
        variables = [f"TRT_LLM_VERSION={playbook.version}", "TRT_LLM_GIT_COMMIT="]
        labels = {"org.opencontainers.image.version": playbook.version}
        print(json.dumps([{"Config": {"Env": variables, "Labels": labels}}]))
    return 0


def _docker_run(playbook: Playbook, argv: Sequence[str]) -> int:
    options, left = _split("docker run", argv, _DOCKER_RUN)
    if not left:
        print('docker: "docker run" requires at least 1 argument.', file=sys.stderr)
        return 125
    entry = options.get("--entrypoint")
    command = (entry, *left[1:]) if entry else tuple(left[1:])
    return _as_shell(_run(playbook, Wrapped(command, _variables(argv, options))))


def _variables(argv: Sequence[str], options: Mapping[str, str]) -> dict[str, str]:
    """What ``-e`` says, as often as it stands there."""
    if "-e" not in options and "--env" not in options:
        return {}
    found = {}
    for name, value in pairwise(argv):
        if name in ("-e", "--env") and "=" in value:
            variable, _, said = value.partition("=")
            found[variable] = said
    return found


_PROGRAMS = {
    "mpirun": mpirun,
    "srun": srun,
    "sbatch": sbatch,
    "trtllm-llmapi-launch": llmapi_launch,
    "docker": docker,
}


def _split(
    program: str, argv: Sequence[str], known: tuple[str, str]
) -> tuple[dict[str, str], list[str]]:
    """The options in front of the command, by name (the last one of each), and the command."""
    takes, flags = known
    count = 0
    while count < len(argv) and argv[count].startswith("-"):
        name = argv[count]
        count += 2 if "=" not in name and name in takes.split() else 1
    given = given_of(program, takes, flags, argv[:count])
    return {name: given.text(name) for name in given.values}, list(argv[count:])


def _placed(ranks: int, nodes: Sequence[str]) -> list[tuple[str, str]]:
    """The number of each rank and its node: equally many on each, in order."""
    return [(str(rank), nodes[rank * len(nodes) // ranks]) for rank in range(ranks)]


def _run_ranks(playbook: Playbook, wrapped: Wrapped, who: Sequence[Mapping[str, str]]) -> int:
    """Run a command on every rank at once; the engine once, since its other ranks work for it.

    Args:
        who: variables that tell each rank who it is.
    """
    program = Path(wrapped.argv[0]).name if wrapped.argv else ""
    if len(who) == 1 or program in (TRTLLM_LAUNCH.executable, "bash", ""):
        return _run(playbook, wrapped)
    ranks = [replace(wrapped, env={**wrapped.env, **mine}) for mine in who]
    with ThreadPoolExecutor(len(ranks)) as pool:
        return next(filter(None, pool.map(lambda rank: _run(playbook, rank), ranks)), 0)


def _run(playbook: Playbook, wrapped: Wrapped) -> int:
    """Run a command with the stand-ins first on its PATH; -N when signal N killed it."""
    if not wrapped.argv:
        return 0
    path = os.pathsep.join((str(playbook.folder / "bin"), os.environ.get("PATH", os.defpath)))
    env = {**os.environ, "PATH": path, **wrapped.env}
    sys.stdout.flush()
    with ExitStack() as stack:
        out, err = (
            None if name is None else stack.enter_context(_numbered(name).open("ab"))
            for name in (wrapped.stdout, wrapped.stderr)
        )
        try:
            return subprocess.call(wrapped.argv, env=env, stdout=out, stderr=err)
        except OSError as error:
            print(f"{wrapped.argv[0]}: {error.strerror}", file=sys.stderr)
            return 127


def _numbered(name: str) -> Path:
    """An output file as Slurm names it."""
    for mark, value in (("%j", _JOB), ("%J", f"{_JOB}.0"), ("%t", "0"), ("%N", "here")):
        name = name.replace(mark, value)
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _as_shell(status: int) -> int:
    """Exit status of a launcher whose program ended with `status`."""
    return 128 - status if status < 0 else status


if __name__ == "__main__":
    main()
