"""A model of one's own needs one file: the page's, which is loaded, rendered, checked, rehearsed.

And beside the documented scenarios it changes no count of them.
"""

import re
import shutil
from pathlib import Path

import forked
import msgspec
import pytest
import yaml
from documented_set import ROOT
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS, inherited

from perfgate.core.errors import SeveralInputErrors
from perfgate.core.programs.locations import Locations
from perfgate.engines.base import EngineBuild
from perfgate.engines.definitions import Definitions
from perfgate.engines.tensorrt_llm.definition_check import calls, mismatches
from perfgate.engines.tensorrt_llm.llm_api_yaml import FILE
from perfgate.plan.calls import commands_to_verify
from perfgate.plan.toolchain import registered
from perfgate.rehearsal import recorded_pages
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.scenario import Scenario

PAGE = (ROOT / "docs" / "dev" / "extend.md").read_text(encoding="utf-8")
TEXT = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)[0]
ID = "b200-gpt-oss-120b-serve"
PAPER = Locations(on_paper=True)


def definitions_of(version: str) -> Definitions:
    page = recorded_pages.FOLDER / f"tensorrt_llm_{version}.json"
    return msgspec.json.decode(page.read_bytes(), type=Definitions)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "scenarios" / "gpt_oss_120b.yaml"
    path.parent.mkdir()
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.fixture
def scenario(file: Path) -> Scenario:
    (one,) = load_scenarios(file, registered())
    return one


@pytest.mark.parametrize("version", ["1.1.0", "1.3.0rc3", "1.3.0"])
def test_its_options_are_rendered_as_they_are(scenario: Scenario, version: str) -> None:
    build = EngineBuild("tensorrt-llm", version, version)
    (server,) = (
        command
        for command in commands_to_verify(scenario, build, PAPER)
        if "trtllm-serve" in command.argv
    )
    assert server.argv[-2:] == ("--num_postprocess_workers", "4")
    cache = yaml.safe_load(server.files[FILE])["kv_cache_config"]
    assert cache["enable_block_reuse"] is True
    if version == "1.1.0":  # its file takes the place of what the command line says
        assert cache["free_gpu_memory_fraction"] == 0.9


def test_it_fits_what_was_recorded_of_the_release(scenario: Scenario) -> None:
    definitions = definitions_of("1.3.0rc3")
    build = EngineBuild("tensorrt-llm", definitions.version, definitions.version)
    commands = commands_to_verify(scenario, build, PAPER)
    assert [one for command in commands for one in mismatches(command, definitions, PAPER)] == []
    pages = {call.page for command in commands for call in calls(command.argv, PAPER)}
    assert pages <= set(definitions.programs)


@pytest.mark.parametrize(
    ("right", "wrong", "place"),
    [
        ("num_postprocess_workers", "num_postproces_workers", "--num_postproces_workers"),
        ("enable_block_reuse", "enable_blok_reuse", "kv_cache_config.enable_blok_reuse"),
        ("workers, 4", "workers, four", "--num_postprocess_workers"),
    ],
)
def test_a_misspelled_one_does_not_fit(file: Path, right: str, wrong: str, place: str) -> None:
    file.write_text(TEXT.replace(right, wrong), encoding="utf-8")
    (scenario,) = load_scenarios(file, registered())
    definitions = definitions_of("1.3.0rc3")
    build = EngineBuild("tensorrt-llm", definitions.version, definitions.version)
    commands = commands_to_verify(scenario, build, PAPER)
    found = {one.place for command in commands for one in mismatches(command, definitions, PAPER)}
    assert found == {place}
    fields = [field for command in commands if (field := command.asked_by.get(place))]
    assert all(field.startswith(f"{ID}.engine.extra_") for field in fields)
    assert fields


def test_the_page_shows_what_is_refused(file: Path) -> None:
    reuse = "          enable_block_reuse: true\n"
    text = TEXT.replace(reuse, f"          free_gpu_memory_fraction: 0.8\n{reuse}")
    file.write_text(text, encoding="utf-8")
    with pytest.raises(SeveralInputErrors) as caught:
        load_scenarios(file, registered())
    assert str(caught.value).replace(str(file), "scenarios/b200/gpt_oss_120b.yaml") in PAGE


@pytest.mark.slow
def test_it_is_rehearsed(file: Path, tmp_path: Path) -> None:
    words = [*BENCHMARK, "-q", "perf_tests", "--rehearse", "-m", "b200"]
    words += [f"--scenarios={file.parent}", f"--run-dir={tmp_path / 'run'}"]
    home = {"PERFGATE_HOME": str(tmp_path / "home")}
    environment = {**inherited("PERFGATE_"), **ONLY_NEEDED_PLUGINS, **home}
    status, output = forked.session(words, ROOT, environment)
    assert status == 13, output
    summary = (tmp_path / "run" / "summary.md").read_text(encoding="utf-8")
    assert (
        "extra options: `trtllm-serve --num_postprocess_workers 4; "
        "kv_cache_config.enable_block_reuse: true`"
    ) in summary
    assert "1 failed" not in output


COUNTING = (
    "tests/scenarios",
    "tests/judging/assembly/test_documented_claims.py",
    "tests/engines/tensorrt_llm/test_trtllm_tables_and_facts.py",
)


@pytest.mark.slow
def test_beside_the_documents_it_is_not_counted(tmp_path: Path) -> None:
    """The tests of the documents hold in a checkout that has the file, too."""
    for name in ("scenarios", "baselines", "docs", "tests", "fixtures"):
        ignore = shutil.ignore_patterns("__pycache__", "data")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignore)
    (tmp_path / "tests" / "data").symlink_to(ROOT / "tests" / "data")
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "src").symlink_to(ROOT / "src")
    (tmp_path / "scenarios" / "b200" / "gpt_oss_120b.yaml").write_text(TEXT, encoding="utf-8")
    places = [
        str(path.relative_to(tmp_path))
        for name in COUNTING
        for path in sorted(
            (tmp_path / name).rglob("test_*.py")
            if (tmp_path / name).is_dir()
            else [tmp_path / name]
        )
        if "documented_set" in path.read_text(encoding="utf-8")
    ]
    assert len(places) >= 5
    environment = {**inherited("PERFGATE_"), **ONLY_NEEDED_PLUGINS}
    status, output = forked.session([*BENCHMARK, "-q", "-x", *places], tmp_path, environment)
    assert status == 0, output[-3000:]
