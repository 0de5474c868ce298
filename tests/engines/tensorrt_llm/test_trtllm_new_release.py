"""A new release is one table file: the made-up one of the document, in a folder of one's own."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tables import each
from trtllm_scenarios import build, check, offline, options, render, scenario, served

from perfgate.cli.main import main
from perfgate.core.errors import CannotDo, InputError, SeveralInputErrors
from perfgate.core.files.paths import repository
from perfgate.engines.tensorrt_llm.table import TABLES, VARIABLE, release
from perfgate.plan.toolchain import registered
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.scenario import EngineSettings, Scenario

DOCUMENT = repository() / "docs" / "reference" / "dialects.md"
NEW, OLD = "1.5.0", "1.4.0"


def shown() -> tuple[str, str]:
    """Name and content of the table that the document shows."""
    section = DOCUMENT.read_text(encoding="utf-8").partition("\n## Add a release\n")[2]
    (name,) = set(re.findall(r"`(\d[\w.]+\.yaml)`", section))
    (content,) = re.findall(r"^```yaml\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    return name, content


@pytest.fixture(autouse=True)
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tables"
    folder.mkdir()
    name, content = shown()
    (folder / name).write_text(content, encoding="utf-8")
    monkeypatch.setenv(VARIABLE, str(folder))
    return folder


def case(**settings: Any) -> Scenario:
    return scenario(
        release=None,
        settings=EngineSettings(tp=8, kv_cache_fraction=0.8, iteration_log=True, **settings),
        workload=served(),
    )


def file(made: Scenario, version: str) -> Any:
    (content,) = render(made, version).files.values()
    return yaml.safe_load(content)


def test_it_holds_from_its_first_candidate_on(monkeypatch: pytest.MonkeyPatch) -> None:
    assert release(NEW).since == "1.5.0rc0"
    assert release(OLD).since == "1.4.0rc0"
    assert TABLES.uncovered(NEW) is None
    assert TABLES.uncovered("1.6.0") is not None
    monkeypatch.delenv(VARIABLE)
    assert release(NEW).since == "1.4.0rc0"
    assert TABLES.uncovered(NEW) is not None


def test_the_renamed_option_and_the_moved_key_are_rendered() -> None:
    assert options(render(case(), NEW).argv)["--kv_cache_share"] == "0.8"
    assert "--kv_cache_free_gpu_memory_fraction" not in render(case(), NEW).argv
    assert file(case(), NEW) == {"logging": {"iterations": True}}
    assert file(case(), OLD) == {"print_iter_log": True}


def test_the_new_choices_are_taken_where_they_are_known() -> None:
    bench = scenario(
        release=None, settings=EngineSettings(tp=8, backend="photon"), workload=offline()
    )
    experts = case(moe_backend="PHOTONIC")
    for made in (bench, case(backend="photon"), experts):
        check(made, build(NEW))
    for made in (bench, case(backend="photon")):
        with pytest.raises(CannotDo, match="one of _autodeploy, pytorch"):
            check(made, build(OLD))
    with pytest.raises(CannotDo, match="found: PHOTONIC"):
        check(experts, build("1.3.0rc3"))
    assert file(experts, NEW)["moe_config"] == {"backend": "PHOTONIC"}


def test_a_scenario_file_may_name_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = repository() / "scenarios" / "b200" / "deepseek_r1_quick_start.yaml"
    text = source.read_text(encoding="utf-8").replace("backend: pytorch", "backend: photon")
    (tmp_path / "markers.yaml").write_bytes(source.parents[1].joinpath("markers.yaml").read_bytes())
    mine = tmp_path / "mine.yaml"
    mine.write_text(text.partition("\nclaims:")[0], encoding="utf-8")
    found = load_scenarios([tmp_path / "markers.yaml", mine], registered())
    assert {one.engine.settings.backend for one in found} == {"photon"}
    assert "PHOTONIC" in registered().engines["tensorrt-llm"]["moe_backend"]
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(SeveralInputErrors, match="photon"):
        load_scenarios([tmp_path / "markers.yaml", mine], registered())


def test_it_is_planned_and_told_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    call = ["scenarios", "command", "b200-r1-0528-fp8-serve", "--engine-version", NEW]
    assert main(call) == 0
    told = capsys.readouterr()
    assert "--kv_cache_share 0.8" in told.out
    assert "spelled for tensorrt-llm 1.5.0" in told.out
    assert "no table of releases" not in told.err


@each(
    ("text", "problem"),
    [
        ("a: " + "[" * 30_000, "nested too deep"),
        ("a: &a [1]\n" + "".join(f"k{n}: [*a, *a]\n" for n in range(60_000)), "too"),
        ("programs: {trtllm-serve: {tp: [", "broken YAML"),
        ("", "empty file"),
        ("programs: {trtllm-serve: {tp: 3}}", "not a table of TensorRT-LLM releases"),
    ],
)
def test_what_is_no_table_is_refused_with_its_file(tables: Path, text: str, problem: str) -> None:
    (tables / "1.6.0.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=problem) as caught:
        release("1.6.0")
    assert "1.6.0.yaml" in str(caught.value)
