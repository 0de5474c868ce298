"""The ranks of a launch say who they are, by the real Open MPI and ssh, before anything is started.

Where the ranks' Python has no mpi4py, a stand-in of it calls the real library.
"""

from dataclasses import replace
from pathlib import Path

import pytest
from mpi_hosts import PROGRAMS, SITE, local_scenario, request, two_hosts

from perfgate.core.errors import RunError
from perfgate.core.locations import Locations
from perfgate.core.programs import TENSORRT_LLM_PYTHON
from perfgate.launchers import rank_check
from perfgate.launchers.mpirun.launcher import MpirunLauncher
from perfgate.launchers.rank_check import check_ranks
from perfgate.launchers.site import MpirunSite
from perfgate.machine.preflight import Check
from perfgate.scenarios.scenario import Scenario

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("hosts")]


@pytest.fixture
def with_mpi4py(monkeypatch: pytest.MonkeyPatch) -> None:
    """An mpi4py in every rank's Python."""
    monkeypatch.setenv("PYTHONPATH", str(PROGRAMS))


def check(folder: Path, scenario: Scenario | None = None, site: MpirunSite = SITE) -> Check | None:
    scenario = scenario or two_hosts()
    site = replace(site, pass_on=("PYTHONPATH",))
    with MpirunLauncher(site).placed(request(scenario, folder)) as placement:
        return check_ranks(placement, scenario, Locations(), None, folder / "ranks")


def refused(folder: Path, scenario: Scenario | None = None, site: MpirunSite = SITE) -> RunError:
    with pytest.raises(RunError) as caught:
        check(folder, scenario, site)
    return caught.value


@pytest.mark.usefixtures("with_mpi4py")
@pytest.mark.parametrize("by", ["mpirun", "srun", "sbatch"])
def test_all_ranks_answer_and_reach_each_other(by: str, tmp_path: Path) -> None:
    found = check(tmp_path, two_hosts(by))
    assert found is not None
    assert found.outcome == "ok"
    assert found.found.startswith("4 of 4 ranks: n1 2, n2 2; reached each other by mpi4py")
    assert "Open MPI v4" in found.found
    assert (tmp_path / "ranks" / "ranks.sh").is_file()


def test_without_mpi4py_the_launchers_variables_tell_and_that_is_said(tmp_path: Path) -> None:
    found = check(tmp_path)
    assert found is not None
    assert found.outcome == "warning"
    assert found.found.startswith("4 of 4 ranks: n1 2, n2 2; by the launcher's variables")
    assert "mpi4py" in found.hint


def test_a_scenario_without_ranks_starts_none(tmp_path: Path) -> None:
    assert check(tmp_path, local_scenario()) is None
    assert not (tmp_path / "ranks").exists()


@pytest.mark.usefixtures("with_mpi4py")
def test_ranks_that_do_not_reach_each_other_are_told_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that waits for ever in the library, as behind a firewall; nothing of it stays."""
    monkeypatch.setattr(rank_check, "ANSWER_S", 6.0)
    error = refused(tmp_path, two_hosts(pass_on={"STAND_IN_RANK_HANGS": "3"}))
    assert error.failure == "mpi"
    assert "all 4 ranks started and did not reach each other" in error.message
    assert "btl_tcp_if_include" in error.hint


@pytest.mark.usefixtures("with_mpi4py")
def test_a_rank_that_does_not_answer_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank_check, "ANSWER_S", 6.0)
    error = refused(tmp_path, two_hosts(pass_on={"STAND_IN_RANK_SILENT": "2"}))
    assert error.failure == "mpi"
    assert "3 of 4 ranks answered" in error.message
    assert "missing: rank 2" in error.message


@pytest.mark.usefixtures("with_mpi4py")
def test_ranks_that_take_themselves_for_the_only_one_are_a_mismatch(tmp_path: Path) -> None:
    """As an MPI does that does not know the launcher: it starts alone, four times."""
    error = refused(tmp_path, two_hosts(pass_on={"STAND_IN_ALONE": "1"}))
    assert error.failure == "pmi_mismatch"
    assert "each of 4 ranks takes itself for the only one" in error.message
    assert "srun --mpi=list" in error.hint


@pytest.mark.usefixtures("with_mpi4py")
def test_a_rank_that_crashes_is_told_by_its_log(tmp_path: Path) -> None:
    error = refused(tmp_path, two_hosts(pass_on={"STAND_IN_CRASHES": "1"}))
    assert error.failure == "crash"
    assert "0 of 4 ranks answered" in error.message


def test_an_interpreter_that_ends_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a Python that cannot load the engine's MPI library."""
    monkeypatch.setenv(TENSORRT_LLM_PYTHON.variable, "/bin/false")
    scenario = two_hosts()
    with (
        MpirunLauncher(SITE).placed(request(scenario, tmp_path)) as placement,
        pytest.raises(RunError) as caught,
    ):
        check_ranks(placement, scenario, Locations(), TENSORRT_LLM_PYTHON, tmp_path / "ranks")
    assert caught.value.failure == "mpi"
    assert "status 1: 0 of 4 ranks answered" in caught.value.message
