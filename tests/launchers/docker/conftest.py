"""A machine with Docker for each test of the docker launcher."""

import shutil

import pytest
from docker_host import docker_host

from perfgate.launchers.docker import launcher


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path):
    """Its daemon is played, and its program where it is not installed; no container is left."""
    launcher._have.cache_clear()
    monkeypatch.setenv("PERFGATE_HOME", str(tmp_path / "home"))
    for name in ("CUDA_VISIBLE_DEVICES", "TRT_LLM_VERSION", "TRT_LLM_GIT_COMMIT"):
        monkeypatch.delenv(name, raising=False)
    with docker_host(real=shutil.which("docker") is not None) as host:
        for name, value in host.environment.items():
            monkeypatch.setenv(name, value)
        host.image()
        yield host
        assert host.containers == []
