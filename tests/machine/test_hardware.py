import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from building import MACHINE, machine
from tables import each

from perfgate.machine.hardware import Gpu, detect, usable_cores
from perfgate.scenarios.scenario import Hardware

EIGHT_H200 = machine(*["NVIDIA H200"] * 8)
BOTH = machine("NVIDIA H100 PCIe", "NVIDIA H200")


@each(
    ("here", "needed"),
    [
        (MACHINE, Hardware("none", 0)),
        (EIGHT_H200, Hardware("none", 0)),
        (EIGHT_H200, Hardware("H200", 8)),
        (EIGHT_H200, Hardware("H200", 1)),
        (EIGHT_H200, Hardware("H200", 16, nodes=2)),
        (machine("NVIDIA H100 80GB HBM3"), Hardware("H100", 1)),
        (machine("NVIDIA GB200"), Hardware("GB200", 1)),
        (BOTH, Hardware("H200", 1)),
    ],
)
def test_what_it_can_run(here: object, needed: Hardware) -> None:
    assert here.lacks(needed) is None  # type: ignore[attr-defined]


@each(
    ("here", "needed", "why"),
    [
        (MACHINE, Hardware("H200", 8), "needs 8×H200, found none (no nvidia-smi on PATH)"),
        (EIGHT_H200, Hardware("B200", 8), "needs 8×B200, found 8×NVIDIA H200"),
        (machine("NVIDIA H200"), Hardware("H200", 8), "needs 8×H200, found 1×NVIDIA H200"),
        (machine("NVIDIA GB200"), Hardware("B200", 1), "needs 1×B200, found 1×NVIDIA GB200"),
        (machine("NVIDIA GH200 480GB"), Hardware("H200", 1), "found 1×NVIDIA GH200 480GB"),
        (BOTH, Hardware("H200", 2), "found 1×NVIDIA H100 PCIe, 1×NVIDIA H200"),
        (EIGHT_H200, Hardware("GB200", 8, nodes=2), "needs 2×4×GB200, found 8×NVIDIA H200"),
    ],
)
def test_why_it_cannot(here: object, needed: Hardware, why: str) -> None:
    assert str(here.lacks(needed)).endswith(why)  # type: ignore[attr-defined]


def test_the_fingerprint_is_what_speed_depends_on() -> None:
    assert MACHINE.fingerprint() == {"cpu": "Grace", "cores": "72"}
    assert machine("NVIDIA H200", "NVIDIA H100").fingerprint() == {
        "cpu": "Grace",
        "cores": "72",
        "gpus": "NVIDIA H100, NVIDIA H200",
        "driver": "570.1",
    }
    one, other = machine("NVIDIA H200"), machine("NVIDIA H200", host="node8")
    assert one.fingerprint() == other.fingerprint()


class TestDetect:
    @pytest.fixture
    def nvidia_smi(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A program of that name, first on PATH; a test writes what it does."""
        program = tmp_path / "nvidia-smi"
        program.touch(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        return program

    def test_this_machine(self) -> None:
        here = detect()
        assert here.cores == usable_cores() >= 1
        assert here.memory_bytes > 2**28
        assert here.python == ".".join(map(str, sys.version_info[:3]))
        assert "\n" not in here.cpu
        assert here.cpu

    def test_cores_are_those_this_process_may_use(self) -> None:
        code = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
        code += "from perfgate.machine.hardware import usable_cores; print(usable_cores())"
        answer = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        assert answer.stdout.strip() == b"1"

    @pytest.mark.parametrize(
        ("text", "name"),
        [
            ("processor\t: 0\nmodel name\t: AMD EPYC 9654\nmodel name\t: other\n", "AMD EPYC 9654"),
            ("processor\t: 0\nCPU implementer\t: 0x41\n", platform.machine()),
        ],
    )
    def test_the_cpu_as_the_kernel_tells_it(self, monkeypatch, text: str, name: str) -> None:
        monkeypatch.setattr(Path, "read_text", lambda self: text)
        assert detect().cpu == name

    def test_gpus_as_the_driver_tells_them(self, nvidia_smi: Path) -> None:
        nvidia_smi.write_text(
            "#!/bin/sh\n"
            '[ "$*" = "--query-gpu=name,memory.total,driver_version '
            '--format=csv,noheader,nounits" ] || exit 2\n'
            'echo "NVIDIA H200, 143771, 570.124.06"\n'
            'echo "NVIDIA GB10, [N/A], 570.124.06"\n'
        )
        assert detect().gpus == (
            Gpu("NVIDIA H200", 143771 * 2**20, "570.124.06"),
            Gpu("NVIDIA GB10", 0, "570.124.06"),
        )

    @pytest.mark.parametrize(
        ("script", "note"),
        [
            ("/bin/sh\necho has failed; exit 9", "nvidia-smi failed: has failed"),
            ("/bin/sh\necho 'No devices were found'", "by nvidia-smi"),
            ("/no/such/interpreter", "nvidia-smi failed: "),
        ],
    )
    def test_no_gpus_and_why(self, nvidia_smi: Path, script: str, note: str) -> None:
        nvidia_smi.write_text(f"#!{script}\n")
        assert detect().gpus == ()
        assert detect().gpu_note.startswith(note)

    @pytest.mark.parametrize(
        ("status", "levels"), [(0, "0 vboost 4 0, 1 vboost 4 2"), (6, ""), (None, "")]
    )
    def test_the_boost_sliders_are_a_fact_where_the_driver_names_them(
        self, nvidia_smi: Path, status: int | None, levels: str
    ) -> None:
        nvidia_smi.write_text(
            "#!/bin/sh\n"
            f'[ "$*" = "boost-slider -l" ] || {{ echo "NVIDIA B200, 1, 580.1"; exit; }}\n'
            'echo "+-------------------------------------------------+"\n'
            'echo "| GPU Boost Slider                                |"\n'
            'echo "| GPU     Slider       Max Value    Current Value |"\n'
            'echo "|=================================================|"\n'
            'echo "|   0     vboost           4              0       |"\n'
            'echo "|   1     vboost           4              2       |"\n'
            'echo "+-------------------------------------------------+"\n'
            f"exit {status}\n"
            if status is not None
            else "#!/bin/sh\necho 'NVIDIA-SMI has failed'; exit 9\n"
        )
        found = detect()
        assert found.boost_slider == levels
        assert found.fingerprint().get("boost_slider", "") == levels

    def test_a_program_that_hangs(self, nvidia_smi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        nvidia_smi.write_text("#!/bin/sh\nexec sleep 60\n")
        monkeypatch.setattr("perfgate.machine.hardware._QUERY_S", 0.5)
        assert detect().gpu_note == f"nvidia-smi failed: no answer from {nvidia_smi} within 0.5 s"

    def test_no_program(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        assert detect().gpu_note == "no nvidia-smi on PATH"
