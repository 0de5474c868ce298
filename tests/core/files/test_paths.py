import os
from pathlib import Path

import pytest
from building import baseline
from tables import each

from perfgate.baselines import suite_store
from perfgate.baselines.waivers.file import load_waivers
from perfgate.core.errors import InputError
from perfgate.core.files import paths
from perfgate.core.files.paths import baselines_folder, machine_store, repository, scenario_folders
from perfgate.evaluators.lm_eval import folder_of
from perfgate.launchers.site import load_site

CHECKOUT = Path(__file__).parents[3]
NOBODY = 65534
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (paths.ROOT, paths.HOME, paths.SCENARIOS, paths.BASELINES):
        monkeypatch.delenv(name, raising=False)


def gate(folder: Path, settings: str = 'perfgate_scenarios = ["packaged", "own"]') -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(f"[tool.pytest.ini_options]\n{settings}\n")
    return folder


def wheel(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package in place of the checkout."""
    installed = folder / "lib" / "perfgate"
    (installed / "packaged").mkdir(parents=True)
    monkeypatch.setattr(paths, "__file__", str(installed / "core" / "files" / "paths.py"))
    return installed


def test_the_variable_comes_first(tmp_path: Path, monkeypatch) -> None:
    root, here = tmp_path / "root", gate(tmp_path / "here")
    root.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("PERFGATE_ROOT", str(root))
    assert repository() == root
    monkeypatch.setenv("PERFGATE_ROOT", "")
    assert repository() == here
    monkeypatch.setenv("PERFGATE_ROOT", str(tmp_path / "gone"))
    with pytest.raises(InputError, match="PERFGATE_ROOT: no such folder"):
        repository()


def test_the_nearest_above_the_working_directory_else_the_checkout(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert repository() == CHECKOUT
    outer = gate(tmp_path)
    inner = gate(outer / "a" / "inner")
    deep = inner / "b" / "c"
    deep.mkdir(parents=True)
    (deep / "pyproject.toml").write_text("[tool.other]\n")
    deep.chmod(0o777)  # another project may be anybody's
    monkeypatch.chdir(deep)
    assert repository() == inner
    monkeypatch.chdir(outer / "a")
    assert repository() == outer


def test_else_the_working_directory(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    installed = wheel(tmp_path, monkeypatch)
    assert paths.packaged() == installed / "packaged"
    assert repository() == tmp_path
    assert scenario_folders() == (installed / "packaged" / "scenarios",)


def test_scenarios_by_name_by_the_environment_and_by_the_settings(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(gate(tmp_path))
    assert scenario_folders(["one", "packaged"]) == (tmp_path / "one", CHECKOUT / "scenarios")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert scenario_folders() == (CHECKOUT / "scenarios", tmp_path / "own")
    gate(tmp_path, "perfgate_scenarios = 'a \"b c\"'")
    assert scenario_folders() == (tmp_path / "a", tmp_path / "b c")
    monkeypatch.setenv("PERFGATE_SCENARIOS", os.pathsep.join(("packaged", "/b")))
    assert scenario_folders() == (CHECKOUT / "scenarios", Path("/b"))


def test_an_empty_folder_counts_for_nothing_and_without_a_word(tmp_path, monkeypatch):
    monkeypatch.chdir(gate(tmp_path))
    (tmp_path / "own").mkdir()
    assert scenario_folders() == (CHECKOUT / "scenarios",)
    gate(tmp_path, 'perfgate_scenarios = ["own"]')
    assert scenario_folders() == (tmp_path / "own",)
    gate(tmp_path, 'perfgate_baselines = "b"')
    assert scenario_folders() == (CHECKOUT / "scenarios",)
    (tmp_path / "scenarios").mkdir()
    assert scenario_folders() == (tmp_path / "scenarios",)


def test_the_baselines_and_the_machines_store(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(gate(tmp_path))
    assert baselines_folder() == tmp_path / "baselines"
    gate(tmp_path, 'perfgate_baselines = "elsewhere"')
    assert baselines_folder() == tmp_path / "elsewhere"
    monkeypatch.setenv("PERFGATE_BASELINES", "here")
    assert baselines_folder() == tmp_path / "here"
    monkeypatch.setenv("PERFGATE_ROOT", str(gate(tmp_path / "root")))
    assert machine_store() == tmp_path / "root" / ".perfgate"
    monkeypatch.setenv("PERFGATE_HOME", "home")
    assert machine_store() == tmp_path / "home"


@pytest.mark.timeout(30)
@each(
    ("settings", "told"),
    [
        ("perfgate_scenarios = [", "not TOML: Invalid value"),
        ("perfgate_x = " + "[" * 100_000, "nested too deep"),
        ("perfgate_x = 1\n" + ".".join("a" * 150_000) + " = 1", "more than 200 dots in one line"),
        ("perfgate_x = " + "1" * 6000, "digits"),
    ],
)
def test_a_broken_or_endless_pyproject_is_refused(tmp_path, monkeypatch, settings, told) -> None:
    monkeypatch.chdir(gate(tmp_path, settings))
    with pytest.raises(InputError, match=told) as caught:
        repository()
    assert caught.value.file == tmp_path / "pyproject.toml"
    assert len(str(caught.value)) < 600


# What was found is believed where nobody else could have written it; what was named, is.


def refused(call=repository) -> InputError:
    with pytest.raises(InputError, match="could be another user's") as caught:
        call()
    assert "export PERFGATE_ROOT=" in str(caught.value.hint)
    return caught.value


@pytest.mark.parametrize("what", [".", "pyproject.toml"])
@pytest.mark.parametrize("why", ["everybody", pytest.param("uid 65534", marks=only_root)])
def test_a_repository_above_of_all_or_of_another(tmp_path, monkeypatch, what, why):
    (gate(tmp_path / "gate") / "below").mkdir()
    if why == "everybody":
        (tmp_path / "gate" / what).chmod(0o777)
    else:
        os.chown(tmp_path / "gate" / what, NOBODY, NOBODY)
    monkeypatch.chdir(tmp_path / "gate" / "below")
    for looks in (repository, scenario_folders, baselines_folder, machine_store):
        error = refused(looks)
        assert why in str(error.found)
        assert error.file == tmp_path / "gate"


def test_it_is_believed_by_its_name(tmp_path: Path, monkeypatch) -> None:
    root = gate(tmp_path / "gate")
    (root / "own").mkdir()
    (root / "own" / "one.yaml").touch(0o666)
    root.chmod(0o777)
    monkeypatch.chdir(root)
    monkeypatch.setenv("PERFGATE_ROOT", ".")
    assert repository() == root
    assert scenario_folders() == (CHECKOUT / "scenarios", root / "own")
    assert baselines_folder() == root / "baselines"
    assert machine_store() == root / ".perfgate"
    monkeypatch.delenv("PERFGATE_ROOT")
    monkeypatch.setenv("PERFGATE_SCENARIOS", str(root / "own"))
    assert scenario_folders() == (root / "own",)


@pytest.mark.timeout(30)
@each(
    "put",
    [os.mkfifo, Path.mkdir, lambda met: met.symlink_to("/dev/zero")]
    + [lambda met, text=text: met.write_bytes(text) for text in (b"[" * 100_000, b"\xff" * 9)],
    ids=["fifo", "folder", "device", "brackets", "bytes"],
)
def test_whatever_is_met_on_the_way_up_is_passed_over(tmp_path, monkeypatch, put) -> None:
    """A pipe that nobody writes to would be waited for until somebody does."""
    outer = gate(tmp_path)
    (outer / "a").mkdir()
    put(outer / "a" / "pyproject.toml")
    monkeypatch.chdir(outer / "a")
    assert repository() == outer


def test_the_parts_of_a_repository(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(gate(tmp_path))
    for name, used in (
        ("own", scenario_folders),
        ("baselines", baselines_folder),
        (".perfgate", machine_store),
        ("waivers.yaml", load_waivers),
        ("site.yaml", load_site),
        ("fixtures/lm_eval_tasks/mine", lambda: folder_of("mine")),
    ):
        used()
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name).chmod(0o777)
        assert refused(used).file == tmp_path / name
        (tmp_path / name).rmdir()


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_a_working_directory_that_all_may_write_to(tmp_path, monkeypatch, mode) -> None:
    """Nothing is there and nothing is refused; but a store could be replaced by another's."""
    wheel(tmp_path, monkeypatch)
    here = tmp_path / "here"
    here.mkdir()
    here.chmod(mode)
    monkeypatch.chdir(here)
    assert load_waivers() == ()
    if mode == 0o1777:
        assert machine_store() == here / ".perfgate"
    else:
        assert refused(machine_store).file == here
    (here / "scenarios").mkdir()
    (here / "scenarios").chmod(0o777)
    assert refused(scenario_folders).file == here / "scenarios"


def test_a_baseline_that_all_may_write_to(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(gate(tmp_path))
    store = suite_store()
    file = store.save(baseline())
    assert store.of_scenario("cpu", "small-serve")
    file.parent.chmod(0o777)
    refused(lambda: store.of_scenario("cpu", "small-serve"))
    monkeypatch.setenv("PERFGATE_BASELINES", "baselines")
    assert suite_store().of_scenario("cpu", "small-serve")


def test_the_checkout_that_perfgate_runs_from_is_believed(tmp_path, monkeypatch) -> None:
    """In a container it is often another user's; its code runs already."""
    checkout = gate(tmp_path / "checkout")
    checkout.chmod(0o777)
    monkeypatch.setattr(paths, "__file__", f"{checkout}/src/perfgate/core/files/paths.py")
    monkeypatch.chdir(checkout)
    assert repository() == checkout
    assert machine_store() == checkout / ".perfgate"
