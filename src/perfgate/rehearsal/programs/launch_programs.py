"""A mock program for mpirun, srun, sbatch, trtllm-llmapi-launch: runs a command once, here.

What the command measures is synthetic: inside, programs are found among the other mock programs.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import toml

from perfgate.core.programs.programs import TRTLLM_LAUNCH
from perfgate.rehearsal.playbook import Playbook, announce, end, here

_JOB = "4711"
# Where a rank finds its number: Open MPI's, and Slurm's with and without PMIx.
_RANK = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID")
# Of several ranks one runs these: the engine, whose other ranks work for it, and a script.
_RUN_ONCE = (TRTLLM_LAUNCH.executable, "bash")
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
    if program == "scancel":  # who ends a rehearsal ends the job's processes, too
        return
    status = _PROGRAMS.get(program, partial(_start_ranks, program))(playbook, rest)
    raise SystemExit(128 - status if status < 0 else status)


def _start_ranks(program: str, playbook: Playbook, argv: Sequence[str]) -> int:
    """``mpirun [options] command`` and ``srun [options] command``; the engine runs on one rank."""
    options, command = _split(program, argv)
    known = _known(program)["ranks"]
    if folder := _last(options, "--output-filename"):
        # Open MPI 4 writes there as well as to the terminal; here the folder is enough.
        Path(folder, "1", "rank.0").mkdir(parents=True, exist_ok=True)
    said = [value.partition("=") for value in options.get("-x", ())]
    # A variable without a value is handed on anyway.
    env = known["env"] | {variable: value for variable, equals, value in said if equals}
    ranks = int(_last(options, *known["count"], default="1"))
    if not command or Path(command[0]).name in _RUN_ONCE:
        ranks = 1
    count = int(_last(options, "--nodes", "-N", default="1"))
    unnamed = [known["unnamed"].format(number) for number in range(1, count + 1)]
    named = _last(options, *known["nodes"])
    nodes = named.split(",") if named else unnamed
    each = [dict(env) for _ in range(ranks)]
    for rank, own in enumerate(each if ranks > 1 else ()):
        node = nodes[rank * len(nodes) // ranks].partition(":")[0]
        for name, text in known["rank"].items():
            own[name] = text.format(rank=rank, ranks=ranks, node=node)
    with ThreadPoolExecutor(len(each)) as pool:
        ended = pool.map(lambda mine: _run(playbook, command, mine, _outputs(options)), each)
        status = next(filter(None, ended), 0)
    if status:
        told = known["killed"] if status < 0 else known["exited"]
        print(known["failed"].format(told=told.format(abs(status))), end="", file=sys.stderr)
    return status


def _sbatch(playbook: Playbook, argv: Sequence[str]) -> int:
    """``sbatch --wait [options] script``: the script's options, then those of the command line."""
    options, left = _split("sbatch", argv)
    if not left:
        end("sbatch needs a script", 1)
    lines = Path(left[0]).read_text().splitlines()
    written = [line.removeprefix("#SBATCH") for line in lines if line.startswith("#SBATCH")]
    chosen = {**_split("sbatch", shlex.split(" ".join(written)))[0], **options}
    print(_JOB if "--parsable" in chosen else f"Submitted batch job {_JOB}", flush=True)
    env = {"SLURM_JOB_ID": _JOB, "SLURM_JOBID": _JOB, "SLURM_SUBMIT_DIR": str(Path.cwd())}
    return _run(playbook, ["bash", *left], env, _outputs(chosen, f"slurm-{_JOB}.out"))


def _llmapi_launch(playbook: Playbook, argv: Sequence[str]) -> int:
    """``trtllm-llmapi-launch command``: the first rank runs it, the others have nothing to do."""
    if any(os.environ.get(name, "0") != "0" for name in _RANK):
        return 0
    return _run(playbook, argv)


_PROGRAMS = {"sbatch": _sbatch, "trtllm-llmapi-launch": _llmapi_launch}


def _known(program: str) -> dict[str, Any]:
    """What ``launch_programs.toml`` says of a launcher."""
    found: dict[str, Any] = toml.decode(Path(__file__).with_suffix(".toml").read_bytes())[program]
    return found


def _split(program: str, argv: Sequence[str]) -> tuple[_Options, list[str]]:
    """The options in front of the command, and the command; ends on one that is not known."""
    known = _known(program)
    takes, flags = known["takes_value"].split(), known["flags"].split()
    found: dict[str, list[str]] = {}
    left = list(argv)
    while left and left[0].startswith("-"):
        word = left.pop(0)
        name, equals, value = word.partition("=")
        if name not in (*takes, *flags) and word[:2] in takes:  # -N2
            name, equals, value = word[:2], "joined", word[2:]
        if name in known.get("takes_two", ()):
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


def _outputs(options: _Options, default: str = "") -> tuple[str, str]:
    """Files of standard output and standard error, as Slurm names them; empty: the terminal."""
    output = _last(options, "--output", "-o", default=default)
    return output, _last(options, "--error", "-e", default=output)


def _run(
    playbook: Playbook,
    argv: Sequence[str],
    env: Mapping[str, str] | None = None,
    outputs: Sequence[str] = ("", ""),
) -> int:
    """Run a command with the mock programs first on its PATH; -N when signal N killed it."""
    if not argv:
        return 0
    path = os.pathsep.join((str(playbook.folder / "bin"), os.environ.get("PATH", os.defpath)))
    sys.stdout.flush()
    with ExitStack() as stack:
        out, err = (
            stack.enter_context(_numbered(name).open("ab")) if name else None for name in outputs
        )
        try:
            return subprocess.call(
                argv, env={**os.environ, "PATH": path, **(env or {})}, stdout=out, stderr=err
            )
        except OSError as error:
            print(f"{argv[0]}: {error.strerror}", file=sys.stderr)
            return 127


def _numbered(name: str) -> Path:
    for mark, value in (("%j", _JOB), ("%J", f"{_JOB}.0"), ("%t", "0"), ("%N", "here")):
        name = name.replace(mark, value)
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
