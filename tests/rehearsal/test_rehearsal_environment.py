"""The scene: its variables are there while it is played, and nothing of it stays behind."""

import os
from pathlib import Path

import pytest

from perfgate.core.errors import InputError
from perfgate.rehearsal.setup import RehearsalEnvironment


def test_every_variable_gets_its_old_value_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFGATE_MODELS", "/models")
    monkeypatch.delenv("PERFGATE_REHEARSAL", raising=False)
    scene = RehearsalEnvironment()
    scene.enter({"PERFGATE_MODELS": "/stage/models", "PERFGATE_REHEARSAL": "/stage/playbook.json"})
    assert os.environ["PERFGATE_MODELS"] == "/stage/models"
    scene.leave()
    assert os.environ["PERFGATE_MODELS"] == "/models"
    assert "PERFGATE_REHEARSAL" not in os.environ


def test_a_stage_that_was_built_is_taken_down_but_for_the_play(tmp_path: Path) -> None:
    scene = RehearsalEnvironment()
    scene.build(tmp_path / "stage", [], None, "slow:8%")
    assert (tmp_path / "stage" / "bin").is_dir()
    scene.leave()
    assert [path.name for path in (tmp_path / "stage").iterdir()] == ["playbook.json"]


def test_an_unknown_fault_leaves_the_environment_alone(tmp_path: Path) -> None:
    before = dict(os.environ)
    with pytest.raises(InputError, match="oom"):
        RehearsalEnvironment().build(tmp_path / "stage", [], None, "bad-luck")
    assert dict(os.environ) == before
    assert not (tmp_path / "stage").exists()
