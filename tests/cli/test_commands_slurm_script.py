"""The Slurm job of a start, printed: the text of a script that a person could hand in."""

import re
import subprocess
from pathlib import Path

import pytest
from tables import each

from perfgate.cli.main import main

Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).parents[2]
SITE = ROOT / "site.example.yaml"
RECORDED = ROOT / "tests" / "data" / "slurm_scripts"
PLAIN_SITE = """schema_version: 1
slurm: {partition: batch, gres: "gpu:{gpus}", clients: login, options: [--exclusive]}
"""


@pytest.fixture(autouse=True)
def _this_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its scenarios, and no Slurm on PATH."""
    monkeypatch.setenv("PERFGATE_ROOT", str(ROOT))
    monkeypatch.delenv("PERFGATE_SITE", raising=False)
    monkeypatch.setenv("PATH", "/no/such/folder")


def printed(capsys: Capture, *words: str) -> str:
    assert main(["scenarios", "command", "--launcher", "slurm", *words]) == 0
    return capsys.readouterr().out


@each(
    "scenario, words",
    [
        ("gb200-r1-fp4-2node-slurm", ("--site", str(SITE))),
        ("h200-v3-fp8-2node-mpirun", ("--site", str(SITE))),
        ("b200-r1-fp4-explore", ("--shape", "4096/512", "--site", "plain.yaml")),
        ("h200-r1-0528-lab-vllm-sharegpt-c4", ("--site", "plain.yaml")),
    ],
)
def test_the_text_is_the_recorded_one(
    capsys: Capture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    scenario: str,
    words: tuple[str, ...],
) -> None:
    (tmp_path / "plain.yaml").write_text(PLAIN_SITE)
    monkeypatch.chdir(tmp_path)
    text = printed(capsys, scenario, *words)
    assert text == (RECORDED / f"{scenario}.txt").read_text()
    subprocess.run(("/bin/sh", "-n"), input=text, text=True, check=True)
    # sbatch stops reading options at the first line that is no comment.
    comments, *_ = re.split(r"^[^#\n]", text, maxsplit=1, flags=re.MULTILINE)
    assert "#SBATCH" not in text.removeprefix(comments)


def test_no_secret_is_printed(capsys: Capture, tmp_path: Path) -> None:
    text = (ROOT / "scenarios" / "h200" / "deepseek_r1_best_practice.yaml").read_text()
    file = tmp_path / "scenario.yaml"
    file.write_text(text.replace("&nvcc\n", "&nvcc\n      HF_TOKEN: hf_abc\n"))
    shown = printed(capsys, "h200-r1-fp8-explore", "--scenarios", str(file))
    assert "HF_TOKEN" in shown
    assert "hf_abc" not in shown
