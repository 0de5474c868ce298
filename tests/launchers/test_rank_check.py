"""What the ranks of a launch say: all there, where they should be, and reaching each other?"""

import json
from dataclasses import replace

import pytest
from building import SCENARIO
from tables import each

from perfgate.core.errors import RunError
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.programs import MPIRUN
from perfgate.launchers.base import Exit, PlacementRequest
from perfgate.launchers.local.job import LocalJob
from perfgate.launchers.local.launcher import LocalLauncher
from perfgate.launchers.rank_check import check_ranks, judge_ranks
from perfgate.plan.ranks import Ranks
from perfgate.scenarios.scenario import Hardware, Launch

ENDED = Exit(0, "exited", 2.0)
LATE = Exit(None, "total", 120.0)
TWO = Ranks(2, 2)
BY = "mpi4py 4.1.2, Open MPI v4.1.4"


def line(**said) -> str:
    return json.dumps({"perfgate_rank": said})


def who(rank: int, size: int = 4, node: str = "", by: str = BY, boot: str = "b") -> str:
    return line(rank=rank, size=size, node=[node or f"n{1 + rank // 2}", boot], by=by)


def reached(rank: int, count: int = 4) -> str:
    return line(rank=rank, reached=count)


ALL = [*map(who, range(4)), *map(reached, range(4))]


@pytest.fixture
def judge(tmp_path):
    """The check that the lines amount to, or the error."""

    def judge(lines, ended: Exit = ENDED, ranks: Ranks = TWO, said: str = ""):
        log = LocalJob.__new__(LocalJob)  # what a launcher left
        log.stdout, log.stderr = tmp_path / "ranks.out", tmp_path / "ranks.err"
        log.stdout.write_text("")
        log.stderr.write_text(said)
        try:
            return judge_ranks(ranks, lines, ended, log)
        except RunError as error:
            return error

    return judge


@each("prefix", ["", "[1,3]<stdout>:", "3: ", "\x1b[31m"])
def test_all_that_are_there_and_where_they_should_be(judge, prefix: str) -> None:
    found = judge(["srun: launching", *(prefix + one for one in reversed(ALL))])
    assert found.outcome == "ok"
    assert found.found == f"4 of 4 ranks: n1 2, n2 2; reached each other by {BY}"
    assert found.expected == "2 ranks on each of 2 nodes"
    found = judge([who(rank, by="") for rank in range(4)])  # by the launcher's variables alone
    assert (found.outcome, "MPI itself was not tried" in found.found) == ("warning", True)
    # Two nodes of one name are told apart by their start.
    same = [who(rank, node="gpu", boot=str(rank // 2)) for rank in range(4)]
    assert judge([*same, *map(reached, range(4))]).outcome == "ok"


def test_a_rank_that_is_missing_is_named(judge) -> None:
    lines = [who(rank) for rank in (0, 1, 3)]
    for ended in (ENDED, LATE, Exit(1, "exited", 2.0)):
        error = judge(lines, ended)
        assert error.failure == "mpi"
        assert "3 of 4 ranks answered" in error.message
    assert judge(lines, LATE).message.endswith("in 120 s; missing: rank 2")
    many = judge([], LATE, Ranks(2, 8)).message
    assert many.startswith("0 of 16 ranks answered")
    assert many.endswith("missing: rank 0, 1, 2, 3, 4, 5, 6, 7 and 8 more")


UNEVEN = [who(rank, node="n1" if rank < 3 else "n2") for rank in range(4)]


@each(
    "lines, ended, failure, words",
    [
        ([*map(who, range(4)), reached(0)], LATE, "mpi", "btl_tcp_if_include"),
        ([*map(who, range(4)), reached(0)], LATE, "mpi", "did not reach each other"),
        ([*map(who, range(4)), reached(0, 3)], ENDED, "mpi", "did not reach"),
        ([who(0, 1), reached(0, 1)] * 4, ENDED, "pmi_mismatch", "--mpi=pmix"),
        # They do not add up.
        ([*map(who, (0, 1, 1, 3))], ENDED, "mpi", ""),
        ([*map(who, range(5))], ENDED, "mpi", ""),
        ([who(rank, size=8) for rank in range(4)], ENDED, "mpi", ""),
        ([*map(who, range(3)), '{"perfgate_rank": 7', line(rank="3")], ENDED, "mpi", "rank 3"),
        ([*UNEVEN, *ALL[4:]], ENDED, "mpi", "n1 3, n2 1; expected 2 ranks on each of 2 nodes"),
    ],
)
def test_what_is_wrong_is_told(judge, lines, ended: Exit, failure: str, words: str) -> None:
    error = judge(lines, ended)
    assert error.failure == failure
    assert words in str(error)


def test_the_launchers_log_tells_why(judge) -> None:
    said = "[n1:7] OPAL ERROR: Unreachable in file pmix3x_client.c at line 111\n"
    error = judge([], Exit(1, "exited", 2.0), said=said)
    assert error.failure == "pmi_mismatch"
    assert error.evidence == (said.strip(),)
    killed = "mpirun noticed that process rank 0 with PID 7 on node n1 exited on signal 9 (Killed)."
    assert judge([], LATE, said=f"{killed}\n").failure == "mpi"


def checked(folder, launch: Launch, *hosts: str):
    """The check of a scenario on two nodes, on this machine."""
    scenario = replace(SCENARIO, hardware=Hardware("H200", 4, 2), launch=launch)
    request = PlacementRequest(scenario, folder, 60.0, [].append)
    with LocalLauncher().placed(request) as placement:
        return check_ranks(placement, Locations(hosts=hosts), None, folder / "ranks")


def test_here_they_are_started_as_the_document_starts_them(tmp_path, monkeypatch) -> None:
    """By a stand-in for mpirun that writes down its argv, and starts nothing."""
    mpirun = tmp_path / "mpirun"
    mpirun.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\" >&2\n")
    mpirun.chmod(0o755)
    monkeypatch.setenv(MPIRUN.variable, str(mpirun))
    with pytest.raises(RunError, match="0 of 4 ranks answered"):
        checked(tmp_path, Launch("mpirun", output="log", ssh_port=2233), "n1", "n2")
    words = (tmp_path / "ranks" / "ranks.err").read_text().split("\n")
    assert words[:2] == ["-H", "n1:2,n2:2"]
    assert {"-n", "4", "-p 2233"} <= {*words}
    assert "trtllm-llmapi-launch" not in words
    assert "--output-filename" not in words


@each("by, job", [("sbatch", "7"), ("sbatch", ""), ("srun", "")])
def test_nodes_that_are_not_known_yet_are_not_tried(by, job, tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    if job:
        monkeypatch.setenv("SLURM_JOB_ID", job)
    assert checked(tmp_path, Launch(by)).outcome == "unknown"
    assert not (tmp_path / "ranks").exists()
