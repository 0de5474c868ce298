"""A made-up nvidia-smi with its boost slider: what it is asked, and the levels that it keeps.

Its table is made as the project knows it: no GPU was at hand.
"""

import json
import shlex
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "machine" / "preflight" / "programs" / "nvidia_smi.py"


class Smi:
    """The stand-in's memory, and what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.set(levels={"0": 0, "1": 2})

    def set(self, **state) -> None:
        (self.folder / "state.json").write_text(json.dumps({"most": 4, **state}))

    @property
    def levels(self) -> dict[str, int]:
        return json.loads((self.folder / "state.json").read_text())["levels"]

    @property
    def calls(self) -> list[str]:
        return [" ".join(line["argv"][1:]) for line in self.lines if line["what"] == "begins"]

    @property
    def lines(self) -> list[dict]:
        file = self.folder / "calls.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        found = [json.loads(line) for line in lines]
        return [line for line in found if line["argv"][0] == "boost-slider"]

    @property
    def settings(self) -> list[dict]:
        """The calls that set something, as they began."""
        return [line for line in self.lines if line["what"] == "begins" and "-i" in line["argv"]]


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Smi:
    folder = tmp_path / "smi"
    folder.mkdir()
    # Without site packages: it needs none, and coverage starts in every process that has them.
    argv = [sys.executable, "-S", str(PROGRAM)]
    monkeypatch.setenv("PERFGATE_PROGRAM_NVIDIA_SMI", shlex.join(argv))
    monkeypatch.setenv("MADE_SMI", str(folder))
    return Smi(folder)
