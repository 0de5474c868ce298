"""The engine of docs/dev/extend.md as it stands there: registered, rendered, asked."""

import ast
import importlib.util
import re
import sys
from pathlib import Path

import pytest
from engine_scenarios import made

from perfgate.core.errors import CannotDo, CliDrift, RunError
from perfgate.core.files.paths import repository
from perfgate.core.programs.locations import Locations
from perfgate.engines.base import Endpoint, Engine, EngineBuild, engine
from perfgate.engines.effective_settings import require_effective_settings
from perfgate.scenarios.scenario import EngineSettings, Scenario

PAGE = repository() / "docs" / "dev" / "extend.md"
SHOWN = re.compile(r"^`(fastserve/[\w./]+)` [^\n]*:\n\n```\w+\n(.*?)^```", re.DOTALL | re.MULTILINE)
FILES = dict(SHOWN.findall(PAGE.read_text()))
HERE = Endpoint("127.0.0.1", 8123, "m")


@pytest.fixture
def fastserve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    monkeypatch.setattr(engine, "_classes", dict(engine))
    spec = importlib.util.spec_from_file_location("fastserve", tmp_path / "fastserve/__init__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "fastserve", module)
    spec.loader.exec_module(module)
    return engine["fastserve"]()


def build(version: str) -> EngineBuild:
    return EngineBuild("fastserve", version, "0a1b2c3")


def scenario(**settings: object) -> Scenario:
    return made("fastserve", EngineSettings(**settings), None)  # type: ignore[arg-type]


def test_it_is_one_folder_and_as_short_as_the_page_says() -> None:
    """Counted without blank lines, comments and docstrings."""
    code = FILES["fastserve/__init__.py"]
    alone = [one.value for one in ast.walk(ast.parse(code)) if isinstance(one, ast.Expr)]
    texts = [one for one in alone if isinstance(one, ast.Constant)]
    (told,) = re.findall(r"and (\d+) lines of Python", PAGE.read_text())
    lines = [line for line in code.splitlines() if line.strip()]
    assert len(lines) - len(texts) == int(told) <= 150


def test_each_release_is_rendered_by_its_table(fastserve: Engine) -> None:
    case = scenario(tp=8, max_batch_size=256, kv_cache_fraction=0.8)
    for version, option in (("2.0", "--max-requests"), ("2.1", "--max-batch")):
        fastserve.check(case, build(version))
        argv = fastserve.serve(case, build(version), HERE, Locations(on_paper=True)).argv
        words = f"--tp 8 {option} 256 --kv-share 0.8 --host 127.0.0.1 --port 8123"
        assert (argv[0], " ".join(argv[2:])) == ("fastserve", words)


def test_it_refuses_every_other_setting(fastserve: Engine) -> None:
    with pytest.raises(CannotDo, match=r"settings\.moe_backend"):
        fastserve.check(scenario(tp=8, moe_backend="CUTLASS"), build("2.0"))


def test_the_installed_program_is_asked(
    fastserve: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its version, and its options: of 2.1, which has another name for one."""
    program = tmp_path / "fastserve.sh"
    lines = "\n".join(f"  {one} X" for one in ("--tp", "--max-batch", "--host", "--port"))
    program.write_text(f"#!/bin/sh\n[ $1 = --version ] && echo 2.1 && exit\necho '{lines}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PERFGATE_PROGRAM_FASTSERVE", str(program))
    found, case = fastserve.build(Locations()), scenario(tp=8, max_batch_size=256)
    assert found == EngineBuild("fastserve", "2.1", "2.1")
    fastserve.verify(found, [fastserve.serve(case, found, HERE, Locations())], Locations())
    older = fastserve.serve(case, build("2.0"), HERE, Locations())
    with pytest.raises(CliDrift, match="no option --max-requests"):
        fastserve.verify(build("2.0"), [older], Locations())


def test_a_setting_that_the_server_changed_is_found(fastserve: Engine) -> None:
    case = scenario(tp=8, max_batch_size=1000)
    found = fastserve.effective_settings(
        case, {"tp": 8, "max_requests": 48, "path": "/settings"}, ()
    )
    assert found is not None
    with pytest.raises(RunError, match="max_batch_size: asked 1000, in force 48"):
        require_effective_settings(case, found)


def test_what_it_says_of_the_rooms_is_so() -> None:
    """The table of what else was touched names files that exist."""
    table = PAGE.read_text().split("## What adding vLLM and SGLang touched")[1]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    named = [name for cell in cells for name in cell.split("`")[1::2] if "/" in name]
    assert named
    for name in named:
        assert (repository() / "src" / "perfgate" / name).exists(), name
