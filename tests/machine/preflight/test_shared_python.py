"""Shared Python: an engine's package beside perfgate is found by its metadata, not imported."""

import sys
from pathlib import Path

import pytest

from perfgate.machine.preflight.software import own_environment


def installed(site: Path, name: str, version: str) -> None:
    metadata = site / f"{name}-{version}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (site / f"{name}.py").write_text("raise RuntimeError('an engine was imported')\n")


def test_an_environment_of_its_own_is_well() -> None:
    assert own_environment() is None


def test_engines_beside_perfgate_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    installed(tmp_path, "tensorrt_llm", "1.0.0")
    installed(tmp_path, "sglang", "0.4.1")
    own = own_environment()
    assert own is not None
    told = own.found
    assert f"({sys.executable}) with tensorrt_llm 1.0.0, sglang 0.4.1: " in told
    assert "numpy and huggingface_hub" in told
