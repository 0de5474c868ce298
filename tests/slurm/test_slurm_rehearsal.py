"""Every way in which documents launch on several nodes, as ranks of real Slurm steps.

The engine's programs are stand-ins; Slurm, its nodes and its steps are real.
"""

from pathlib import Path

import pytest
from clusters import Cluster, eventually
from rehearsals import EXPECTED, measured, rehearse, verdicts

pytestmark = pytest.mark.slow


def test_documented_launches_run_as_ranks_on_the_nodes_of_a_job(
    slurm: Cluster, tmp_path: Path
) -> None:
    records = rehearse(tmp_path, slurm.env, "slurm", slurm.login)
    assert verdicts(records) == EXPECTED
    nodes = {line["scenario"]: len(line["facts"]["slurm"]["nodes"]) for line in measured(records)}
    assert nodes == {
        "h200-v3-fp8-2node-mpirun": 2,
        "gb200-r1-fp4-2node-slurm": 2,
        "gb200-r1-fp4-chat-streaming": 1,
        "gb200-r1-0528-fp4-wide-ep-serve": 4,
    }
    assert all(line["synthetic"] for line in measured(records))
    (call,) = (tmp_path / "run" / "gb200-r1-0528-fp4-wide-ep-serve").rglob("server.sh")
    words = " ".join(call.read_text().replace("\\\n", " ").split())
    assert "--ntasks 16 " in words
    assert "--ntasks-per-node=4 " in words
    eventually(lambda: not slurm.run(("squeue", "-h")).stdout)
