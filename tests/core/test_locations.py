"""Locations: what the environment names must exist; on paper nothing needs to."""

from pathlib import Path

import pytest

from perfgate.core.errors import InputError, MissingProgram
from perfgate.core.locations import DATASETS, HOSTS, MODELS, Locations
from perfgate.core.programs import Program

PROGRAM = Program("no-such", "no-such-program-anywhere", "nothing", ("-m", "module"))


def test_on_paper_a_program_is_called_by_its_bare_name() -> None:
    assert Locations(on_paper=True).find(PROGRAM) == ("no-such-program-anywhere", "-m", "module")


def test_for_real_it_must_be_installed() -> None:
    with pytest.raises(MissingProgram, match="PERFGATE_PROGRAM_NO_SUCH"):
        Locations().find(PROGRAM)


def test_here_reads_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(MODELS, str(tmp_path))
    monkeypatch.setenv(HOSTS, "node1,node2 node3")
    found = Locations.of_environment()
    assert found.models == tmp_path
    assert found.datasets is None
    assert found.hosts == ("node1", "node2", "node3")


def test_a_folder_that_is_not_there_is_told(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv(DATASETS, str(tmp_path / "gone"))
    with pytest.raises(InputError, match=DATASETS):
        Locations.of_environment()
