"""Sessions of the suite on a real SGLang on the CPU.

Its kernels are stubs (ci/maintenance/sglang_stubs.py), so no number of such a session is looked at.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from real_engine import Checkout, Plain, RealEngine, local_scenarios, repository

SCHEDULER, PARENT = "sglang::scheduler", "launch_server"

Change = Callable[[Plain, Plain], None]


def _is_server(words: Sequence[str], title: str) -> bool:
    return title in words[:1] or (title == PARENT and f"sglang.{PARENT}" in words[1:3])


SGLANG = RealEngine(
    "sglang",
    "PERFGATE_REQUIRE_SGLANG",
    ("PERFGATE_PROGRAM_SGLANG", "PERFGATE_PROGRAM_SGLANG_BENCH_SERVING"),
    patience_s=1200,  # a start takes 20 s on two idle cores, and minutes on crowded ones
    is_server=_is_server,
    parent=PARENT,
    loading="Starting main benchmark run",
)


def checkout(folder: Path, change: Change | None = None) -> Checkout:
    """A repository with the local scenario.

    Args:
        folder: made here.
        change: changes the scenario, and the defaults of its file.
    """
    plain = local_scenarios(SGLANG)
    if change is not None:
        change(plain["scenarios"][0], plain["defaults"])
    return repository(folder, SGLANG, plain)
