"""What the tests of the preflight share: simulated GPUs, each told by what is not well of it."""

from collections.abc import Callable

import pytest
from fake_pynvml import FakePynvml
from made_gpus import h200


@pytest.fixture
def install(install: Callable[..., FakePynvml]) -> Callable[..., FakePynvml]:
    """Puts H200 in the place of pynvml; function → answer of each, as `FakeGpu` has it."""
    return lambda *gpus, **fields: install(
        *(h200(number, answers) for number, answers in enumerate(gpus)), **fields
    )
