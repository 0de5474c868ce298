"""What many tests share: a checkout of their own."""

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def suite_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty checkout, and a machine store, that perfgate takes for its own in this test."""
    root = tmp_path / "checkout"
    for schema in ("scenarios/scenario.schema.json", "baselines/baseline.schema.json"):
        (root / schema).parent.mkdir(parents=True)
        shutil.copy(ROOT / schema, root / schema)
    monkeypatch.setenv("PERFGATE_ROOT", str(root))
    monkeypatch.setenv("PERFGATE_HOME", str(tmp_path / "home"))
    return root
