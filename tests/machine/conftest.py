"""What the tests of the machine share: a made-up NVML."""

import sys

import pytest
from fake_pynvml import FakeGpu, FakePynvml


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch):
    """Puts simulated GPUs in the place of pynvml; all are visible."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def install(*gpus: FakeGpu, **fields) -> FakePynvml:
        nvml = FakePynvml(*gpus, **fields)
        monkeypatch.setitem(sys.modules, "pynvml", nvml)
        return nvml

    return install
