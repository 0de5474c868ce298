"""The stand-in road through the real Open MPI: a verdict from a host, and nothing left there."""

import json
import signal
from pathlib import Path

import pytest
from clusters import Cluster, eventually
from mpi_hosts import PORT, QUICKLY, hosted, orteds
from roads import ONE_PROBE, PATIENCE_S, Road, make_road

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("hosts")]


class MpiRoad(Road):
    """The checkout whose sessions measure through mpirun; its names of hosts only ssh knows."""

    def command(self, *options: str, run: str = "run") -> list[str]:
        return [
            "mpirun" if word == "slurm" else word for word in super().command(*options, run=run)
        ]

    @property
    def login(self) -> tuple[str, ...]:
        """Nothing: sessions are on this machine."""
        return ()


@pytest.fixture
def road(tmp_path: Path, cluster: Cluster) -> MpiRoad:
    made = make_road(tmp_path, cluster)
    (tmp_path / "site.yaml").write_text(
        "schema_version: 1\n"
        "mpirun:\n"
        "  hosts: [n1, n2]\n"
        f"  ssh_port: {PORT}\n"
        f"  mca: {json.dumps(QUICKLY)}\n"
        "  pass_on: [PATH, PERFGATE_HOME, PERFGATE_STANDIN_COUNTER, PERFGATE_STANDIN_FAULT]\n"
    )
    return MpiRoad(made.folder, made.cluster)


def nothing_is_left(road: MpiRoad) -> None:
    eventually(lambda: not road.processes())
    eventually(lambda: not hosted(road.cluster))


def test_from_here_to_a_verdict(road: MpiRoad) -> None:
    status, output = road.run(*ONE_PROBE)
    assert status == 0, output
    assert road.verdicts() == {"c1": "PASS"}, output
    nothing_is_left(road)
    measured = road.records("measurement")
    assert {tuple(line["facts"]["mpirun"]["hosts"]) for line in measured} == {("n1",)}
    assert {line["machine"]["host"] for line in road.records("preflight")} == {"n1"}


def test_a_session_that_is_interrupted_leaves_nothing(road: MpiRoad) -> None:
    with road.session(fault="client-hangs") as session:
        road.until_loaded()
        assert orteds(road.cluster, "n1")
        session.send_signal(signal.SIGINT)
        session.communicate(timeout=PATIENCE_S)
    nothing_is_left(road)
