from pathlib import Path

import pytest

from perfgate.core import paths
from perfgate.core.errors import InputError
from perfgate.core.paths import machine_store, repository


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERFGATE_ROOT", raising=False)
    monkeypatch.delenv("PERFGATE_HOME", raising=False)


def checkout(folder: Path) -> Path:
    (folder / "scenarios").mkdir(parents=True)
    (folder / "scenarios" / "scenario.schema.json").touch()
    return folder


def test_the_setting_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, here = checkout(tmp_path / "root"), checkout(tmp_path / "here")
    monkeypatch.chdir(here)
    monkeypatch.setenv("PERFGATE_ROOT", str(root))
    assert repository() == root
    monkeypatch.setenv("PERFGATE_ROOT", "")
    assert repository() == here


def test_a_wrong_setting_is_no_reason_to_look_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checkout(tmp_path / "here"))
    monkeypatch.setenv("PERFGATE_ROOT", str(tmp_path))
    with pytest.raises(InputError, match="PERFGATE_ROOT: not a perfgate checkout"):
        repository()


def test_the_nearest_checkout_above_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outer = checkout(tmp_path)
    inner = checkout(outer / "a" / "inner")
    deep = inner / "b" / "c"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert repository() == inner
    monkeypatch.chdir(outer / "a")
    assert repository() == outer


def test_else_the_checkout_that_perfgate_is_installed_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert repository() == Path(__file__).parents[2]


def test_nowhere_is_an_error_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(paths, "__file__", str(tmp_path / "lib" / "perfgate" / "paths.py"))
    with pytest.raises(InputError, match="set PERFGATE_ROOT"):
        repository()


def test_the_machines_store_is_in_the_checkout_unless_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFGATE_ROOT", str(checkout(tmp_path / "root")))
    assert machine_store() == tmp_path / "root" / ".perfgate"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PERFGATE_HOME", "home")
    assert machine_store() == tmp_path / "home"
