"""How much the largest tests try: some of it on each push, all of it in `make nightly`.

One variable chooses: PERFGATE_NIGHTLY=1. The tests that read it are marked `nightly`.
"""

import os
from typing import TypeVar

T = TypeVar("T")

IS_NIGHTLY = os.environ.get("PERFGATE_NIGHTLY") == "1"


def sized(on_each_push: T, nightly: T) -> T:
    """The size of a test, or its cases, for this session."""
    return nightly if IS_NIGHTLY else on_each_push
