"""Every way in which documents launch on several nodes, as ranks of the real Open MPI.

The engine's programs are stand-ins; mpirun, ssh and the hosts are real.
"""

from pathlib import Path

import pytest
from clusters import Cluster, eventually
from mpi_hosts import PORT, hosted
from rehearsals import EXPECTED, measured, rehearse, verdicts
from sizes import IS_NIGHTLY

pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly,
    pytest.mark.skipif(
        not IS_NIGHTLY, reason="on each push the same ranks are rehearsed through Slurm"
    ),
]


def test_documented_launches_run_as_ranks_on_the_hosts(hosts: Cluster, tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text(f"schema_version: 1\nmpirun: {{hosts: [n1, n2, n3, n4], ssh_port: {PORT}}}\n")
    records = rehearse(tmp_path, {**hosts.env, "PERFGATE_SITE": str(site)}, "mpirun")
    assert verdicts(records) == EXPECTED
    used = {line["scenario"]: len(line["facts"]["mpirun"]["hosts"]) for line in measured(records)}
    assert used == {
        "h200-v3-fp8-2node-mpirun": 2,
        "gb200-r1-fp4-2node-slurm": 2,
        "gb200-r1-fp4-chat-streaming": 1,
        "gb200-r1-0528-fp4-wide-ep-serve": 4,
    }
    eventually(lambda: not hosted(hosts))
