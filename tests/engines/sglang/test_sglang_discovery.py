"""Which SGLang is installed: asked of its interpreter, which does not import it."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from sglang_scenarios import ENGINE

from perfgate.core.errors import MissingProgram
from perfgate.core.locations import Locations
from perfgate.engines.program_output import answer


@pytest.fixture(autouse=True)
def nothing_asked_before() -> None:
    answer.cache_clear()


def installed(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: str | None = "0.5.3",
    files: dict[str, str] | None = None,
) -> None:
    """A Python that has a package sglang, which must not be imported."""
    package = folder / "python" / "sglang"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('imported')\n")
    for name, text in (files or {}).items():
        (package / name).write_text(text)
    if version is not None:
        metadata = package.parent / f"sglang-{version}.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Name: sglang\nVersion: {version}\n")
    python = folder / "python3"
    call = shlex.join(["env", f"PYTHONPATH={package.parent}", sys.executable])
    python.write_text(f'#!/bin/sh\nexec {call} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("PERFGATE_PROGRAM_SGLANG", f"{python} -m sglang.launch_server")
    monkeypatch.delenv("PERFGATE_PROGRAM_SGLANG_PYTHON", raising=False)


def found() -> tuple[str, str]:
    build = ENGINE.build(Locations())
    assert build.name == "sglang"
    return build.version, build.commit


def test_a_wheel_names_no_commit_so_that_the_version_stands_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, monkeypatch, files={"version.py": '__version__ = "0.5.3"\n'})
    assert found() == ("0.5.3", "0.5.3")


@pytest.mark.parametrize(
    ("told", "commit"),
    [
        ("__commit_id__ = commit_id = None", "0.5.9"),  # as the wheels of PyPI have it
        ("__commit_id__ = commit_id = 'g4ba787ec9'", "4ba787ec9"),
        ("commit_id = '4ba787ec9'", "4ba787ec9"),
    ],
)
def test_a_commit_that_the_package_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str, commit: str
) -> None:
    installed(tmp_path, monkeypatch, "0.5.9", {"_version.py": f"{told}\n"})
    assert found() == ("0.5.9", commit)


def test_a_nightly_build_ends_in_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = "0.5.4.dev37+g1a2b3c4d5.d20251001"
    installed(tmp_path, monkeypatch, version)
    assert found() == (version, "1a2b3c4d5")


def test_a_checkout_that_it_is_run_from_tells_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, monkeypatch, None, {"version.py": '__version__ = "0.5.3"\n'})
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.example"]
    for words in (["init", "-q"], ["add", "python"], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True, timeout=60)
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    assert found() == ("0.5.3", head.stdout.strip())


def test_a_python_without_it_is_no_sglang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, monkeypatch, None)
    with pytest.raises(MissingProgram, match="has no package sglang") as caught:
        ENGINE.build(Locations())
    assert "PERFGATE_PROGRAM_SGLANG" in str(caught.value)


def test_a_program_that_is_no_python_is_told_with_what_it_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapper = tmp_path / "python3"
    wrapper.write_text("#!/bin/sh\necho cannot open the disk >&2\nexit 1\n")
    wrapper.chmod(0o755)
    monkeypatch.setenv("PERFGATE_PROGRAM_SGLANG", f"{wrapper} -m sglang.launch_server")
    with pytest.raises(MissingProgram, match="cannot open the disk"):
        ENGINE.build(Locations())
