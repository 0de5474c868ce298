"""What the cores have done, as the kernel writes it."""

from pathlib import Path

import pytest

from perfgate.core.cpu_times import TICKS_PER_S, Core, core_times

STAT = """\
cpu  700 20 300 9000 50 7 8 40 90 0
cpu0 500 20 100 4000 20 3 4 30 90 0
cpu3 200 0 200 5000 30 4 4 10 0 0
intr 12345 0 1
ctxt 99
"""


def test_core_times_as_the_kernel_writes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupts, cores that wait, steal and guests, which are in the user's, are no work."""
    monkeypatch.setattr(Path, "read_text", lambda path: STAT if f"{path}" == "/proc/stat" else "")
    assert core_times() == {
        0: Core(620 / TICKS_PER_S, 30 / TICKS_PER_S),
        3: Core(400 / TICKS_PER_S, 10 / TICKS_PER_S),
    }
