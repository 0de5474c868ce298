import os
from pathlib import Path

import pytest

from perfgate.core import paths
from perfgate.core.errors import InputError
from perfgate.core.paths import (
    baselines_folder,
    machine_store,
    packaged,
    repository,
    scenario_folders,
)

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (paths.ROOT, paths.HOME, paths.SCENARIOS, paths.BASELINES):
        monkeypatch.delenv(name, raising=False)


def gate(folder: Path, settings: str = 'perfgate_scenarios = ["packaged", "own"]') -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(f"[tool.pytest.ini_options]\n{settings}\n")
    return folder


class TestRepository:
    def test_the_variable_comes_first(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        root, here = tmp_path / "root", gate(tmp_path / "here")
        root.mkdir()
        monkeypatch.chdir(here)
        monkeypatch.setenv("PERFGATE_ROOT", str(root))
        assert repository() == root
        monkeypatch.setenv("PERFGATE_ROOT", "")
        assert repository() == here

    def test_a_wrong_variable_is_no_reason_to_look_elsewhere(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(gate(tmp_path / "here"))
        monkeypatch.setenv("PERFGATE_ROOT", str(tmp_path / "gone"))
        with pytest.raises(InputError, match="PERFGATE_ROOT: no such folder"):
            repository()

    def test_the_nearest_above_the_working_directory(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        outer = gate(tmp_path)
        inner = gate(outer / "a" / "inner")
        deep = inner / "b" / "c"
        deep.mkdir(parents=True)
        (deep / "pyproject.toml").write_text("[tool.other]\n")
        monkeypatch.chdir(deep)
        assert repository() == inner
        monkeypatch.chdir(outer / "a")
        assert repository() == outer

    def test_a_broken_file_of_its_own_is_told(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(gate(tmp_path, "perfgate_scenarios = ["))
        with pytest.raises(InputError, match=r"pyproject\.toml: not TOML: Invalid value"):
            repository()

    def test_a_broken_file_of_another_project_is_none_of_ours(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        inner = tmp_path / "inner"
        inner.mkdir()
        gate(tmp_path)
        (inner / "pyproject.toml").write_text("[tool.")
        monkeypatch.chdir(inner)
        assert repository() == tmp_path

    def test_else_the_checkout_that_perfgate_is_installed_from(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert repository() == CHECKOUT

    def test_else_the_working_directory(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        installed = tmp_path / "lib" / "perfgate"
        (installed / "packaged").mkdir(parents=True)
        monkeypatch.setattr(paths, "__file__", str(installed / "core" / "paths.py"))
        assert packaged() == installed / "packaged"
        assert repository() == tmp_path
        assert scenario_folders() == (installed / "packaged" / "scenarios",)


class TestScenarioFolders:
    def test_by_name(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(gate(tmp_path))
        monkeypatch.setenv("PERFGATE_SCENARIOS", "elsewhere")
        assert scenario_folders(["one", "packaged"]) == (tmp_path / "one", CHECKOUT / "scenarios")

    def test_by_the_environment(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(gate(tmp_path))
        monkeypatch.setenv("PERFGATE_SCENARIOS", os.pathsep.join(("packaged", "/b")))
        assert scenario_folders() == (CHECKOUT / "scenarios", Path("/b"))

    def test_by_the_settings(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (gate(tmp_path) / "below").mkdir()
        monkeypatch.chdir(tmp_path / "below")
        assert scenario_folders() == (CHECKOUT / "scenarios", tmp_path / "own")
        gate(tmp_path, "perfgate_scenarios = 'a \"b c\"'")
        assert scenario_folders() == (tmp_path / "a", tmp_path / "b c")

    def test_an_empty_folder_of_its_own_counts_for_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(gate(tmp_path))
        (tmp_path / "own").mkdir()
        assert scenario_folders() == (CHECKOUT / "scenarios",)
        gate(tmp_path, 'perfgate_scenarios = ["own"]')
        assert scenario_folders() == (tmp_path / "own",)

    def test_without_a_word(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(gate(tmp_path, 'perfgate_baselines = "b"'))
        assert scenario_folders() == (CHECKOUT / "scenarios",)
        (tmp_path / "scenarios").mkdir()
        assert scenario_folders() == (tmp_path / "scenarios",)


def test_the_baselines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(gate(tmp_path))
    assert baselines_folder() == tmp_path / "baselines"
    gate(tmp_path, 'perfgate_baselines = "elsewhere"')
    assert baselines_folder() == tmp_path / "elsewhere"
    monkeypatch.setenv("PERFGATE_BASELINES", "here")
    assert baselines_folder() == tmp_path / "here"


def test_the_machines_store_is_in_the_gate_repository_unless_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERFGATE_ROOT", str(gate(tmp_path / "root")))
    assert machine_store() == tmp_path / "root" / ".perfgate"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PERFGATE_HOME", "home")
    assert machine_store() == tmp_path / "home"


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("perfgate_x = " + "[" * 100_000, "nested too deep"),
        ("perfgate_x = " + "{a=" * 100_000, "nested too deep"),
        ("perfgate_x = 1\n" + ".".join("a" * 150_000) + " = 1", "more than 200 dots in one line"),
        ("perfgate_x = " + "1" * 6000, "digits"),
    ],
)
def test_a_pyproject_that_would_fill_the_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str, told: str
) -> None:
    monkeypatch.chdir(gate(tmp_path, settings))
    with pytest.raises(InputError, match=told) as caught:
        repository()
    assert caught.value.file == tmp_path / "pyproject.toml"
    assert len(str(caught.value)) < 600


@pytest.mark.timeout(30)
def test_a_pyproject_that_is_no_file_is_not_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inside").mkdir()
    os.mkfifo(tmp_path / "inside" / "pyproject.toml")
    monkeypatch.chdir(gate(tmp_path) / "inside")
    assert repository() == tmp_path
