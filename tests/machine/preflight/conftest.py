"""What the tests of the preflight share: a made-up NVML."""

import sys

import pytest
from made_gpus import MadeNvml


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch):
    """Puts a made-up machine in the place of pynvml."""

    def install(*gpus: dict, **fields) -> MadeNvml:
        nvml = MadeNvml(*gpus, **fields)
        monkeypatch.setitem(sys.modules, "pynvml", nvml)
        return nvml

    return install
