"""The engine of docs/dev/extend.md as it stands there: registered, rendered, asked."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from perfgate.core.errors import InputError, RunError
from perfgate.core.locations import Locations
from perfgate.core.paths import repository
from perfgate.engines.base import Endpoint, EngineBuild, engine
from perfgate.engines.in_force import require_in_force
from perfgate.scenarios.files import load_scenarios
from perfgate.scenarios.scenario import EngineChoice, EngineSettings, Scenario

PAGE = repository() / "docs" / "dev" / "extend.md"
ON_PAPER = Locations(on_paper=True)
BUILD = EngineBuild("fastserve", "2.1.0", "0a1b2c3")


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    code = PAGE.read_text().split("```python\n")[1].split("```")[0]
    file = tmp_path / "my_engine.py"
    file.write_text(code)
    monkeypatch.setattr(engine, "_classes", dict(engine))
    spec = importlib.util.spec_from_file_location("my_engine", file)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "my_engine", made)
    spec.loader.exec_module(made)
    return made


def scenario(**settings: object) -> Scenario:
    made = load_scenarios(repository() / "scenarios" / "h200" / "deepseek_r1_quick_start.yaml")[0]
    chosen = EngineChoice("fastserve", EngineSettings(**settings))  # type: ignore[arg-type]
    return replace(made, engine=chosen)


def test_it_is_registered_and_renders_every_setting_that_it_takes(module: ModuleType) -> None:
    known = engine["fastserve"]()
    case = scenario(tp=8, max_batch_size=256, kv_cache_fraction=0.8)
    known.check(case, BUILD)
    command = known.serve(case, BUILD, Endpoint("127.0.0.1", 8123, "m"), ON_PAPER)
    assert command.argv[0] == "fastserve"
    words = "--name m --host 127.0.0.1 --port 8123 --tp 8 --max-requests 256 --kv-share 0.8"
    assert " ".join(command.argv[2:]) == words


def test_it_refuses_every_other_setting(module: ModuleType) -> None:
    with pytest.raises(InputError, match=r"settings\.moe_backend"):
        engine["fastserve"]().check(scenario(tp=8, moe_backend="CUTLASS"), BUILD)


def test_a_setting_that_the_server_changed_is_found(module: ModuleType) -> None:
    known, case = engine["fastserve"](), scenario(tp=8, max_batch_size=1000)
    found = known.in_force(case, {"tp": 8, "max_requests": 48, "path": "/settings"}, ())
    assert found is not None
    with pytest.raises(RunError, match="max_batch_size: asked 1000, in force 48"):
        require_in_force(case, found)


def test_what_it_says_of_the_rooms_is_so() -> None:
    """The table of what else was touched names files that exist."""
    table = PAGE.read_text().split("## What adding vLLM and SGLang touched")[1]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    named = [name for cell in cells for name in cell.split("`")[1::2] if "/" in name]
    assert named
    for name in named:
        assert (repository() / "src" / "perfgate" / name).exists(), name
