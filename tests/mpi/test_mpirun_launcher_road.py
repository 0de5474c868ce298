"""The stand-in road through the real Open MPI: a verdict from a host, and nothing left there."""

import json
import re
import signal
from pathlib import Path

import pytest
from clusters import Cluster, eventually
from mpi_hosts import PORT, QUICKLY, hosted, orteds
from roads import Road, make_road

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("hosts")]

PATIENCE_S = 180
ONE_PROBE = ("-k", "c1")  # the other one would get a start of its own


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


def under_load(road: MpiRoad) -> None:
    eventually(road.client_runs)


def nothing_is_left(road: MpiRoad) -> None:
    eventually(lambda: not road.processes())
    eventually(lambda: not hosted(road.cluster))


def test_from_here_to_a_verdict(road: MpiRoad) -> None:
    file = road.folder / "scenarios" / "standin.yaml"
    few = re.sub(r"reference_starts: \d", "reference_starts: 3", file.read_text())
    file.write_text(few)  # the fewest that tell the noise
    with road.session(*ONE_PROBE) as session:
        output, _ = session.communicate(timeout=PATIENCE_S)
    assert session.returncode == 0, output
    assert road.verdicts() == {"c1": "PASS"}, output
    nothing_is_left(road)
    measured = road.records("measurement")
    assert {tuple(line["facts"]["mpirun"]["hosts"]) for line in measured} == {("n1",)}
    assert {line["machine"]["host"] for line in road.records("preflight")} == {"n1"}


def test_a_session_that_is_interrupted_leaves_nothing(road: MpiRoad) -> None:
    with road.session(fault="client-hangs") as session:
        under_load(road)
        assert orteds(road.cluster, "n1")
        session.send_signal(signal.SIGINT)
        session.communicate(timeout=PATIENCE_S)
    nothing_is_left(road)


def test_a_killed_orted_is_told_as_such(road: MpiRoad) -> None:
    with road.session(*ONE_PROBE, fault="client-hangs") as session:
        under_load(road)
        orteds(road.cluster, "n1")[0].kill()
        output, _ = session.communicate(timeout=PATIENCE_S)
    assert road.failures() == {"mpi"}, output
    assert "ORTE has lost communication with a remote daemon" in output
    nothing_is_left(road)
