"""Hardware: what this machine is, and why it cannot run a scenario."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from building import MACHINE, machine
from tables import each, tables_of

from perfgate.machine.hardware import Gpu, detect, usable_cores
from perfgate.scenarios.scenario import Hardware

TABLES = tables_of("machine_tables")
BOTH = machine("NVIDIA H100 PCIe", "NVIDIA H200")


@each(("gpus", "model", "count", "nodes", "why"), TABLES["hardware"])
def test_what_it_can_run_and_why_not(gpus, model: str, count: int, nodes: int, why: str) -> None:
    names = [name for number, name in (one.split("×") for one in gpus) for _ in range(int(number))]
    lacking = machine(*names).lacks(Hardware(model, count, nodes=nodes))
    assert (lacking or "").endswith(why)
    assert bool(lacking) is bool(why)


def test_the_fingerprint_is_what_speed_depends_on() -> None:
    assert MACHINE.fingerprint() == {"cpu": "Grace", "cores": "72"}
    gpus = {"gpus": "NVIDIA H100 PCIe, NVIDIA H200", "driver": "570.1"}
    assert BOTH.fingerprint() == {**MACHINE.fingerprint(), **gpus}
    other = machine("NVIDIA H200", "NVIDIA H100 PCIe", host="node8")
    assert other.fingerprint() == BOTH.fingerprint()


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program of that name, first on PATH; a test writes what it does."""
    program = tmp_path / "nvidia-smi"
    program.touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return program


def test_this_machine() -> None:
    here = detect()
    assert here.cores == usable_cores() >= 1
    assert here.memory_bytes > 2**28
    assert here.python == ".".join(map(str, sys.version_info[:3]))
    assert "\n" not in here.cpu
    assert here.cpu


def test_cores_are_those_this_process_may_use() -> None:
    code = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
    code += "from perfgate.machine.hardware import usable_cores; print(usable_cores())"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert answer.stdout.strip() == b"1"


@each(
    ("text", "name"),
    [
        ("processor\t: 0\nmodel name\t: AMD EPYC 9654\nmodel name\t: other\n", "AMD EPYC 9654"),
        ("processor\t: 0\nCPU implementer\t: 0x41\n", platform.machine()),
    ],
)
def test_the_cpu_as_the_kernel_tells_it(monkeypatch, text: str, name: str) -> None:
    monkeypatch.setattr(Path, "read_text", lambda self: text)
    assert detect().cpu == name


def test_gpus_as_the_driver_tells_them(nvidia_smi: Path) -> None:
    query = "--query-gpu=name,memory.total,driver_version --format=csv,noheader,nounits"
    says = '"NVIDIA H200, 143771, 570.124.06\nNVIDIA GB10, [N/A], 570.124.06"'
    nvidia_smi.write_text(f'#!/bin/sh\n[ "$*" = "{query}" ] || exit 2\necho {says}\n')
    found = Gpu("NVIDIA H200", 143771 * 2**20, "570.124.06"), Gpu("NVIDIA GB10", 0, "570.124.06")
    assert detect().gpus == found


@each("script, note", TABLES["no_gpus"])
def test_no_gpus_and_why(nvidia_smi: Path, monkeypatch, script: str, note: str) -> None:
    nvidia_smi.write_text(f"#!{script}\n")
    monkeypatch.setattr("perfgate.machine.hardware._QUERY_S", 0.5)
    with monkeypatch.context() as here:
        if not script:
            here.setenv("PATH", "/nowhere")
        assert detect().gpus == ()
        assert detect().gpu_note.startswith(note)


SLIDERS = """\
| GPU     Slider       Max Value    Current Value |
|   0     vboost           4              0       |
|   1     vboost           4              2       |
"""


@each(("status", "levels"), [(0, "0 vboost 4 0, 1 vboost 4 2"), (6, "")])
def test_the_boost_sliders_are_a_fact_where_the_driver_names_them(nvidia_smi, status, levels):
    nvidia_smi.write_text(
        f'#!/bin/sh\n[ "$*" = "boost-slider -l" ] || {{ echo "NVIDIA B200, 1, 580.1"; exit; }}\n'
        f"echo '{SLIDERS}'\nexit {status}\n"
    )
    found = detect()
    assert found.boost_slider == levels
    assert found.fingerprint().get("boost_slider", "") == levels
