"""Rank check: every rank of a launch says who it is and reaches the others, before GPU time.

The ranks are started as the engine's will be: the same launcher, hosts, sizes, container and
options, but that each runs `look.py` in the engine's own Python.
"""

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from perfgate.core.errors import RunError
from perfgate.core.failures import classify_logs
from perfgate.core.files.untrusted_files import make_new_folders
from perfgate.core.programs import raw_log
from perfgate.core.programs.command import Command
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.programs import Program
from perfgate.launchers.base import Exit, Job, Placement
from perfgate.launchers.local.job import LOOK
from perfgate.machine.preflight.check import Check
from perfgate.plan.ranks import Ranks, ranks_of

NAME = "ranks"
ANSWER_S = 120.0  # Python and mpi4py from a file system that may be slow, on every rank at once
IMAGE_S = 900.0  # for a container's image to arrive on the nodes
_MARK = '{"perfgate_rank"'
_NO_MPI = "install mpi4py in the engine's Python, which needs it for its ranks"
_APART = (
    "the nodes do not reach each other as MPI wants to: look for a firewall between them, and name "
    "the network (mpirun -mca btl_tcp_if_include, or OMPI_MCA_btl_tcp_if_include under srun)"
)
_ELSEWHERE = (
    "look at what the site adds to mpirun or srun (site.yaml: options, step_options), "
    "and whether the hosts have names of their own"
)
_ALONE = (
    "the ranks' MPI does not know its launcher: compare `srun --mpi=list` with the PMIx of the "
    "container's Open MPI, and start with the --mpi=pmix that both have; with mpirun, let it be of "
    "the same Open MPI as the engine's mpi4py"
)


def check_ranks(
    placement: Placement, locations: Locations, interpreter: Program | None, folder: Path
) -> Check | None:
    """Start the ranks of a scenario's launch once, and see that all of them answer.

    Args:
        placement: where the engine will be started.
        locations: where programs are.
        interpreter: the Python that the engine's ranks run in; None: perfgate's own.
        folder: where the call's files go; it must not be there yet.

    Returns:
        the answer; None where the scenario launches no ranks.

    Raises:
        RunError: class ``mpi``, ``pmi_mismatch`` or what the launcher's log shows: not every rank
            answered, or not from where it should, or they do not reach each other.
        InputError, MissingProgram: as `Placement.launched`.
    """
    launch = placement.request.scenario.launch
    if launch is None:
        return None
    ranks = ranks_of(placement.request.scenario)
    # Outside of an allocation Slurm chooses nodes again for every srun and sbatch, and lets each
    # wait for them; a job of sbatch has nodes of its own wherever it is submitted.
    is_here = launch.by == "mpirun" or (launch.by == "srun" and "SLURM_JOB_ID" in os.environ)
    if not placement.nodes and not is_here:
        return Check(NAME, "unknown", f"{launch.by} finds the nodes only when the engine starts")
    python = (sys.executable,) if interpreter is None else locations.find(interpreter)
    command = Command((*python, "-c", LOOK.read_text(encoding="utf-8"), "rank"), on_every_rank=True)
    limit_s = ANSWER_S + (IMAGE_S if locations.inside is not None else 0.0)
    make_new_folders(folder)
    launched = placement.launched(command, locations)
    with placement.start(launched, folder, NAME) as job:
        ended = job.wait(total_s=limit_s)
    try:
        return judge_ranks(ranks, raw_log.lines(job.stdout), ended, job)
    except RunError as error:
        raise placement.explained(error) from error


def judge_ranks(ranks: Ranks, lines: Iterable[str], ended: Exit, job: Job) -> Check:
    """What the ranks said amounts to, among whatever else the launcher printed.

    Raises:
        RunError: see `check_ranks`.
    """
    said = [*filter(None, map(_said, lines))]
    who = [one for one in said if "reached" not in one]
    reached = {one["rank"]: one["reached"] for one in said if "reached" in one}
    numbers, total = sorted(one["rank"] for one in who), ranks.total
    answered = f"{len(set(numbers))} of {total} ranks answered"
    apart = f"all {total} ranks started and did not reach each other"
    by = sorted({one["by"] for one in who})
    if ended.reason == "total":
        limit = f" in {ended.duration_s:.0f} s"
        if len(set(numbers)) == total:
            raise RunError("mpi", apart + limit, evidence=job.tail(5), hint=_APART)
        raise _of_logs(job, f"{answered}{limit}{_missing(total, numbers)}")
    if total > 1 and who and all(one["size"] == 1 for one in who):
        why = f"each of {len(numbers)} ranks takes itself for the only one of 1, not of {total}"
        raise RunError("pmi_mismatch", why, evidence=job.tail(5), hint=_ALONE)
    if ended.status != 0:
        raise _of_logs(job, f"the ranks ended with status {ended.status}: {answered}")
    if numbers != list(range(total)) or {one["size"] for one in who} != {total}:
        raise _of_logs(job, f"{answered}{_missing(total, numbers)}")
    if by != [""] and set(reached.values()) != {total}:
        raise _of_logs(job, apart)
    nodes = Counter(tuple(one["node"]) for one in who)
    where = ", ".join(f"{name} {count}" for (name, _), count in sorted(nodes.items()))
    expected = f"{ranks.per_node} ranks on each of {ranks.nodes} nodes"
    if sorted(nodes.values()) != [ranks.per_node] * ranks.nodes:
        why = f"the ranks are on other nodes than they should be: {where}; expected {expected}"
        raise RunError("mpi", why, hint=_ELSEWHERE)
    found = f"{total} of {total} ranks: {where}"
    if by == [""]:
        found += "; by the launcher's variables: no mpi4py, so MPI itself was not tried"
        return Check(NAME, "warning", found, expected, _NO_MPI)
    return Check(NAME, "ok", f"{found}; reached each other by {'; '.join(by)}", expected)


def _of_logs(job: Job, message: str) -> RunError:
    """The error with the cause that the launcher's log shows."""
    failure, evidence, hint = classify_logs((job.stderr, job.stdout), "mpi")
    if failure == "killed":  # by us, or by the launcher because of another rank
        failure, evidence, hint = "mpi", (), None
    return RunError(failure, message, evidence=evidence or job.tail(5), hint=hint)


def _missing(total: int, numbers: Sequence[int]) -> str:
    """Which ranks did not answer, a few of them."""
    absent = [str(one) for one in range(total) if one not in numbers]
    more = f" and {len(absent) - 8} more" if len(absent) > 8 else ""
    return f"; missing: rank {', '.join(absent[:8])}{more}" if absent else ""


def _said(line: str) -> dict[str, Any] | None:
    """What one rank says in a line, whatever the launcher put before it."""
    _, mark, said = line.partition(_MARK)
    with suppress(ValueError):
        rank = json.loads(mark + said)["perfgate_rank"] if mark else None
        if isinstance(rank, dict) and isinstance(rank.get("rank"), int):
            return rank
    return None
