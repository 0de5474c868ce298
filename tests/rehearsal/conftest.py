"""Stages that many tests share: one for each release and fault."""

from functools import cache

import pytest
from playing import Put, Stage, staged


@pytest.fixture(scope="session")
def _stages(tmp_path_factory: pytest.TempPathFactory) -> Put:
    @cache
    def made(version: str | None, fault: str | None) -> Stage:
        return staged(tmp_path_factory.mktemp("stage"), version, fault)

    return made


@pytest.fixture
def put(_stages: Put, monkeypatch: pytest.MonkeyPatch) -> Put:
    """Puts a release's stand-ins, with a fault or none, where this test's programs find them."""

    def on_stage(version: str | None = None, fault: str | None = None) -> Stage:
        stage = _stages(version, fault)
        for variable, value in stage.env.items():
            monkeypatch.setenv(variable, value)
        return stage

    return on_stage
