"""A mock program for mpirun, srun, sbatch, trtllm-llmapi-launch, docker: runs a command once, here.

What the command measures is synthetic: inside, programs are found among the other mock programs.
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
from pathlib import Path

from msgspec import toml

from perfgate.core.programs.programs import TRTLLM_LAUNCH
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


_Options = Mapping[str, Sequence[str]]
"""Option as it was spelled → its values, in order; an empty one of a flag."""


def main(argv: Sequence[str]) -> None:
    """First word: the program to imitate, one of `setup`; the rest: its arguments."""
    program, *rest = argv
    playbook = here()
    announce(program)
    if rest == ["--version"]:
        print(f"{program} (perfgate rehearsal)")
        return
    if program != "scancel":  # who ends a rehearsal ends the job's processes, too; no real job is
        raise SystemExit(_PROGRAMS[program](playbook, rest))


def mpirun(playbook: Playbook, argv: Sequence[str]) -> int:
    """``mpirun [options] command``."""
    options, left = _split("mpirun", argv)
    env = _variables(options, "-x")
    output = _last(options, "--output-filename")
    hosts = _last(options, "-H", "--host", default="here")
    ranks = _last(options, "-n", "-np", "-c", default="1")
    if output:
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
    options, left = _split("srun", argv)
    output = _last(options, "--output", "-o") or None
    error = _last(options, "--error", "-e") or output
    env = {"SLURM_JOB_ID": _JOB, "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}
    tasks = _last(options, "--ntasks", "-n", default="1")
    count = int(_last(options, "--nodes", "-N", default="1"))
    named = _last(options, "--nodelist", "-w")
    nodes = named.split(",") if named else [f"here{number}" for number in range(1, count + 1)]
    who = [
        {"SLURM_PROCID": rank, "SLURM_STEP_NUM_TASKS": tasks, "SLURMD_NODENAME": node}
        for rank, node in _placed(int(tasks), nodes)
    ]
    status = _run_ranks(playbook, Wrapped(tuple(left), env, output, error), who)
    if status:
        told = f"Killed by signal {-status}" if status < 0 else f"Exited with exit code {status}"
        print(f"srun: error: here: task 0: {told}", file=sys.stderr)
    return _as_shell(status)


def sbatch(playbook: Playbook, argv: Sequence[str]) -> int:
    """``sbatch [options] script``: the script's own options, then those of the command line."""
    options, left = _split("sbatch", argv)
    if not left:
        end("sbatch needs a script", 1)
    script = Path(left[0])
    written = [
        shlex.split(line.removeprefix("#SBATCH"))
        for line in script.read_text().splitlines()
        if line.startswith("#SBATCH")
    ]
    inner, _ = _split("sbatch", [word for words in written for word in words])
    chosen = {**inner, **options}
    output = _last(chosen, "--output", "-o", default=f"slurm-{_JOB}.out")
    error = _last(chosen, "--error", "-e", default=output)
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
    verb = next(iter(argv), "")
    if verb in ("image", "inspect"):
        variables = [f"TRT_LLM_VERSION={playbook.version}", "TRT_LLM_GIT_COMMIT="]
        labels = {"org.opencontainers.image.version": playbook.version}
        print(json.dumps([{"Config": {"Env": variables, "Labels": labels}}]))
    if verb not in ("run", "exec"):
        return 0
    options, left = _split(f"docker {verb}", argv[1:])
    if not left:
        print(f'docker: "docker {verb}" requires at least 1 argument.', file=sys.stderr)
        return 125
    entry = _last(options, "--entrypoint")
    command = (entry, *left[1:]) if entry else tuple(left[1:])
    return _as_shell(_run(playbook, Wrapped(command, _variables(options, "-e", "--env"))))


def _variables(options: _Options, *names: str) -> dict[str, str]:
    """What these options say of variables; one without a value is handed on anyway."""
    said = [value.partition("=") for name in names for value in options.get(name, ())]
    return {variable: value for variable, equals, value in said if equals}


_PROGRAMS = {
    "mpirun": mpirun,
    "srun": srun,
    "sbatch": sbatch,
    "trtllm-llmapi-launch": llmapi_launch,
    "docker": docker,
}


def _split(program: str, argv: Sequence[str]) -> tuple[_Options, list[str]]:
    """The options in front of the command, and the command; ends on one that is not known."""
    known = toml.decode(Path(__file__).with_suffix(".toml").read_bytes())[program]
    takes, flags = known["takes_value"].split(), known["flags"].split()
    found: dict[str, list[str]] = {}
    left = list(argv)
    while left and left[0].startswith("-"):
        word = left.pop(0)
        name, equals, value = word.partition("=")
        if name not in (*takes, *flags) and word[:2] in takes:  # -N2
            name, equals, value = word[:2], "joined", word[2:]
        if name in known.get("takes_two", ""):
            del left[:2]
            continue
        if name in takes:
            value = value if equals or not left else left.pop(0)
        elif name not in flags:
            print(f'{program}: Error: unknown option "{name}"', file=sys.stderr)
            raise SystemExit(1)
        found.setdefault(name, []).append(value)
    return found, left


def _last(options: _Options, *names: str, default: str = "") -> str:
    """The value of an option that has several spellings, its last one where it is repeated."""
    return next((options[name][-1] for name in names if name in options), default)


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
    """Run a command with the mock programs first on its PATH; -N when signal N killed it."""
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
