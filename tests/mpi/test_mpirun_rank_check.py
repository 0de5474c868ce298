"""The ranks of a launch say who they are, by the real Open MPI and ssh, before anything is started.

Where the ranks' Python has no mpi4py, a stand-in of it calls the real library.
"""

from pathlib import Path

import pytest
from mpi_hosts import PROGRAMS, local_scenario, placed, two_hosts

from perfgate.core.errors import RunError
from perfgate.core.programs.locations import Locations
from perfgate.core.programs.programs import TENSORRT_LLM_PYTHON
from perfgate.launchers import rank_check
from perfgate.launchers.rank_check import check_ranks
from perfgate.machine.preflight import Check
from perfgate.scenarios.scenario import Scenario

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("hosts")]


@pytest.fixture
def with_mpi4py(monkeypatch: pytest.MonkeyPatch) -> None:
    """An mpi4py in every rank's Python."""
    monkeypatch.setenv("PYTHONPATH", str(PROGRAMS))


def check(folder: Path, scenario: Scenario | None = None) -> Check | None:
    with placed(folder, scenario or two_hosts(), pass_on=("PYTHONPATH",)) as placement:
        return check_ranks(placement, Locations(), None, folder / "ranks")


@pytest.mark.usefixtures("with_mpi4py")
def test_all_ranks_answer_and_reach_each_other(tmp_path: Path) -> None:
    found = check(tmp_path)
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
@pytest.mark.parametrize(
    ("stand_in", "limit_s", "failure", "said"),
    [
        ({"RANK_HANGS": "3"}, 6.0, "mpi", "all 4 ranks started and did not reach each other"),
        ({"RANK_SILENT": "2"}, 6.0, "mpi", "; missing: rank 2"),
        ({"ALONE": "1"}, 120.0, "pmi_mismatch", "each of 4 ranks takes itself for the only one"),
        ({"CRASHES": "1"}, 120.0, "crash", "0 of 4 ranks answered"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_ranks_in_trouble_are_told_in_time_and_nothing_of_them_stays(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stand_in: dict[str, str],
    limit_s: float,
    failure: str,
    said: str,
) -> None:
    """One waits in the library, as behind a firewall; is silent; does not know the launcher."""
    monkeypatch.setattr(rank_check, "ANSWER_S", limit_s)
    pass_on = {f"STAND_IN_{name}": value for name, value in stand_in.items()}
    with pytest.raises(RunError) as caught:
        check(tmp_path, two_hosts(pass_on=pass_on))
    assert caught.value.failure == failure
    assert said in caught.value.message


def test_an_interpreter_that_ends_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a Python that cannot load the engine's MPI library."""
    monkeypatch.setenv(TENSORRT_LLM_PYTHON.variable, "/bin/false")
    with (
        placed(tmp_path, two_hosts()) as placement,
        pytest.raises(RunError) as caught,
    ):
        check_ranks(placement, Locations(), TENSORRT_LLM_PYTHON, tmp_path / "ranks")
    assert caught.value.failure == "mpi"
    assert "status 1: 0 of 4 ranks answered" in caught.value.message
