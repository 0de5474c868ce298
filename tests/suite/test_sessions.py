"""A session that a test starts is a session of its own, whoever runs the test."""

import pytest
from sessions import inherited


def test_it_does_not_take_itself_for_the_worker_that_started_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-x")
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    monkeypatch.setenv("KEPT", "yes")
    assert not [name for name in inherited() if name.startswith("PYTEST_")]
    assert inherited()["SLURM_JOB_ID"] == "12"
    assert "SLURM_JOB_ID" not in inherited("OMPI_", "SLURM")
    assert inherited("SLURM")["KEPT"] == "yes"
