"""What the tests of the preflight share: simulated GPUs, each told by what is not well; scripts."""

import pytest
from fake_pynvml import FakeGpu, FakePynvml

H200 = {"name": "NVIDIA H200", "mhz": (345,), "degrees": (30,), "reasons": (0x1,)}
OLDER = {"nvmlDeviceGetTemperature": 31}  # so that it can be told which function was asked


@pytest.fixture
def install(install, monkeypatch: pytest.MonkeyPatch):
    """Puts H200 in the place of pynvml; function → answer of each, as `FakeGpu` has it."""
    for name in ("CUDA_DEVICE_ORDER", "PERFGATE_FAKE_GPUS"):
        monkeypatch.delenv(name, raising=False)

    def install_h200(*gpus, **fields) -> FakePynvml:
        given = enumerate({**OLDER, **answers} for answers in gpus)
        return install(*(FakeGpu(f"GPU-{n}", **H200, answers=one) for n, one in given), **fields)

    return install_h200


@pytest.fixture
def programs(tmp_path, monkeypatch: pytest.MonkeyPatch):
    """Puts a script on PATH that notes its arguments and then does what it is told."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def make(name: str, body: str):
        log = tmp_path / f"{name}.argv"
        script = folder / name
        script.write_text(f'#!/bin/sh\necho "$@" >> {log}\n{body}\n')
        script.chmod(0o755)
        return log

    return make
