"""Installed packages register their own by entry points, for pytest and the commands alike."""

import subprocess
import sys
from pathlib import Path

import pytest
from sessions import BENCHMARK, ONLY_NEEDED_PLUGINS, inherited

from perfgate.core.files.paths import repository

MODULE = """
from perfgate.clients.base import Client, client
from perfgate.engines.base import Engine, engine
from perfgate.evaluators.base import Evaluator, evaluator
from perfgate.launchers.base import Launcher, launcher
known = list(launcher)

engine("of-mine")(type("E", (Engine,), {}))
client("of-mine")(type("C", (Client,), {}))
evaluator("of-mine")(type("V", (Evaluator,), {}))
launcher("of-mine")(type("L", (Launcher,), {}))
"""
READ = """
from perfgate.clients.base import client
from perfgate.engines.base import engine
from perfgate.evaluators.base import evaluator
from perfgate.launchers.base import launcher
print(*("of-mine" in one for one in (engine, client, evaluator, launcher)))
"""
COMMANDS = {
    "pytest": ("pytest", *BENCHMARK, "-m", "local", "--collect-only"),
    "perfgate": ("perfgate", "scenarios", "list", "local-*"),
}


def run(folder: Path, module: str, *words: str) -> tuple[int, str]:
    """Run Python where the package `mine` is installed, with this text as its module."""
    (folder / "mine.py").write_text(module)
    info = folder / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[perfgate.plugins]\nours = mine\n")
    done = subprocess.run(
        (sys.executable, *words),
        cwd=repository(),
        env={**inherited(), **ONLY_NEEDED_PLUGINS, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout + done.stderr


def test_an_entry_point_registers_all_kinds(tmp_path: Path) -> None:
    assert run(tmp_path, MODULE, "-c", READ) == (0, "True True True True\n")


@pytest.mark.parametrize(("command", "status"), [("pytest", 4), ("perfgate", 2)])
def test_one_that_cannot_be_imported_is_named_with_its_package(
    tmp_path: Path, command: str, status: int
) -> None:
    found, output = run(tmp_path, "import no_such_module", "-m", *COMMANDS[command])
    assert found == status, output
    for part in (
        "an entry point of the installed package mine cannot be loaded",
        "ours = mine: ModuleNotFoundError: No module named 'no_such_module'",
        "fix: correct the package, or `pip uninstall mine`",
    ):
        assert output.count(part) == 1, output
    assert "Traceback" not in output
